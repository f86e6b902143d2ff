"""The table of what may be refused, and what each entry has to say of a refusal's message (R06).

An entry provokes its code on a real daemon. Of every refusal that it provokes it states which parts
of the message are the value found and the value needed, and what to do: a command that is then run
and succeeds, or a thing that no command does, which the test does where it can. After that the
command that was refused succeeds. An entry that leaves one of these out fails."""

import re
import socket
import subprocess
import sys
import threading

from daemon import Daemon, changed, prints_of, still_prints
from harness import MIB, PATIENCE, Skip, check, equal

SMALL = 72 * MIB
ENTRIES = {}    # code -> what provokes it
ELSEWHERE = {}  # code -> the C++ test that does, because no file-backed drive can

# "another --socket" is meant for those who gave one.
ADVISED_OPTION = re.compile(r"(another )?(--[a-z][a-z-]*)")


def provokes(code):
    def mark(function):
        check(code not in ENTRIES and code not in ELSEWHERE, f"{code} has two entries")
        ENTRIES[code] = function
        return function

    return mark


def elsewhere(code, test):
    check(code not in ENTRIES and code not in ELSEWHERE, f"{code} has two entries")
    ELSEWHERE[code] = test


class Refusal:
    """One refused command, and what an entry states of its message."""

    def __init__(self, at, message, words, again):
        self.at = at
        self.message = message
        self.words = [str(word) for word in words]
        self.again = again
        self.stated = {}
        for another, option in ADVISED_OPTION.findall(message):
            check(another or option not in self.words,
                  f"advises {option}, which was given: {message}")

    def has(self, parts):
        check(parts, "nothing is stated")
        for part in parts:
            check(part.strip() and part in self.message, f"{part!r} is not in: {self.message}")
            check(3 * len(part) < 2 * len(self.message), f"most of the message: {part!r}")

    def found(self, *parts):
        self.stated["found"] = parts = [str(part) for part in parts]
        self.has(parts)
        return self

    def needed(self, *parts):
        self.stated["needed"] = parts = [str(part) for part in parts]
        self.has(parts)
        return self

    def advice(self, words):
        check("remedy" not in self.stated, f"two remedies are stated of: {self.message}")
        self.stated["remedy"] = words
        self.has([words])

    def follow(self, words, *command, wait=None, then=()):
        """The command that the message names is run, and then the refused one, with the options
        `then` that the message names too."""
        self.advice(words)
        for word in (command[0], *then):
            check(word in self.message, f"{word!r} is not in: {self.message}")
        self.at.command(*command)
        if wait:
            wait()
        if then:
            self.at.command(*self.words, *then)
        else:
            self.again()

    def retry(self, words, *command, call=None):
        """The refused command again, as the message wants it."""
        self.advice(words)
        if call:
            call()
            return
        command = [str(word) for word in command]
        check(command != self.words, "the same command again")
        for word in command:
            was_given = any(given.partition("=")[0] == word for given in self.words)
            check(was_given or not word.startswith("--") or word in self.message,
                  f"{word} is not advised by: {self.message}")
        self.at.command(*command)

    def no_command(self, words, do):
        """What no command does is done, and then the refused command succeeds."""
        self.advice(words)
        do()
        self.again()

    def is_complete(self):
        for what in ("found", "needed", "remedy"):
            check(what in self.stated, f"the entry does not state what is {what} in: {self.message}")
        check(self.stated["found"] != self.stated["needed"], "found and needed are the same")


