"""docs/operating.md is true: its examples, typed in the order of the page, do what it says."""

import pathlib
import re
import shlex

from daemon import Daemon
from harness import MIB, check, need_programs

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "operating.md"
# What needs something that is not there any more when the page is read from top to bottom.
MAY_BE_REFUSED = ("health", "verify group data --stop", "assemble", "edit drive 5 --reset-identity")


def prepare(section, case, daemon):
    """What a section of the page takes to be there."""
    if section == "Spares":
        daemon.cli("create", "drive", "--size", "1G", "f.img", "g.img", cwd=case.directory)
    if section == "Take a forced create back":
        for name in ("old-1.img", "old-2.img"):
            case.run(["mke2fs", "-q", "-F", case.directory / name, "128M"])


def commands():
    """(section, what follows `$ warpraid`) of each example."""
    section = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        found = re.match(r"    \$ warpraid (.*)", line)
        if found:
            yield section, found.group(1)


def test_examples(case):
    need_programs("mke2fs")
    daemon = Daemon(case).start()
    count = 0
    before = ""
    for section, command in commands():
        if "--watch" in command:
            continue
        if section != before:
            prepare(section, case, daemon)
        before = section
        for group in daemon.list("group"):
            # One that does not run, such as what a put-out drive remembers of a deleted group, has
            # nothing to wait for; neither has one that is held.
            if group["state"] not in ("held", "offline"):
                daemon.wait_idle(group["name"])
        words = shlex.split(command)
        answer = daemon.warpraid(*words, cwd=case.directory, json_format=False)
        text = f"{section}: warpraid {command}: {answer.status} {answer.stderr}"
        check(answer.status != 2, text)
        check(answer.status == 0 or command.startswith(MAY_BE_REFUSED), text)
        check("[internal-error]" not in answer.stderr, text)
        count += 1
    check(count > 30, f"only {count} examples were found")


def test_sizes_are_those_of_the_page(case):
    """`create drive`: at least 64 MiB."""
    daemon = Daemon(case).start()
    check("At least 64 MiB" in PAGE.read_text(encoding="utf-8"), "the page says it otherwise")
    daemon.cli("create", "drive", "--size", 64 * MIB, case.directory / "least.img")
