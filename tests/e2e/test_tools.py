"""The tests' own tools, over nbdkit and without the product: they must notice what is wrong."""

import json
import threading
import time

import clients
import oracle
from harness import MIB, PATIENCE, Failure, check, equal, need_programs, wait_until

SIZE = 64 * MIB


class StandIn:
    """nbdkit with a file, in place of the daemon."""

    def __init__(self, case):
        need_programs("nbdkit")
        self.case = case
        self.image = case.file("image", SIZE)
        self.socket = case.directory / "n.sock"
        self.uri = f"nbd+unix:///?socket={self.socket}"
        self.process = None
        self.start()

    def start(self):
        # Written once it listens; the socket's file is there a moment before anybody can connect.
        ready = self.case.directory / "n.pid"
        for left in (self.socket, ready):
            left.unlink(missing_ok=True)
        self.process = self.case.start(["nbdkit", "--foreground", "--unix", self.socket,
                                        "--pidfile", ready, "file", self.image])
        wait_until(ready.exists, "nbdkit listens")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def damage(self, offset, length):
        with open(self.image, "r+b") as file:
            file.seek(offset)
            old = file.read(length)
            file.seek(offset)
            file.write(bytes(byte ^ 1 for byte in old))


def expect_failure(action, text):
    try:
        action()
    except Failure:
        return
    raise Failure(text)


def test_fio_notices_damage(case):
    server = StandIn(case)
    pattern = clients.Pattern(case.random.getrandbits(30), size=32 * MIB, mix=clients.MIX_512)
    clients.write_pattern(case, server.uri, pattern)
    clients.check_pattern(case, server.uri, pattern)
    other = clients.Pattern(pattern.seed + 1, size=pattern.size, mix=pattern.mix)
    expect_failure(lambda: clients.check_pattern(case, server.uri, other),
                   "fio took another pattern for its own")
    server.damage(0, 32 * MIB)
    expect_failure(lambda: clients.check_pattern(case, server.uri, pattern),
                   "fio did not notice damaged blocks")


def test_background_patterns(case):
    server = StandIn(case)
    pattern = clients.Pattern(case.random.getrandbits(30), size=8 * MIB)
    background = clients.BackgroundPatterns(case, server.uri, pattern)
    time.sleep(1)
    check(background.running(), "fio ended at once")
    background.stop()
    background = clients.BackgroundPatterns(case, server.uri, pattern)
    time.sleep(0.7)
    server.kill()
    # A round may have ended just before that: the next one cannot begin.
    wait_until(lambda: not background.running(), "fio notices that its server is gone")
    expect_failure(background.stop, "fio did not notice that its server had died")


def make_oracle(case, block_bytes=4096):
    return oracle.Oracle(7, case.random.getrandbits(32), 4 * MIB, 4 * MIB, block_bytes)


def write_some(writer):
    return writer.run(lambda: writer.writes < 1000 or writer.flushes == 0)


def test_oracle_agrees(case):
    for block_bytes in (512, 4096):
        server = StandIn(case)
        known = make_oracle(case, block_bytes)
        writer = oracle.Writer(known, server.uri)
        check(write_some(writer), "the connection ended")
        check(writer.writes > 0 and writer.flushes > 0, "nothing was written")
        writer.close()
        equal(known.verify(oracle.connect(server.uri)), (0, 0), "writes in flight")
        server.kill()


def test_oracle_notices_damage(case):
    server = StandIn(case)
    known = make_oracle(case)
    writer = oracle.Writer(known, server.uri)
    write_some(writer)
    written = known.touched()
    index = case.random.choice(written)
    server.damage(known.offset(index) + case.random.randrange(4096), 1)
    expect_failure(lambda: known.verify(oracle.connect(server.uri)), "a flipped bit")
    # A block in another's place.
    server = StandIn(case)
    handle = oracle.connect(server.uri)
    for block in written:
        handle.pwrite(known.content(block, known.acknowledged[block]), known.offset(block))
    known.verify(handle)
    first, second = case.random.sample(written, 2)
    handle.pwrite(known.content(second, known.acknowledged[second]), known.offset(first))
    expect_failure(lambda: known.verify(handle), "a block in another's place")
    # An old generation.
    handle.pwrite(known.content(first, known.acknowledged[first]), known.offset(first))
    known.verify(handle)
    known.acknowledged[first] += 1
    expect_failure(lambda: known.verify(handle), "a lost write")


def test_oracle_over_a_kill(case):
    """What was acknowledged is demanded, what was in flight may be either, and the writer ends."""
    server = StandIn(case)
    known = make_oracle(case)
    writer = oracle.Writer(known, server.uri)
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(writer.run(lambda: True)))
    thread.start()
    wait_until(lambda: writer.writes > 0 or not thread.is_alive(), "the client writes")
    time.sleep(0.5)
    server.kill()
    thread.join(PATIENCE)
    equal(outcome, [False], "how the writer ended")
    check(known.in_flight, "nothing was in flight")
    server.start()
    done, undone = known.verify(oracle.connect(server.uri))
    case.note(f"{writer.writes} writes, in flight: {done} done, {undone} not")
    equal(known.verify(oracle.connect(server.uri)), (0, 0), "writes still undecided")


def test_clients_understood(case):
    server = StandIn(case)
    info = clients.nbdinfo(case, server.uri)
    equal(info["export-size"], SIZE, "export-size")
    check(info["can_flush"] is True, json.dumps(info))
    clients.qemu_io(case, server.uri, "write -P 0x5a 1M 64k", "flush", "read -P 0x5a 1M 64k")
    expect_failure(lambda: clients.qemu_io(case, server.uri, "read -P 0x5b 1M 64k"),
                   "qemu-io took another pattern for its own")
    source = clients.random_file(case, "source", SIZE)
    clients.nbdcopy(case, source, server.uri)
    equal(clients.sha256(server.image), clients.sha256(source), "what nbdcopy wrote")
