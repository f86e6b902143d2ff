"""Bad input to create, replace and delete: refused in one clear line with a stable code, and not
one byte of any drive changed. The letters and numbers are those of the acceptance cases."""

import fcntl
import os
import pty
import struct
import subprocess
import zlib

import oracle
from daemon import Daemon, prints_of, still_prints
from drives import put, put_gpt
from harness import GIB, MIB, PATIENCE, Failure, check, equal, need_programs, parametrize

DRIVE = 256 * MIB
SMALL = 96 * MIB
LEVELS = {"raid0": 2, "raid1": 2, "raid5": 3, "raid6": 4, "raid10": 3}
PARITIES = {"raid0": 0, "raid1": 1, "raid5": 1, "raid6": 2, "raid10": 1}
MEMBERS_MAX = 32


def replacement(case, daemon, name, size):
    path = case.file(name, size)
    daemon.cli("create", "drive", path)
    return path


def test_what_is_no_drive(case):
    """Refused when it is registered, not when a group needs it."""
    daemon = Daemon(case).start()
    for size in (0, 63 * MIB):
        path = case.file(f"little-{size}.img", size)
        daemon.refused(["create", "drive", path], "member-too-small", names=[path], has=[str(size)])
    for path in ("/proc/self/status", "/proc/version", "/sys/kernel/uevent_seqnum"):
        if os.path.exists(path):
            daemon.refused(["create", "drive", path], "drive-open-failed", has=[path])
    daemon.refused(["create", "drive", "--size", "0", case.directory / "x.img"], "bad-size")
    equal(daemon.list("drive"), [], "drives")


def test_second_name_of_a_drive(case):
    """A link does not replace the path that is known; a new path of a moved file does."""
    daemon = Daemon(case).start()
    drive = daemon.make_drives(1, SMALL)[0]
    soft, hard = case.directory / "soft.img", case.directory / "hard.img"
    soft.symlink_to(drive)
    os.link(drive, hard)
    for link in (soft, hard):
        daemon.refused(["create", "drive", link], "already-exists", [drive], names=[drive])
    equal([found["path"] for found in daemon.list("drive")], [str(drive)], "path")
    os.unlink(drive)
    daemon.cli("create", "drive", hard)
    equal([found["path"] for found in daemon.list("drive")], [str(hard)], "path after a move")


@parametrize(0, 512, 8 * 512, MIB - 512, MIB)
def test_r01_replacement_smaller(case, missing):
    """Drives of one part number differ a little: the default leaves 1 MiB for that."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(5, DRIVE)
    daemon.make_group("raid5", drives)
    daemon.wait_idle()
    daemon.cli("fail", "drive", drives[2])
    new = replacement(case, daemon, "new.img", DRIVE - missing)
    daemon.cli("replace", "drive", drives[2], new)
    daemon.wait_state("optimal")
    daemon.verify()


def test_r01_exact_size(case):
    """--exact-size leaves nothing: each smaller one is refused, with both figures."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(5, DRIVE)
    daemon.make_group("raid5", drives, "--exact-size")
    daemon.wait_idle()
    daemon.cli("fail", "drive", drives[2])
    news = []
    for missing in (512, 8 * 512, MIB - 512, MIB):
        size = DRIVE - missing
        news.append(replacement(case, daemon, f"new-{missing}.img", size))
        daemon.refused(["replace", "drive", drives[2], news[-1]], "member-too-small",
                       [*drives, *news], has=[str(size), str(DRIVE)], names=[news[-1]])
    same = replacement(case, daemon, "same.img", DRIVE)
    daemon.cli("replace", "drive", drives[2], same)
    daemon.wait_state("optimal")


