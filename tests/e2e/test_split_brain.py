"""R23: parts of a group that went on without each other are never merged silently."""

import oracle
import superblock
from daemon import Daemon, changed, prints_of
from drives import put
from harness import MIB, check, equal, parametrize
from known_groups import globs, hidden, hide, made_group, read_data, unhide, write_data


def split_brain(case, level, count, first_half):
    """Both halves of a group have gone on without the other. (daemon, drives, W1, W2)"""
    daemon = Daemon(case).start(globs(case))
    drives, _ = made_group(case, daemon, level, count)
    second_half = [slot for slot in range(count) if slot not in first_half]
    # The second half goes on, W1.
    daemon.stop()
    for slot in first_half:
        hide(drives[slot])
    daemon.start(globs(case))
    if daemon.group("g")["state"] == "offline":
        equal(daemon.group("g")["reason_code"], "quorum-lost", "why half a group does not start")
        check("--force" in daemon.group("g")["reason"], daemon.group("g")["reason"])
        daemon.cli("assemble", "g", "--force")
    first_data = write_data(case, daemon)
    daemon.stop()
    # The first half alone.
    for slot in first_half:
        unhide(drives[slot])
    for slot in second_half:
        hide(drives[slot])
    before = prints_of([drives[slot] for slot in first_half])
    daemon.start(globs(case))
    equal((daemon.group("g")["state"], daemon.group("g")["reason_code"]),
          ("offline", "quorum-lost"), "the other half without force")
    equal(changed(before, prints_of(before)), [], "drives that were written")
    daemon.cli("assemble", "g", "--force")
    second_data = write_data(case, daemon)
    for _ in range(3):  # more commits on this side
        daemon.restart(globs(case))
        if daemon.group("g")["state"] == "offline":
            daemon.cli("assemble", "g", "--force")
    daemon.stop()
    for slot in second_half:
        unhide(drives[slot])
    return daemon, drives, first_data, second_data


@parametrize(("raid1", 2, (0,)), ("raid10", 4, (0, 2)), ("raid10", 4, (0, 3)),
             ("raid6", 4, (0, 1)))
def test_r23_split_brain(case, what):
    """Never merged silently; --prefer keeps one history whole."""
    level, count, first_half = what
    daemon, drives, first_data, second_data = split_brain(case, level, count, first_half)
    check(first_data != second_data, "two histories")
    before = prints_of(drives)
    daemon.start(globs(case))
    found = daemon.group("g")
    equal((found["state"], found["reason_code"]), ("offline", "split-brain"), "the group")
    outcome = daemon.refused_assembly("split-brain", "g")
    serials = [daemon.drive(drive)["serial"] for drive in drives]
    second_half = [slot for slot in range(count) if slot not in first_half]
    for half in (first_half, second_half):
        check(any(serials[slot] in outcome["message"] for slot in half),
              f"a history is not told: {outcome['message']}")
    equal(changed(before, prints_of(drives)), [], "drives that were written")
    daemon.cli("assemble", "g", "--prefer", serials[second_half[0]])
    daemon.wait_state("optimal")
    equal(read_data(daemon), first_data, "data after --prefer")
    daemon.verify()
    # The other half was made anew wholly: it carries the data alone.
    for slot in second_half:
        daemon.cli("fail", "drive", drives[slot])
    equal(read_data(daemon), first_data, "data from the half that was overwritten")


VANISHING = (("raid1", 2, (0,), "vanishes"), ("raid1", 2, (1,), "vanishes"), ("raid1", 2, (0,), "fails"),
             ("raid1", 2, (1,), "fails"), ("raid10", 4, (0, 2), "vanishes"),
             ("raid10", 4, (1, 3), "vanishes"), ("raid6", 4, (0, 1), "vanishes"),
             ("raid6", 4, (2, 3), "vanishes"))


