"""warpraidd as the tests run it, and warpraid as its user types it."""

import dataclasses
import hashlib
import http.client
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import time

from harness import (LONG_PATIENCE, MIB, PATIENCE, Failure, check, equal, tail,
                     wait_until)

READY = "warpraidd: ready"


@dataclasses.dataclass
class Answer:
    status: int
    data: object  # parsed JSON, or None
    stdout: str
    stderr: str

    @property
    def code(self):
        """The stable code of a refusal."""
        error = self.data.get("error") if isinstance(self.data, dict) else None
        return error.get("code") if isinstance(error, dict) else None

    @property
    def message(self):
        return self.data["error"]["message"] if self.code else self.stderr.strip()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Daemon:
    """One daemon in a folder of its own. Not started by the constructor."""

    def __init__(self, case, name="d", options=(), bitmap_delay=1):
        self.case = case
        self.directory = case.directory / name
        self.directory.mkdir()
        self.state = self.directory / "state"
        self.socket = self.directory / "control.sock"
        self.readonly_socket = self.directory / "control-ro.sock"
        self.nbd_socket = self.directory / "nbd.sock"
        self.log_path = self.directory / "warpraidd.log"
        self.options = list(options)
        self.bitmap_delay = bitmap_delay
        self.process = None

    # ---- life ----

    def command(self, extra=()):
        return [self.case.program("warpraidd"), "--state-dir", self.state,
                "--socket", self.socket, "--readonly-socket", self.readonly_socket,
                "--nbd-socket", self.nbd_socket, "--bitmap-delay", self.bitmap_delay,
                *self.options, *extra]

    def start(self, extra=(), timeout=PATIENCE):
        check(self.process is None, "the daemon already runs")
        with open(self.log_path, "ab") as log:
            self.process = self.case.start(self.command(extra), stdout=subprocess.PIPE, stderr=log)
        self.case.cleanup(self.end)  # before what the line above left to be done: a plain kill
        self.wait_ready(timeout)
        return self

    def wait_ready(self, timeout):
        deadline = time.monotonic() + timeout
        seen = b""
        while READY.encode() not in seen.splitlines():
            left = deadline - time.monotonic()
            readable, _, _ = select.select([self.process.stdout], [], [], max(left, 0))
            piece = os.read(self.process.stdout.fileno(), 4096) if readable else b""
            if not piece:
                status = self.process.poll()
                state = f"ended with {status}" if status is not None else "runs"
                raise Failure(f"the daemon is not ready after {timeout} s; it {state}; "
                              f"it printed {seen!r}\n{self.log()}")
            seen += piece

    def kill(self):
        """What a crash of the daemon is."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.forget()

    def stop(self, timeout=PATIENCE):
        """An orderly stop, which must end well."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"the daemon did not stop within {timeout} s\n{self.log()}") from None
        self.forget()
        if status != 0:
            raise Failure(f"the daemon stopped with status {status}\n{self.log()}")

    def restart(self, extra=()):
        self.stop()
        return self.start(extra)

    def crash_and_start(self, extra=()):
        self.kill()
        return self.start(extra)

    def forget(self):
        self.process.stdout.close()
        self.process = None

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def end(self):
        """The end of the test: a daemon that runs must still be well and must stop in order."""
        if self.process is None:
            return
        status = self.process.poll()
        if status is not None:
            raise Failure(f"the daemon had ended by itself with status {status}\n{self.log()}")
        self.stop()

    def log(self):
        if not self.log_path.exists():
            return ""
        return tail(self.log_path.read_text(errors="replace"), 40)

    # ---- the command line ----

    def warpraid(self, *arguments, json_format=True, yes=True, control=None, timeout=PATIENCE,
                 cwd=None):
        """Runs the tool; any exit status."""
        command = [self.case.program("warpraid"), "--socket", control or self.socket]
        if json_format:
            command += ["--format", "json"]
        if yes:
            command.append("--yes")
        done = self.case.run([*command, *arguments], status=None, timeout=timeout, cwd=cwd)
        data = None
        if json_format and done.stdout.strip():
            try:
                data = json.loads(done.stdout)
            except ValueError:
                raise Failure(f"not JSON on stdout of {arguments}: {done.stdout!r}") from None
        return Answer(done.returncode, data, done.stdout, done.stderr)

    def cli(self, *arguments, **options):
        """Runs the tool, which must succeed; returns its JSON."""
        answer = self.warpraid(*arguments, **options)
        if answer.status != 0:
            raise Failure(f"warpraid {' '.join(map(str, arguments))}: status {answer.status} "
                          f"{answer.stdout}{answer.stderr}\n{self.log()}")
        return answer.data

    def text(self, *arguments, **options):
        """Runs the tool without JSON, which must succeed; returns what it printed."""
        answer = self.warpraid(*arguments, json_format=False, **options)
        equal(answer.status, 0, f"warpraid {arguments}: {answer.stderr}")
        return answer.stdout

    def http(self, method, path, body=None, control=None):
        """A raw request: (status, parsed JSON)."""
        connection = UnixConnection(control or self.socket)
        try:
            headers = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, f"/api/v1/{path}", body, headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        return response.status, json.loads(text) if text else None

    # ---- what there is ----

    def list(self, noun):
        return self.cli("list", noun)[noun + "s"]

    def group(self, name):
        for group in self.list("group"):
            if group["name"] == name:
                return group
        raise Failure(f"there is no group {name}: {self.list('group')}")

    def drive(self, path):
        for drive in self.list("drive"):
            if drive["path"] == str(path):
                return drive
        raise Failure(f"there is no drive {path}: {self.list('drive')}")

    def event_kinds(self):
        events = self.cli("list", "event", "--limit", "1000")["events"]
        return [event["kind"] for event in events]

    def uri(self, volume, group=None):
        for export in self.list("export"):
            if export["volume"] == volume and group in (None, export["group"]):
                return export["uri"]
        raise Failure(f"there is no export of {volume}: {self.list('export')}")

    # ---- making things ----

    def make_drives(self, count, size=128 * MIB, prefix="drive"):
        """File-backed drives, registered; their paths."""
        paths = [self.case.file(f"{prefix}-{index}.img", size) for index in range(count)]
        self.cli("create", "drive", *paths)
        return paths

    def make_group(self, level, drives, *options, name="g", volume="v", size=None, export=True):
        """A group with one exported volume; the URI, if exported."""
        self.cli("create", "group", level, *drives, "--name", name, *options)
        if volume is None:
            return None
        self.cli("create", "volume", name, *([size] if size else []), "--name", volume)
        if not export:
            return None
        self.cli("export", "volume", name, volume)
        return self.uri(volume, name)

    # ---- waiting ----

    def wait_for(self, condition, text, group="g", timeout=LONG_PATIENCE):
        """Until `condition(group's JSON)` holds; returns that JSON."""
        last = {}

        def holds():
            last["group"] = self.group(group)
            return last["group"] if condition(last["group"]) else None

        return wait_until(holds, lambda: f"{text}; group: {last.get('group')}", timeout, 0.1)

    def wait_state(self, state, group="g", timeout=LONG_PATIENCE):
        return self.wait_for(lambda found: found["state"] == state, f"group is {state}", group,
                             timeout)

    def wait_idle(self, group="g", timeout=LONG_PATIENCE):
        """No task runs or is about to, and the write-intent bitmap is clean."""
        return self.wait_for(
            lambda found: found["task"] is None
            # The daemon starts a task some time after the command that makes it necessary.
            and found["state"] not in ("resyncing", "rebuilding")
            and bitmap_is_settled(found),
            "group is idle", group, timeout)

    def wait_settled(self, timeout=LONG_PATIENCE):
        """No bitmap is about to be tidied: the drives' bytes stay as they are."""

        def settled():
            return all(bitmap_is_settled(found) or found["state"] in ("held", "offline")
                       for found in self.list("group") if "dirty_regions" in found)

        wait_until(settled, "bitmaps are clean", timeout, 0.1)

    def verify(self, group="g", timeout=LONG_PATIENCE):
        """A verify pass over every stripe, which must find nothing."""
        self.wait_for(lambda found: found["task"] is None, "no task runs", group, timeout)
        self.cli("verify", "group", group)
        found = self.wait_for(
            lambda found: found["task"] is None and found["last_verify"] is not None
            and found["last_verify"]["finished"], "verify ends", group, timeout)
        equal(found["last_verify"]["mismatches"], 0, "stripes whose parity does not match")
        equal(found["last_verify"]["unreadable"], 0, "stripes that could not be read")
        equal(found["last_verify"]["done_bytes"], found["last_verify"]["total_bytes"],
              "bytes that were verified")

    # ---- refusals ----

    def refused(self, arguments, code, files=(), names=(), status=1, has=(), daemon_changes=True):
        """The command is refused with `code`, in JSON and in one line of text which holds every
        string of `has` and the serial number of one of the drives `names`; not one byte of `files`
        changes. Returns the answer."""
        if daemon_changes and files:
            self.wait_settled()
        before = still_prints(files) if daemon_changes else prints_of(files)
        answer = self.warpraid(*arguments)
        shown = " ".join(str(argument)[:80] for argument in arguments)
        equal((answer.status, answer.code), (status, code), f"{shown}: {answer.message}")
        check(answer.message.strip(), f"{shown}: the refusal has no message")
        text = self.warpraid(*arguments, json_format=False)
        equal(text.status, status, f"{shown}: exit status in text mode")
        lines = [line for line in text.stderr.splitlines() if line.startswith("error: ")]
        check(len(lines) == 1 and lines[0].endswith(f"[{code}]"),
              f"{shown}: not one line of text with the code: {text.stderr!r}")
        equal(text.stdout, "", f"{shown}: stdout in text mode")
        for part in has:
            check(part in answer.message, f"{shown}: {part!r} is not in: {answer.message}")
        if names:
            serials = {drive["path"]: drive["serial"] for drive in self.list("drive")}
            check(any(names_drive(answer.message, str(name), serials) for name in names),
                  f"{shown}: no drive is named by its serial number in: {answer.message}")
        equal(changed(before, prints_of(files)), [], f"{shown}: drives whose bytes changed")
        check(self.alive(), f"the daemon died of {shown}")
        return answer


    def assemble(self, *arguments):
        """(exit status, outcomes by group name)."""
        answer = self.warpraid("assemble", *arguments)
        check(isinstance(answer.data, dict) and "outcomes" in answer.data,
              f"assemble {arguments}: {answer.stdout}{answer.stderr}")
        return answer.status, {outcome["group"]: outcome for outcome in answer.data["outcomes"]}

    def refused_assembly(self, code, group, *arguments, status=4):
        """`assemble` refuses `group` with `code`; returns its outcome."""
        found, outcomes = self.assemble(group, *arguments)
        check(group in outcomes, f"no outcome of {group}: {outcomes}")
        equal((found, outcomes[group]["code"]), (status, code), f"assemble: {outcomes[group]}")
        return outcomes[group]


