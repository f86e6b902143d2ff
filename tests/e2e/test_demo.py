"""`warpraidd demo`, as `make demo` runs it."""

import re

from harness import LONG_PATIENCE, PATIENCE, check, equal, need_programs, tail

STATES = ("RAID 0", "RAID 6 healthy", "RAID 6 two lost", "RAID 6 rebuilding")


def test_demo(case):
    need_programs("fio")
    directory = case.directory / "demo"
    done = case.run([case.program("warpraidd"), "demo", "--directory", directory],
                    status=None, timeout=2 * LONG_PATIENCE)
    shown = done.stdout
    check(done.returncode == 0, f"status {done.returncode}\n{tail(shown, 40)}{tail(done.stderr)}")
    check(re.search(r"^\d+ s; the files are in .*\ndemo: PASS\n\Z", shown, re.MULTILINE),
          f"its last lines: {tail(shown, 3)}")
    check("create drive --size 1G" in shown, "drives of 1 GiB")
    check("create volume demo 3G" in shown, "a volume of 3 GiB")
    # What a user could type: every fio, and the loss of both drives.
    runs = re.findall(r"^\$ fio --name=(\w+) .*--rw=(\w+)", shown, re.MULTILINE)
    equal(sorted(runs), sorted([("measure", "write"), ("measure", "read")] * len(STATES)
                               + [("pattern", "write")] + [("pattern", "read")] * 2),
          "the runs of fio that are shown")
    lost = [str(directory / f"drive-{number}.img") for number in (1, 4)]
    equal(re.findall(r"^\$ warpraid .*fail drive (.*)$", shown, re.MULTILINE), lost,
          "the drives that are failed")
    gone = re.findall(r"^(.*) is gone; fio has written (\d+) of (\d+) MiB", shown, re.MULTILINE)
    equal([drive for drive, _, _ in gone], lost, "the drives that went in mid-write")
    for drive, written, whole in gone:
        check(0 < int(written) < int(whole), f"{drive} went after {written} of {whole} MiB")
    for state in STATES:
        row = re.search(rf"^{state} +\*?(\d+) +\d+ % +\*?(\d+) +\d+ %$", shown, re.MULTILINE)
        check(row and all(int(rate) > 0 for rate in row.groups()), f"no figures of {state}")
    for work in ("rebuild", "verify"):
        check(re.search(rf"^{work} \[#+\] 100 %$", shown, re.MULTILINE), f"no bar of the {work}")


def test_demo_without_a_client(case):
    """What is missing is named with the command that installs it."""
    tools = case.directory / "path"
    tools.mkdir()
    done = case.run([case.program("warpraidd"), "demo", "--directory", case.directory / "demo"],
                    status=None, timeout=PATIENCE, env={"PATH": str(tools)})
    check(done.returncode != 0, "it passed without fio")
    check("apt-get install fio" in done.stdout + done.stderr, done.stdout + done.stderr)
