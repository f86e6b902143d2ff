"""What survives a stop: groups, volumes, exports, numbers, spares, how far a rebuild had come."""

import os
import shutil
import threading
import time

import clients
import oracle
from daemon import Daemon, prints_of, rename_all
from harness import MIB, PATIENCE, check, equal, parametrize, wait_until

SMALL = 96 * MIB
SECONDS_BETWEEN_CHECKPOINTS = 5
SECONDS_LATE_MAX = 7  # how late a busy machine may come to a checkpoint
HELD = "64K"  # a rate at which a rebuild stays where it is for as long as a test looks


def globs(case):
    return ["--drives", f"{case.directory}/*.img"]


def facts(daemon):
    """Everything that a restart must not change."""
    groups = [{key: group[key] for key in ("id", "uuid", "name", "shape", "capacity_bytes",
                                           "free_bytes", "rebuild_bytes_per_second_max")}
              for group in daemon.list("group")]
    drives = [{key: drive[key] for key in ("id", "serial", "use", "group", "slot", "size_bytes")}
              for drive in daemon.list("drive")]
    exports = [{key: export[key] for key in ("group", "volume", "name", "uri", "read_only")}
               for export in daemon.list("export")]
    # Lists are in no order that is promised.
    volumes = sorted(daemon.list("volume"), key=lambda volume: volume["uuid"])
    groups.sort(key=lambda group: group["uuid"])
    exports.sort(key=lambda export: export["uri"])
    return {"groups": groups, "drives": drives, "volumes": volumes,
            "spares": daemon.list("spare"), "exports": exports}


def test_everything_is_kept(case):
    daemon = Daemon(case).start()
    first = daemon.make_drives(4, SMALL, prefix="a")
    second = daemon.make_drives(3, SMALL, prefix="b")
    spare = daemon.make_drives(2, SMALL, prefix="s")
    uri = daemon.make_group("raid6", first, name="one", volume="data", size="64M")
    daemon.cli("create", "volume", "one", "16M", "--name", "small")
    daemon.cli("create", "volume", "one", "--count", "3", "--name", "third")
    daemon.make_group("raid1", second, name="two", volume="data")
    daemon.cli("unexport", "volume", "two", "data")
    daemon.cli("export", "volume", "two", "data", "--read-only")
    daemon.cli("create", "spare", spare[0], "--group", "one")
    daemon.cli("create", "spare", spare[1])
    daemon.cli("edit", "group", "one", "--rebuild-rate", "200M")
    daemon.cli("edit", "volume", "one", "small", "--name", "tiny")
    pattern = clients.Pattern(case.random.getrandbits(28), size=32 * MIB)
    clients.write_pattern(case, uri, pattern)
    known = facts(daemon)
    equal(len(known["volumes"]), 6, "volumes")
    sizes = {volume["size_bytes"] for volume in known["volumes"]
             if volume["name"].startswith("third")}
    equal(len(sizes), 1, f"sizes of an equal split: {sizes}")
    events = daemon.cli("list", "event", "--limit", "1000")["events"]
    for way in (daemon.restart, daemon.crash_and_start, daemon.restart):
        way()
        daemon.wait_idle("one")
        daemon.wait_idle("two")
        now = facts(daemon)
        for what, before in known.items():
            equal(now[what], before, f"{what} after {way.__name__}")
        clients.check_pattern(case, uri, pattern)
    kept = daemon.cli("list", "event", "--limit", "1000")["events"]
    equal(kept[:len(events)], events, "events of before")
    daemon.verify("one")