class Provocation:
    """What an entry works with: a daemon, its drives, and the refusals so far."""

    def __init__(self, case, code):
        self.case = case
        self.code = code
        self.refusals = []
        self.files = []
        self.running = None

    @property
    def daemon(self):
        if self.running is None:
            self.running = Daemon(self.case, options=self.globs()).start()
        return self.running

    def globs(self):
        """Drives are found again wherever they lie in the test's folder."""
        return ["--drives", f"{self.case.directory}/*.img"]

    def file(self, name, size=SMALL):
        path = self.case.file(name, size)
        self.files.append(path)
        return path

    def drives(self, count, prefix="drive"):
        paths = [self.file(f"{prefix}-{index}.img") for index in range(count)]
        self.daemon.cli("create", "drive", *paths)
        return paths

    def group(self, level, count, *options, name="g", volume=None, export=False):
        drives = self.drives(count, f"of-{name}")
        self.daemon.make_group(level, drives, *options, name=name, volume=volume, export=export)
        self.daemon.wait_state("optimal", name)
        return drives

    def serial(self, path):
        return self.daemon.drive(path)["serial"]

    def command(self, *words):
        """A command that must succeed."""
        if words[0] == "assemble":
            status, outcomes = self.daemon.assemble(*words[1:])
            equal(status, 0, f"{words}: {outcomes}")
            return outcomes
        return self.daemon.cli(*words)

    def refused(self, *words, names=(), status=1, yes=True):
        """A command that the tool or the daemon refuses, having changed no drive."""
        if not yes:
            answer = self.daemon.warpraid(*words, yes=False)
            equal((answer.status, answer.code), (status, self.code), f"{words}: {answer.message}")
        else:
            files = [path for path in self.files if path.exists()]
            answer = self.daemon.refused(words, self.code, files, names=names, status=status)
        return self.said(answer.message, words, lambda: self.command(*words))

    def not_assembled(self, *words, status=4):
        """An outcome of `assemble` that is no start. It changes no drive."""
        files = [path for path in self.files if path.exists()]
        before = still_prints(files)
        answer = self.daemon.warpraid("assemble", *words)
        equal(answer.status, status, f"assemble: {answer.stdout}{answer.stderr}")
        found = [one for one in answer.data["outcomes"] if one["code"] == self.code]
        equal(len(found), 1, f"outcomes of {self.code} in {answer.data}")
        equal(changed(before, prints_of(files)), [], "drives whose bytes changed")
        return self.said(found[0]["message"], ["assemble", *words],
                         lambda: self.command("assemble", *words))

    def http_refused(self, method, path, body):
        status, answer = self.daemon.http(method, path, body)
        check(status >= 400 and answer["error"]["code"] == self.code, f"{path}: {status} {answer}")
        return self.said(answer["error"]["message"], [method, path],
                         lambda: self.http(method, path, body))

    def http(self, method, path, body):
        status, answer = self.daemon.http(method, path, body)
        equal(status, 200, f"HTTP status of {method} {path} {body}: {answer}")

    def start_refused(self, daemon, *extra, status=1):
        """A daemon that does not come up, having said why in its last line."""
        command = [str(part) for part in daemon.command(extra)]
        done = self.case.run(command, status=status, timeout=PATIENCE)
        line = done.stderr.strip().splitlines()[-1]
        told = re.fullmatch(r"(?:\S*\s*error: )?(.*) \[([a-z-]+)\]", line)
        check(told and told[2] == self.code, f"not a line with {self.code}: {done.stderr}")
        return self.said(told[1], command, lambda: daemon.start(extra))

    def said(self, message, words, again):
        check(message.strip() and "\n" not in message, f"not one line: {message!r}")
        self.case.note(f"{self.code}: {message}")
        self.refusals.append(Refusal(self, message, words, again))
        return self.refusals[-1]

    def judge(self):
        check(self.refusals, f"nothing was refused with {self.code}")
        for refusal in self.refusals:
            refusal.is_complete()


def put_away(path):
    path.rename(f"{path}.away")


def bring_back(path):
    path.with_name(path.name + ".away").rename(path)


class Limited(Daemon):
    """A daemon that the kernel allows less than others: the only way to make it lack something."""

    WRAP = ("import os, resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
            "what, most = int(sys.argv[1]), int(sys.argv[2]); resource.setrlimit(what, (most, most)); "
            "os.execv(sys.argv[3], sys.argv[3:])")

    def __init__(self, case, what, most, options=()):
        super().__init__(case, "limited", options)
        self.wrap = [sys.executable, "-c", self.WRAP, what, most]

    def command(self, extra=()):
        return [*self.wrap, *super().command(extra)]

    def need_to_run(self):
        """Sanitizers need more address space than any limit leaves."""
        command = [str(part) for part in (*self.wrap, self.case.program("warpraidd"), "--version")]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            raise Skip("the daemon needs more than the limit to run at all")


class Impostor:
    """Something that listens where the daemon should, and answers each request with `answer`."""

    def __init__(self, path, answer):
        self.answer = answer
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(16)
        self.path = path
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                client.settimeout(PATIENCE)
                # The tool looks whether anybody is there before it asks.
                if client.recv(65536) and self.answer:
                    client.sendall(self.answer)

    def leave(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(PATIENCE)
        self.listener.close()
        self.path.unlink(missing_ok=True)
