"""SIGKILL of the daemon under writes, at random moments. What is demanded is said in oracle.py."""

import concurrent.futures
import time

import oracle
from crash import DRIVE, Group, Regions, survive_kills
from daemon import Daemon
from drives import Files
from harness import MIB, PATIENCE, check, equal, parametrize, wait_until

ROUNDS = 50


def test_fifty_rounds(case):
    survive_kills(case, Files(case), ROUNDS)


SEEDS = 20


def test_only_dirty_regions_are_resynced(case):
    """R24: the bytes resynced are those of the regions written lately, and every round's data are
    there at the end, without two drives too."""
    oracle.need_libnbd()
    daemon = Daemon(case).start()
    drives = daemon.make_drives(6, 256 * MIB)
    daemon.make_group("raid6", drives)
    volume = daemon.list("volume")[0]
    regions = Regions(daemon.group("g"), volume["start"])
    window = 4 * MIB
    # No two overlap: each oracle expects zeros where it has not written.
    places = case.random.sample(range(0, volume["size_bytes"] - window + 1, window), SEEDS)
    oracles = [oracle.Oracle(number + 1, case.random.getrandbits(32), place, window)
               for number, place in enumerate(places)]
    for number, known in enumerate(oracles):
        daemon.wait_idle()
        write_until_killed(case, daemon, known)
        daemon.start()
        after = daemon.wait_state("optimal")
        touched = len(regions.of(places[number], window))
        check(after["resynced_bytes"] > 0, f"round {number}: nothing was resynced: {after}")
        check(after["resynced_bytes"] <= touched * regions.member_bytes,
              f"round {number}: {after['resynced_bytes']} bytes resynced for {touched} regions of "
              f"{regions.member_bytes} bytes")
        judge(daemon, known)
    daemon.verify()
    for slot in case.random.sample(range(6), 2):
        daemon.cli("fail", "drive", drives[slot])
    for known in oracles:
        judge(daemon, known)


def write_until_killed(case, daemon, known):
    """Killed while it writes: a moment later the bits might be cleared already."""
    writer = oracle.Writer(known, daemon.uri("v"))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        writing = pool.submit(writer.run, lambda: True)
        wait_until(lambda: writer.writes > 0 or writing.done(), "the client writes", interval=0.01)
        time.sleep(case.random.uniform(0.05, 0.4))
        daemon.kill()
        check(not writing.result(PATIENCE), "the client did not notice that its server is gone")
    check(writer.writes > 0, "nothing was written")


def judge(daemon, known):
    handle = oracle.connect(daemon.uri("v"))
    known.verify(handle)
    handle.shutdown()


@parametrize("raid1", "raid10", "raid5", "raid6")
def test_degraded_and_killed(case, level):
    """Mirrors go on by themselves. Parity that may be wrong while it is needed is refused until an
    operator says so; then only stripes with a write in flight may have suffered."""
    oracle.need_libnbd()
    daemon = Daemon(case).start()
    group = Group(case, daemon, level, 0, Files(case))
    daemon.wait_idle(level)
    writer = oracle.Writer(group.oracle, daemon.uri(group.volume))
    writer.run(lambda: writer.writes < 500)
    writer.close()
    daemon.cli("fail", "drive", group.drives[1])
    group.start_writer()
    group.wait_writing()  # so that it is dirty at the kill
    time.sleep(case.random.uniform(0.3, 0.8))
    daemon.kill()
    group.join_writer()
    in_flight = set(group.oracle.in_flight)
    daemon.start()
    excused = set()
    if daemon.group(level)["state"] == "offline":
        check(level in ("raid5", "raid6"), f"{level} did not start: {daemon.group(level)}")
        equal(daemon.group(level)["reason_code"], "dirty-degraded", "why it is not started")
        answer = daemon.refused_assembly("dirty-degraded", level)
        check("--force" in answer["message"], f"what to do: {answer['message']}")
        daemon.cli("assemble", level, "--force")
        start = daemon.list("volume")[0]["start"]
        stripe = daemon.group(level)["stripe_bytes"]

        def stripe_of(index):
            return (start + group.oracle.offset(index)) // stripe

        torn = {stripe_of(index) for index in in_flight}
        excused = {index for index in range(group.oracle.blocks) if stripe_of(index) in torn}
    else:
        check(level in ("raid1", "raid10"), f"{level} started dirty and degraded")
    equal(daemon.group(level)["state"], "degraded", "state")
    group.verify(excused)
    if excused:
        # Whatever these blocks hold now, it is decided.
        return
    daemon.wait_for(lambda found: found["task"] is None, "no task", level)
    new = case.file("new.img", DRIVE)
    daemon.cli("create", "drive", new)
    daemon.cli("replace", "drive", group.drives[1], new)
    daemon.wait_state("optimal", level)
    group.verify()
    daemon.verify(level)


def is_rebuilt(group):
    return group["task"] is not None and group["task"]["progress"]["work"] == "rebuild"


@parametrize("raid1", "raid5", "raid6")
def test_killed_while_rebuilding(case, level):
    """A rebuild without writes goes on from its checkpoint after a crash."""
    oracle.need_libnbd()
    daemon = Daemon(case).start()
    group = Group(case, daemon, level, 0, Files(case))
    writer = oracle.Writer(group.oracle, daemon.uri(group.volume))
    writer.run(lambda: writer.writes < 500)
    writer.close()
    daemon.wait_idle(level)
    daemon.cli("fail", "drive", group.drives[0])
    daemon.cli("edit", "group", level, "--rebuild-rate", "4M")
    new = case.file("new.img", DRIVE)
    daemon.cli("create", "drive", new)
    daemon.cli("replace", "drive", group.drives[0], new)
    for number in range(4):
        found = daemon.wait_for(lambda found: is_rebuilt(found) or found["state"] == "optimal",
                                "rebuild runs", level)
        if found["state"] == "optimal":  # while it was read last
            check(number > 0, "the rebuild ended though it was throttled")
            break
        time.sleep(case.random.uniform(0.1, 0.8))
        daemon.crash_and_start()
        found = daemon.group(level)
        check(found["state"] in ("rebuilding", "degraded", "optimal"),
              f"not started after a crash in a rebuild: {found}")
        group.verify()
    daemon.cli("edit", "group", level, "--rebuild-rate", "0")
    daemon.wait_state("optimal", level)
    daemon.verify(level)
    daemon.cli("fail", "drive", group.drives[1])
    group.verify()