def test_files_moved(case):
    """A state that names stale paths: the drives are found by scan, and the paths are mended."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(4, SMALL)
    uri = daemon.make_group("raid5", drives)
    pattern = clients.Pattern(case.random.getrandbits(28), size=32 * MIB)
    clients.write_pattern(case, uri, pattern)
    daemon.wait_state("optimal")  # a first resync that is cut off would go on later
    daemon.stop()
    moved = [case.directory / "elsewhere" / f"{index}-moved.img" for index in range(4)]
    moved[0].parent.mkdir()
    rename_all(drives, moved)
    daemon.start(["--drives", f"{case.directory}/elsewhere/*.img"])
    found = daemon.group("g")
    equal((found["state"], found["task"], found["resynced_bytes"]), ("optimal", None, 0),
          "the group")
    equal([member["path"] for member in found["members"]], [str(path) for path in moved], "paths")
    clients.check_pattern(case, daemon.uri("v"), pattern)
    # From now on also without being told where to look.
    daemon.restart()
    equal(daemon.group("g")["state"], "optimal", "state after another restart")


def test_clean_stop_means_no_resync(case):
    daemon = Daemon(case).start()
    drives = daemon.make_drives(5, SMALL)
    uri = daemon.make_group("raid6", drives)
    daemon.wait_state("optimal")  # a first resync that is cut off would go on later
    for _ in range(3):
        pattern = clients.Pattern(case.random.getrandbits(28), size=48 * MIB)
        clients.write_pattern(case, uri, pattern)
        daemon.restart()  # at once: the bitmap is still dirty when the daemon is told to stop
        found = daemon.group("g")
        equal((found["state"], found["dirty_regions"], found["resynced_bytes"]), ("optimal", 0, 0),
              "the group after an orderly stop")
        clients.check_pattern(case, uri, pattern)


def test_stop_under_load(case):
    """An orderly stop while clients write: what was acknowledged is there and nothing is dirty."""
    oracle.need_libnbd()
    daemon = Daemon(case).start()
    drives = daemon.make_drives(4, SMALL)
    daemon.make_group("raid5", drives)
    daemon.wait_state("optimal")  # a first resync that is cut off would go on later
    known = oracle.Oracle(1, case.random.getrandbits(32), 8 * MIB, 16 * MIB)
    for _ in range(3):
        writer = oracle.Writer(known, daemon.uri("v"))
        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(writer.run(lambda: True)))
        thread.start()
        wait_until(lambda: writer.writes > 0 or not thread.is_alive(), "the client writes")
        time.sleep(0.4)
        daemon.stop()
        thread.join(PATIENCE)
        equal(outcome, [False], "how the writer ended")
        daemon.start()
        equal(daemon.group("g")["resynced_bytes"], 0, "bytes resynced after an orderly stop")
        known.verify(oracle.connect(daemon.uri("v")))
    daemon.verify()


def left_to_do(group):
    progress = group["task"]["progress"]
    return progress["total_bytes"] - progress["done_bytes"]


@parametrize("stop", "kill")
def test_rebuild_continues(case, how):
    """R59: a rebuild goes on near where it was: an orderly stop stores its place, and a crash costs
    no more than what is done between two checkpoints. Progress counts what is left to do."""
    daemon = Daemon(case).start()
    size = 256 * MIB
    drives = daemon.make_drives(4, size)
    uri = daemon.make_group("raid5", drives)
    pattern = clients.Pattern(case.random.getrandbits(28), size=64 * MIB)
    clients.write_pattern(case, uri, pattern)
    daemon.wait_idle()
    daemon.cli("fail", "drive", drives[1])
    rate = 8 * MIB
    daemon.cli("edit", "group", "g", "--rebuild-rate", rate)
    new = case.file("new.img", size)
    daemon.cli("create", "drive", new)
    daemon.cli("replace", "drive", drives[1], new)

    def at_60_percent(found):
        progress = found["task"] and found["task"]["progress"]
        return progress and progress["work"] == "rebuild" \
            and progress["done_bytes"] * 10 >= progress["total_bytes"] * 6

    found = daemon.wait_for(at_60_percent, "60 % are rebuilt")
    left = left_to_do(found)
    check(found["task"]["eta_seconds"] is not None and found["task"]["bytes_per_second"] > 0,
          f"no speed or ETA: {found['task']}")
    daemon.cli("edit", "group", "g", "--rebuild-rate", HELD)  # else it might end before it is seen
    if how == "stop":
        daemon.restart()
    else:
        daemon.crash_and_start()
    found = daemon.wait_for(
        lambda found: found["task"] and found["task"]["progress"]["total_bytes"] > 0,
        "the rebuild goes on")
    equal(found["task"]["progress"]["work"], "rebuild", "the work after the restart")
    # The region that a stop cuts in two is done again as a whole.
    lost_seconds = SECONDS_BETWEEN_CHECKPOINTS + SECONDS_LATE_MAX if how == "kill" else 0
    allowed = left + MIB + rate * lost_seconds
    check(0 < left_to_do(found) <= allowed,
          f"{left} bytes were left to do, then {left_to_do(found)}, allowed {allowed}")
    daemon.cli("edit", "group", "g", "--rebuild-rate", "0")
    daemon.wait_state("optimal")
    daemon.verify()
    daemon.cli("fail", "drive", drives[0])
    clients.check_pattern(case, daemon.uri("v"), pattern)


def test_rebuild_rate_is_kept(case):
    """A rate set while the rebuild runs holds, within what a busy machine allows."""
    daemon = Daemon(case).start()
    size = 256 * MIB
    drives = daemon.make_drives(3, size)
    daemon.make_group("raid5", drives)
    daemon.wait_idle()
    daemon.cli("fail", "drive", drives[0])
    # A minute's work, so that it lasts longer than anybody takes to look at it twice.
    rate_max = 4 * MIB
    daemon.cli("edit", "group", "g", "--rebuild-rate", rate_max)
    new = case.file("new.img", size)
    daemon.cli("create", "drive", new)
    daemon.cli("replace", "drive", drives[0], new)

    def done():
        task = daemon.group("g")["task"]
        check(task is not None, "the rebuild ended though it was throttled")
        return task["progress"]["done_bytes"]

    wait_until(lambda: daemon.group("g")["task"] is not None, "the rebuild starts")
    time.sleep(1)
    # Both looks are within this time, however long they take.
    start = time.monotonic()
    first = done()
    time.sleep(4)
    rate = (done() - first) / (time.monotonic() - start)
    check(rate < 1.5 * rate_max, f"{rate / MIB:.1f} MiB/s with a maximum of {rate_max // MIB}")
    wait_until(lambda: done() >= first + 4 * MIB, "the rebuild does not stand still")


@parametrize("fail", "vanish", "absent at start")
def test_spare_takes_over(case, how):
    """R46, R47: a spare acts by state, whatever way the member went."""
    daemon = Daemon(case, options=["--absent-grace", "1"]).start(globs(case))
    drives = daemon.make_drives(4, SMALL)
    uri = daemon.make_group("raid5", drives)
    pattern = clients.Pattern(case.random.getrandbits(28), size=32 * MIB)
    clients.write_pattern(case, uri, pattern)
    spare = daemon.make_drives(1, SMALL, prefix="spare")[0]
    daemon.cli("create", "spare", spare)
    equal(daemon.drive(spare)["use"], "spare", "use of the spare")
    daemon.wait_idle()
    if how == "fail":
        daemon.cli("fail", "drive", drives[1])
    elif how == "vanish":
        drives[1].rename(f"{drives[1]}.hidden")
    else:
        daemon.stop()
        drives[1].rename(f"{drives[1]}.hidden")
        daemon.start(globs(case))
    found = daemon.wait_for(lambda found: found["members"][1]["path"] == str(spare)
                            and found["state"] == "optimal", "the spare takes over")
    equal(found["members"][1]["state"], "in-sync", "the spare's state as a member")
    equal(daemon.list("spare"), [], "spares left")
    kinds = daemon.event_kinds()
    check(any("spare" in kind for kind in kinds), f"no event about the spare: {kinds}")
    daemon.verify()
    daemon.cli("fail", "drive", drives[0])
    clients.check_pattern(case, daemon.uri("v"), pattern)


def test_spare_waits_for_the_grace(case):
    """A member that returns within the grace time keeps its slot, and the spare stays free."""
    daemon = Daemon(case, options=["--absent-grace", "3600"]).start(globs(case))
    drives = daemon.make_drives(4, SMALL)
    daemon.make_group("raid5", drives)
    spare = daemon.make_drives(1, SMALL, prefix="spare")[0]
    daemon.cli("create", "spare", spare)
    daemon.wait_idle()
    drives[1].rename(f"{drives[1]}.hidden")
    daemon.wait_state("degraded")
    drives[1].with_name(drives[1].name + ".hidden").rename(drives[1])
    found = daemon.wait_state("optimal")
    equal(found["members"][1]["path"], str(drives[1]), "the slot's drive")
    equal(len(daemon.list("spare")), 1, "spares left")


def test_spare_that_fits(case):
    """R50: the smallest spare that fits, not the first one; one that is too small is refused."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(4, 128 * MIB)
    daemon.make_group("raid5", drives)
    daemon.wait_idle()
    tiny = case.file("tiny.img", 64 * MIB)
    right = case.file("right.img", 128 * MIB)
    huge = case.file("huge.img", 1024 * MIB)
    daemon.cli("create", "drive", tiny, right, huge)
    daemon.refused(["create", "spare", tiny, "--group", "g"], "member-too-small", [tiny, *drives])
    daemon.cli("create", "spare", huge)
    daemon.cli("create", "spare", right)
    daemon.warpraid("create", "spare", tiny)  # global: it may fit another group
    daemon.cli("fail", "drive", drives[2])
    found = daemon.wait_state("optimal")
    equal(found["members"][2]["path"], str(right), "the spare that was chosen")


