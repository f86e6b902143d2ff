"""Loop devices with 512 and 4096 byte sectors: block devices as the product meets them."""

import contextlib
import itertools
import os
import shutil

import clients
import oracle
from crash import survive_kills
from daemon import Daemon, print_of, still_prints
from drives import Loops
from filesystems import survive_failures
from harness import MIB, check, equal, parametrize, wait_until
from rigs import Rig, Shape, singles, survive_losses

SIZE = 128 * MIB
# A part of the losses, so that it takes minutes: RAID 1 and 5 lose each drive with one kind of
# sectors or the other, RAID 6 six of its ten pairs. File-backed drives lose all: test_levels.py.
# With WARPRAID_SOAK=1 in the environment it is all of them here as well, and fifty kills.
SOAK = os.environ.get("WARPRAID_SOAK") == "1"
SHAPES = {
    512: (Shape("raid0", "raid0", 3, ()), Shape("raid1", "raid1", 2, ((0,),)),
          Shape("raid5", "raid5", 4, ((0,), (2,))),
          Shape("raid6", "raid6", 5, ((0, 1), (2, 3), (4, 0))),
          Shape("raid10", "raid10", 4, ((0, 2),))),
    4096: (Shape("raid0", "raid0", 3, ()), Shape("raid1", "raid1", 2, ((1,),)),
           Shape("raid5", "raid5", 4, ((1,), (3,))),
           Shape("raid6", "raid6", 5, ((1, 2), (3, 4), (0, 3))),
           Shape("raid10", "raid10", 4, ((3, 1),))),
}
if SOAK:
    every = (Shape("raid0", "raid0", 3, ()), Shape("raid1", "raid1", 2, singles(2)),
             Shape("raid5", "raid5", 4, singles(4)),
             Shape("raid6", "raid6", 5, tuple(itertools.combinations(range(5), 2))),
             Shape("raid10", "raid10", 4, ((0, 2), (1, 3), (0, 3), (1, 2))))
    SHAPES = {512: every, 4096: every}
# Fewer than the fifty of file-backed drives, the last of them under fio: test_kill9.py.
KILLS = 50 if SOAK else 3


def started(case, devices):
    daemon = Daemon(case).start()
    daemon.cli("create", "drive", *devices)
    return daemon


@parametrize(*((sector, shape) for sector in SHAPES for shape in SHAPES[sector]))
def test_life(case, what):
    """R44: losses under aligned and unaligned load, rebuilt, and all of it after a crash."""
    sector, shape = what
    rig = Rig(case, shape, Loops(case, sector))
    equal(rig.daemon.drive(rig.drives[0])["logical_block_bytes"], sector, "the drive's block")
    equal(rig.daemon.group("g")["shape"]["block_bytes"], sector, "the group's block")
    survive_losses(rig, shape.losses)
    rig.daemon.crash_and_start()
    rig.daemon.wait_idle()
    rig.uri = rig.daemon.uri("v")
    rig.check(rig.first)
    if shape.level != "raid0":
        rig.daemon.verify()


@parametrize(512, 4096)
def test_drives_that_take_little_at_once(case, sector):
    """R44: chunks, and what is merged of them, are longer than the drive's transfers."""
    shape = Shape("raid6", "raid6", 4, ((0, 2), (1, 3)), ("--chunk", "1M"))
    survive_losses(Rig(case, shape, Loops(case, sector, transfer_bytes_max=128 * 1024)),
                   shape.losses)


@parametrize(512, 4096)
def test_clients(case, sector):
    """What nbdcopy, qemu-img and qemu-io do on file-backed drives, in test_clients.py."""
    devices = Loops(case, sector).several(5, SIZE)
    daemon = started(case, devices)
    uri = daemon.make_group("raid6", devices)
    clients.qemu_io_round(case, uri)
    clients.qemu_img_round(case, daemon, devices, uri)
    source = clients.random_file(case, "source", daemon.list("volume")[0]["size_bytes"])
    clients.nbdcopy_both_ways(case, source, uri)


