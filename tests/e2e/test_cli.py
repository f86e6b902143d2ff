"""The command line as its user types it: nouns, ranges, JSON that is only JSON, tables, watching."""

import json
import subprocess
import time

from daemon import Daemon
from harness import MIB, PATIENCE, check, equal, wait_until

SMALL = 96 * MIB


def test_a_session(case):
    """From files that do not exist to a volume and back, by ids and short nouns."""
    daemon = Daemon(case).start()
    paths = [case.directory / f"made-{index}.img" for index in range(6)]
    made = daemon.cli("create", "pd", "--size", "96M", *paths)["drives"]
    equal([drive["id"] for drive in made], list(range(6)), "ids of new drives")
    equal([path.stat().st_size for path in paths], [SMALL] * 6, "sizes of made files")
    check(all(path.stat().st_blocks * 512 < MIB for path in paths), "made files are not sparse")
    group = daemon.cli("create", "dg", "raid6", "0-3", "4")["group"]
    equal(group["shape"]["level"], "raid6", "level")
    equal(len(group["members"]), 5, "members")
    name = group["name"]
    daemon.cli("create", "vd", name, "--count", "3")
    volumes = daemon.list("volume")
    equal(len(volumes), 3, "volumes of an equal split")
    equal(len({volume["size_bytes"] for volume in volumes}), 1, "sizes of an equal split")
    daemon.cli("export", "vd", name, volumes[0]["name"])
    daemon.cli("create", "spare", "5")
    # What is asked for twice below must not move on between: the first resync does.
    daemon.wait_idle(name)
    equal(daemon.cli("describe", "pd", "0")["drive"]["path"], str(paths[0]), "drive 0")
    equal(daemon.cli("describe", "dg", name)["group"]["uuid"], group["uuid"], "the group")
    equal(daemon.cli("describe", "dg", str(group["id"]))["group"]["uuid"], group["uuid"],
          "the group by id")
    equal(daemon.cli("describe", "vd", name, volumes[1]["name"])["volume"]["uuid"],
          volumes[1]["uuid"], "the volume")
    equal(daemon.cli("describe", "spare", "5")["spare"], daemon.list("spare")[0], "the spare")
    record = daemon.list("export")[0]
    equal(daemon.cli("describe", "export", record["name"])["export"], record, "the export")
    check(record["uri"] in daemon.text("describe", "export", record["name"]), "the export's address")
    happened = daemon.list("event")[0]
    equal(daemon.cli("describe", "event", happened["id"])["event"], happened, "the event")
    check(happened["text"] in daemon.text("describe", "event", happened["id"]), "the event's text")
    daemon.refused(["describe", "spare", "0"], "not-found")
    for nouns in (("pd", "drive"), ("dg", "group"), ("vd", "volume")):
        equal(*(daemon.cli("list", noun) for noun in nouns), f"list {nouns}")
    daemon.cli("unexport", "vd", name, volumes[0]["name"])
    for volume in volumes:
        daemon.cli("delete", "vd", name, volume["name"])
    daemon.cli("delete", "spare", "5")
    daemon.cli("delete", "dg", name, "--clear")
    for drive in range(6):
        daemon.cli("delete", "pd", str(drive))
    for noun in ("drive", "group", "volume", "spare", "export"):
        equal(daemon.list(noun), [], f"{noun}s left")
    check(all(path.exists() for path in paths), "deleting a drive removed its file")


def everything(case):
    daemon = Daemon(case).start()
    drives = daemon.make_drives(5, SMALL)
    daemon.make_group("raid5", drives[:4])
    daemon.cli("create", "spare", drives[4])
    return daemon, drives


def listed_between(daemon, noun):
    """What the tool and HTTP say of one state: nothing has changed from one GET to the other."""

    def ask():
        before = daemon.http("GET", noun + "s")
        answer = daemon.warpraid("list", noun)
        return (answer, before) if daemon.http("GET", noun + "s") == before else None

    return wait_until(ask, f"{noun}s stay as they are")


