"""Entries of the table of codes: groups that do not start, and groups that failed."""

import shutil

import oracle
from codes import bring_back, provokes, put_away
from harness import MIB, check, equal

COPY_AT = 24  # bytes of a header that its checksum covers


@provokes("duplicate-member")
def duplicate_member(at):
    blank = at.drives(2, "blank")
    words = ["create", "group", "raid1"]
    refusal = at.refused(*words, blank[0], blank[0], names=blank[:1])
    refusal.found("was already given").needed(f"'{blank[0]}' names it again").retry(
        "name each drive once", *words, *blank)
    drives = at.group("raid5", 3)
    at.daemon.stop()
    copies = [at.case.directory / f"copy-{index}.img" for index in range(2)]
    for copy in copies:
        shutil.copyfile(drives[1], copy)
    put_away(drives[1])
    at.daemon.start()
    refusal = at.not_assembled("g")
    refusal.found(*map(str, copies)).needed("none is the one it was written to").follow(
        "edit drive DRIVE --reset-identity", "edit", "drive", copies[1], "--reset-identity")


@provokes("split-brain")
def split_brain(at):
    drives = at.group("raid1", 2)
    serials = [at.serial(drive) for drive in drives]
    at.daemon.stop()
    for away in drives:  # each goes on without the other
        put_away(away)
        at.daemon.start()
        at.command("assemble", "g", "--force")
        at.daemon.stop()
        bring_back(away)
    at.daemon.start()
    refusal = at.not_assembled("g")
    refusal.found(*serials).needed("the drive whose history is to be kept").follow(
        "'assemble g --prefer SERIAL'", "assemble", "g", "--prefer", serials[0],
        wait=lambda: at.daemon.wait_state("optimal"))


@provokes("incomplete")
def incomplete(at):
    drives = at.group("raid5", 3)
    serials = [at.serial(drive) for drive in drives]
    at.daemon.stop()
    for drive in drives[:2]:
        put_away(drive)
    at.daemon.start()
    refusal = at.not_assembled("g", status=3)
    refusal.found("has 1 of its 3 drives in sync").needed(
        "too few for raid5", *serials[:2]).no_command(
            "bring these drives back", lambda: [bring_back(drive) for drive in drives[:2]])
    equal(at.daemon.group("g")["state"], "optimal", "state")


@provokes("quorum-lost")
def quorum_lost(at):
    drives = at.group("raid1", 2)
    serial = at.serial(drives[0])
    at.daemon.stop()
    put_away(drives[0])
    for how in ("the drive", "force"):
        at.daemon.start()
        refusal = at.not_assembled("g")
        refusal.found("without 1 of its 2 drives in sync").needed(f"drive {serial}")
        if how == "force":
            refusal.follow("'assemble g --force'", "assemble", "g", "--force")
            return
        refusal.no_command("bring them back", lambda: bring_back(drives[0]))
        at.daemon.wait_idle()
        at.daemon.stop()
        put_away(drives[0])


@provokes("dirty-degraded")
def dirty_degraded(at):
    oracle.need_libnbd()
    drives = at.group("raid5", 3, volume="v", export=True)
    serial = at.serial(drives[2])
    at.daemon.stop()
    at.daemon.bitmap_delay = 3600  # what was written to stays marked
    for how in ("the drive", "force"):
        at.daemon.start()
        oracle.connect(at.daemon.uri("v")).pwrite(at.case.random.randbytes(MIB), 0)
        at.daemon.kill()
        put_away(drives[2])
        at.daemon.start()
        refusal = at.not_assembled("g")
        refusal.found("was not stopped in order").needed(serial)
        if how == "force":
            refusal.follow("'assemble g --force'", "assemble", "g", "--force")
            return
        refusal.no_command("bring the drives back", lambda: bring_back(drives[2]))
        at.daemon.wait_state("optimal")
        at.daemon.stop()


@provokes("destroyed")
def destroyed(at):
    drives = at.group("raid1", 2)
    serials = [at.serial(drive) for drive in drives]
    at.daemon.cli("delete", "group", "g")
    refusal = at.refused("assemble", "g", names=drives)
    refusal.found("group g was deleted", *serials).needed("only one that was not is started").follow(
        "'assemble g --destroyed'", "assemble", "g", "--destroyed")


@provokes("group-failed")
def group_failed(at):
    drives = at.group("raid5", 3)
    for drive, state in ((drives[1], "degraded"), (drives[0], "failed")):
        serial = at.serial(drive)
        put_away(drive)
        at.daemon.wait_state(state)

    def bring_and_assemble():
        for drive in drives[:2]:
            bring_back(drive)
        at.command("assemble")
        at.daemon.wait_idle()

    refusal = at.refused("verify", "group", "g")
    refusal.found(f"drive {serial}", "was lost").needed("raid5 cannot go on without it").no_command(
        "bring its drive back and run assemble", bring_and_assemble)


@provokes("bad-partition-table")
def bad_partition_table(at):
    drives = at.group("raid1", 2, volume="v")
    at.daemon.stop()
    before = [damage_tables(drive) for drive in drives]
    at.daemon.start()
    refusal = at.refused("export", "volume", "g", "v")
    check("backup table" in refusal.message, refusal.message)

    def put_back():
        at.daemon.stop()
        for drive, blocks in zip(drives, before):
            write_at(drive, blocks)
        at.daemon.start()

    refusal.found("primary table: the header's checksum is").needed("was computed").no_command(
        "put its blocks back and start warpraidd again", put_back)


def damage_tables(path):
    """Changes a byte of every table header; what was there, by offset."""
    data = path.read_bytes()
    found = {}
    at = data.find(b"EFI PART")
    while at >= 0:
        found[at + COPY_AT] = data[at + COPY_AT:at + COPY_AT + 1]
        at = data.find(b"EFI PART", at + 1)
    equal(len(found), 2, f"tables on {path}")
    write_at(path, {offset: bytes([byte[0] ^ 0xFF]) for offset, byte in found.items()})
    return found


def write_at(path, blocks):
    with open(path, "r+b") as file:
        for offset, data in blocks.items():
            file.seek(offset)
            file.write(data)