def test_r01_far_too_small(case):
    daemon = Daemon(case).start()
    drives = daemon.make_drives(5, DRIVE)
    daemon.make_group("raid5", drives)
    daemon.wait_idle()
    daemon.cli("fail", "drive", drives[2])
    new = replacement(case, daemon, "new.img", DRIVE - 8 * MIB)
    for force in ([], ["--force"]):
        answer = daemon.refused(["replace", "drive", drives[2], new, *force], "member-too-small",
                                [*drives, new], has=[str(DRIVE - 8 * MIB)])
        serial = daemon.drive(new)["serial"]
        check(serial in answer.message, f"{serial} is not named: {answer.message}")


@parametrize("nobody", "a terminal")
def test_r03_replacement_bigger(case, asked):
    """Nothing is lost by it, so nobody is asked, whether there is somebody or not."""
    oracle.need_libnbd()
    daemon = Daemon(case).start()
    drives = daemon.make_drives(5, DRIVE)
    uri = daemon.make_group("raid5", drives)
    data = case.random.randbytes(4 * MIB)
    oracle.connect(uri).pwrite(data, MIB)
    daemon.wait_idle()
    before = daemon.group("g")
    daemon.cli("fail", "drive", drives[1])
    new = replacement(case, daemon, "big.img", DRIVE + 2 * GIB)
    if asked == "nobody":
        answer = daemon.warpraid("replace", "drive", drives[1], new, yes=False)
        equal(answer.status, 0, answer.stdout + answer.stderr)
    else:
        equal(typed(case, daemon, "replace", "drive", drives[1], new), 0, "exit status")
    found = daemon.wait_state("optimal")
    equal(found["capacity_bytes"], before["capacity_bytes"], "capacity")
    member = found["members"][1]
    equal((member["path"], member["drive_bytes"]), (str(new), DRIVE + 2 * GIB), "the new member")
    tails = [one["members"][1]["unused_tail_bytes"] for one in (before, found)]
    equal(tails[1] - tails[0], 2 * GIB, "what is not used of it, in bytes, besides")
    status = daemon.cli("status")["groups"][0]["members"][1]
    equal(status["unused_tail_bytes"], tails[1], "the same in status")
    daemon.verify()
    daemon.cli("fail", "drive", drives[0])
    check(oracle.connect(uri).pread(len(data), MIB) == data, "wrong data with the new drive")


def typed(case, daemon, *words):
    """The exit status of a command on a terminal, where nobody answers what it asks."""
    ours, its = pty.openpty()
    case.cleanup(lambda: (os.close(ours), os.close(its)))
    process = case.start([case.program("warpraid"), "--socket", daemon.socket, *words], stdin=its,
                         stdout=its, stderr=its)
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        raise Failure(f"{words} waits: {os.read(ours, 4096)}") from None


def test_r05_candidate_of_another_group(case):
    """A refused replacement has not destroyed what the candidate held."""
    other = Daemon(case, "other").start()
    theirs = [case.file(f"theirs-{index}.img", SMALL) for index in range(3)]
    other.cli("create", "drive", *theirs)
    other.make_group("raid5", theirs, name="b", volume="vb")
    data = case.random.randbytes(MIB)
    oracle.connect(other.uri("vb")).pwrite(data, 0)
    other.wait_idle("b")
    other.stop()
    daemon = Daemon(case).start()
    drives = daemon.make_drives(4, DRIVE)
    daemon.make_group("raid5", drives)
    daemon.wait_idle()
    daemon.cli("fail", "drive", drives[0])
    daemon.cli("create", "drive", theirs[0])
    candidate = theirs[0]
    # Without force for what it holds, with force for its size.
    answer = daemon.warpraid("replace", "drive", drives[0], candidate)
    check(answer.code in ("has-superblock", "in-use", "member-too-small"), answer.message)
    daemon.refused(["replace", "drive", drives[0], candidate], answer.code, [*drives, *theirs])
    daemon.refused(["replace", "drive", drives[0], candidate, "--force"], "member-too-small",
                   [*drives, *theirs])
    daemon.refused(["create", "spare", candidate], "has-superblock", [*drives, *theirs])
    daemon.stop()
    other.start()
    found = other.group("b")
    equal((found["state"], found["members"][0]["state"]), ("optimal", "in-sync"), "group b")
    equal(oracle.connect(other.uri("vb")).pread(MIB, 0), data, "data of group b")


