"""Real NBD clients: nbdinfo, nbdcopy, qemu-img, qemu-io, libnbd."""

import threading

import clients
import oracle
from daemon import Daemon
from harness import GIB, LONG_PATIENCE, MIB, check, equal, parametrize, wait_until

KIB = 1024
LEVELS = (("raid0", 3), ("raid1", 2), ("raid5", 4), ("raid6", 5), ("raid10", 4))


def small(case, level="raid5", count=4, *options):
    daemon = Daemon(case).start()
    drives = daemon.make_drives(count)
    return daemon, drives, daemon.make_group(level, drives, *options)


def test_nbdinfo(case):
    daemon, _, uri = small(case)
    volume = daemon.list("volume")[0]
    info = clients.nbdinfo(case, uri)
    equal(info["export-size"], volume["size_bytes"], "export-size")
    for feature in ("can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero"):
        equal(info[feature], True, feature)
    equal(info["is_read_only"], False, "is_read_only")
    equal(info["block_size_minimum"], volume["block_bytes"], "block_size_minimum")
    check("base:allocation" in info["contexts"], f"contexts: {info['contexts']}")
    stripe = daemon.group("g")["stripe_bytes"]
    check(info["block_size_preferred"] % volume["block_bytes"] == 0, "block_size_preferred")
    check(info["block_size_maximum"] >= 32 * MIB, f"block_size_maximum, stripe {stripe}: {info}")
    listed = case.run(["nbdinfo", "--list", f"nbd+unix://?socket={daemon.nbd_socket}"])
    equal(listed.stdout.count("export="), 1, f"exports listed: {listed.stdout}")
    case.run(["nbdinfo", "--map", uri])
    case.run(["nbdinfo", f"nbd+unix:///no-such?socket={daemon.nbd_socket}"], status=1)


def test_nbdcopy_1_gib(case):
    """A 1 GiB file goes in and comes out the same, healthy and with two drives lost."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(6, 384 * MIB)
    uri = daemon.make_group("raid6", drives, size="1G")
    equal(daemon.list("volume")[0]["size_bytes"], GIB, "the volume's size")
    daemon.wait_idle()
    source = clients.random_file(case, "source", GIB)
    wanted = clients.nbdcopy_both_ways(case, source, uri)
    for slot in (1, 4):
        daemon.cli("fail", "drive", drives[slot])
        clients.check_copy(case, uri, wanted)
    # In again, over a degraded group, from other bytes.
    with open(source, "r+b") as file:
        file.write(case.random.randbytes(MIB))
    clients.nbdcopy_both_ways(case, source, uri, "--connections=4")


def test_qemu_img(case):
    clients.qemu_img_round(case, *small(case))


@parametrize(*LEVELS)
def test_qemu_io(case, what):
    level, count = what
    _, _, uri = small(case, level, count)
    clients.qemu_io_round(case, uri)


def test_flags_and_flush_scope(case):
    """R79: what is advertised is what is there, and a flush covers every connection."""
    daemon, _, uri = small(case)
    info = clients.nbdinfo(case, uri)
    for feature in ("can_flush", "can_fua", "can_trim", "can_zero", "can_multi_conn"):
        check(info[feature] is True, f"{feature}: {info}")
    size = daemon.list("volume")[0]["size_bytes"]
    first, second = oracle.connect(uri), oracle.connect(uri)
    data = case.random.randbytes(MIB)
    first.pwrite(data, 5 * MIB)
    second.flush()
    equal(second.pread(MIB, 5 * MIB), data, "another connection's write")
    first.pwrite(data, 7 * MIB, flags=oracle.nbd.CMD_FLAG_FUA)
    daemon.crash_and_start()
    again = oracle.connect(daemon.uri("v"))
    equal(again.get_size(), size, "the size")
    equal(again.pread(MIB, 5 * MIB), data, "a write flushed on another connection, after a crash")
    equal(again.pread(MIB, 7 * MIB), data, "a FUA write, after a crash")


@parametrize(*LEVELS)
def test_huge_requests(case, what):
    """R75: sizes up to NBD's 32 MiB; longer ones are refused before a byte is written."""
    level, count = what
    daemon, drives, uri = small(case, level, count)
    handle = oracle.connect(uri)
    block = daemon.list("volume")[0]["block_bytes"]
    sizes = (block, 4 * KIB, 60 * KIB, 64 * KIB, 68 * KIB, 192 * KIB, MIB - block, MIB, MIB + block,
             4 * MIB, 8 * MIB + block, 16 * MIB, 32 * MIB - block, 32 * MIB)
    whole = case.random.randbytes(34 * MIB)
    for degraded in (False, True):
        if degraded and level == "raid0":
            break
        if degraded:
            daemon.wait_idle()
            daemon.cli("fail", "drive", drives[1])
        for size in sizes:
            offset = case.random.randrange(0, 2 * MIB, block)
            start = case.random.randrange(0, MIB)
            data = whole[start:start + size]
            handle.pwrite(data, offset)
            check(handle.pread(size, offset) == data, f"wrong data of {size} bytes at {offset}")
    wanted = handle.pread(32 * MIB, 0)
    # More than a request may have: refused before any part is written, and the client stays.
    handle.set_strict_mode(0)
    for size in (33 * MIB, 63 * MIB, 64 * MIB):
        refused_request(lambda size=size: handle.pwrite(bytes(size), 0), "EINVAL")
    check(handle.pread(32 * MIB, 0) == wanted, "a refused write left traces")
    check(daemon.alive(), "the daemon died of a request that is too long")