def test_json_is_what_http_returned(case):
    daemon, _ = everything(case)
    daemon.wait_idle()
    for noun in ("drive", "group", "volume", "spare", "export"):
        answer, (status, body) = listed_between(daemon, noun)
        equal(answer.stderr, "", f"stderr of list {noun}")
        equal((status, body), (200, answer.data), f"list {noun} and GET {noun}s")
        equal(body["schema_version"], 1, "schema_version")
    answer = daemon.cli("status")
    for key in ("drives", "groups", "volumes", "spares", "exports", "health"):
        check(key in answer, f"status without {key}")

    def numbers(value, path):
        if isinstance(value, dict):
            for key, inner in value.items():
                numbers(inner, f"{path}.{key}")
        elif isinstance(value, list):
            for inner in value:
                numbers(inner, f"{path}[]")
        elif path.endswith("_bytes"):
            check(isinstance(value, int) and not isinstance(value, bool), f"{path} is {value!r}")

    numbers(answer, "status")


def test_tables_tell_the_same(case):
    """What the JSON knows of names, states and serials is in the tables too."""
    daemon, drives = everything(case)
    daemon.wait_idle()
    table = daemon.text("list", "drive")
    for drive in daemon.list("drive"):
        check(drive["path"] in table or drive["serial"] in table, f"{drive['path']}: {table}")
    table = daemon.text("list", "group")
    check("raid5" in table.lower() and "optimal" in table.lower(), table)
    check("v" in daemon.text("list", "volume"), "the volume")
    check("nbd" in daemon.text("list", "export"), "the export's URI")
    daemon.cli("fail", "drive", drives[1])
    text = daemon.text("status")
    check("g" in text, text)
    text = daemon.text("describe", "group", "g")
    check(str(drives[2]) in text or daemon.drive(drives[2])["serial"] in text, text)
    check(len(daemon.text("list", "event").splitlines()) > 3, "events")
    check(daemon.text("version").strip(), "the version")
    equal(daemon.warpraid("health", json_format=False).status in (0, 1), True, "status of health")


def test_events_page_by_page(case):
    daemon, _ = everything(case)
    whole = daemon.cli("list", "event", "--limit", "1000")["events"]
    pages = []
    while True:
        after = pages[-1]["id"] if pages else 0
        page = daemon.cli("list", "event", "--after", after, "--limit", "2")["events"]
        check(len(page) <= 2, "a page longer than asked for")
        if not page:
            break
        pages += page
    equal(pages[:len(whole)], whole, "events page by page")
    kinds = {event["kind"] for event in whole}
    for kind in ("drive-registered", "group-created", "volume-created", "volume-exported",
                 "spare-created"):
        check(kind in kinds, f"no event {kind}: {kinds}")
    for event in whole:
        check(event["time"].endswith("Z") or "+" in event["time"], f"time of {event}")
        check(event["severity"] in ("info", "warning", "error"), f"severity of {event}")


def test_watching(case):
    """`status --watch` shows a rebuild as it goes on, and its end can be waited for."""
    daemon, drives = everything(case)
    daemon.wait_idle()
    # So slow that it goes on until it was seen, whenever that is.
    daemon.cli("edit", "group", "g", "--rebuild-rate", "256K")
    with open(case.directory / "watch.txt", "wb") as output:
        watch = case.start([case.program("warpraid"), "--socket", daemon.socket, "status",
                            "--watch"], stdout=output, stderr=subprocess.STDOUT)
        daemon.cli("fail", "drive", drives[0])

        def shows_progress():
            text = (case.directory / "watch.txt").read_text(errors="replace")
            return "%" in text and "rebuild" in text.lower()

        wait_until(shows_progress, "the watch shows the rebuild")
        check(watch.poll() is None, "the watch ended by itself")
        watch.terminate()
        watch.wait(PATIENCE)
    daemon.cli("edit", "group", "g", "--rebuild-rate", "0")
    daemon.wait_state("optimal")


def test_schema_of_errors(case):
    """An error in JSON is on stdout, alone; in text it is one line on stderr."""
    daemon, _ = everything(case)
    answer = daemon.warpraid("describe", "group", "nope")
    equal(answer.status, 1, "status")
    equal(list(answer.data), ["error"], "keys")
    equal(sorted(answer.data["error"]), ["code", "message"], "keys of the error")
    status, body = daemon.http("GET", "groups/nope")
    equal((status, body), (404, answer.data), "the same over HTTP")
    json.loads(answer.stdout)
    # On a slow machine it may take its time, but not as long as one that was told to wait.
    nobody = case.directory / "none"
    waiting = case.start([case.program("warpraid"), "--socket", nobody, "--wait", "5", "list",
                          "group"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started = time.monotonic()
    equal(daemon.warpraid("list", "group", control=nobody).code, "daemon-unreachable",
          "without a daemon")
    check(time.monotonic() - started < 5 or waiting.poll() is None,
          "it waited though it was not told to")
