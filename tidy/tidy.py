#!/usr/bin/env python3
"""The repository checks itself: layers, bans, sizes, headers, documents. Rules: tidy/rules.py.

Exit 0: nothing found. 1: findings, one line each as path:line: [check] message. Needs only Python 3."""

import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import api_schema  # noqa: E402
import checks  # noqa: E402
import documents  # noqa: E402
import ratchet as ratchets  # noqa: E402
import rules  # noqa: E402
from repository import Repository  # noqa: E402


def findings(root, against=("HEAD",)):
    """(findings, ratchet, repository) of the tree under root."""
    repo = Repository(root, rules)
    limits = ratchets.load(root)
    ratchet = ratchets.Ratchet(limits)
    found = []
    for check in (checks.layers, checks.links, checks.headers, checks.text_form, checks.leftovers,
                  checks.registered, documents.doc_links, documents.promised_commands,
                  documents.preset_pairs, documents.named_tests, documents.error_codes,
                  api_schema.check):
        found += check(repo)
    found += checks.bans(repo, ratchet)
    found += checks.sizes(repo, ratchet)
    found += [(ratchets.PATH, 1, "ratchet", message) for message in ratchet.stale()]
    for revision in against:
        before = ratchets.committed(root, revision)
        if before is not None:
            found += [(ratchets.PATH, 1, "ratchet", f"{message} (since {revision})")
                      for message in ratchets.raised(before, limits)]
    return sorted(set(found)), ratchet, repo


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--root", default=here, help="the tree to check")
    parser.add_argument("--shrink", action="store_true", help="lower the exceptions to what is needed")
    parser.add_argument("--against", action="append", default=None, metavar="REVISION",
                        help="commits that the exceptions may not exceed (default: HEAD)")
    options = parser.parse_args()
    found, ratchet, repo = findings(options.root, options.against or ["HEAD"])
    if options.shrink:
        with open(os.path.join(options.root, ratchets.PATH), "w", encoding="utf-8") as file:
            file.write(ratchets.render(ratchet.shrunk()))
        found, ratchet, repo = findings(options.root, options.against or ["HEAD"])
    for path, line, check, message in found:
        print(f"{path}:{line}: [{check}] {message}")
    print(f"tidy: {len(found)} findings in {len(repo.texts)} files, {len(ratchet.limits)} exceptions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