def refused_request(action, *errnos):
    try:
        action()
    except oracle.nbd.Error as error:
        check(error.errno in errnos, f"error {error.errno}, expected one of {errnos}")
        return
    check(False, "the request was not refused")


def test_unaligned_requests(case):
    """R84: what is not whole blocks is refused before a byte is written; the connection lives."""
    daemon, _, uri = small(case, "raid5", 4, "--block-size", "4096")
    handle = oracle.connect(uri)
    handle.set_strict_mode(0)
    data = case.random.randbytes(64 * KIB)
    handle.pwrite(data, 0)
    for offset, length in ((1, 4096), (7, 512), (511, 8192), (512, 4096), (0, 512), (4096, 6144),
                           (0, 1), (8192, 4095)):
        refused_request(lambda: handle.pwrite(bytes(length), offset), "EINVAL")
        refused_request(lambda: handle.pread(length, offset), "EINVAL")
        refused_request(lambda: handle.zero(length, offset), "EINVAL")
    equal(handle.pread(64 * KIB, 0), data, "data after refused writes")
    size = daemon.list("volume")[0]["size_bytes"]
    refused_request(lambda: handle.pwrite(bytes(8192), size - 4096), "ENOSPC", "EINVAL")
    refused_request(lambda: handle.pread(8192, size - 4096), "EINVAL")
    handle.pwrite(data[:4096], size - 4096)
    equal(handle.pread(4096, size - 4096), data[:4096], "the last block")


def test_odd_payload_alignment(case):
    """R84: on the wire headers shift payloads to odd places; many sizes are pipelined."""
    daemon, _, uri = small(case, "raid6", 5)
    block = daemon.list("volume")[0]["block_bytes"]
    known = oracle.Oracle(3, case.random.getrandbits(32), 0, 8 * MIB, block)
    writer = oracle.Writer(known, uri, depth=32, blocks_max=333)
    target = 3000

    check(writer.run(lambda: writer.writes < target), "the connection ended")
    equal(known.verify(oracle.connect(uri)), (0, 0), "writes in flight")
    daemon.verify()


