"""Entries of the table of codes: requests that make no sense, or not now."""

import os

from codes import SMALL, provokes
from drives import put
from harness import MIB, check, equal

LEVELS = ("raid0", "raid1", "raid5", "raid6", "raid10")
VOLUMES_MAX = 128


@provokes("invalid-argument")
def invalid_argument(at):
    words = ["create", "group", "raid1", *at.drives(2), "--block-size"]
    at.refused(*words, "1024").found("1024").needed("512 and 4096").retry(
        "512 and 4096 are supported", *words, "4096")
    words = ["edit", "group", "g"]
    answer = at.daemon.warpraid(*words)
    equal((answer.status, answer.code), (2, at.code), "no command at all")
    at.said(answer.message, words, None).found("nothing to change").needed("--name", "--rebuild-rate").retry(
        "give --name", "edit", "group", at.daemon.list("group")[0]["name"], "--name", "h")


@provokes("bad-json")
def bad_json(at):
    for body, found, needed, words in (
            ("{", "of 1 bytes", "is not JSON", "send a JSON object"),
            ("[1]", "not array", "a JSON object", "must be"),
            ("[" * 17, "nested deeper than", "16 levels", "send one of fewer")):
        at.http_refused("POST", "assemble", body).found(found).needed(needed).retry(
            words, call=lambda: at.http("POST", "assemble", "{}"))


@provokes("bad-name")
def bad_name(at):
    words = ["create", "group", "raid0", *at.drives(2), "--name"]
    for name, found in (("a b", "0x20 at place 1"), ("x" * 33, "33 bytes"), ("-x", "starts with '-'"),
                        ("7", "all digits")):
        refusal = at.refused(*words[:-1], f"--name={name}")
        refusal.found(found).needed("1 to 32 of the letters", "not starting with '-'")
        good = name.strip("-").replace(" ", "_")[:32].replace("7", "g7")
        refusal.retry("cannot be used: take", *words, good)
        at.daemon.cli("delete", "group", good, "--clear")


@provokes("bad-size")
def bad_size(at):
    path = at.case.directory / "new.img"
    words = ["create", "drive", path, "--size"]
    at.refused(*words, "1M").found(MIB).needed(64 * MIB, "a multiple of").retry(
        "has 67108864 to", *words, 64 * MIB)
    check(path.exists(), "the file was not made")


@provokes("bad-chunk")
def bad_chunk(at):
    words = ["create", "group", "raid5", *at.drives(3), "--chunk"]
    at.refused(*words, "3K").found(3 * 1024).needed("from 4096 to 1048576").retry(
        "must be a power of two", *words, "4096")


@provokes("bad-level")
def bad_level(at):
    drives = at.drives(3)
    at.refused("create", "group", "raid7", *drives).found("'raid7'").needed(*LEVELS).retry(
        "write raid0", "create", "group", "raid5", *drives)


@provokes("member-count")
def member_count(at):
    drives = at.drives(3)
    at.refused("create", "group", "raid5", *drives[:2]).found("2 drives").needed("3 to 32").retry(
        "raid5 takes 3", "create", "group", "raid5", *drives)


@provokes("not-confirmed")
def not_confirmed(at):
    drive = at.drives(1)[0]
    words = ["delete", "drive", drive]
    at.refused(*words, yes=False).found(f"Drive {drive} is forgotten").needed("--yes").retry(
        "confirm it with --yes", call=lambda: at.daemon.cli(*words))


@provokes("permission-denied")
def permission_denied(at):
    at.daemon.list("drive")
    path = at.file("drive.img")
    words = ["create", "drive", path]
    answer = at.daemon.warpraid(*words, control=at.daemon.readonly_socket)
    equal((answer.status, answer.code), (1, at.code), answer.message)
    at.said(answer.message, words, None).found("POST").needed("GET and HEAD").retry(
        "use the control socket", call=lambda: at.daemon.cli(*words))
    if os.geteuid() == 0:
        return  # to whom no socket is closed
    at.daemon.socket.chmod(0)
    at.refused("list", "group").found(at.daemon.socket).needed("be root, or a member").no_command(
        "--socket-group", lambda: at.daemon.socket.chmod(0o660))


@provokes("not-found")
def not_found(at):
    drives = at.group("raid1", 2, name="data", volume="vol", export=True)
    for noun, wrong, right in (("group", ["dat"], ["data"]), ("drive", ["none"], [drives[0]]),
                               ("volume", ["data", "none"], ["data", "vol"]),
                               ("export", ["none"], ["vol"])):
        refusal = at.refused("describe", noun, *wrong)
        shown = str(at.daemon.list(noun))
        check(all(str(name) in shown for name in right), f"{right} is not listed: {shown}")
        refusal.found(f"'{wrong[-1]}'").needed(f"there is no {noun}").retry(
            f"see list {noun}", "describe", noun, *right)
    refusal = at.refused("verify", "group", "dat")
    refusal.found("'dat'").needed("there is no group").retry(
        "see list group", "verify", "group", at.daemon.list("group")[0]["name"])
    spares = at.drives(1, "spare")
    at.daemon.cli("create", "spare", *spares)
    refusal = at.refused("delete", "spare", drives[0])
    refusal.found(str(drives[0])).needed("no spare").retry(
        "see list spare", "delete", "spare", at.daemon.list("spare")[0]["path"])