def test_r05_member_of_a_running_group(case):
    daemon = Daemon(case).start()
    first = daemon.make_drives(3, SMALL, prefix="first")
    second = daemon.make_drives(3, SMALL, prefix="second")
    daemon.make_group("raid5", first, name="a", volume="va")
    daemon.make_group("raid5", second, name="b", volume="vb")
    daemon.wait_idle("a")
    daemon.wait_idle("b")
    drives = [*first, *second]
    for force in ([], ["--force"]):
        daemon.refused(["replace", "drive", first[0], second[0], *force], "in-use", drives,
                       names=second[:1], has=["group b"])
        daemon.refused(["create", "group", "raid1", second[0], second[1], *force], "in-use", drives,
                       names=second[:1], has=["group b"])
        daemon.refused(["create", "spare", second[0], *force], "in-use", drives, names=second[:1])
    daemon.refused(["delete", "drive", second[0]], "in-use", drives, names=second[:1])
    daemon.refused(["replace", "drive", first[0], first[1]], "in-use", drives, names=first[1:2])
    equal(daemon.group("b")["state"], "optimal", "group b")


def candidates(case, daemon):
    """(drive, code, what was found and needed, what to do) of drives that nobody may take."""
    theirs = [case.file(f"theirs-{index}.img", SMALL) for index in range(3)]
    other = Daemon(case, "other").start()
    other.cli("create", "drive", *theirs)
    other.make_group("raid5", theirs, name="b", export=False)
    other.wait_idle("b")
    other.stop()
    tiny = case.file("tiny.img", 63 * MIB)
    signed = case.file("signed.img", SMALL)
    with open(signed, "r+b") as file:
        file.seek(1024 + 56)
        file.write(b"\x53\xef")
    member = daemon.group("g")["members"][1]["path"]
    return [(tiny, "member-too-small", [str(63 * MIB), str(64 * MIB)], "use another drive"),
            (signed, "has-signature", ["ext2 file system"], "--force"),
            (theirs[0], "has-superblock", ["group b", "slot 0"], "assemble b"),
            (member, "in-use", ["member 1", "group g"], "replace it")]


