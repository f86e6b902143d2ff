"""Every RAID level: healthy, with every loss it must survive, while rebuilding, and afterwards."""

import os

import clients
import oracle
from daemon import Daemon
from drives import Files
from harness import MIB, check, equal, parametrize
from rigs import Rig, Shape, singles, survive_losses

CHUNK = 64 * 1024
# Pairs in which each slot is once the first, so that each is also read and written without it
# alone. Those of RAID 10 hold no chunk in common.
ROUND_3 = ((0, 1), (1, 2), (2, 0))
ROUND_4 = ((0, 2), (3, 0), (2, 1), (1, 3))
ROUND_5 = ((0, 2), (2, 4), (4, 1), (1, 3), (3, 0))
# Every pair, and again each slot is the first of some.
PAIRS_5 = tuple((slot, (slot + step) % 5) for step in (1, 2) for slot in range(5))
THREE_COPIES = ((0, 1), (2, 4), (3, 5), (1,), (4,), (5,))

SHAPES = (
    Shape("raid0", "raid0", 4, ()),
    Shape("raid1", "raid1", 2, singles(2)),
    Shape("raid1-three", "raid1", 3, ROUND_3),
    Shape("raid5", "raid5", 4, singles(4)),
    Shape("raid5-4096", "raid5", 3, ((1,),), ("--block-size", "4096", "--chunk", "4K")),
    Shape("raid6", "raid6", 5, PAIRS_5),
    Shape("raid6-4096", "raid6", 4, ((0, 2),), ("--block-size", "4096", "--chunk", "1M")),
    Shape("raid10", "raid10", 4, ROUND_4),
    Shape("raid10-five", "raid10", 5, ROUND_5),
    Shape("raid10-three-copies", "raid10", 6, THREE_COPIES, ("--copies", "3")),
)


@parametrize(*SHAPES)
def test_losses(case, shape):
    rig = Rig(case, shape, Files(case))
    survive_losses(rig, shape.losses)
    if shape.level != "raid0":
        rig.daemon.verify()
    rig.daemon.restart()
    rig.uri = rig.daemon.uri("v")
    rig.check(rig.first)


@parametrize(*(shape for shape in SHAPES if shape.name in ("raid1", "raid5", "raid6", "raid10")))
def test_losses_in_mid_write(case, shape):
    """Drives fail while fio writes and verifies: it must not notice."""
    rig = Rig(case, shape, Files(case))
    clients.write_pattern(case, rig.uri, rig.first)
    load = rig.load()
    for slots in shape.losses[-4:]:
        for slot in slots:
            rig.fail(slot)
        rig.replace(slots)
        rig.daemon.wait_state("optimal")
        check(load.running(), "fio ended")
    load.stop()
    rig.check(rig.first)
    rig.daemon.verify()


@parametrize(*(shape for shape in SHAPES if shape.name in ("raid5", "raid6")))
def test_partial_stripes(case, shape):
    """R74: writes of all kinds of offsets and lengths within stripes, by a plain model."""
    rig = Rig(case, shape, Files(case))
    handle = oracle.connect(rig.uri)
    block = rig.daemon.list("volume")[0]["block_bytes"]
    stripe = rig.daemon.group("g")["stripe_bytes"]
    equal(stripe, CHUNK * (shape.drives - (1 if shape.level == "raid5" else 2)), "stripe_bytes")
    window = 5 * stripe
    model = bytearray(case.random.randbytes(window))
    handle.pwrite(bytes(model), 0)

    def write_all(state):
        for offset in (0, block, CHUNK - block, CHUNK, stripe - block):
            for length in (block, CHUNK, CHUNK + block, stripe, stripe + block, 3 * stripe):
                data = case.random.randbytes(length)
                handle.pwrite(data, offset)
                model[offset:offset + length] = data
                check(handle.pread(window, 0) == model,
                      f"{state}: wrong data after writing {length} at {offset}")

    write_all("healthy")
    for slot in range(shape.drives):
        rig.fail(slot)
        check(handle.pread(window, 0) == model, f"wrong data without slot {slot}")
        write_all(f"without slot {slot}")
        rig.replace([slot])
        rig.daemon.wait_state("optimal")
        check(handle.pread(window, 0) == model, f"wrong data after rebuilding slot {slot}")
    rig.daemon.verify()


def places_of(level, drives, copies, chunk_number):
    """(slot, row) of each copy of a chunk of data where Linux MD's layouts put it: left-symmetric for
    RAID 5 and 6, near for RAID 10."""
    if level == "raid1":
        return [(slot, chunk_number) for slot in range(drives)]
    if level == "raid10":
        places = range(chunk_number * copies, (chunk_number + 1) * copies)
        return [(place % drives, place // drives) for place in places]
    parities = {"raid0": 0, "raid5": 1, "raid6": 2}[level]
    row, column = divmod(chunk_number, drives - parities)
    if parities == 0:
        return [(column, row)]
    first_parity = drives - 1 - row % drives
    return [((first_parity + parities + column) % drives, row)]


CHUNKS = (4096, 16384, 65536, 1 << 20)
# Level, drives, copies.
LAYOUTS = (("raid0", 4, 1), ("raid5", 4, 1), ("raid6", 4, 1), ("raid10", 4, 2))
ROUND_THE_END = (("raid10", 5, 2, 4096, 4096), ("raid10", 4, 3, CHUNK, 512))


@parametrize(*((*layout, chunk, block) for layout in LAYOUTS for chunk in CHUNKS
               for block in (512, 4096)),
             *(("raid1", drives, drives, CHUNK, block) for drives in (2, 3) for block in (512, 4096)),
             *ROUND_THE_END)
def test_layout(case, how):
    """R09: the chunk is what was asked for, and blocks lie where the documented layout has them, and
    nowhere else."""
    level, count, copies, chunk, block = how
    daemon = Daemon(case).start()
    drives = daemon.make_drives(count, 64 * MIB)
    options = ["--block-size", block]
    if level != "raid1":
        options += ["--chunk", chunk]
    if level == "raid10":
        options += ["--copies", copies]
    uri = daemon.make_group(level, drives, *options)
    shape = daemon.group("g")["shape"]
    equal((shape["chunk_bytes"], shape["block_bytes"]), (chunk, block), "chunk and block in bytes")
    equal(daemon.cli("status")["groups"][0]["shape"], shape, "the shape in status")
    start = daemon.list("volume")[0]["start"]
    equal(start % chunk, 0, "the volume's start in a chunk")
    handle = oracle.connect(uri)
    marks = [case.random.randbytes(block) for _ in range(2 * count + 1)]
    for number, mark in enumerate(marks):
        handle.pwrite(mark, number * chunk)
    handle.flush()
    handle.shutdown()
    daemon.stop()
    found = {mark: [] for mark in marks}
    for slot, drive in enumerate(drives):
        for offset, data in written(drive, block):
            if data in found:
                found[data].append((slot, offset))
    for number, mark in enumerate(marks):
        expected = [(slot, MIB + row * chunk)  # where data starts on drives of 64 MiB
                    for slot, row in places_of(level, count, copies, start // chunk + number)]
        if level in ("raid5", "raid6"):  # whose parity of one block and zeros is that block
            check(expected[0] in found[mark], f"chunk {number} is at {found[mark]}, not {expected}")
        else:
            equal(found[mark], sorted(expected), f"where chunk {number} is")


def written(path, block):
    """(offset, block) of what is no hole in a file."""
    with open(path, "rb", buffering=0) as file:
        end = 0
        while True:
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError:
                return
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            for offset in range(start - start % block, end, block):
                yield offset, os.pread(file.fileno(), block, offset)
