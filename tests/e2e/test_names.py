"""R37: odd names, given on the command line or found on drives. What is accepted is documented; what is
stored is served whatever it is; and no shell, path, terminal or log obeys a name."""

import json
import os
import re

import clients
import oracle
import superblock
import volume_table
from daemon import Daemon
from harness import MIB, check, equal, parametrize, wait_until
from known_groups import globs

SMALL = 72 * MIB

GOOD_NAMES = ("a", "node1:pv1", "x" * 32, "data_1.old-2", "A@b+c")
BAD_NAMES = ("x" * 64, "y" * 4096, "a b", "a\tb", "a\nb", "a/b", "..", ".", "-x", 'a"b', "a'b", "a;b",
             "$(touch hit)", "`touch hit`", "%s%n", "\x01", "ünï")


def test_r37_names(case):
    """A documented set is accepted, everything else refused; no shell or path sees a name."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(3, SMALL)
    listing = set(os.listdir(case.directory))
    for name in GOOD_NAMES:
        daemon.make_group("raid5", drives, name=name, volume=name)
        equal(daemon.group(name)["name"], name, "the name")
        clients.qemu_io(case, daemon.uri(name, name), "write -P 1 0 4k", "read -P 1 0 4k")
        daemon.cli("unexport", "volume", name, name)
        daemon.cli("delete", "group", name, "--clear")
    for name in BAD_NAMES:
        daemon.refused(["create", "group", "raid5", *drives, f"--name={name}"], "bad-name", drives)
    daemon.refused(["create", "group", "raid5", *drives, "--name=7"], "bad-name", drives)
    paths = [str(drive) for drive in drives]
    for path, body in (("groups", {"level": "raid5", "drives": paths, "name": ""}),
                       ("volumes", {"group": "g", "name": ""})):
        status, answer = daemon.http("POST", path, json.dumps(body))
        equal((status, answer["error"]["code"]), (400, "bad-name"), f"an empty name of {path}")
    equal(daemon.list("group"), [], "groups after that")
    daemon.make_group("raid5", drives, export=False, size="32M")
    daemon.wait_idle()
    for name in BAD_NAMES:
        daemon.refused(["edit", "group", "g", f"--name={name}"], "bad-name", drives)
        daemon.refused(["create", "volume", "g", "1M", f"--name={name}"], "bad-name", drives)
        daemon.refused(["edit", "volume", "g", "v", f"--name={name}"], "bad-name", drives)
    equal(set(os.listdir(case.directory)), listing, "files in the test's folder")
    daemon.cli("edit", "group", "g", "--name", "renamed:1")
    daemon.restart()
    equal(daemon.group("renamed:1")["state"], "optimal", "the renamed group's state")


def test_r37_empty_names(case):
    """Of a script whose variable is empty: refused wherever a name is given, never taken for none."""
    daemon = Daemon(case).start()
    drive = case.file("only.img", SMALL)
    daemon.cli("create", "drive", drive)
    # Neither is the only drive meant, which has no wwid.
    daemon.refused(["create", "spare", "", "--force"], "bad-name", [drive])
    equal(daemon.list("spare"), [], "spares")
    drives = [drive, *daemon.make_drives(4, SMALL)]
    for option in (["--name="], ["--name", ""]):
        daemon.refused(["create", "group", "raid5", *drives[:3], *option], "bad-name", drives)
    daemon.make_group("raid5", drives[:3], size="1M")
    daemon.wait_idle()
    known = {noun: daemon.list(noun) for noun in ("drive", "volume", "spare", "export")}
    for words in (
            *(["create", "volume", "g", "1M", *option] for option in (["--name="], ["--name", ""])),
            *(["edit", "group", "g", *option] for option in (["--name="], ["--name", ""])),
            *(["edit", "volume", "g", "v", *option] for option in (["--name="], ["--name", ""])),
            *(["create", "spare", drives[3], *option] for option in (["--group="], ["--group", ""])),
            *(["assemble", *option] for option in ([""], ["", "--force"], ["--prefer="],
                                                   ["--prefer", ""])),
            *([verb, "group", ""] for verb in ("describe", "delete", "verify", "undo")),
            *([verb, "volume", *names] for names in (["", "v"], ["g", ""])
              for verb in ("describe", "delete", "export", "unexport")),
            *([verb, "drive", ""] for verb in ("create", "describe", "delete", "fail")),
            *([verb, "spare", ""] for verb in ("create", "describe", "delete")),
            ["delete", "group", "", "--clear"], ["verify", "group", "", "--stop"],
            ["undo", "group", "", "--abandon"], ["create", "volume", ""],
            ["edit", "group", "", "--name", "x"], ["edit", "volume", "", "v", "--name", "x"],
            ["edit", "volume", "g", "", "--name", "x"], ["describe", "export", ""],
            ["edit", "drive", "", "--reset-identity"], ["replace", "drive", "", drives[3]],
            ["replace", "drive", drives[0], ""], ["replace", "drive", drives[0], "", "--force"],
            ["create", "drive", drives[4], ""], ["create", "spare", drives[3], ""],
            ["create", "group", "raid1", drives[3], "", "--force"]):
        answer = daemon.warpraid(*words)
        equal((answer.status, answer.code), (1, "bad-name"), f"{words}: {answer.stdout}")
        check("empty name" in answer.message, f"{words}: {answer.message}")
    daemon.refused(["delete", "group", ""], "bad-name", drives)
    equal({noun: daemon.list(noun) for noun in known}, known, "what there is")
    equal(daemon.group("g")["state"], "optimal", "state")


# No character that moves a terminal's cursor or ends a line.
TERMINAL_SAFE = re.compile("[^\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f]*")


def told_safely(daemon):
    """What is stored moves no cursor, and makes no line, in tables and the log."""
    for words in (["status"], ["list", "group"], ["list", "volume"], ["list", "export"],
                  ["list", "event", "--limit", "1000"]):
        check(TERMINAL_SAFE.fullmatch(daemon.text(*words)), f"control characters in {words}")
    log = daemon.log_path.read_text(encoding="utf-8", errors="surrogateescape")
    for line in log.splitlines():
        check(TERMINAL_SAFE.fullmatch(line) and re.match(r"\d{4}-\d\d-\d\dT", line),
              f"a line of the log: {line!r}")


def files_of(case):
    """All below the test's folder, and what lies where the programs run; the daemon's own left out."""
    found = set()
    for folder, _, names in os.walk(case.directory):
        if "/d/state" not in folder:
            found |= {os.path.join(folder, name) for name in names}
    return found | set(os.listdir("."))


def read_back(uri, data, text):
    handle = oracle.connect(uri)
    check(handle.pread(len(data), 0) == data, text)
    handle.shutdown()


STORED_GROUPS = (b"a b", b"a/b", b"..", b"-x", b'a"b', b"$(touch hit)", b"%s%n", b"a\nb", b"",
                 b"\x1b[2J\x7f", "\u009b2Jünï".encode(), b"\xff\xfe", b"7", b"x" * 32)


def test_r37_stored_group_names(case):
    """Every name that lies on drives can be listed, exported and changed, whatever it is."""
    oracle.need_libnbd()
    daemon = Daemon(case).start(globs(case))
    drives = daemon.make_drives(3, SMALL)
    uri = daemon.make_group("raid5", drives)
    data = case.random.randbytes(MIB)
    oracle.connect(uri).pwrite(data, 0)
    daemon.wait_idle()
    listing = files_of(case)
    for name in STORED_GROUPS:
        daemon.stop()
        for drive in drives:
            superblock.set_name(drive, name)
        daemon.start(globs(case))
        groups = daemon.list("group")
        equal((len(groups), groups[0]["state"]), (1, "optimal"), f"groups with {name!r}")
        equal(groups[0]["name"], name.decode("utf-8", "replace"), "the name as it is listed")
        uuid = groups[0]["uuid"]
        told_safely(daemon)
        equal(daemon.cli("describe", "group", uuid)["group"]["uuid"], uuid, f"{name!r} by uuid")
        read_back(daemon.list("export")[0]["uri"], data, f"data of {name!r}")
        daemon.cli("edit", "group", uuid, "--name", "g")
        equal(daemon.group("g")["uuid"], uuid, f"{name!r} renamed")
    daemon.stop()
    for drive in drives:
        superblock.set_name(drive, b"../../x")
    daemon.start(globs(case))
    daemon.cli("unexport", "volume", uuid, "v")
    daemon.cli("delete", "group", uuid, "--clear")
    equal(daemon.list("group"), [], "groups after the deletion")
    equal(files_of(case), listing, "files")


@parametrize(1, 3)
def test_r37_two_groups_of_one_name(case, count):
    """One that comes while another of its name runs, with all its drives or too few: each name that is
    listed means one group."""
    other = Daemon(case, "other").start()
    theirs = [case.file(f"theirs-{index}.img", SMALL) for index in range(3)]
    other.cli("create", "drive", *theirs)
    other.make_group("raid5", theirs, name="same", export=False)
    other.wait_idle("same")
    theirs_uuid = other.group("same")["uuid"]
    other.stop()
    for path in theirs:
        path.rename(f"{path}.away")
    daemon = Daemon(case).start(globs(case))
    drives = daemon.make_drives(2, SMALL)
    daemon.make_group("raid1", drives, name="same", export=False)
    daemon.wait_idle("same")
    ours = daemon.group("same")["uuid"]
    for path in theirs[:count]:
        path.with_name(path.name + ".away").rename(path)
    daemon.assemble()  # the daemon would look by itself a while later
    for turn in ("at once", "after a restart"):
        wait_until(lambda: len(daemon.list("group")) == 2, "the other group is found")
        names = {group["name"]: group["uuid"] for group in daemon.list("group")}
        equal(len(names), 2, f"names {turn}: {daemon.list('group')}")
        check(all(re.fullmatch("same(-[0-9a-f]{8})?", name) for name in names), f"names: {names}")
        if turn == "at once":
            equal(names["same"], ours, "the group that had the name")
        for name, uuid in names.items():
            equal(daemon.cli("describe", "group", name)["group"]["uuid"], uuid, f"{name} {turn}")
        daemon.restart(globs(case))
    # What is asked of the one leaves the other alone.
    name = next(name for name, uuid in names.items() if uuid == ours)
    daemon.cli("delete", "volume", name, "v")
    daemon.cli("delete", "group", name, "--clear")
    equal([group["uuid"] for group in daemon.list("group")], [theirs_uuid], "groups left")


STORED_VOLUMES = ("a\nb\x1b[31m\x7f", "\u009b2J\u0001", "..", ".", "../../etc/x", "a/b", "$(touch hit)",
                  "`touch hit`", "%s%n", "", "-x", "--force", "7", "a b", 'a"b\\', "ünï", "\U0001f4a5",
                  "\ud800x", "x\udbff", "\udc00\ud800", "y" * 36)
SAFE = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:-]*")


class Volumes:
    """A RAID 1 with three volumes whose names are edited while nobody runs it."""

    def __init__(self, case):
        oracle.need_libnbd()
        self.case = case
        self.daemon = Daemon(case).start(globs(case))
        self.drives = self.daemon.make_drives(2, SMALL)
        self.daemon.make_group("raid1", self.drives, volume="v0", size="8M")
        for name in ("v1", "v2"):
            self.daemon.cli("create", "volume", "g", "8M", "--name", name)
        self.daemon.cli("export", "volume", "g", "v1")
        self.data = [case.random.randbytes(MIB) for _ in range(2)]
        for number in range(2):
            oracle.connect(self.daemon.uri(f"v{number}")).pwrite(self.data[number], 0)
        self.daemon.wait_idle()

    def rename(self, names):
        """By the hex editor; the numbers and uuids of what is listed then."""
        self.daemon.stop()
        for drive in self.drives:
            volume_table.set_names(drive, {number: volume_table.units_of(name)
                                           for number, name in names.items()})
        self.daemon.start(globs(self.case))
        equal(self.daemon.group("g")["state"], "optimal", f"the group with {names}")
        found = {volume["id"]: volume for volume in self.daemon.list("volume")}
        for number, name in names.items():
            shown = name.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            equal(found[number]["name"], shown, "the name as it is listed")
        return {number: volume["uuid"] for number, volume in found.items()}

    def exports(self):
        return {export["volume"]: export for export in self.daemon.list("export")}


def test_r37_stored_volume_names(case):
    volumes = Volumes(case)
    daemon = volumes.daemon
    listing = files_of(case)
    for name in STORED_VOLUMES:
        shown = f"volume {name!r}"
        uuids = volumes.rename({0: name, 2: f"{name}2"[:36]})
        told_safely(daemon)
        for by in ("0", uuids[0]):
            equal(daemon.cli("describe", "volume", "g", by)["volume"]["uuid"], uuids[0], shown)
        # Still served under the name that clients know, and under one that is safe after that.
        read_back(daemon.list("export")[0]["uri"], volumes.data[0], f"data of {shown}")
        daemon.refused(["edit", "volume", "g", uuids[0], "--name", "x"], "in-use", volumes.drives)
        daemon.cli("unexport", "volume", "g", uuids[0])
        export = daemon.cli("export", "volume", "g", "0")["export"]
        check(SAFE.fullmatch(export["name"]), f"{shown} is exported as {export['name']!r}")
        read_back(export["uri"], volumes.data[0], f"data of {shown} as {export['name']}")
        read_back(daemon.uri("v1"), volumes.data[1], f"data of the volume beside {shown}")
        told_safely(daemon)
        daemon.cli("unexport", "volume", "g", "0")
        daemon.cli("edit", "volume", "g", "0", "--name", "v0")
        daemon.cli("delete", "volume", "g", uuids[2])
        equal([volume["name"] for volume in daemon.list("volume")], ["v0", "v1"], "what is left")
        daemon.cli("create", "volume", "g", "8M", "--name", "v2")
        daemon.cli("export", "volume", "g", "v0")
    daemon.restart(globs(case))
    equal([volume["name"] for volume in daemon.list("volume")], ["v0", "v1", "v2"], "names at the end")
    daemon.verify()
    equal(files_of(case), listing, "files")


@parametrize("twin", "", "a b")
def test_r37_two_volumes_of_one_name(case, name):
    """It names neither of them. Each is served, renamed and deleted by its number."""
    volumes = Volumes(case)
    daemon = volumes.daemon
    volumes.rename({0: name, 1: name})
    for words in (["describe", "volume", "g", name], ["export", "volume", "g", name],
                  ["unexport", "volume", "g", name], ["delete", "volume", "g", name],
                  ["edit", "volume", "g", name, "--name", "x"]):
        daemon.refused(words, "invalid-argument" if name else "bad-name", volumes.drives)
    for number in ("0", "1"):
        daemon.cli("unexport", "volume", "g", number)
        export = daemon.cli("export", "volume", "g", number)["export"]
        read_back(export["uri"], volumes.data[int(number)], f"data of volume {number}")
    names = {export["name"] for export in daemon.list("export")}
    equal(len(names), 2, f"names of exports: {names}")
    daemon.cli("unexport", "volume", "g", "1")
    daemon.cli("delete", "volume", "g", "1")
    read_back(daemon.list("export")[0]["uri"], volumes.data[0], "data of the volume that is left")
    daemon.cli("unexport", "volume", "g", "0")
    daemon.cli("edit", "volume", "g", "0", "--name", "v0")
    equal([volume["name"] for volume in daemon.list("volume")], ["v0", "v2"], "what is left")


def test_r37_a_volume_called_as_another_ones_uuid(case):
    volumes = Volumes(case)
    daemon = volumes.daemon
    uuid = next(volume["uuid"] for volume in daemon.list("volume") if volume["id"] == 1)
    uuids = volumes.rename({0: uuid})
    equal({export["name"] for export in daemon.list("export")}, {"v0", "v1"}, "exports that came back")
    daemon.refused(["delete", "volume", "g", uuids[1]], "invalid-argument", volumes.drives)
    daemon.refused(["unexport", "volume", "g", uuids[1]], "invalid-argument", volumes.drives)
    read_back(volumes.exports()["v1"]["uri"], volumes.data[1], "data of volume 1")