@parametrize(("ext4", 512), ("xfs", 512), ("ext4", 4096), ("xfs", 4096))
def test_file_systems(case, what):
    kind, sector = what
    survive_failures(case, kind, "raid6", 5, (0, 3), Loops(case, sector))


@parametrize(512, 4096)
def test_kills(case, sector):
    survive_kills(case, Loops(case, sector), KILLS)


def test_found_by_another_number(case):
    """Loop devices get other numbers; what stands behind them is the same."""
    loops = Loops(case)
    devices = loops.several(3, SIZE)
    daemon = started(case, devices)
    uri = daemon.make_group("raid5", devices)
    pattern = clients.Pattern(case.random.getrandbits(28), size=32 * MIB)
    clients.write_pattern(case, uri, pattern)
    daemon.wait_state("optimal")  # a first resync that is cut off would go on later
    daemon.stop()
    backings = [loops.backing(device) for device in devices]
    for device in devices:
        loops.detach(device)
    again = [loops.attach(backing) for backing in reversed(backings)]
    options = [word for device in again for word in ("--drives", device)]
    daemon.start(options)
    found = daemon.group("g")
    equal((found["state"], found["task"]), ("optimal", None), "the group")
    equal([member["path"] for member in found["members"]], again[::-1], "paths by slot")
    clients.check_pattern(case, daemon.uri("v"), pattern)


def test_mixed_blocks(case):
    """R04: a 4096-byte drive never gets into a 512-byte group; a 4096-byte group takes both, and
    its block stays what it was made with."""
    loops = Loops(case)
    small = loops.several(4, SIZE)
    large = loops.several(2, SIZE, 4096)
    devices = [*small, *large]
    daemon = started(case, devices)
    daemon.make_group("raid5", small[:3], "--block-size", "512")
    daemon.wait_idle()
    daemon.cli("fail", "drive", small[0])
    for force in ([], ["--force"]):
        daemon.refused(["replace", "drive", small[0], large[0], *force], "block-size-mismatch",
                       devices, has=["4096", "512"])
    daemon.refused(["create", "spare", large[0], "--group", "g"], "block-size-mismatch", devices)
    daemon.refused(["create", "group", "raid1", small[3], large[0], "--block-size", "512"],
                   "block-size-mismatch", devices, has=["4096", "512"])
    # Both kinds in one group only when asked for.
    daemon.refused(["create", "group", "raid1", small[3], large[0]], "block-size-mismatch", devices,
                   has=["4096", "512"])
    uri = daemon.make_group("raid1", [small[3], large[0]], "--block-size", "4096", name="h",
                            volume="w")
    equal(daemon.group("h")["shape"]["block_bytes"], 4096, "block of the mixed group")
    equal(clients.nbdinfo(case, uri)["block_size_minimum"], 4096, "block that clients see")
    daemon.wait_idle("h")
    daemon.cli("fail", "drive", small[3])
    daemon.cli("replace", "drive", small[3], large[1])
    daemon.wait_state("optimal", "h")
    for way in (daemon.restart, daemon.crash_and_start):
        way()
        equal(daemon.group("h")["shape"]["block_bytes"], 4096, "block after a restart")
        equal(daemon.group("g")["shape"]["block_bytes"], 512, "block of the other group")


