"""A writer that knows what every block must hold: for judging a volume after a crash.

Every block written holds who it is: volume, block number, generation, seed, a body made of these,
and a checksum, so a single block can be judged alone. The oracle keeps for each block the
generation that was acknowledged last and, of the write in flight at a crash, the one that was not.

What is demanded after SIGKILL of the daemon. The volume advertises FLUSH, so the protocol promises
only what a completed flush or FUA covers. The daemon however keeps no data of its own: a completed
write has reached every member's file, and the kernel survives the daemon. So every acknowledged
write must be there, flushed or not; one in flight may be there or not, block by block; a block is
never a mixture, never another block, never an error. A miss says whether it was flushed.
"""

import random
import struct
import zlib

from harness import Failure, MIB, Skip, check

try:
    import nbd
except ImportError:
    nbd = None

HEADER = struct.Struct("<8sQQQQ")  # magic, volume, block, generation, seed
MAGIC = b"wr-block"
TILE_BYTES = 1 << 17


def need_libnbd():
    if nbd is None:
        raise Skip("python3-libnbd is not installed")


def connect(uri):
    need_libnbd()
    handle = nbd.NBD()
    handle.add_meta_context("base:allocation")
    handle.connect_uri(uri)
    return handle


class Oracle:
    def __init__(self, volume, seed, first_byte, size, block_bytes=4096):
        check(first_byte % block_bytes == 0 and size % block_bytes == 0, "an area of whole blocks")
        self.volume = volume
        self.seed = seed
        self.random = random.Random(f"{seed}/{volume}/oracle")
        self.tile = random.Random(f"{seed}/{volume}/tile").randbytes(TILE_BYTES)
        self.block_bytes = block_bytes
        self.first = first_byte // block_bytes
        self.blocks = size // block_bytes
        self.window = range(self.blocks)       # where writers write
        self.acknowledged = [0] * self.blocks  # 0: never written
        self.flushed = [0] * self.blocks
        self.in_flight = {}                    # block index -> generation
        self.generation = 0

    def content(self, index, generation):
        header = HEADER.pack(MAGIC, self.volume, self.first + index, generation, self.seed)
        length = self.block_bytes - HEADER.size - 4
        start = (index * 7919 + generation * 104729) % (TILE_BYTES - length)
        body = header + self.tile[start:start + length]
        return body + struct.pack("<I", zlib.crc32(body))

    def judge(self, index, data):
        """The generation that a block holds; raises with what is wrong with it."""
        allowed = [self.acknowledged[index]]
        if index in self.in_flight:
            allowed.append(self.in_flight[index])
        if not any(data):
            generation = 0
        else:
            magic, volume, block, generation, seed = HEADER.unpack_from(data)
            if (magic, volume, seed) != (MAGIC, self.volume, self.seed):
                raise Failure(f"block {self.first + index}: foreign content {data[:48].hex()}")
            if block != self.first + index:
                raise Failure(f"block {self.first + index} holds block {block}")
            if data != self.content(index, generation):
                raise Failure(f"block {self.first + index}: a mixture, head of generation "
                              f"{generation}, allowed {allowed}")
        if generation not in allowed:
            promise = "flushed" if generation < self.flushed[index] else "acknowledged"
            raise Failure(f"block {self.first + index}: {promise} write lost: generation "
                          f"{generation}, allowed {allowed}, flushed {self.flushed[index]}")
        return generation

    def choose_window(self, parts):
        """Writers keep to one of as many parts from now on."""
        part = self.blocks // parts
        first = self.random.randrange(parts) * part
        self.window = range(first, first + part)

    def offset(self, index):
        return (self.first + index) * self.block_bytes

    def verify(self, handle, excused=()):
        """Reads and judges every block but those `excused`. What was in flight is decided from now
        on: it must read the same for ever. Returns how many of its blocks were found done and
        undone."""
        step = MIB // self.block_bytes
        done = undone = 0
        for first in range(0, self.blocks, step):
            count = min(step, self.blocks - first)
            data = handle.pread(count * self.block_bytes, self.offset(first))
            for position in range(count):
                index = first + position
                if index in excused:
                    continue
                start = position * self.block_bytes
                generation = self.judge(index, data[start:start + self.block_bytes])
                if index in self.in_flight:
                    if generation == self.in_flight[index]:
                        done += 1
                    else:
                        undone += 1
                    self.acknowledged[index] = generation
        self.in_flight.clear()
        return done, undone

    def touched(self):
        """Indices of blocks written in this life."""
        return [index for index in range(self.blocks)
                if self.acknowledged[index] or index in self.in_flight]


