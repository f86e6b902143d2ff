"""Groups under writes, and SIGKILL of their daemon. What is demanded is said in oracle.py."""

import dataclasses
import subprocess
import threading
import time

import clients
import oracle
from daemon import Daemon
from harness import GIB, MIB, PATIENCE, Failure, check, wait_until

DRIVE = 96 * MIB
AREA = 16 * MIB
FIO_AREA = 8 * MIB
LEVELS = {"raid0": 2, "raid1": 2, "raid5": 4, "raid6": 5, "raid10": 4}
PARITY_EVERY = 5
FIO_EVERY = 5
LOSS_EVERY = 10


class Regions:
    """Those of a group's write-intent bitmap, as bytes of a volume touch them."""

    def __init__(self, group, volume_start):
        member = group["shape"]["member_data_bytes"]
        self.count = group["regions"]
        # Whole MiB of each member; the last region may be cut.
        self.member_bytes = -(-member // (max(self.count, 1) * MIB)) * MIB
        self.user_bytes = self.member_bytes * group["capacity_bytes"] // member
        self.volume_start = volume_start

    def of(self, offset, size):
        first = self.volume_start + offset
        return set(range(first // self.user_bytes, (first + size - 1) // self.user_bytes + 1))


class Group:
    """A group with its oracle, a writer while one runs, and what a kill may have left dirty."""

    def __init__(self, case, daemon, level, number, source):
        self.case = case
        self.daemon = daemon
        self.level = level
        self.name = level
        self.volume = f"v-{level}"
        self.source = source
        self.drives = source.several(LEVELS[level], DRIVE)
        daemon.cli("create", "drive", *self.drives)
        daemon.make_group(level, self.drives, name=self.name, volume=self.volume)
        volume = next(found for found in daemon.list("volume") if found["name"] == self.volume)
        block = volume["block_bytes"]
        # fio has the last whole MiB to itself, the oracle some place in front of them.
        fio_start = volume["size_bytes"] // MIB * MIB - 2 * FIO_AREA
        # Small blocks in one group: they make many partial writes of one 4 KiB page.
        block = block if level == "raid5" else 4096
        first = case.random.randrange(0, fio_start - AREA, 4096)
        self.oracle = oracle.Oracle(number + 1, case.random.getrandbits(32), first,
                                    AREA if block == 4096 else 2 * MIB, block)
        self.writer = None
        self.thread = None
        self.problem = None
        self.regions = Regions(daemon.group(self.name), volume["start"])
        self.dirty = set(range(self.regions.count))  # the first resync may still be under way
        self.was_clean = False
        self.resynced = 0
        mix = clients.MIX_512 if volume["block_bytes"] == 512 else clients.MIX_4096
        self.patterns = [clients.Pattern(case.random.getrandbits(28), mix=mix, size=FIO_AREA,
                                         offset=fio_start + half * FIO_AREA)
                         for half in (0, 1)]
        self.fio = None

    def is_clean(self):
        return self.level != "raid0" and self.daemon.group(self.name)["dirty_regions"] == 0

    def start_writer(self):
        self.oracle.choose_window(4)
        self.was_clean = self.is_clean()
        self.writer = oracle.Writer(self.oracle, self.daemon.uri(self.volume))
        self.thread = threading.Thread(target=self.write)
        self.thread.start()

    def wait_writing(self):
        """Until a write was acknowledged: the kill that follows leaves something to resync."""
        wait_until(lambda: self.writer.writes > 0 or not self.thread.is_alive(),
                   f"{self.name}: the client writes")

    def write(self):
        try:
            self.writer.run(lambda: True)
        except Exception as problem:  # told by join_writer()
            self.problem = problem

    def join_writer(self):
        """After the daemon's end."""
        self.thread.join(PATIENCE)
        check(not self.thread.is_alive(), f"{self.name}: the client hangs, its server is gone")
        if self.problem is not None:
            raise self.problem
        self.writer.handle = None
        window = self.oracle.window
        touched = self.regions.of(self.oracle.offset(window.start),
                                  len(window) * self.oracle.block_bytes)
        # When all bits were clear, the first write's bit was made durable together with that.
        self.dirty = touched if self.was_clean and self.writer.writes else self.dirty | touched
        return self.writer.writes

    def start_fio(self):
        """More than it can do before the kill, in one of two areas; the other stays as it is."""
        before = self.daemon.group(self.name)["counters"]["written_bytes"]
        endless = dataclasses.replace(self.patterns[0], moved=64 * GIB)
        self.fio = self.case.start(
            clients.fio_command(self.daemon.uri(self.volume), endless, "--do_verify=0"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.case.directory)
        self.daemon.wait_for(lambda found: found["counters"]["written_bytes"] > before,
                             "fio writes", self.name)

    def join_fio(self):
        """After the daemon's end, which fio must notice."""
        check(self.fio.wait(PATIENCE) != 0, f"{self.name}: fio ended well, its server is gone")
        self.fio = None
        self.dirty |= self.regions.of(self.patterns[0].offset, FIO_AREA)

    def check_fio(self):
        """What fio wrote and flushed before is there; where it was killed it can write again."""
        uri = self.daemon.uri(self.volume)
        torn, kept = self.patterns
        clients.check_pattern(self.case, uri, kept)
        torn = dataclasses.replace(torn, seed=torn.seed + 1)
        clients.write_pattern(self.case, uri, torn)
        self.patterns = [kept, torn]
        self.dirty |= self.regions.of(torn.offset, FIO_AREA)

    def check_resynced(self):
        """Never more than what can have been dirty, whether its resync is over or not."""
        if self.level == "raid0":
            return
        self.resynced = self.daemon.group(self.name)["resynced_bytes"]
        check(self.resynced <= len(self.dirty) * self.regions.member_bytes,
              f"{self.name}: {self.resynced} bytes resynced, but only {sorted(self.dirty)} of "
              f"{self.regions.count} regions of {self.regions.member_bytes} bytes were written")

    def verify(self, excused=()):
        handle = oracle.connect(self.daemon.uri(self.volume))
        counts = self.oracle.verify(handle, excused)
        handle.shutdown()
        return counts

    def lose_one(self):
        """What was read after the crash must also be what parity or the copies hold."""
        slot = self.case.random.randrange(len(self.drives))
        self.daemon.cli("fail", "drive", self.drives[slot])
        self.verify()
        new = self.source.make(DRIVE)
        self.daemon.cli("create", "drive", new)
        self.daemon.cli("replace", "drive", self.drives[slot], new)
        self.source.discard(self.drives[slot])
        self.drives[slot] = new
        self.daemon.wait_state("optimal", self.name)
        self.verify()


def kill_in_start(case, daemon):
    """Kills a daemon before it says that it is ready."""
    waited = daemon.wait_ready
    daemon.wait_ready = lambda timeout: None
    try:
        daemon.start()
    finally:
        daemon.wait_ready = waited
    time.sleep(case.random.uniform(0, 0.25))
    daemon.kill()


def settle(groups, number):
    """In some rounds; in the others the next kill comes while regions still wait for a resync."""
    protected = [group for group in groups if group.level != "raid0"]
    for group in protected if number % PARITY_EVERY == 0 else ():
        group.daemon.wait_state("optimal", group.name)
        group.check_resynced()
        check(group.resynced > 0, f"{group.name}: nothing was resynced")
        group.daemon.verify(group.name)
    for group in protected if number % LOSS_EVERY == 0 else ():
        group.lose_one()


def survive_kills(case, source, rounds):
    """As many kills of one daemon with a group of each level, most under libnbd's writes to all,
    some with fio's mix on one."""
    oracle.need_libnbd()
    daemon = Daemon(case).start()
    groups = [Group(case, daemon, level, number, source) for number, level in enumerate(LEVELS)]
    for group in groups:
        clients.write_pattern(case, daemon.uri(group.volume), group.patterns[1])
        group.daemon.wait_for(lambda found: found["task"] is None, "no task", group.name)
    writes = done = undone = 0
    for number in range(1, rounds + 1):
        with_fio = None
        if number % FIO_EVERY == 0:
            with_fio = groups[number // FIO_EVERY % len(groups)]
            with_fio.start_fio()
        writers = [group for group in groups if group is not with_fio]
        for group in writers:
            group.start_writer()
        for group in writers if number % PARITY_EVERY == 0 else ():
            group.wait_writing()  # settle() looks for a resync
        time.sleep(case.random.uniform(0.02, 1.0))
        daemon.kill()
        writes += sum(group.join_writer() for group in writers)
        if with_fio:
            with_fio.join_fio()
        if number % 7 == 0:
            kill_in_start(case, daemon)
        daemon.start()
        for group in groups:
            found = daemon.group(group.name)
            check(found["state"] in ("optimal", "resyncing"),
                  f"round {number}: {group.name} did not start by itself: {found}")
            try:
                counts = group.verify()
                group.check_resynced()
                if group is with_fio:
                    group.check_fio()
            except Failure as failure:
                raise Failure(f"round {number}, {group.name}: {failure}") from failure
            done, undone = done + counts[0], undone + counts[1]
        settle(groups, number)
    print(f"    {rounds} kills, {writes} writes acknowledged, blocks in flight at kills: "
          f"{done} done, {undone} not", flush=True)
    check(writes > 10 * rounds, f"only {writes} writes were acknowledged: no load")
    check(done + undone > 0, "nothing was ever in flight at a kill")