@parametrize(*LEVELS)
def test_trim_and_zeroes(case, what):
    """Neighbours of trimmed and zeroed ranges stay; parity stays right; a trimmed range reads the
    same twice."""
    level, count = what
    daemon, drives, uri = small(case, level, count)
    handle = oracle.connect(uri)
    block = daemon.list("volume")[0]["block_bytes"]
    stripe = daemon.group("g")["stripe_bytes"]
    window = 24 * MIB
    model = bytearray(case.random.randbytes(window))
    handle.pwrite(bytes(model), 0)
    trimmed = []
    for number, length in enumerate((block, 64 * KIB, stripe, stripe + block, 10 * stripe + block)):
        offset = number * 2 * MIB + 3 * block
        flags = oracle.nbd.CMD_FLAG_FUA if number % 2 else 0
        handle.zero(length, offset, flags)
        model[offset:offset + length] = bytes(length)
        offset += 12 * MIB
        handle.trim(length, offset, flags)
        trimmed.append((offset, length))

    def check_all(state):
        found = bytearray(handle.pread(window, 0))
        pieces = []
        for offset, length in trimmed:
            pieces.append(bytes(found[offset:offset + length]))
            found[offset:offset + length] = model[offset:offset + length]
        check(found == model, f"{state}: a trim or zeroing changed other blocks, or did not zero")
        return pieces

    first = check_all("healthy")
    equal(check_all("healthy again"), first, "what trimmed ranges read as")
    if level != "raid0":
        daemon.wait_idle()
        daemon.verify()
        daemon.cli("fail", "drive", drives[2 % count])
        equal(check_all("degraded"), first, "what trimmed ranges read as without a drive")
        handle.zero(4 * MIB, MIB)
        model[MIB:5 * MIB] = bytes(4 * MIB)
        check_all("degraded, zeroed")


def test_block_status(case):
    _, _, uri = small(case)
    handle = oracle.connect(uri)
    handle.pwrite(case.random.randbytes(MIB), 4 * MIB)
    extents = []

    def collect(_context, offset, entries, _error):
        check(offset == 0, f"extents at {offset}")
        extents.extend(entries)

    handle.block_status(16 * MIB, 0, collect)
    lengths, flags = extents[0::2], extents[1::2]
    check(sum(lengths) >= 16 * MIB or lengths, "no extents")
    covered = 0
    for length, flag in zip(lengths, flags):
        # Where data was written, neither a hole nor zeros may be told.
        overlaps = covered < 5 * MIB and covered + length > 4 * MIB
        check(not (overlaps and flag), f"written data told as {flag}")
        covered += length


def test_many_connections(case):
    """Twenty clients at once on one volume, each with its own area, and they come and go."""
    daemon, _, uri = small(case)
    failures = []

    def client(number):
        try:
            for round_number in range(5):
                handle = oracle.connect(uri)
                data = bytes([number * 5 + round_number + 1]) * MIB
                handle.pwrite(data, number * MIB)
                check(handle.pread(MIB, number * MIB) == data, "wrong data")
                handle.shutdown()
        except Exception as error:
            failures.append(f"client {number}: {error}")

    threads = [threading.Thread(target=client, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_PATIENCE)
    check(not any(thread.is_alive() for thread in threads), "a client hangs")
    equal(failures, [], "failures of clients")
    # A client does not wait until the daemon has noticed that it left.
    wait_until(lambda: daemon.list("export")[0]["connections"] == 0, "connections end")


def test_read_only_export(case):
    daemon, _, uri = small(case)
    data = case.random.randbytes(MIB)
    handle = oracle.connect(uri)
    handle.pwrite(data, 0)
    handle.shutdown()
    daemon.cli("unexport", "volume", "g", "v")
    daemon.cli("export", "volume", "g", "v", "--read-only")
    uri = daemon.uri("v")
    equal(clients.nbdinfo(case, uri)["is_read_only"], True, "is_read_only")
    handle = oracle.connect(uri)
    handle.set_strict_mode(0)
    refused_request(lambda: handle.pwrite(bytes(4096), 0), "EPERM", "EROFS")
    refused_request(lambda: handle.trim(4096, 0), "EPERM", "EROFS")
    refused_request(lambda: handle.zero(4096, 0), "EPERM", "EROFS")
    equal(handle.pread(MIB, 0), data, "data")


def test_unexport_closes(case):
    """A client of an export that goes is hung up on, and the daemon goes on."""
    daemon, _, uri = small(case)
    handle = oracle.connect(uri)
    handle.pwrite(bytes(4096), 0)
    daemon.cli("unexport", "volume", "g", "v")
    try:
        handle.pread(4096, 0)
        check(False, "an export that is gone answers")
    except oracle.nbd.Error:
        pass
    equal(daemon.list("export"), [], "exports")
    daemon.cli("export", "volume", "g", "v")
    equal(daemon.uri("v"), uri, "the URI of a volume exported again")
    oracle.connect(uri).pread(4096, 0)