class Writer:
    """Random writes of an oracle's area through libnbd, several in flight, no two of them on one
    block. Stops when told, or when the connection ends."""

    def __init__(self, oracle, uri, depth=8, blocks_max=64, flush_share=0.03, fua_share=0.1):
        self.oracle = oracle
        self.depth = depth
        self.blocks_max = blocks_max
        self.flush_share = flush_share
        self.fua_share = fua_share
        self.handle = connect(uri)
        self.pending = {}  # cookie -> (kind, blocks, generation)
        self.writes = self.flushes = 0
        self.error = None

    def run(self, keep_going):
        """Writes while `keep_going()`; then waits for what is in flight. True: the connection is
        well, False: it ended. An error that the server returned is raised."""
        try:
            while keep_going():
                while len(self.pending) < self.depth:
                    self.issue()
                self.wait()
            while self.pending:
                self.wait()
        except nbd.Error as error:
            if self.error is not None:
                raise Failure(f"the server failed a request: {self.error}") from None
            # A server that is gone; everything pending stays in flight for the oracle.
            if self.handle.aio_is_ready() or self.handle.aio_is_processing():
                raise Failure(f"libnbd: {error}") from None
            return False
        return True

    def issue(self):
        oracle = self.oracle
        chance = oracle.random.random()
        if chance < self.flush_share:
            covered = list(oracle.acknowledged)
            cookie = self.handle.aio_flush()
            self.pending[cookie] = ("flush", covered, 0)
            return
        blocks = self.choose()
        oracle.generation += 1
        generation = oracle.generation
        data = b"".join(oracle.content(index, generation) for index in blocks)
        fua = chance > 1 - self.fua_share
        for index in blocks:
            oracle.in_flight[index] = generation
        # An nbd.Buffer made of bytes is never freed by libnbd 1.14: 6 GiB in a few minutes.
        cookie = self.handle.aio_pwrite(data, oracle.offset(blocks.start),
                                        flags=nbd.CMD_FLAG_FUA if fua else 0)
        self.pending[cookie] = ("fua" if fua else "write", blocks, generation)

    def choose(self):
        """A run of blocks that nothing in flight touches; mostly short, sometimes long."""
        oracle = self.oracle
        while True:
            longest = self.blocks_max if oracle.random.random() < 0.2 else min(self.blocks_max, 8)
            count = oracle.random.randint(1, min(longest, len(oracle.window)))
            first = oracle.window.start + oracle.random.randrange(len(oracle.window) - count + 1)
            if not any(index in oracle.in_flight for index in range(first, first + count)):
                return range(first, first + count)

    def wait(self):
        """Until at least one more completion, then takes all there are."""
        self.handle.poll(-1)
        while self.pending and (cookie := self.handle.aio_peek_command_completed()) > 0:
            self.take(cookie)

    def take(self, cookie):
        kind, blocks, generation = self.pending[cookie]
        try:
            self.handle.aio_command_completed(cookie)
        except nbd.Error as error:
            if self.handle.aio_is_dead() or self.handle.aio_is_closed():
                raise
            self.error = error
            raise
        del self.pending[cookie]
        oracle = self.oracle
        if kind == "flush":
            self.flushes += 1
            # Whatever was acknowledged before the flush was sent.
            oracle.flushed = [max(old, new) for old, new in zip(oracle.flushed, blocks)]
            return
        self.writes += 1
        for index in blocks:
            oracle.acknowledged[index] = generation
            del oracle.in_flight[index]
            if kind == "fua":
                oracle.flushed[index] = generation

    def close(self):
        if self.handle.aio_is_ready():
            self.handle.shutdown()
        self.handle = None