def test_dedicated_spare_stays_with_its_group(case):
    daemon = Daemon(case).start()
    first = daemon.make_drives(3, SMALL, prefix="a")
    second = daemon.make_drives(3, SMALL, prefix="b")
    daemon.make_group("raid5", first, name="one", volume="v1")
    daemon.make_group("raid5", second, name="two", volume="v2")
    spare = daemon.make_drives(1, SMALL, prefix="spare")[0]
    daemon.cli("create", "spare", spare, "--group", "one")
    for name in ("one", "two"):
        daemon.wait_idle(name)
    daemon.cli("fail", "drive", second[0])
    time.sleep(5)
    equal(daemon.group("two")["state"], "degraded", "the group whose spare it is not")
    daemon.cli("fail", "drive", first[0])
    daemon.wait_state("optimal", "one")
    # A spare that comes late serves a group that waits.
    late = daemon.make_drives(1, SMALL, prefix="late")[0]
    daemon.cli("create", "spare", late)
    daemon.wait_state("optimal", "two")


def test_spare_survives_restart_and_deletion(case):
    daemon = Daemon(case).start()
    drives = daemon.make_drives(3, SMALL)
    spare = daemon.make_drives(1, SMALL, prefix="spare")[0]
    daemon.cli("create", "spare", spare)
    daemon.restart()
    equal([found["path"] for found in daemon.list("spare")], [str(spare)], "spares")
    daemon.cli("delete", "spare", spare)
    equal(daemon.list("spare"), [], "spares")
    found = daemon.drive(spare)
    equal(found["use"], "unconfigured", f"use: {found}")
    daemon.restart()
    equal(daemon.list("spare"), [], "spares after a restart")
    daemon.make_group("raid1", [drives[0], spare])


