#!/usr/bin/env python3
"""Runs the tests of a preset with CTest and ends with the plain line `N passed, N failed`.

Skipped tests are said apart and never counted as passed. A test whose program was not built counts as
failed. Seeds of random tests are fixed here and printed, so that a failure can be run again. With
WARPRAID_COUNTS in the environment the numbers are added to that file, and with WARPRAID_FAILURES the
last lines of every test that failed. Needs only Python 3."""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

# What CTest says of a test that chose to be skipped; everything else that did not run is a failure.
SKIPPED = ("SKIP_RETURN_CODE", "SKIP_REGULAR_EXPRESSION")

# Of a failed test's output: enough for a traceback and what was said before it.
LINES_OF_A_FAILURE = 60


def counts(junit):
    """(passed, {failed name: output}, skipped names) of a JUnit file as CTest writes it."""
    passed, failed, skipped = 0, {}, []
    for case in xml.parse(junit).getroot().iter("testcase"):
        skip = case.find("skipped")
        if case.get("status") == "run":
            passed += 1
        elif skip is not None and (skip.get("message") or "").startswith(SKIPPED):
            skipped.append(case.get("name"))
        elif case.get("status") != "disabled":
            failed[case.get("name")] = case.findtext("system-out") or ""
    return passed, failed, skipped


def environment():
    """The environment with a seed for every kind of random test: given ones are kept."""
    result = dict(os.environ)
    seed = result.get("WARPRAID_SEED") or str(random.SystemRandom().randrange(1, 1 << 31))
    result["WARPRAID_SEED"] = seed
    if "seed=" not in result.get("RC_PARAMS", ""):
        result["RC_PARAMS"] = f"{result.get('RC_PARAMS', '')} seed={seed}".strip()
    print(f"Seeds of this run: WARPRAID_SEED={seed} RC_PARAMS='{result['RC_PARAMS']}'", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", required=True)
    parser.epilog = "Everything else is given to ctest."
    options, rest = parser.parse_known_args()
    # One more than there are processors was tried: the end-to-end tests took longer together.
    jobs = min(os.cpu_count() or 1, 4)
    with tempfile.TemporaryDirectory() as folder:
        junit = os.path.join(folder, "junit.xml")
        ran = subprocess.run(["ctest", "--preset", options.preset, "--output-junit", junit,
                              "--no-tests=error", f"-j{jobs}", *rest], env=environment(), check=False)
        if not os.path.exists(junit):
            print("CTest wrote no results")
            return ran.returncode or 1
        passed, failed, skipped = counts(junit)
    if skipped:
        print(f"{len(skipped)} skipped: {', '.join(sorted(skipped))}")
    if failed:
        print(f"{len(failed)} failed: {', '.join(sorted(failed))}")
    if os.environ.get("WARPRAID_COUNTS"):
        name = os.environ.get("WARPRAID_COUNTS_NAME", options.preset)
        with open(os.environ["WARPRAID_COUNTS"], "a", encoding="utf-8") as file:
            file.write(f"{passed} {len(failed)} {len(skipped)} {name}\n")
    if os.environ.get("WARPRAID_FAILURES"):
        with open(os.environ["WARPRAID_FAILURES"], "a", encoding="utf-8") as file:
            for test, output in sorted(failed.items()):
                lines = output.rstrip().split("\n")[-LINES_OF_A_FAILURE:]
                file.write("\n".join([f"FAILED {test}:", *lines, ""]))
    print(f"{passed} passed, {len(failed)} failed", flush=True)
    return 1 if failed or ran.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