def test_r05_r06_refused_candidates(case):
    """Whatever wants the drive: the message has its serial number, what was found, what was needed
    and what to do, and no byte of any candidate changes."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(5, SMALL)
    daemon.make_group("raid5", drives[:3], export=False)
    daemon.wait_idle()
    refused = candidates(case, daemon)
    files = [*drives, *(path for path, *_ in refused)]
    for path, code, found, advice in refused:
        for words in (["create", "group", "raid1", drives[3], path],
                      ["create", "spare", path], ["create", "spare", path, "--group", "g"],
                      ["replace", "drive", drives[0], path]):
            daemon.refused(words, code, files, names=[path], has=[*found, advice])
    with open(drives[4], "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for words in (["create", "group", "raid1", drives[3], drives[4], "--force"],
                      ["create", "spare", drives[4], "--force"],
                      ["replace", "drive", drives[0], drives[4], "--force"]):
            daemon.refused(words, "drive-busy", files, names=drives[4:], has=["in use", "end"])
    daemon.refused(["create", "group", "raid1", drives[3], drives[3], "--force"],
                   "duplicate-member", files, names=drives[3:4])
    # What the messages advise works.
    daemon.cli("replace", "drive", drives[0], refused[1][0], "--force")


def test_r06_messages(case):
    """A refusal says what was found and what is needed."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(4, SMALL)
    few = drives[:2]
    daemon.refused(["create", "group", "raid5", *few], "member-count", drives, has=["2", "3"])
    daemon.refused(["create", "group", "raid7", *drives], "bad-level", drives,
                   status=daemon.warpraid("create", "group", "raid7", *drives).status,
                   has=["raid7", "raid6"])
    daemon.refused(["create", "group", "raid5", *drives[:3], case.directory / "absent.img"],
                   "drive-missing", drives, has=["absent.img"])
    daemon.refused(["create", "group", "raid5", drives[0], *drives[:3]], "duplicate-member", drives)
    daemon.refused(["create", "drive", case.directory / "absent.img"], "drive-missing", drives,
                   has=["absent.img"])
    daemon.refused(["create", "drive", case.directory], "drive-open-failed", drives)
    tiny = case.file("tiny.img", MIB)
    daemon.refused(["create", "group", "raid5", *drives[:3], tiny], "member-too-small",
                   [tiny, *drives], has=["tiny.img", str(MIB), str(64 * MIB)])
    fresh = case.directory / "fresh.img"
    for size in ("1M", "100000001", "200T"):
        daemon.refused(["create", "drive", fresh, "--size", size], "bad-size", drives)
    check(not fresh.exists(), "a refused command made a file")
    for verb in (["describe", "group", "nope"], ["delete", "group", "nope"],
                 ["create", "volume", "nope"], ["fail", "drive", "nope"],
                 ["export", "volume", "nope", "v"], ["verify", "group", "nope"],
                 ["edit", "group", "nope", "--name", "x"], ["delete", "spare", "nope"],
                 ["describe", "drive", "99"], ["replace", "drive", "nope", drives[0]]):
        daemon.refused(verb, "not-found", drives)
    daemon.make_group("raid5", drives)
    daemon.refused(["create", "volume", "g", "100T"], "no-space", drives)
    daemon.refused(["delete", "group", "g"], "in-use", drives)
    daemon.refused(["delete", "volume", "g", "v"], "in-use", drives)
    daemon.wait_idle()
    daemon.cli("fail", "drive", drives[0])
    daemon.refused(["fail", "drive", drives[0]], "wrong-state", drives)
    daemon.refused(["fail", "drive", drives[1]], "wrong-state", drives,
                   names=[daemon.drive(drives[1])["serial"]])
    # The command that the refusal leads to works.
    daemon.cli("unexport", "volume", "g", "v")
    daemon.cli("delete", "volume", "g", "v")
    daemon.cli("delete", "group", "g")


def test_usage(case):
    """What is not a command at all: status 2, and nothing happens."""
    daemon = Daemon(case).start()
    for words in (["frobnicate"], ["list"], ["list", "nothing"], ["create", "group"],
                  ["create", "group", "raid5", "0", "--no-such-option"],
                  ["create", "volume", "g", "12Q"], ["create", "group", "raid5", "7-3"]):
        answer = daemon.warpraid(*words)
        equal(answer.status, 2, f"exit status of {words}: {answer.stdout}{answer.stderr}")
    equal(daemon.warpraid("--help", json_format=False).status, 0, "status of --help")
    daemon.cli("version")