@provokes("already-exists")
def already_exists(at):
    at.group("raid0", 2)
    words = ["create", "group", "raid0", *at.drives(2), "--name"]
    at.refused(*words, "g").found("'g'").needed("named").retry("choose another name", *words, "h")
    at.daemon.cli("create", "volume", "g", "8M", "--name", "v")
    words = ["create", "volume", "g", "8M", "--name"]
    at.refused(*words, "v").found("'v'").needed("already has").retry("choose another name", *words, "w")
    path = at.file("there.img")
    refusal = at.refused("create", "drive", path, "--size", "64M")
    refusal.found(SMALL).needed(64 * MIB).retry("leave the size out", "create", "drive", path)


@provokes("no-space")
def no_space(at):
    at.group("raid0", 2)
    group = at.daemon.group("g")
    at.daemon.cli("create", "volume", "g", "112M", "--name", "first")
    free = at.daemon.group("g")["free_bytes"]
    words = ["create", "volume", "g"]
    at.refused(*words, "48M").found(free).needed(48 * MIB).retry("ask for less", *words, 8 * MIB)
    at.refused(*words, "1T").found(group["capacity_bytes"]).needed(1 << 40).retry(
        "ask for less", *words, 4 * MIB)
    at.refused(*words, "32M").found("the largest free stretch has").needed(32 * MIB).follow(
        "delete a volume", "delete", "volume", "g", "first")
    for volume in at.daemon.list("volume"):
        at.daemon.cli("delete", "volume", "g", volume["name"])
    at.daemon.cli("create", "volume", "g")
    words = ["create", "volume", "g"]
    at.refused(*words).found("1 volumes").needed(f"multiples of {MIB}").follow(
        "delete a volume", "delete", "volume", "g", "vd0")


@provokes("wrong-state")
def wrong_state(at):
    drives = at.group("raid5", 3)
    new = at.drives(2, "new")
    at.daemon.cli("fail", "drive", drives[0])
    again = at.refused("fail", "drive", drives[0], names=drives[:1])
    again.found("is failed already").needed("in sync or being rebuilt")
    refusal = at.refused("fail", "drive", drives[1], names=drives[1:2])
    refusal.found("slot 0 (failed)").needed("until these are in sync").follow(
        "'replace drive' what is in them", "replace", "drive", "g:0", new[0],
        wait=lambda: at.daemon.wait_state("optimal"))
    # What was said of the first is followed, too: by now it is of the second that it holds.
    again.retry("'replace drive g:0 DRIVE'", "replace", "drive", "g:1", new[1])
    at.daemon.wait_state("optimal")
    words = ["verify", "group", "g", "--stop"]
    at.refused(*words).found("is not being verified").needed("begins that").retry(
        "'verify group g' begins", "verify", "group", "g")
    at.daemon.wait_idle()
    held(at)


def held(at):
    """A group that was made over something."""
    drives = [at.file(f"signed-{index}.img") for index in range(2)]
    for drive in drives:
        put(drive, 1024 + 56, b"\x53\xef")  # as of ext4
    at.daemon.cli("create", "group", "raid1", *drives, "--name", "held", "--force")
    at.refused("verify", "group", "held").found("is held").needed("until its first volume").follow(
        "create a volume first", "create", "volume", "held",
        wait=lambda: at.daemon.wait_idle("held"))


@provokes("in-use")
def in_use(at):
    drives = at.group("raid1", 2, volume="v", export=True)
    spares = at.drives(2, "spare")
    at.daemon.cli("create", "spare", spares[0])
    words = ["create", "group", "raid1", *spares]
    at.refused(*words, names=spares[:1]).found("is a spare").needed("delete").follow(
        f"delete the spare {at.serial(spares[0])}", "delete", "spare", at.serial(spares[0]))
    at.daemon.cli("delete", "group", at.daemon.list("group")[-1]["name"], "--clear")
    refusal = at.refused("create", "spare", drives[0], names=drives[:1])
    refusal.found("member 0 of the running group g").needed("needs --force").follow(
        "replace it there first", "replace", "drive", drives[0], spares[0],
        wait=lambda: at.daemon.wait_state("optimal"), then=["--force"])
    for words in (["delete", "volume", "g", "v"], ["delete", "group", "g"]):
        refusal = at.refused(*words)
        refusal.found("volume v of group g is exported").needed("first").follow(
            "unexport it", "unexport", "volume", "g", "v")
        if words[1] == "volume":
            at.daemon.cli("create", "volume", "g", "--name", "v")
            at.daemon.cli("export", "volume", "g", "v")


@provokes("stale-token")
def stale_token(at):
    drives = at.group("raid6", 4)
    seen = at.daemon.group("g")["generation"]
    at.daemon.cli("fail", "drive", drives[0])
    words = ["fail", "drive", drives[1], "--generation"]
    now = at.daemon.cli("describe", "group", "g")["group"]["generation"]
    check(now != seen, "the generation did not change")
    at.refused(*words, seen).found(f"given for {seen}").needed(f"generation {now}").retry(
        "'describe group g'", *words, now)


@provokes("limit-reached")
def limit_reached(at):
    at.group("raid0", 2)
    at.daemon.cli("create", "volume", "g", "4K", "--count", VOLUMES_MAX)
    refusal = at.refused("create", "volume", "g", "4K")
    refusal.found(f"has {VOLUMES_MAX} volumes").needed(f"{VOLUMES_MAX} is the most").follow(
        "delete one first", "delete", "volume", "g", "vd5")
    names = [f"{at.case.directory}/many-{index}.img" for index in range(256)]
    words = ["create", "drive", "--size", SMALL]
    refusal = at.refused(*words, *names)
    refusal.found("2 drives are registered", "256 more").needed("256 is the most").follow(
        "delete drives that are not used", "delete", "group", "g", "--clear",
        wait=lambda: [at.daemon.cli("delete", "drive", drive) for drive in at.files])
    equal(len(at.daemon.list("drive")), len(names), "drives")
