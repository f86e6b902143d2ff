"""Groups are found by what lies on their drives: never by path, never by half, never twice."""

import shutil
import threading
import time

import clients
import oracle
import superblock
from daemon import Daemon, changed, prints_of, rename_all, still_prints, zero_ends
from drives import put_gpt
from harness import LONG_PATIENCE, MIB, Failure, check, equal, parametrize, wait_until
from known_groups import SMALL, globs, hide, made_group, read_data, unhide, write_data


def test_r13_paths_permuted(case):
    """Roles come from superblocks: no rebuild, and the right drive is failed afterwards."""
    daemon = Daemon(case).start()
    drives, data = made_group(case, daemon)
    before = {member["serial"]: member["slot"] for member in daemon.group("g")["members"]}
    daemon.stop()
    moved = drives[1:] + drives[:1]
    rename_all(drives, moved)
    for state in ("its own state", "no state"):
        if state == "no state":
            daemon.stop()
            shutil.rmtree(daemon.state)
        daemon.start(globs(case))
        found = daemon.group("g")
        equal((found["state"], found["task"]), ("optimal", None), f"with {state}")
        equal({member["serial"]: member["slot"] for member in found["members"]}, before,
              f"slots by serial with {state}")
        equal(found["resynced_bytes"], 0, f"bytes resynced with {state}")
        equal([member["path"] for member in found["members"]], [str(path) for path in moved],
              f"paths by slot with {state}")
        if state == "its own state":
            serials = sorted(before, key=before.get)
            for command in (["fail", "drive", moved[2]], ["replace", "drive", moved[2], drives[0]]):
                daemon.refused(command, "stale-token", moved, has=serials[2:4])
    if not daemon.list("export"):
        daemon.cli("export", "volume", "g", "v-g")
    equal(read_data(daemon), data, "data")
    member = daemon.cli("fail", "drive", moved[2])["member"]
    equal((member["slot"], before[member["serial"]]), (2, 2), "the slot that was failed")


def test_r13_generation_token(case):
    """`fail` with the generation that the caller saw is refused once the group moved on."""
    daemon = Daemon(case).start()
    drives, _ = made_group(case, daemon, "raid6", 5)
    seen = daemon.group("g")["generation"]
    daemon.cli("fail", "drive", drives[0], "--generation", seen)
    daemon.refused(["fail", "drive", drives[1], "--generation", seen], "stale-token", drives)
    equal(daemon.group("g")["members"][1]["state"], "in-sync", "the member after the refusal")
    daemon.cli("fail", "drive", drives[1], "--generation", daemon.group("g")["generation"])


def names_of(daemon, path):
    return [str(path), daemon.drive(path)["serial"]]


def told_copy(daemon, original, copy, times=1):
    """Events and health name both drives and say what to do."""
    found = [event for event in daemon.cli("list", "event", "--limit", "1000")["events"]
             if event["kind"] == "member-copy-found"]
    equal(len(found), times, f"events that tell of a copy: {found}")
    serial = found[-1]["drive_serial"]
    check(serial and serial != daemon.drive(original)["serial"], f"the event's drive: {found[-1]}")
    health = daemon.warpraid("health")
    equal((health.status, health.data["health"]["level"]), (1, 1), "health with a copy")
    for text in (found[-1]["text"], " ".join(health.data["health"]["findings"])):
        for part in (*names_of(daemon, original), str(copy), serial, "--reset-identity"):
            check(part in text, f"{part} is not in: {text}")