def test_r05_candidates_that_cannot_serve(case):
    """Wrong block, busy, read-only: refused even with force, and not a byte of them changed."""
    loops = Loops(case)
    members = loops.several(3, SIZE)
    wrong = loops.make(SIZE, 4096)
    small = loops.make(64 * MIB)
    frozen = loops.make(SIZE, read_only=True)
    busy = loops.make(SIZE)
    devices = [*members, wrong, small, frozen, busy]
    case.run(["mkfs.ext4", "-q", "-F", busy])
    daemon = started(case, devices)
    daemon.make_group("raid5", members)
    daemon.wait_idle()
    daemon.cli("fail", "drive", members[1])
    there = case.directory / "mounted"
    there.mkdir()
    case.run(["mount", "-o", "ro", busy, there])
    case.cleanup(lambda: case.run(["umount", there], status=None))
    still_prints([loops.backing(device) for device in devices])  # a bitmap may still be tidied
    before = prints_of_devices(loops, devices)
    for candidate, codes in ((wrong, ("block-size-mismatch",)), (small, ("member-too-small",)),
                             (frozen, ("drive-read-only",)),
                             (busy, ("drive-busy", "has-signature"))):
        for force in ([], ["--force"]):
            answer = daemon.warpraid("replace", "drive", members[1], candidate, *force)
            allowed = codes if not force else codes[:1]
            check(answer.status == 1 and answer.code in allowed,
                  f"{candidate} {force}: {answer.code} {answer.message}")
            names = (candidate, daemon.drive(candidate)["serial"])
            check(any(name in answer.message for name in names),
                  f"the drive is not named: {answer.message}")
    equal(prints_of_devices(loops, devices), before, "bytes of the devices")
    case.run(["umount", there])
    case.run(["e2fsck", "-f", "-n", busy])
    daemon.refused(["create", "group", "raid1", frozen, small], "drive-read-only")
    daemon.cli("replace", "drive", members[1], busy, "--force")
    daemon.wait_state("optimal")


# What makes a member of another group unfit: its group's sectors and drives, and the code.
UNFIT = {"wrong block": (4096, SIZE, "block-size-mismatch"),
         "too small": (512, 72 * MIB, "member-too-small"),
         "busy": (512, SIZE, "drive-busy"), "read-only": (512, SIZE, "drive-read-only")}


@parametrize(*UNFIT)
def test_r05_unfit_member_of_another_group(case, why):
    """A group must not take it, even by force, and has destroyed nothing when it finds that out: while
    the other group runs elsewhere, while nobody runs it, and while the same daemon does."""
    oracle.need_libnbd()
    sector, size, code = UNFIT[why]
    loops = Loops(case)
    members = loops.several(3, SIZE)
    theirs = loops.several(3, size, sector)
    candidate = theirs[1]
    other = Daemon(case, "other").start()
    other.cli("create", "drive", *theirs)
    handle = oracle.connect(other.make_group("raid5", theirs, name="b", volume="vb"))
    data = case.random.randbytes(MIB)
    handle.pwrite(data, 0)
    handle.shutdown()
    other.wait_idle("b")
    daemon = started(case, members)
    daemon.make_group("raid5", members, name="a", volume="va", size="32M")
    daemon.wait_idle("a")
    daemon.cli("fail", "drive", members[0])
    backings = [loops.backing(device) for device in (*members, *theirs)]

    def offer(expected):
        os.sync()
        for words in (["replace", "drive", members[0], candidate, "--force"],
                      ["create", "spare", candidate, "--group", "a", "--force"]):
            daemon.refused(words, expected, backings, has=[candidate])

    def still_whole(owner):
        found = owner.group("b")
        equal((found["state"], found["members"][1]["state"], found["task"]),
              ("optimal", "in-sync", None), "group b")
        handle = oracle.connect(owner.uri("vb"))
        check(handle.pread(MIB, 0) == data, "wrong data of group b")
        handle.shutdown()

    offer("drive-busy")
    still_whole(other)
    other.stop()
    with unfit(case, candidate, why):
        offer(code)
    other.start()
    still_whole(other)
    other.verify("b")
    other.stop()
    daemon.cli("create", "drive", *theirs)
    daemon.assemble("b")
    daemon.cli("export", "volume", "b", "vb")
    with unfit(case, candidate, why if why == "read-only" else ""):
        offer("in-use")
    still_whole(daemon)
    daemon.verify("b")


@contextlib.contextmanager
def unfit(case, device, why):
    """What there is to do for it, and its end."""
    if why == "read-only":
        case.run(["blockdev", "--setro", device])
        yield
        case.run(["blockdev", "--setrw", device])
    elif why == "busy":
        with open(os.open(device, os.O_RDONLY | os.O_EXCL), "rb", buffering=0):
            yield
    else:
        yield


