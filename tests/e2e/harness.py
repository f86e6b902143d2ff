"""Runs the end-to-end tests: black-box tests of the real programs over file-backed drives.

A test is a function `test_*(case)` of a module test_*.py; it passes by returning, fails by raising,
and says that it cannot run here by raising Skip. `parametrize` makes one test of each argument.
Everything a test starts or makes hangs on its Case, which ends it and takes it away.
"""

import fnmatch
import importlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

MIB = 1 << 20
GIB = 1 << 30
# Seconds that bound a hang, on a machine that is ten times slower than ours and busy besides. They
# never judge how quick something is. The longer ones are for what reads or writes whole drives.
PATIENCE = 120
LONG_PATIENCE = 300
ALL_SKIPPED = 77  # what CTest takes for a skip
# A Unix socket's path has room for 107 bytes; the longest name below a test's folder needs 40.
DIRECTORY_CHARS_MAX = 66


class Failure(AssertionError):
    """What a test found wrong."""


class Skip(Exception):
    """Why a test cannot run here."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def equal(found, expected, text):
    if found != expected:
        raise Failure(f"{text}: found {found!r}, expected {expected!r}")


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def need_programs(*names):
    for name in names:
        if shutil.which(name) is None:
            raise Skip(f"{name} is not installed")


def wait_until(condition, text, timeout=PATIENCE, interval=0.05):
    """The first true value of `condition`, which is asked again and again."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"{text()if callable(text) else text}: not within {timeout:.0f} s")
        time.sleep(interval)


def parametrize(*arguments):
    """One test for each argument: `f[argument]` is called as f(case, argument)."""

    def mark(function):
        function.arguments = arguments
        return function

    return mark


class Settings:
    def __init__(self, bin_directory, seed, keep, verbose):
        self.bin = pathlib.Path(bin_directory)
        self.seed = seed
        self.keep = keep
        self.verbose = verbose


class Case:
    """One test while it runs: its folder, its random numbers, its processes, its cleanup."""

    def __init__(self, settings, name):
        self.settings = settings
        self.name = name
        self.random = random.Random(f"{settings.seed}/{name}")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="wr-", dir=short_directory()))
        self.at_end = []
        self.notes = []

    def program(self, name):
        path = self.settings.bin / name
        if not path.exists():
            raise Skip(f"{path} is not built")
        return str(path)

    def cleanup(self, action):
        """Called at the end of the test, last one first."""
        self.at_end.append(action)

    def note(self, text):
        """Shown when the test fails, or always with --verbose; repetitions once."""
        if text in self.notes[-2:]:
            return
        self.notes.append(text)
        if self.settings.verbose:
            print(f"    {text}", flush=True)

    def run(self, command, status=0, timeout=LONG_PATIENCE, **options):
        """Runs a program to its end; `status` None takes any exit status."""
        command = [str(part) for part in command]
        self.note("$ " + " ".join(command))
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout,
                                  stdin=subprocess.DEVNULL, **options)
        except subprocess.TimeoutExpired as late:
            raise Failure(f"{command[0]} did not end within {timeout} s: {late.stderr}") from None
        if status is not None and done.returncode != status:
            raise Failure(f"{' '.join(command)}: exit status {done.returncode}, expected {status}\n"
                          f"{tail(done.stdout)}{tail(done.stderr)}")
        return done

    def start(self, command, **options):
        """Starts a program that is killed at the end of the test, or with it, if it still runs
        then. A child is tied to the thread that started it, which must outlive it."""
        command = [str(part) for part in command]
        self.note("$ " + " ".join(command) + " &")
        if shutil.which("setpriv"):
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        process = subprocess.Popen(command, **{"stdin": subprocess.DEVNULL, **options})
        self.cleanup(lambda: end_process(process))
        return process

    def file(self, name, size):
        """A sparse file in the test's folder."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as made:
            made.truncate(size)
        return path

    def finish(self):
        """Ends everything; returns what went wrong while doing so."""
        problems = []
        while self.at_end:
            try:
                self.at_end.pop()()
            except Exception as error:  # each cleanup must get its turn
                problems.append(f"at the end: {error}")
        return problems

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)


def short_directory():
    directory = tempfile.gettempdir()
    return directory if len(directory) <= DIRECTORY_CHARS_MAX else "/tmp"


def tail(text, lines=25):
    return "\n".join((text or "").splitlines()[-lines:]) + "\n"


def end_process(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


class Test:
    def __init__(self, module, function, argument=None, has_argument=False):
        self.function = function
        self.argument = argument
        self.has_argument = has_argument
        self.name = f"{module}.{function.__name__.removeprefix('test_')}"
        if has_argument:
            shown = "-".join(map(str, argument)) if isinstance(argument, tuple) else argument
            self.name += f"[{shown}]"

    def call(self, case):
        if self.has_argument:
            self.function(case, self.argument)
        else:
            self.function(case)


def load_tests(patterns):
    """Tests whose name, or whose file's name, fits one of the patterns (all when there is none)."""
    folder = pathlib.Path(__file__).parent
    found = []
    for path in sorted(folder.glob("test_*.py")):
        module = importlib.import_module(path.stem)
        for name, function in list(vars(module).items()):
            if not name.startswith("test_") or function.__module__ != path.stem:
                continue
            if hasattr(function, "arguments"):
                found += [Test(path.stem, function, argument, True)
                          for argument in function.arguments]
            else:
                found.append(Test(path.stem, function))
    if not patterns:
        return found
    return [test for test in found if any(fits(test.name, pattern) for pattern in patterns)]