def test_confirmation(case):
    """Verbs that destroy, disconnect or choose a history need --yes without a terminal."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(5, SMALL)
    spare = drives.pop()
    daemon.make_group("raid5", drives)
    daemon.cli("create", "spare", spare)
    daemon.wait_idle()
    before = still_prints(drives)
    known = {noun: daemon.list(noun) for noun in ("drive", "volume", "spare", "export")}
    for words in (["delete", "volume", "g", "v"], ["delete", "group", "g"],
                  ["delete", "drive", spare], ["delete", "spare", spare],
                  ["unexport", "volume", "g", "v"], ["edit", "drive", spare, "--reset-identity"],
                  ["fail", "drive", drives[0]], ["assemble", "--force"],
                  ["assemble", "--destroyed"], ["assemble", "--prefer", drives[0]],
                  ["replace", "drive", drives[0], drives[1], "--force"],
                  ["create", "group", "raid1", *drives[:2], "--force"]):
        answer = daemon.warpraid(*words, yes=False)
        check(answer.status == 1 and answer.code == "not-confirmed",
              f"{words}: {answer.status} {answer.stdout}{answer.stderr}")
        text = daemon.warpraid(*words, yes=False, json_format=False)
        check(text.status == 1 and "--yes" in text.stderr and text.stderr.count("\n") == 1,
              f"{words}: {text.status} {text.stderr!r}")
    equal(prints_of(drives), before, "the drives' bytes")
    equal({noun: daemon.list(noun) for noun in known}, known, "what there is")
    equal(daemon.group("g")["state"], "optimal", "state")


NORMAL_MEMBERS = 5


@parametrize(*LEVELS)
def test_r07_member_counts(case, level):
    """One too few and one too many are refused, and a usual group can be made after each; the least
    and the most work, and survive what the level does."""
    oracle.need_libnbd()
    daemon = Daemon(case).start()
    drives = daemon.make_drives(MEMBERS_MAX + 1, 64 * MIB)
    least = LEVELS[level]
    for wrong, right in ((least - 1, least), (MEMBERS_MAX + 1, MEMBERS_MAX)):
        daemon.refused(["create", "group", level, *drives[:wrong]], "member-count", drives,
                       has=[str(least), str(MEMBERS_MAX)])
        life_of_a_group(case, daemon, level, drives, NORMAL_MEMBERS, losses=0)
        life_of_a_group(case, daemon, level, drives, right, losses=PARITIES[level])


def life_of_a_group(case, daemon, level, drives, count, losses):
    """Made of the first drives, written, verified, read without some members, and deleted."""
    uri = daemon.make_group(level, drives[:count])
    equal(len(daemon.group("g")["members"]), count, f"members of {level}")
    handle = oracle.connect(uri)
    data = case.random.randbytes(8 * MIB + 4096)
    handle.pwrite(data, MIB - 4096)
    failed = sorted(case.random.sample(range(count), losses))
    if level != "raid0":
        daemon.wait_idle()
        daemon.verify()
    for slot in (None, *failed):
        if slot is not None:
            daemon.cli("fail", "drive", drives[slot])
        check(handle.pread(len(data), MIB - 4096) == data, f"{count} members of {level}, those in "
              f"{failed} failed as far as {slot}: wrong data")
    handle.shutdown()
    daemon.cli("unexport", "volume", "g", "v")
    # Failed members are not the group's any more, so --clear leaves them alone.
    for slot in failed:
        drives[slot].rename(f"{drives[slot]}.put-away")
    daemon.cli("delete", "group", "g", "--clear")
    for slot in failed:
        daemon.cli("delete", "drive", drives[slot])
        drives[slot] = case.file(f"again-{count}-{slot}.img", 64 * MIB)
        daemon.cli("create", "drive", drives[slot])


@parametrize("3K", "0", "2G", "2M", "96K", "1")
def test_r09_bad_chunk(case, chunk):
    daemon = Daemon(case).start()
    drives = daemon.make_drives(4, SMALL)
    for level in ("raid0", "raid5", "raid6", "raid10"):
        daemon.refused(["create", "group", level, *drives, "--chunk", chunk], "bad-chunk", drives)
    daemon.make_group("raid5", drives, "--chunk", "64K")


def test_r10_chunk_of_a_mirror(case):
    """Accepted, without effect, with a warning."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(2, SMALL)
    answer = daemon.warpraid("create", "group", "raid1", *drives, "--chunk", "256K")
    equal(answer.status, 0, answer.stdout + answer.stderr)
    check("chunk" in answer.stderr, f"no warning: {answer.stderr!r}")