def prints_of_devices(loops, devices):
    """By their backing files; what the kernel still holds of them is written first."""
    os.sync()
    backings = [loops.backing(device) for device in devices]
    return {backing: print_of(backing) for backing in backings}


def test_held_exclusively(case):
    """A member cannot be mounted or given to another program, and its other names are one drive."""
    loops = Loops(case)
    devices = loops.several(3, SIZE)
    daemon = started(case, devices)
    daemon.make_group("raid5", devices)
    for device in devices:
        check(not exclusive_open_works(device), f"{device} can be taken from the daemon")
    alias = case.directory / "alias"
    alias.symlink_to(devices[0])
    answer = daemon.warpraid("create", "group", "raid1", alias, devices[1])
    check(answer.status == 1, "a member by another name was taken")
    other = Daemon(case, "other").start()
    answer = other.warpraid("create", "drive", *devices)
    if answer.status == 0:
        answer = other.warpraid("create", "group", "raid5", *devices, "--force")
    check(answer.status == 1, f"another daemon took the drives: {answer.stdout}")
    daemon.wait_state("optimal")  # the first resync may still be under way
    daemon.verify()


def exclusive_open_works(device):
    try:
        os.close(os.open(device, os.O_RDWR | os.O_EXCL))
        return True
    except OSError:
        return False


def test_capacity_shrinks_under_a_member(case):
    """A device that is cut short fails as a member; its group goes on without it."""
    loops = Loops(case)
    devices = loops.several(3, SIZE)
    daemon = started(case, devices)
    uri = daemon.make_group("raid5", devices)
    data = case.random.randbytes(64 * MIB)
    handle = oracle.connect(uri)
    for offset in range(0, len(data), 8 * MIB):
        handle.pwrite(data[offset:offset + 8 * MIB], offset)
    daemon.wait_idle()
    backing = loops.backing(devices[1])
    os.truncate(backing, 16 * MIB)
    case.run(["losetup", "--set-capacity", devices[1]])
    for offset in range(0, len(data), 8 * MIB):
        check(handle.pread(8 * MIB, offset) == data[offset:offset + 8 * MIB], f"data at {offset}")
        handle.pwrite(data[offset:offset + 8 * MIB], offset)
    wait_until(lambda: daemon.group("g")["state"] == "degraded",
               lambda: f"the member is put out: {daemon.group('g')}")
    for offset in range(0, len(data), 8 * MIB):
        check(handle.pread(8 * MIB, offset) == data[offset:offset + 8 * MIB], f"data at {offset}")


def test_a_copy_that_is_the_member_itself(case):
    """Only a real copy of a member can be made blank, not another name of the member."""
    loops = Loops(case)
    devices = loops.several(3, SIZE)
    backings = [loops.backing(device) for device in devices]
    files = [case.file(f"member-{number}.img", SIZE) for number in range(3)]
    over = loops.attach(files[1])
    daemon = started(case, [*devices, *files])
    # A member that is a loop device, and the file behind it; a member that is a file, and a loop
    # device over it.
    daemon.make_group("raid5", devices)
    daemon.make_group("raid5", files, name="h", volume="w")
    daemon.wait_idle("g")
    daemon.wait_idle("h")
    for name, member in ((backings[1], devices[1]), (over, files[1])):
        answer = daemon.warpraid("edit", "drive", name, "--reset-identity")
        equal((answer.status, answer.code), (1, "wrong-state"), f"reset of {name}")
        for word in (str(name), str(member)):
            check(word in answer.message, f"{word} is not named: {answer.message}")
    copy = case.directory / "copy.img"
    shutil.copyfile(files[1], copy)
    daemon.cli("edit", "drive", copy, "--reset-identity")
    daemon.restart()
    for group in ("g", "h"):
        daemon.wait_state("optimal", group)
        daemon.verify(group)