def fits(name, pattern):
    pattern = pattern.removesuffix(".py")
    # Brackets are part of names here, not sets of characters.
    return pattern in name or fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


class Runner:
    def __init__(self, settings):
        self.settings = settings
        self.passed = self.failed = self.skipped = 0

    def run_one(self, test):
        case = Case(self.settings, test.name)
        started = time.monotonic()
        why = None
        try:
            test.call(case)
        except Skip as skip:
            case.finish()
            case.remove()
            self.skipped += 1
            print(f"SKIP {test.name}: {skip}", flush=True)
            return
        except Failure as failure:
            why = str(failure)
            location = traceback.extract_tb(failure.__traceback__)
            case.note("at " + " < ".join(f"{frame.name}:{frame.lineno}"
                                         for frame in reversed(location)))
        except Exception:
            why = traceback.format_exc()
        except BaseException:
            case.finish()
            case.remove()
            raise
        problems = case.finish()
        if why is None and problems:
            why = "; ".join(problems)
            problems = []
        seconds = time.monotonic() - started
        if why is None:
            self.passed += 1
            print(f"PASS {test.name} ({seconds:.1f} s)", flush=True)
            case.remove()
            return
        self.failed += 1
        self.report(test, case, why, problems)

    def report(self, test, case, why, problems):
        first, _, rest = why.partition("\n")
        print(f"FAIL {test.name}: {first}")
        for line in [*rest.splitlines(), *problems, *case.notes[-40:]]:
            print(f"    {line}")
        for log in sorted(case.directory.glob("**/*.log")):
            print(f"    -- {log.relative_to(case.directory)}")
            for line in tail(log.read_text(errors="replace"), 40).splitlines():
                print(f"    {line}")
        if self.settings.keep:
            print(f"    kept: {case.directory}", flush=True)
        else:
            case.remove()
        sys.stdout.flush()

    def run(self, tests):
        for test in tests:
            self.run_one(test)
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        if self.failed:
            return 1
        return ALL_SKIPPED if self.passed == 0 else 0


def stop_on_signals():
    def stop(number, _frame):
        raise KeyboardInterrupt(signal.Signals(number).name)

    signal.signal(signal.SIGTERM, stop)