def test_r17_copy_of_a_member(case):
    """The drive whose hardware identity is in the superblock is the member; its copy is never
    written."""
    daemon = Daemon(case).start(globs(case))
    drives, data = made_group(case, daemon)
    # While it runs.
    copy = case.directory / "copy-1.img"
    shutil.copyfile(drives[1], copy)
    before = prints_of([copy])
    status, outcomes = daemon.assemble()
    equal((status, outcomes["g"]["outcome"]), (0, "already-running"), "assemble with a copy")
    daemon.cli("examine")
    told_copy(daemon, drives[1], copy)
    for force in ([], ["--force"]):
        daemon.refused(["create", "spare", copy, *force], "duplicate-member", [copy], names=[copy],
                       has=[str(copy), *names_of(daemon, drives[1])])
    write_data(case, daemon)
    equal(changed(before, prints_of([copy])), [], "copies that were written")
    copy.unlink()
    wait_until(lambda: daemon.warpraid("health").status == 0, "health without the copy")
    # While it does not.
    data = write_data(case, daemon)
    daemon.stop()
    shutil.copyfile(drives[1], copy)
    before = prints_of([copy])
    daemon.start(globs(case))
    equal(daemon.group("g")["state"], "optimal", "state")
    equal(daemon.group("g")["members"][1]["path"], str(drives[1]), "the member's path")
    check("assembly-warning" in daemon.event_kinds(), "a start with a copy is not told")
    told_copy(daemon, drives[1], copy, times=2)
    equal(read_data(daemon), data, "data")
    write_data(case, daemon)
    equal(changed(before, prints_of([copy])), [], "copies that were written")
    daemon.cli("edit", "drive", copy, "--reset-identity")
    equal(daemon.warpraid("health").status, 0, "status of health with a blank drive")


def test_r17_two_copies(case):
    """With the original gone nobody can say which copy is right."""
    daemon = Daemon(case).start(globs(case))
    drives, _ = made_group(case, daemon)
    daemon.stop()
    copies = [case.directory / "copy-a.img", case.directory / "copy-b.img"]
    for copy in copies:
        shutil.copyfile(drives[1], copy)
    hide(drives[1])
    files = [*drives[:1], *drives[2:], *copies]
    before = prints_of(files)
    daemon.start(globs(case))
    found = daemon.group("g")
    equal((found["state"], found["reason_code"]), ("offline", "duplicate-member"), "the group")
    outcome = daemon.refused_assembly("duplicate-member", "g")
    registered = daemon.cli("create", "drive", *copies)["drives"]
    for copy, drive in zip(copies, registered):
        for part in (str(copy), drive["serial"]):
            check(part in outcome["message"], f"{part} is not named: {outcome['message']}")
    equal(changed(before, prints_of(files)), [], "drives that were written")
    # One copy is made blank; the other is the member then.
    daemon.cli("edit", "drive", copies[1], "--reset-identity")
    daemon.wait_state("optimal")
    daemon.refused(["edit", "drive", copies[0], "--reset-identity"], "in-use", names=copies)
    daemon.refused(["edit", "drive", copies[1], "--reset-identity"], "no-superblock", copies[1:],
                   names=copies)


@parametrize("ext4", "gpt")
def test_r19_destroyed_group(case, kind):
    """A group that was deleted is not offered again, and a scan writes to nothing."""
    daemon = Daemon(case).start()
    drives, _ = made_group(case, daemon, "raid5", 3)
    daemon.cli("unexport", "volume", "g", "v-g")
    daemon.cli("delete", "group", "g")
    daemon.stop()
    if kind == "ext4":
        case.run(["mkfs.ext4", "-q", "-F", drives[0]])
    else:
        # It leaves both superblocks as they are.
        put_gpt(drives[0])
        superblock.copies(drives[0])
    before = prints_of(drives)
    newcomer = Daemon(case, "second").start(globs(case))
    equal([group["name"] for group in newcomer.list("group") if group["state"] != "offline"], [],
          "groups that were started")
    status, outcomes = newcomer.assemble()
    equal(status, 0, f"status of assemble: {outcomes}")
    answer = newcomer.warpraid("assemble", "g")
    check(answer.status != 0, f"a deleted group was assembled: {answer.stdout}")
    newcomer.cli("examine")
    equal(changed(before, prints_of(drives)), [], "drives that were written")
    # The one that somebody else uses is nobody's member any more, whatever its superblocks say.
    status, outcomes = newcomer.assemble("g", "--destroyed")
    equal(outcomes["g"]["outcome"], "started", f"assemble --destroyed: {outcomes}")
    equal(newcomer.group("g")["state"], "degraded", "state")
    newcomer.cli("export", "volume", "g", "v-g")
    write_data(case, newcomer, "g")
    time.sleep(5)  # two scans
    equal(newcomer.group("g")["state"], "degraded", "state after a while")
    check(drives[0] not in changed(before, prints_of(drives)), "a drive that is used otherwise was written")
    if kind == "ext4":
        case.run(["e2fsck", "-f", "-n", drives[0]])