def test_state_lost(case):
    """Without its state folder the daemon finds everything by superblocks and partition tables; what
    has taken the state file's place is put aside, its copy is used, and nothing is forgotten."""
    daemon = Daemon(case).start(globs(case))
    drives = daemon.make_drives(4, SMALL)
    uri = daemon.make_group("raid5", drives)
    pattern = clients.Pattern(case.random.getrandbits(28), size=32 * MIB)
    clients.write_pattern(case, uri, pattern)
    daemon.wait_state("optimal")  # a first resync that is cut off would go on later
    volumes = daemon.list("volume")
    ids = {drive: daemon.drive(drive)["id"] for drive in drives}

    def pipe(path):
        path.unlink()
        os.mkfifo(path)

    def folder(path):
        path.unlink()
        path.mkdir()

    damages = [lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"{"),
               lambda path: path.write_bytes(b"\0" * 100), pipe, folder]
    for count, damage in enumerate([*damages, None], start=1):
        daemon.stop()
        state = daemon.state / "state.json"
        if damage is None:
            shutil.rmtree(daemon.state)
            daemon.start(globs(case))
        else:
            check(state.exists(), "state.json is where the state is")
            damage(state)
            daemon.start()  # no globs: only the state tells where the drives are
            equal({drive: daemon.drive(drive)["id"] for drive in drives}, ids, "drives")
            equal(len(daemon.list("export")), 1, "exports")
            equal(len(list(daemon.state.glob("state.json.broken*"))), count, "files aside")
            check("state-file-broken" in daemon.event_kinds(), "no event")
            answer = daemon.warpraid("health")
            equal((answer.status, len(answer.data["health"]["findings"])), (1, count), "health")
        equal(daemon.group("g")["state"], "optimal", f"state with {damage!r}")
        found = daemon.list("volume")
        equal([(volume["name"], volume["uuid"]) for volume in found],
              [(volume["name"], volume["uuid"]) for volume in volumes], "volumes")
        if not daemon.list("export"):
            daemon.cli("export", "volume", "g", "v")
        clients.check_pattern(case, daemon.uri("v"), pattern)


