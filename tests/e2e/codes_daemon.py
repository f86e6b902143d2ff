"""Entries of the table of codes: the daemon, its files and its sockets."""

import json
import resource
import socket

from codes import Impostor, Limited, elsewhere, provokes
from daemon import Daemon
from harness import GIB, PATIENCE, check, equal

# Of a kernel older than those that any test runs on, and of a defect that nobody knows how to cause.
elsewhere("not-supported", "Features.that_are_missing_are_told_with_the_kernel_that_has_them")
elsewhere("internal-error", "Served.TellsWhatEndedARequestThatNoRequestMayEnd")

ARENA = "8G"


@provokes("bad-config")
def bad_config(at):
    file = at.case.directory / "warpraidd.toml"
    file.write_text('rebuild-rate = "1G"\nread-errors-max = "many"\n')
    daemon = Daemon(at.case)
    refusal = at.start_refused(daemon, "--config", file, status=2)
    refusal.found("line 2: read-errors-max", "'many'").needed("from 0 to 4294967295").no_command(
        "must be a whole number", lambda: file.write_text("read-errors-max = 8\n"))
    other = Daemon(at.case, "other")
    refusal = at.start_refused(other, "--shards", "4", status=2)
    refusal.found("not 4").needed("must be 1").retry(
        "shards: must be", call=lambda: other.start(["--shards", "1"]))


@provokes("daemon-running")
def daemon_running(at):
    at.daemon.list("drive")
    first = at.daemon
    second = Daemon(at.case, "second")
    second.state = first.state
    refusal = at.start_refused(second)
    refusal.found(f"process id {first.process.pid}").needed(str(first.state)).no_command(
        "already; stop it", first.stop)
    second.stop()
    first.start()
    second.state = second.directory / "state"
    second.socket = first.socket
    refusal = at.start_refused(second)
    refusal.found("a server already answers").needed(str(first.socket)).no_command(
        "stop it or choose another", first.stop)


@provokes("daemon-unreachable")
def daemon_unreachable(at):
    at.daemon.stop()
    answer = at.daemon.warpraid("list", "group")
    equal((answer.status, answer.code), (1, at.code), answer.message)
    refusal = at.said(answer.message, ["--socket", at.daemon.socket, "list", "group"],
                      lambda: at.daemon.cli("list", "group"))
    refusal.found(f"nobody answers on {at.daemon.socket}").needed("No such file").no_command(
        "start warpraidd there", at.daemon.start)


@provokes("protocol-error")
def protocol_error(at):
    at.daemon.stop()
    for answer, needed in ((b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "JSON"),):
        impostor = Impostor(at.daemon.socket, answer)
        try:
            told = at.daemon.warpraid("list", "group")
            equal((told.status, told.code), (1, at.code), told.message)
        finally:
            impostor.leave()
        refusal = at.said(told.message, ["--socket", at.daemon.socket, "list", "group"], None)
        other = Daemon(at.case, "other").start()
        refusal.found(str(at.daemon.socket)).needed(f"does not send {needed}").retry(
            "name another --socket", call=lambda: other.cli("list", "group"))
        other.stop()
    at.daemon.start()
    status, text = raw(at.daemon.socket, b"LIST groups\r\n\r\n")
    check(status == 400 and f"[{at.code}]" not in text, text)
    refusal = at.said(text, ["LIST", "groups"], None)
    refusal.found("'LIST groups'").needed("HTTP/1.1").retry(
        "write one of HTTP/1.1", call=lambda: at.http("GET", "groups", None))


@provokes("timeout")
def timeout(at):
    status, text = raw(at.daemon.socket, b"GET /api/v1/groups HTTP/1.1\r\n")
    equal(status, 408, text)
    at.said(text, [], None).found("not arrived as a whole").needed("5000 ms").retry(
        "send it again, at once", call=lambda: at.http("GET", "groups", None))
    at.daemon.stop()
    impostor = Impostor(at.daemon.socket, b"")
    try:
        told = at.daemon.warpraid("list", "group")
        equal((told.status, told.code), (1, at.code), told.message)
    finally:
        impostor.leave()
    at.daemon.start()
    refusal = at.said(told.message, ["list", "group"], lambda: at.daemon.cli("list", "group"))
    refusal.found(f"no answer came on {at.daemon.socket}").needed("300 s").follow(
        "look at 'warpraid status'", "status")


def raw(path, request):
    """(status, message) of what is not a request as a client makes it."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        client.connect(str(path))
        client.sendall(request)
        received = b""
        while piece := client.recv(65536):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["message"]


@provokes("out-of-memory")
def out_of_memory(at):
    daemon = Limited(at.case, resource.RLIMIT_AS, 6 * GIB)
    daemon.need_to_run()
    refusal = at.start_refused(daemon, "--engine-arena", ARENA)
    refusal.found(8 * GIB).needed("Cannot allocate memory").retry(
        "give engine-arena less", call=lambda: daemon.start(["--engine-arena", "64M"]))


@provokes("system-error")
def system_error(at):
    daemon = Daemon(at.case)
    daemon.state.write_text("a file")
    refusal = at.start_refused(daemon)
    refusal.found(f"{daemon.state} is not a directory").needed("one is needed there").no_command(
        "move it away", daemon.state.unlink)


@provokes("state-not-saved")
def state_not_saved(at):
    drives = at.drives(2)
    # Where the new state is written before it takes the old one's place.
    for path in at.daemon.state.glob("state.json*"):
        check(path.is_file(), f"{path} is no file")
    obstacle = at.daemon.state / "state.json.new"
    obstacle.mkdir()
    refusal = at.refused("create", "group", "raid1", *drives)
    refusal.found(f"cannot create {obstacle}").needed("a restart would forget it").no_command(
        "make it writable", obstacle.rmdir)
