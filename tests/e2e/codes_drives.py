"""Entries of the table of codes: drives that cannot be used."""

import fcntl
import pathlib
import resource

import superblock
from codes import SMALL, Limited, bring_back, elsewhere, provokes, put_away
from daemon import Daemon
from drives import put
from harness import MIB, check, equal

# A drive of blocks that do not fit, or that is write-protected, is a device that only root can make.
elsewhere("block-size-mismatch", "BlockSizes.ThatDifferAreToldWithTheOneThatFits")
elsewhere("drive-read-only", "Provider.tells_which_drive_cannot_be_written_and_what_to_do")


@provokes("member-too-small")
def member_too_small(at):
    tiny, other = at.file("tiny.img", 63 * MIB), at.file("other.img")
    refusal = at.refused("create", "drive", tiny, names=[tiny])
    refusal.found(63 * MIB).needed(64 * MIB).retry("use another drive", "create", "drive", other)
    drives = at.group("raid1", 2)
    small = at.file("small.img", 64 * MIB)
    member = at.daemon.group("g")["members"][0]
    refusal = at.refused("replace", "drive", drives[0], small, names=[small])
    needed = member["drive_bytes"] - member["unused_tail_bytes"]
    check(64 * MIB < needed <= SMALL, f"what a member needs: {member}")
    refusal.found(64 * MIB).needed("a member of group g needs").retry(
        "use a larger drive", "replace", "drive", drives[0], other)


@provokes("has-signature")
def has_signature(at):
    drives = at.drives(2)
    put(drives[1], 1024 + 56, b"\x53\xef")  # as of ext4
    words = ["create", "group", "raid1", *drives]
    at.refused(*words, names=drives[1:]).found("ext2 file system").needed("a blank drive").retry(
        "overwrite it with --force", *words, "--force")


@provokes("has-superblock")
def has_superblock(at):
    theirs = at.group("raid5", 3, name="b")
    former = at.drives(1, "former")[0]
    at.daemon.cli("replace", "drive", theirs[0], former)
    at.daemon.wait_idle("b")
    # Of a group that runs without it: to start that again is no advice.
    words = ["create", "spare", theirs[0]]
    refusal = at.refused(*words, names=theirs[:1])
    check("assemble" not in refusal.message, f"that group runs: {refusal.message}")
    refusal.found("slot 0 of the running group b").needed("a blank drive").retry(
        "--force to lose what it holds", *words, "--force")
    at.daemon.stop()
    members = [former, *theirs[1:]]
    for take in ("the group", "the drive"):
        at.running = Daemon(at.case, f"newcomer of {take}").start()
        words = ["create", "spare", members[1]]
        refusal = at.refused(*words, names=members[1:2])
        refusal.found("group b", "slot 1").needed("a blank drive")
        if take == "the drive":
            refusal.retry("--force to lose", *words, "--force")
            continue
        refusal.advice("'create drive' of all its drives and 'assemble b'")
        at.daemon.cli("create", "drive", *members)
        at.command("assemble", "b")
        equal(at.daemon.group("b")["state"], "optimal", "state of the group that was wanted")
        at.daemon.stop()