def test_r27_exit_status(case):
    """Nothing there, all running: 0. Something incomplete: 3. Something refused or corrupt: 4."""
    daemon = Daemon(case).start(globs(case))
    equal(daemon.assemble(), (0, {}), "with nothing there")
    drives, _ = made_group(case, daemon)
    status, outcomes = daemon.assemble()
    equal((status, outcomes["g"]["outcome"]), (0, "already-running"), "all running")
    others, _ = made_group(case, daemon, "raid5", 3, name="h", prefix="other")
    daemon.stop()
    hide(drives[0])
    hide(drives[3])
    daemon.start(globs(case))
    status, outcomes = daemon.assemble()
    equal((status, outcomes["g"]["outcome"]), (3, "incomplete"), "one incomplete")
    equal(outcomes["h"]["outcome"], "already-running", "the other one")
    check(outcomes["g"]["message"], "no word on what is missing")
    daemon.stop()
    for slot in (0, 3):
        unhide(drives[slot])
    for drive in others:
        superblock.set_byte(drive, superblock.LAYOUT_AT, 77)
    daemon.start(globs(case))
    status, outcomes = daemon.assemble()
    equal(status, 4, f"one that cannot be understood: {outcomes}")
    equal(outcomes["g"]["outcome"], "already-running", "the other one")


def test_r31_bad_groups_hide_nobody(case):
    """One group with too few members, one damaged, one of a version to come: the others start."""
    daemon = Daemon(case).start(globs(case))
    drives = {}
    data = {}
    for name in ("fine", "well", "few", "hurt", "new"):
        drives[name], data[name] = made_group(case, daemon, "raid5", 3, name, name)
    daemon.stop()
    check(superblock.has_right_checksum(drives["new"][0]), "this test knows the checksum")
    hide(drives["few"][0])
    hide(drives["few"][1])
    for drive in drives["hurt"]:
        superblock.set_byte(drive, superblock.NAME_AT, 0x21, mend=False)
    for drive in drives["new"]:
        superblock.set_byte(drive, superblock.VERSION_AT, 99)
    files = [path for name in ("few", "hurt", "new") for path in drives[name] if path.exists()]
    before = prints_of(files)
    daemon.start(globs(case))
    for name in ("fine", "well"):
        equal(daemon.group(name)["state"], "optimal", f"state of {name}")
        equal(read_data(daemon, name), data[name], f"data of {name}")
    few = daemon.group("few")
    equal((few["state"], few["reason_code"]), ("offline", "incomplete"), "the one with too few")
    check(few["reason"], "no reason")
    details = {drive["path"]: drive for drive in daemon.cli("examine")["drives"]}
    for name, word in (("hurt", "checksum"), ("new", "version")):
        for path in drives[name]:
            seen = details[str(path)]
            check(seen["use"] == "foreign" and word in seen["detail"], f"{name}: {seen}")
    equal(daemon.assemble()[0], 4, "status of assemble")
    equal(daemon.warpraid("health").status, 2, "status of health")
    equal(changed(before, prints_of(files)), [], "drives that were written")
    # Made over them without force: refused.
    for name in ("hurt", "new"):
        answer = daemon.warpraid("create", "group", "raid5", *drives[name])
        check(answer.status == 1 and answer.code in (
            "has-superblock", "bad-superblock", "unsupported-version"), f"{name}: {answer.stdout}")
    equal(changed(before, prints_of(files)), [], "drives that were written by refused commands")