@parametrize(*VANISHING)
def test_r23_a_half_goes_while_the_group_runs(case, what):
    """The other half goes on with W1; the one that went is started by force and gets W2, as many
    commits long."""
    level, count, half, way = what
    daemon = Daemon(case).start(globs(case))
    drives, _ = made_group(case, daemon, level, count, size=64 * MIB)
    common = write_data(case, daemon, length=3 * MIB)
    daemon.wait_idle()
    lost = [drives[slot] for slot in half]
    kept = [drive for drive in drives if drive not in lost]
    leave_together(daemon, drives, half, way)
    wanted = (write_data(case, daemon) + common[MIB:]).rstrip(b"\0")
    daemon.stop()
    length = superblock.generation(kept[0])
    for drive in kept:
        hide(drive)
    for drive in lost:
        if not drive.exists():
            unhide(drive)
    before = prints_of(lost)
    daemon.start(globs(case))
    found = daemon.group("g")
    equal((found["state"], found["reason_code"]), ("offline", "quorum-lost"), "the half without force")
    check("--force" in found["reason"], found["reason"])
    equal(changed(before, prints_of(lost)), [], "drives that were written")
    daemon.cli("assemble", "g", "--force")
    write_data(case, daemon, length=2 * MIB)
    daemon.stop()
    for _ in range(4):  # both may be the shorter one
        if superblock.generation(lost[0]) >= length:
            break
        daemon.start(globs(case))
        equal(daemon.group("g")["state"], "degraded", "the half by itself")
        daemon.stop()
    settle_split(case, daemon, drives, kept, lost, wanted)


def leave_together(daemon, drives, half, way):
    """Till no drive of the half knows that another one went: by chance the daemon looks in between."""
    state = {"fails": "failed", "vanishes": "missing"}[way]
    for _ in range(3):
        for slot in half:
            if way == "fails":
                daemon.cli("fail", "drive", drives[slot])
            else:
                hide(drives[slot])
        daemon.wait_for(lambda found: all(found["members"][slot]["state"] == state for slot in half),
                        f"slots {half} are {state}")
        equal(daemon.group("g")["state"], "degraded", "state")
        places = [drives[slot] if way == "fails" else hidden(drives[slot]) for slot in half]
        if len({superblock.generation(place) for place in places}) == 1:
            return
        for slot in half:
            unhide(drives[slot])
        daemon.wait_state("optimal")
    check(False, "the drives of a half do not go at once")


def settle_split(case, daemon, drives, kept, lost, wanted):
    """Both halves are there: refused, until one is preferred, which rebuilds the others wholly."""
    for drive in kept:
        unhide(drive)
    lengths = {drive: superblock.generation(drive) for drive in drives}
    equal(len(set(lengths.values())), 1, f"generations: {lengths}")
    for drive in lost:  # where no bitmap knows of a write
        put(drive, 40 * MIB, case.random.randbytes(64 * 1024))
    before = prints_of(drives)
    for start in ("the first start", "another one"):
        daemon.start(globs(case))
        outcome = daemon.refused_assembly("split-brain", "g")
        found = daemon.group("g")
        equal((found["state"], found["reason_code"]), ("offline", "split-brain"), f"after {start}")
        for text in (outcome["message"], found["reason"]):
            equal(text.count(f"generation {lengths[kept[0]]} on "), 2, f"histories in: {text}")
            for drive in drives:
                check(daemon.drive(drive)["serial"] in text, f"{drive} is not in: {text}")
        for force in ([], ["--force"]):
            daemon.refused_assembly("split-brain", "g", *force)
        equal(changed(before, prints_of(drives)), [], f"drives that were written after {start}")
        daemon.stop()
    daemon.start(globs(case))
    daemon.cli("assemble", "g", "--prefer", daemon.drive(kept[-1])["serial"])
    daemon.wait_state("optimal")
    check(read_all(daemon) == wanted, "the preferred history is not what is read")
    daemon.verify()
    for drive in kept:
        daemon.cli("fail", "drive", drive)
    check(read_all(daemon) == wanted, "the half that was rebuilt does not hold the preferred history")


def read_all(daemon):
    """The volume up to its last byte that is not zero."""
    size = daemon.list("volume")[0]["size_bytes"]
    handle = oracle.connect(daemon.uri("v-g"))
    step = 8 * MIB
    data = b"".join(handle.pread(min(step, size - at), at) for at in range(0, size, step))
    handle.shutdown()
    return data.rstrip(b"\0")