@provokes("drive-busy")
def drive_busy(at):
    drives = at.drives(1)
    with open(drives[0], "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        refusal = at.refused("create", "spare", drives[0], names=drives)
        refusal.found("is in use").needed("by another opener").no_command(
            "end that program", lambda: fcntl.flock(file, fcntl.LOCK_UN))


@provokes("drive-open-failed")
def drive_open_failed(at):
    path = at.file("file.img")
    for wrong, kind in ((at.case.directory, "a directory"), (pathlib.Path("/dev/null"), "a character")):
        refusal = at.refused("create", "drive", wrong)
        refusal.found(str(wrong), kind).needed("a block device or a plain file").retry(
            "name one of these", "create", "drive", path)


@provokes("drive-missing")
def drive_missing(at):
    drives = at.drives(2)
    put_away(drives[1])
    refusal = at.refused("create", "group", "raid1", *drives)
    refusal.found(f"no drive at {drives[1]}").needed("No such file").no_command(
        "check the path and the cables", lambda: bring_back(drives[1]))
    at.refused("create", "spare", "x").found("'x'").needed("no registered drive").retry(
        "name it by its whole path", "create", "spare", at.file("x.img"))


@provokes("no-superblock")
def no_superblock(at):
    drives = at.drives(1)
    refusal = at.refused("edit", "drive", drives[0], "--reset-identity", names=drives)
    refusal.found("carries no superblock").needed("of Warpraid").retry(
        "use it as it is", "create", "spare", drives[0])


def damaged(at, change):
    """A group that runs without its last member, whose superblock is changed."""
    drives = at.group("raid5", 3)
    at.daemon.stop()
    change(drives[2])
    at.daemon.start()
    return drives


@provokes("bad-superblock")
def bad_superblock(at):
    drives = damaged(at, lambda path: superblock.set_byte(path, superblock.NAME_AT, 0x21, mend=False))
    serial = at.serial(drives[2])
    refusal = at.not_assembled()
    refusal.found(serial, "checksum").needed("computed").follow(
        f"'replace drive GROUP:SLOT {serial} --force'", "replace", "drive", "g:2", serial, "--force",
        wait=lambda: at.daemon.wait_state("optimal"))


@provokes("unsupported-version")
def unsupported_version(at):
    drives = damaged(at, lambda path: superblock.set_byte(path, superblock.VERSION_AT, 99))
    refusal = at.not_assembled()
    refusal.found(at.serial(drives[2]), "version 99").needed("knows 1 only").no_command(
        "use the newer one that made it",  # which would have written this
        lambda: superblock.set_byte(drives[2], superblock.VERSION_AT, 1))


@provokes("unsupported-layout")
def unsupported_layout(at):
    drives = damaged(at, lambda path: superblock.set_byte(path, superblock.LAYOUT_AT, 77))
    refusal = at.not_assembled()
    refusal.found(at.serial(drives[2]), "layout 77").needed("only 0 is known").no_command(
        "use the program that made it",
        lambda: superblock.set_byte(drives[2], superblock.LAYOUT_AT, 0))


# ---- drives that fail -----------------------------------------------------------------------------

FILE_BYTES_MAX = 68 * MIB


def limited(at):
    """A daemon whose writes to anything larger fail with EFBIG, as those of a bad drive fail."""
    at.running = Limited(at.case, resource.RLIMIT_FSIZE, FILE_BYTES_MAX)
    at.running.start()


@provokes("io-error")
def io_error(at):
    limited(at)
    bad, good = at.file("bad.img"), at.file("good.img", 64 * MIB)
    at.daemon.cli("create", "drive", bad, good)
    answer = at.daemon.warpraid("create", "spare", bad)
    equal((answer.status, answer.code), (1, at.code), answer.message)
    refusal = at.said(answer.message, ["create", "spare", bad], None)
    refusal.found(at.serial(bad), "cannot write at byte").needed("File too large").retry(
        "use another drive", "create", "spare", good)


@provokes("metadata-write-failed")
def metadata_write_failed(at):
    drives = at.group("raid1", 2)
    at.daemon.stop()
    unlimited = at.running
    limited(at)
    at.daemon.cli("create", "drive", *drives)
    answer = at.daemon.warpraid("assemble", "g")
    outcome = answer.data["outcomes"][0]
    equal((answer.status, outcome["code"]), (4, at.code), f"{answer.data}")

    def start_unlimited():
        at.daemon.stop()
        at.running = unlimited.start()

    refusal = at.said(outcome["message"], ["assemble", "g"], lambda: at.command("assemble", "g"))
    refusal.found("was lost (write-error)").needed("raid1 cannot go on").no_command(
        "make its drive work", start_unlimited)