def bitmap_is_settled(group):
    """No page of it is about to be written by itself."""
    nobody_is_away = group["state"] in ("optimal", "resyncing")
    return group["dirty_regions"] == 0 and (not nobody_is_away or group["missed_regions"] == 0)


def names_drive(message, name, serials):
    """A path alone may be another drive's by the time it is read."""
    if not name.startswith("/"):
        return name in message
    if name in serials:
        return serials[name] in message
    return re.search(rf"FILE-[0-9a-f]{{16}} \({re.escape(name)}\)", message) is not None


# Digests by file and time of its last write. Every write moves that time on, but only as often as
# the kernel's clock ticks: a file written just now is not remembered.
KNOWN_PRINTS = {}
SETTLED_NS = 100_000_000


def print_of(path):
    """A digest of a file's data; holes and zeros are alike."""
    status = os.stat(path)
    key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if key in KNOWN_PRINTS:
        return KNOWN_PRINTS[key]
    is_settled = time.time_ns() - status.st_mtime_ns > SETTLED_NS
    text = digest_of(path, status.st_size)
    if is_settled:
        KNOWN_PRINTS[key] = text
    return text


def digest_of(path, size):
    digest = hashlib.sha256()
    digest.update(b"%d" % size)
    zeros = bytes(MIB)
    with open(path, "rb", buffering=0) as file:
        offset = 0
        while offset < size:
            try:
                offset = os.lseek(file.fileno(), offset, os.SEEK_DATA)
            except OSError:  # nothing but a hole is left
                break
            offset -= offset % MIB
            data = os.pread(file.fileno(), MIB, offset)
            if data != zeros[: len(data)]:
                digest.update(b"%d" % offset)
                digest.update(data)
            offset += MIB
    return digest.hexdigest()


def prints_of(paths):
    return {str(path): print_of(path) for path in paths}


def still_prints(paths, timeout=PATIENCE):
    """Digests once the files have come to rest: a daemon may still tidy its bitmap."""
    deadline = time.monotonic() + timeout
    before = prints_of(paths)
    while paths:
        time.sleep(0.3)
        now = prints_of(paths)
        if now == before:
            break
        check(time.monotonic() < deadline, "the drives' bytes keep changing")
        before = now
    return before


def changed(before, after):
    return [path for path in before if before[path] != after[path]]


def zero_ends(path, length=MIB):
    """What wipes every copy of a superblock."""
    size = os.stat(path).st_size
    with open(path, "r+b") as file:
        file.write(bytes(length))
        file.seek(size - length)
        file.write(bytes(length))


def rename_all(paths, targets):
    """Moves every file to its target at once: targets may be among the paths."""
    for index, path in enumerate(paths):
        pathlib.Path(path).rename(f"{path}.moving-{index}")
    for index, (path, target) in enumerate(zip(paths, targets)):
        pathlib.Path(f"{path}.moving-{index}").rename(target)