def test_r21_create_over_a_group(case):
    """`create` typed instead of `assemble`."""
    oracle.need_libnbd()
    daemon = Daemon(case, "first").start()
    drives = [case.file(f"drive-{index}.img", SMALL) for index in range(5)]
    daemon.cli("create", "drive", *drives)
    uri = daemon.make_group("raid5", drives)
    data = case.random.randbytes(4 * MIB)
    oracle.connect(uri).pwrite(data, 0)
    daemon.wait_idle()
    orders = (drives, drives[::-1])
    for order in orders:
        daemon.refused(["create", "group", "raid5", *order], "in-use", drives)
        daemon.refused(["create", "group", "raid5", *order, "--force"], "in-use", drives)
    daemon.stop()
    # To a daemon that does not know the group the drives are somebody's.
    newcomer = Daemon(case, "second").start()
    for order in orders:
        for options in ([], ["--chunk", "4K"]):
            newcomer.refused(["create", "group", "raid5", *order, *options], "has-superblock",
                             drives, names=drives, has=["assemble g"])
        newcomer.refused(["create", "spare", order[0]], "has-superblock", drives)
    # By force all the same, over a restart, and taken back.
    for order, options in ((drives, []), (drives[::-1], ["--chunk", "4K"])):
        newcomer.cli("create", "group", "raid5", *order, *options, "--force", "--name", "wrong")
        newcomer.restart()
        equal(newcomer.group("wrong")["state"], "held", "state of the group made by force")
        newcomer.refused(["delete", "group", "wrong"], "wrong-state", drives, has=["undo group wrong"])
        newcomer.refused(["verify", "group", "wrong"], "wrong-state", drives)
        newcomer.cli("undo", "group", "wrong")
        equal([group["name"] for group in newcomer.list("group")], ["g"], "groups after undo")
        equal(oracle.connect(newcomer.cli("export", "volume", "g", "v")["export"]["uri"])
              .pread(4 * MIB, 0), data, "data after undo")
        newcomer.wait_idle()
        newcomer.verify()
        newcomer.stop()
        newcomer = Daemon(case, f"third-{len(options)}").start()
    newcomer.stop()
    daemon.start()
    equal(daemon.group("g")["state"], "optimal", "state")
    equal(oracle.connect(daemon.uri("v")).pread(4 * MIB, 0), data, "data")


def test_r34_create_again(case):
    daemon = Daemon(case).start()
    drives = daemon.make_drives(3, SMALL)
    for round_number, order in enumerate((drives, drives, drives[::-1])):
        daemon.make_group("raid5", order, export=False)
        daemon.wait_idle()
        daemon.cli("delete", "group", "g", "--clear")
        equal(daemon.list("group"), [], f"groups after deletion {round_number}")
        for drive in daemon.cli("examine")["drives"]:
            equal((drive["use"], drive["group"]), ("unconfigured", ""), f"{drive['path']} examined")
        daemon.restart()
        equal(daemon.list("group"), [], "groups after a restart")
    # Deleted without --clear: the superblocks are still there, marked.
    daemon.make_group("raid5", drives, export=False)
    daemon.wait_idle()
    daemon.cli("delete", "group", "g")
    answer = daemon.warpraid("create", "group", "raid5", *drives, "--name", "g")
    if answer.status != 0:
        equal(answer.code, "has-superblock", "creating over a deleted group")
        daemon.cli("create", "group", "raid5", *drives, "--name", "g", "--force")
    equal(daemon.group("g")["state"] in ("optimal", "resyncing"), True, "the new group's state")


def make_ext4(case, path):
    need_programs("mkfs.ext4")
    case.run(["mkfs.ext4", "-q", "-F", path])


def make_xfs(case, path):
    need_programs("mkfs.xfs")
    case.run(["mkfs.xfs", "-q", path])


def make_swap(case, path):
    need_programs("mkswap")
    case.run(["mkswap", path])


def make_luks(case, path):
    put(path, 0, b"LUKS\xba\xbe\x00\x01aes\0" + bytes(28) + b"xts-plain64\0")