def test_r33_examine_under_load(case):
    """Eight clients ask what lies on the drives of a running group, again and again."""
    daemon = Daemon(case).start(globs(case))
    drives, _ = made_group(case, daemon)
    generation = daemon.group("g")["generation"]
    load = clients.BackgroundPatterns(case, daemon.uri("v-g"), clients.Pattern(
        case.random.getrandbits(28), offset=MIB, size=32 * MIB))
    failures = []

    def ask():
        try:
            for _ in range(125):
                status, answer = daemon.http("GET", "examine")
                equal(status, 200, "HTTP status")
                for drive in answer["drives"]:
                    equal((drive["use"], drive["group"]), ("member", "g"), drive["path"])
        except Exception as failure:
            failures.append(str(failure))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_PATIENCE)
    check(not any(thread.is_alive() for thread in threads), "a client hangs")
    equal(failures, [], "answers")
    load.stop()
    for drive in daemon.cli("examine")["drives"]:
        check("g" in drive["detail"] or drive["group"] == "g", f"not said to be in use: {drive}")
    found = daemon.group("g")
    equal((found["state"], found["generation"]), ("optimal", generation), "the group")
    equal(len(found["members"]), len(drives), "members")
    daemon.verify()


def test_r36_a_drive_goes_and_returns(case):
    """Its slot remembers it, and it comes back by itself."""
    daemon = Daemon(case).start(globs(case))
    drives, data = made_group(case, daemon)
    before = daemon.group("g")["members"][1]
    hide(drives[1])
    found = daemon.wait_state("degraded")
    gone = found["members"][1]
    for field in ("drive_uuid", "serial", "path", "drive_bytes", "slot"):
        equal(gone[field], before[field], f"{field} of the slot")
    equal((gone["state"], gone["reason"]), ("missing", "absent"), "state and reason")
    check(gone["since"], "since when")
    equal(read_data(daemon), data, "data without the drive")
    data = write_data(case, daemon)
    equal(daemon.warpraid("health").status, 1, "status of health")
    unhide(drives[1])
    found = daemon.wait_state("optimal")
    equal(found["members"][1]["drive_uuid"], before["drive_uuid"], "the drive that came back")
    daemon.verify()
    daemon.cli("fail", "drive", drives[2])
    equal(read_data(daemon), data, "data with the returned drive")
    kinds = daemon.event_kinds()
    check(any("return" in kind or "member" in kind for kind in kinds), f"events: {kinds}")


def test_r25_stale_member(case):
    """A member that missed writes is caught up before it is believed."""
    daemon = Daemon(case).start(globs(case))
    drives, _ = made_group(case, daemon)
    daemon.stop()
    hide(drives[3])
    daemon.start(globs(case))
    equal(daemon.group("g")["state"], "degraded", "state")
    data = write_data(case, daemon)
    daemon.stop()
    unhide(drives[3])
    daemon.start(globs(case))
    equal(read_data(daemon), data, "data while the stale member is caught up")
    daemon.wait_state("optimal")
    daemon.verify()
    daemon.cli("fail", "drive", drives[0])
    equal(read_data(daemon), data, "data with the member that was stale")


def test_r38_too_many_gone(case):
    """Two of a RAID 5 vanish: errors, not garbage, until the drives are back; blank ones are no
    help."""
    daemon = Daemon(case).start(globs(case))
    drives, data = made_group(case, daemon)
    hide(drives[1])
    daemon.wait_state("degraded")
    data = write_data(case, daemon)
    daemon.wait_idle()  # nothing is in doubt when the second one goes
    check(daemon.group("g")["missed_regions"] > 0, f"what the first missed: {daemon.group('g')}")
    hide(drives[3])
    daemon.wait_state("failed")
    try:
        read_data(daemon, length=MIB)
        raise Failure("a failed group answered reads of everything")
    except oracle.nbd.Error as error:
        equal(error.errno, "EIO", "the error of reads")
    equal(daemon.warpraid("health").status, 2, "status of health")
    blank = case.file("blank.img", SMALL)
    daemon.cli("create", "drive", blank)
    for slot in (1, 3):
        answer = daemon.warpraid("replace", "drive", f"g:{slot}", blank)
        equal((answer.status, answer.code), (1, "group-failed"), f"replacing slot {slot}")
    equal(daemon.group("g")["state"], "failed", "state after offering a blank drive")
    unhide(drives[3])
    daemon.wait_state("degraded")
    equal(read_data(daemon), data, "data")
    unhide(drives[1])
    daemon.wait_state("optimal")
    equal(read_data(daemon), data, "data")
    daemon.verify()