def test_volumes(case):
    """Volumes do not overlap, and deleting one leaves its neighbours."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(4, SMALL)
    daemon.make_group("raid5", drives, volume=None)
    daemon.cli("create", "volume", "g", "32M", "--name", "a")
    daemon.cli("create", "volume", "g", "32M", "--name", "b")
    daemon.cli("create", "volume", "g", "--name", "c")
    equal(daemon.group("g")["free_bytes"], 0, "free bytes once the rest is taken")
    patterns = {}
    for name in "abc":
        daemon.cli("export", "volume", "g", name)
        size = next(volume["size_bytes"] for volume in daemon.list("volume")
                    if volume["name"] == name) // MIB * MIB
        # Whole volumes, so that an overlap of one block would show.
        patterns[name] = clients.Pattern(case.random.getrandbits(28), moved=size, size=size,
                                         read_percent=0)
        clients.write_pattern(case, daemon.uri(name), patterns[name], verify=False)
    daemon.restart()
    for name in "abc":
        clients.check_pattern(case, daemon.uri(name), patterns[name])
    daemon.cli("unexport", "volume", "g", "b")
    daemon.cli("delete", "volume", "g", "b")
    daemon.cli("create", "volume", "g", "16M", "--name", "d")
    daemon.cli("export", "volume", "g", "d")
    clients.write_pattern(case, daemon.uri("d"), clients.Pattern(1, size=16 * MIB))
    for name in "ac":
        clients.check_pattern(case, daemon.uri(name), patterns[name])
    daemon.verify()


def test_state_that_cannot_be_saved(case):
    """A command that the next start would forget is refused and changes nothing; health tells."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(3, SMALL)
    daemon.make_group("raid5", drives)
    daemon.cli("unexport", "volume", "g", "v")
    daemon.wait_idle()
    blocker = daemon.state / "state.json.new"
    blocker.mkdir()
    late = case.directory / "late.img"
    for words in (["export", "volume", "g", "v"], ["create", "drive", "--size", "64M", late],
                  ["edit", "group", "g", "--name", "h"]):
        answer = daemon.warpraid(*words)
        equal((answer.status, answer.code), (1, "state-not-saved"), " ".join(map(str, words)))
        check("\n" not in answer.message and str(blocker) in answer.message, answer.message)
    check(not late.exists(), "a file was left behind")
    equal((len(daemon.list("drive")), daemon.list("export")), (3, []), "what is known")
    equal(daemon.warpraid("health").status, 1, "status of health")
    daemon.kill()
    blocker.rmdir()
    daemon.start()
    daemon.wait_idle()
    equal(daemon.group("g")["name"], "g", "name after a restart")
    equal(daemon.warpraid("health").status, 0, "status of health")


def test_health(case):
    """`health` tells by its exit status; so do its findings."""
    daemon = Daemon(case).start()
    equal(daemon.warpraid("health").status, 0, "with nothing there")
    drives = daemon.make_drives(3, SMALL)
    daemon.make_group("raid5", drives)
    daemon.wait_idle()
    answer = daemon.warpraid("health")
    equal((answer.status, answer.data["health"]["findings"]), (0, []), "healthy")
    daemon.cli("fail", "drive", drives[0])
    answer = daemon.warpraid("health")
    equal((answer.status, answer.data["health"]["level"]), (1, 1), "degraded")
    check(any("g" in finding for finding in answer.data["health"]["findings"]), str(answer.data))
    daemon.restart()
    equal(daemon.warpraid("health").status, 1, "degraded after a restart")
    kinds = daemon.event_kinds()
    check(any("fail" in kind or "degraded" in kind for kind in kinds), f"events: {kinds}")
    events = daemon.cli("list", "event", "--limit", "1000")["events"]
    serial = daemon.drive(drives[0])["serial"]
    check(any(event["drive_serial"] == serial for event in events), "no event names the drive")
    check(all(event["time"] for event in events), "events without a time")
    ids = [event["id"] for event in events]
    equal(ids, sorted(set(ids)), "ids of events")
    after = daemon.cli("list", "event", "--after", ids[-2])["events"]
    equal([event["id"] for event in after][:1], ids[-1:], "events after one")


def test_stopped_daemon_leaves_drives_alone(case):
    daemon = Daemon(case).start()
    drives = daemon.make_drives(3, SMALL)
    daemon.make_group("raid5", drives)
    daemon.stop()
    before = prints_of(drives)
    time.sleep(1)
    equal(prints_of(drives), before, "bytes after the stop")
    check(all(os.stat(drive).st_blocks * 512 < SMALL // 2 for drive in drives),
          "a new group filled its sparse files")