def make_lvm(case, path):
    label = bytearray(b"LABELONE" + struct.pack("<QII", 1, 0, 32) + b"LVM2 001" + b"a" * 32)
    label = label.ljust(512, b"\0")
    # LVM's checksum is CRC-32 with a start of its own and without the last inversion.
    crc = zlib.crc32(label[20:], 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    struct.pack_into("<I", label, 16, crc)
    put(path, 512, label)


def make_md(case, path):
    # Superblock 1.2 as mdadm writes it: magic, major 1, no feature, its place at sector 8.
    block = bytearray(256)
    block[0:8] = (0xA92B4EFC).to_bytes(4, "little") + (1).to_bytes(4, "little")
    block[16:32] = case.random.randbytes(16)
    block[32:38] = b"host:0"
    block[144:152] = (8).to_bytes(8, "little")
    put(path, 4096, block)


def make_zfs(case, path):
    for slot in range(8):
        put(path, 128 * 1024 + slot * 1024, (0x00BAB10C).to_bytes(8, "little")
            + (5000).to_bytes(8, "little"))


SIGNATURES = {"ext4": make_ext4, "xfs": make_xfs, "swap": make_swap, "gpt": lambda case, path: put_gpt(path),
              "luks": make_luks, "lvm": make_lvm, "md": make_md, "zfs": make_zfs}


@parametrize(*SIGNATURES)
def test_r19_signatures(case, kind):
    """What others have left on a drive is not overwritten unless forced."""
    daemon = Daemon(case).start()
    drives = [case.file(f"drive-{index}.img", 384 * MIB if kind == "xfs" else SMALL)
              for index in range(4)]
    SIGNATURES[kind](case, drives[1])
    before = prints_of(drives)
    daemon.cli("create", "drive", *drives)
    equal(prints_of(drives), before, "bytes after registering")
    equal(daemon.drive(drives[1])["use"], "foreign", "use")
    answer = daemon.refused(["create", "group", "raid5", *drives[:3]], "has-signature", drives,
                            names=[drives[1]])
    check("--force" in answer.message, f"what to do: {answer.message}")
    daemon.refused(["create", "spare", drives[1]], "has-signature", drives)
    daemon.make_group("raid5", [drives[0], drives[2], drives[3]])
    daemon.wait_idle()
    daemon.cli("fail", "drive", drives[0])
    daemon.refused(["replace", "drive", drives[0], drives[1]], "has-signature", drives)
    daemon.cli("replace", "drive", drives[0], drives[1], "--force")
    daemon.wait_state("optimal")
    daemon.verify()


def test_bad_requests(case):
    """The API itself: what is not a right request is refused and names the field."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(3, SMALL)
    before = prints_of(drives)
    for body, code, field in (
            ('{"level": "raid5", "drives": ["0","1","2"], "colour": 1}', "invalid-argument",
             "colour"),
            ('{"level": "raid5", "drives": "0"}', "invalid-argument", "drives"),
            ('{"level": "raid5"}', "invalid-argument", "drives"),
            ('{"level": 5, "drives": []}', None, "level"),
            ('{"level": "raid5", "drives": ["0","1","2"], "chunk_bytes": -1}', "invalid-argument",
             "chunk_bytes"),
            ('{"level": "raid5", "drives": ["0","1","2"], "chunk_bytes": 1e30}',
             "invalid-argument", "chunk_bytes"),
            ("[]", "bad-json", ""), ("{", "bad-json", ""), ("[" * 5000, "bad-json", ""),
            ('"' + "x" * (2 << 20) + '"', None, "")):
        status, answer = daemon.http("POST", "groups", body)
        shown = body[:80]
        check(400 <= status < 500, f"{shown}: HTTP status {status}, {answer}")
        if code is not None:
            equal(answer["error"]["code"], code, shown)
        check(field in answer["error"]["message"], f"{shown}: {answer}")
    for method, path in (("GET", "nothing"), ("GET", "groups/nope"), ("POST", "drives/x/explode"),
                         ("DELETE", "volumes/a/b"), ("GET", "../../etc/passwd"),
                         ("GET", "groups/%00"), ("GET", "groups/%zz")):
        status, answer = daemon.http(method, path)
        check(400 <= status < 500, f"{method} {path}: HTTP status {status}, {answer}")
    equal(prints_of(drives), before, "the drives' bytes")
    equal(daemon.list("group"), [], "groups")
