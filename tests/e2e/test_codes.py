"""R06: whatever is refused, the message says what was found, what was needed and what to do, and doing
that helps. One entry for each code: see codes.py."""

import json
import re
from pathlib import Path

import codes_daemon  # noqa: F401
import codes_drives  # noqa: F401
import codes_groups  # noqa: F401
import codes_requests  # noqa: F401
from codes import ELSEWHERE, ENTRIES, Provocation
from harness import Failure, check, equal, parametrize

ROOT = Path(__file__).resolve().parents[2]


def all_codes():
    document = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    return document["components"]["schemas"]["Error"]["properties"]["code"]["enum"]


def test_every_code_has_one_entry(case):
    codes = all_codes()
    entries = [*ENTRIES, *ELSEWHERE]
    equal(sorted(set(codes) - set(entries)), [], "codes without an entry")
    equal(sorted(set(entries) - set(codes)), [], "entries of codes that there are not")
    check(len(ELSEWHERE) <= 4, "what can be provoked from outside must be")


def test_what_an_entry_may_not_leave_out(case):
    at = Provocation(case, "in-use")
    must_fail("an entry that provokes nothing", at.judge)
    message = "drive d0 is a spare, and a free one is needed: delete the spare with --force first"
    for steps in ((), ("found",), ("found", "needed"), ("needed", "remedy"), ("found", "remedy")):
        at.refusals.clear()
        refusal = at.said(message, ["create", "spare"], None)
        if "found" in steps:
            refusal.found("is a spare")
        if "needed" in steps:
            refusal.needed("a free one")
        if "remedy" in steps:
            refusal.retry("delete the spare", call=lambda: None)
        must_fail(f"one that states {steps} alone", at.judge)
    must_fail("advice to do what was done",
              lambda: at.said(message, ["create", "spare", "--force"], None))
    refusal = at.said(message, ["create", "spare"], None)
    for text, step in (("words that are not there", lambda: refusal.found("is a member")),
                       ("the whole message", lambda: refusal.found(message)),
                       ("nothing", refusal.found),
                       ("another command", lambda: refusal.follow("delete the spare", "undo")),
                       ("the same command", lambda: at.said(message, ["list"], None).retry(
                           "delete the spare", "list"))):
        must_fail(text, step)


def must_fail(text, step):
    try:
        step()
    except Failure:
        return
    raise Failure(f"{text} passed")


@parametrize(*sorted(ENTRIES))
def test_r06(case, code):
    at = Provocation(case, code)
    ENTRIES[code](at)
    at.judge()


@parametrize(*sorted(ELSEWHERE))
def test_r06_elsewhere(case, code):
    """The C++ test that the table names is there, expects the code, and looks at the message."""
    suite, name = ELSEWHERE[code].split(".")
    table = (ROOT / "src" / "base" / "error_table.h").read_text(encoding="utf-8")
    enumerator = re.search(rf'X\((k\w+),\s*"{re.escape(code)}"', table)[1]
    test = re.compile(rf"^TEST(?:_F)?\({suite}, {name}\) {{$(.*?)^}}$", re.MULTILINE | re.DOTALL)
    bodies = [found[1] for path in ROOT.glob("src/**/*_test.cpp")
              for found in test.finditer(path.read_text(encoding="utf-8"))]
    equal(len(bodies), 1, f"tests called {suite}.{name}")
    check(f"ErrorCode::{enumerator}" in bodies[0], f"{suite}.{name} does not expect {code}")
    check("for (const" in bodies[0] and ".find(part)" in bodies[0],
          f"{suite}.{name} does not look at the parts of the message")