def test_r38_comes_back_by_itself(case):
    """Two of a RAID 5 vanish and nothing was written without the first: nothing is in doubt."""
    daemon = Daemon(case).start(globs(case))
    drives, data = made_group(case, daemon)
    hide(drives[1])
    daemon.wait_state("degraded")
    hide(drives[3])
    daemon.wait_state("failed")
    unhide(drives[3])
    daemon.wait_state("degraded")
    equal(read_data(daemon), data, "data with the last lost drive back")
    unhide(drives[1])
    daemon.wait_state("optimal")
    equal(read_data(daemon), data, "data")
    daemon.verify()


def test_r38_asks_when_a_write_is_in_doubt(case):
    """The second drive goes right after a write: nobody knows that all of it is on the others."""
    daemon = Daemon(case, bitmap_delay=3600).start(globs(case))
    drives = daemon.make_drives(5, SMALL)
    daemon.make_group("raid5", drives, name="g", volume="v-g")
    daemon.wait_for(lambda found: found["task"] is None, "no task runs")
    daemon.stop()  # tidies the bitmap
    daemon.start(globs(case))
    hide(drives[1])
    daemon.wait_state("degraded")
    data = write_data(case, daemon)
    hide(drives[3])
    daemon.wait_state("failed")
    unhide(drives[3])
    found = daemon.wait_state("offline")
    equal(found["reason_code"], "dirty-degraded", "why the group is not started")
    check("--force" in found["reason"], found["reason"])
    daemon.cli("assemble", "g", "--force")
    equal(read_data(daemon), data, "data")
    unhide(drives[1])
    daemon.wait_state("optimal")
    daemon.verify()


@parametrize("raid5", "raid6")
def test_degraded_and_idle_at_a_crash(case, level):
    """What was written without a drive some time before the crash is not in doubt, and is what
    that drive gets when it comes back."""
    daemon = Daemon(case).start(globs(case))
    drives, _ = made_group(case, daemon, level)
    away = drives[:1] if level == "raid5" else drives[:2]
    for drive in away:
        hide(drive)
    daemon.wait_state("degraded")
    data = write_data(case, daemon)
    daemon.wait_idle()
    missed = daemon.group("g")["missed_regions"]
    daemon.kill()
    daemon.start(globs(case))
    found = daemon.group("g")
    equal((found["state"], found["dirty_regions"], found["missed_regions"]),
          ("degraded", 0, missed), "the group after the crash")
    equal(read_data(daemon), data, "data")
    for drive in away:
        unhide(drive)
    daemon.wait_state("optimal")
    daemon.wait_idle()
    equal(daemon.group("g")["missed_regions"], 0, "regions that somebody still lacks")
    for drive in drives[2:4] if level == "raid6" else drives[2:3]:
        hide(drive)  # what came back is needed now
    daemon.wait_state("degraded")
    equal(read_data(daemon), data, "data from the drives that came back")


@parametrize("0x1000-0x4000", "first MiB", "last MiB", "first 34 sectors")
def test_r20_one_copy_damaged(case, what):
    """Firmware or a careless tool wiped one copy on all members: the other one serves."""
    daemon = Daemon(case).start(globs(case))
    drives, data = made_group(case, daemon)
    daemon.stop()
    start, length = {"0x1000-0x4000": (0x1000, 0x3000), "first MiB": (0, MIB),
                     "last MiB": (SMALL - MIB, MIB), "first 34 sectors": (0, 34 * 512)}[what]
    for drive in drives:
        with open(drive, "r+b") as file:
            file.seek(start)
            file.write(bytes(length))
    daemon.start(globs(case))
    equal(daemon.group("g")["state"], "optimal", "state")
    equal(read_data(daemon), data, "data")
    daemon.restart(globs(case))
    for drive in drives:
        superblock.copies(drive)  # both are there again
    daemon.verify()


def test_r20_both_copies_gone(case):
    """A member without any superblock is a missing one."""
    daemon = Daemon(case).start(globs(case))
    drives, data = made_group(case, daemon)
    daemon.stop()
    zero_ends(drives[2])
    before = prints_of([drives[2]])
    daemon.start(globs(case))
    found = daemon.group("g")
    equal((found["state"], found["members"][2]["state"]), ("degraded", "missing"), "the group")
    equal(read_data(daemon), data, "data")
    equal(changed(before, still_prints([drives[2]])), [], "a blank drive that was written")
