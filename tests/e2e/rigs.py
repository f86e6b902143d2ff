"""A group over drives of any kind, and what its losses must not do to it."""

import concurrent.futures
import dataclasses

import clients
from daemon import Daemon
from harness import MIB, Failure, check, equal

DRIVE = 64 * MIB
# So that a rebuild lasts as long as it is read: it is let go afterwards.
SLOW = "2M"


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    level: str
    drives: int
    losses: tuple       # sets of slots that it must survive, each lost one after the other
    options: tuple = ()

    def __str__(self):
        return self.name


def singles(count):
    return tuple((slot,) for slot in range(count))


class Rig:
    """A group whose volume has three areas: one written healthy, one degraded, one all the time."""

    def __init__(self, case, shape, source):
        self.case = case
        self.source = source
        self.daemon = Daemon(case).start()
        self.drives = source.several(shape.drives, DRIVE)
        self.daemon.cli("create", "drive", *self.drives)
        options = shape.options
        if "--chunk" not in options and shape.level != "raid1":
            options = (*options, "--chunk", "64K")
        self.uri = self.daemon.make_group(shape.level, self.drives, *options)
        block = self.daemon.list("volume")[0]["block_bytes"]
        if "--block-size" not in options:
            equal(block, source.sector, "the block of the volume")
        mix = clients.MIX_512 if block == 512 else clients.MIX_4096
        base = clients.Pattern(case.random.getrandbits(28), mix=mix)
        self.first = dataclasses.replace(base, size=24 * MIB)
        self.second = dataclasses.replace(base, offset=24 * MIB, size=12 * MIB)
        self.third = dataclasses.replace(base, offset=48 * MIB, size=8 * MIB)
        self.states = set()  # of slots lost: those that were read and written
        self.daemon.wait_idle()

    def new_drive(self):
        path = self.source.make(DRIVE)
        self.daemon.cli("create", "drive", path)
        return path

    def check(self, *patterns):
        """Side by side: a client's start takes longer than its work."""
        with concurrent.futures.ThreadPoolExecutor(len(patterns)) as pool:
            list(pool.map(lambda pattern: clients.check_pattern(self.case, self.uri, pattern),
                          patterns))

    def fail(self, slot):
        self.daemon.cli("fail", "drive", self.drives[slot])
        found = self.daemon.wait_state("degraded")
        member = found["members"][slot]
        equal((member["state"], member["reason"]), ("failed", "operator"), f"member {slot}")

    def replace(self, slots):
        for slot in slots:
            new = self.new_drive()
            self.daemon.cli("replace", "drive", self.drives[slot], new)
            self.drives[slot] = new

    def load(self, number=0):
        return clients.BackgroundPatterns(self.case, self.uri, dataclasses.replace(
            self.third, seed=self.third.seed + 1000 * number))

    def lose(self, slots, number):
        """Reads and writes with each more of the slots lost, if not done before with just these;
        what was written then."""
        written = []
        for position, slot in enumerate(slots):
            self.fail(slot)
            state = frozenset(slots[:position + 1])
            if state in self.states:
                continue
            self.states.add(state)
            self.check(self.first, *written)
            area = self.second.size
            written.append(dataclasses.replace(self.second, seed=self.second.seed + number,
                                               offset=self.second.offset + position * area))
            clients.write_pattern(self.case, self.uri, written[-1])
        return written

    def lose_and_rebuild(self, slots, number):
        """One life of a failure: read and write without the slots, rebuild under load, read."""
        degraded = self.lose(slots, number)
        self.daemon.cli("edit", "group", "g", "--rebuild-rate", SLOW)
        load = self.load(number)
        self.replace(slots)
        found = self.daemon.wait_for(
            lambda found: found["task"] and found["task"]["progress"]["work"] == "rebuild",
            "a rebuild starts")
        states = [found["members"][slot]["state"] for slot in slots]
        check("rebuilding" in states, f"slots {slots} while rebuilding: {states}")
        self.check(self.first, *degraded)
        self.daemon.cli("edit", "group", "g", "--rebuild-rate", "0")
        self.daemon.wait_state("optimal")
        load.stop()
        self.check(self.first, *degraded)


def survive_losses(rig, losses):
    clients.write_pattern(rig.case, rig.uri, rig.first)
    for number, slots in enumerate(losses, 1):
        try:
            rig.lose_and_rebuild(slots, number)
        except Failure as failure:
            raise Failure(f"slots {slots}: {failure}") from failure
