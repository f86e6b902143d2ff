"""The real NBD clients, as their users call them."""

import dataclasses
import hashlib
import json
import os
import subprocess
import threading

from harness import LONG_PATIENCE, MIB, PATIENCE, Failure, check, equal, need_programs, tail

# Sizes with their shares, of reads and of writes. Blocks of 512 bytes need a volume with such
# blocks. Writes of 4 MiB are read back as such; as one of the reads it could be all of a small mix.
MIX_512 = ("512/10:4k/35:20k/20:68k/15:256k/12:1M/8,"
           "512/10:4k/35:20k/20:68k/15:256k/12:1M/5:4M/3")
MIX_4096 = "4k/45:20k/20:68k/15:256k/12:1M/8,4k/45:20k/20:68k/15:256k/12:1M/5:4M/3"


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A reproducible mix of random reads and writes, the writes with checksums inside.
    check_pattern() must be given the very pattern that was written."""

    seed: int
    offset: int = 0
    size: int = 64 * MIB  # area
    moved: int = 0        # bytes read and written; 0: half of the area
    read_percent: int = 30
    mix: str = MIX_4096
    depth: int = 16

    def bytes_moved(self):
        return self.moved or self.size // 2


def fio_command(uri, pattern, *options):
    return ["fio", "--name=pattern", "--ioengine=nbd", f"--uri={uri}", "--rw=randrw",
            f"--rwmixread={pattern.read_percent}", f"--bssplit={pattern.mix}",
            f"--offset={pattern.offset}", f"--size={pattern.size}",
            f"--io_size={pattern.bytes_moved()}", f"--iodepth={pattern.depth}",
            f"--randseed={pattern.seed}", "--verify=crc32c", "--verify_fatal=1",
            "--verify_state_save=0", "--output-format=json", *options]


def fio_result(stdout, stderr, status):
    """The job's figures; a Failure for anything but success."""
    try:
        job = json.loads(stdout[stdout.index("{"):])["jobs"][0]
    except (ValueError, KeyError, IndexError):
        job = None
    if status != 0 or job is None or job["error"] != 0:
        raise Failure(f"fio: exit status {status}\n{tail(stderr)}{tail(stdout, 8)}")
    return job


def check_verified(job, pattern):
    """While it moves its mix fio checks nothing, and counts what it reads. Afterwards it reads all
    that it wrote and checks it: both together are at least what it moved, the first alone less."""
    check(job["write"]["io_bytes"] > 0, "fio wrote nothing")
    check(job["read"]["io_bytes"] >= pattern.bytes_moved(),
          f"fio read {job['read']['io_bytes']} bytes: it did not verify what it wrote")


def run_fio(case, command, timeout):
    need_programs("fio")
    done = case.run(command, status=None, timeout=timeout, cwd=case.directory)
    return fio_result(done.stdout, done.stderr, done.returncode)


def write_pattern(case, uri, pattern, verify=True, timeout=LONG_PATIENCE):
    """Reads and writes, and reads back what was written unless told not to."""
    job = run_fio(case, fio_command(uri, pattern, f"--do_verify={int(verify)}"), timeout)
    check(job["write"]["io_bytes"] > 0, "fio wrote nothing")
    if verify:
        check_verified(job, pattern)


def check_pattern(case, uri, pattern, timeout=LONG_PATIENCE):
    """Reads every block that an earlier write_pattern wrote and checks it. fio goes over its mix
    again without doing it, and counts that too."""
    check_verified(run_fio(case, fio_command(uri, pattern, "--verify_only=1"), timeout), pattern)


class BackgroundPatterns:
    """Rounds of write and verify, each with a seed of its own, while the test does something else.
    Each round writes less than a second's worth, so that the load changes often. A round that fails
    ends them; stop() raises its failure."""

    def __init__(self, case, uri, pattern):
        need_programs("fio")
        self.case = case
        self.uri = uri
        self.pattern = pattern
        self.rounds = 0
        self.failure = None
        self.stopping = threading.Event()
        self.process = None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        case.cleanup(self.end)

    def run(self):
        try:
            while not self.stopping.is_set() or self.rounds == 0:  # stop() may come before us
                self.one_round()
                self.rounds += 1
        except Exception as failure:  # told to the test by stop()
            self.failure = failure

    def one_round(self):
        pattern = dataclasses.replace(self.pattern, seed=self.pattern.seed + self.rounds)
        command = fio_command(self.uri, pattern, "--do_verify=1")
        self.process = self.case.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, cwd=self.case.directory)
        stdout, stderr = self.process.communicate()
        check_verified(fio_result(stdout, stderr, self.process.returncode), pattern)

    def running(self):
        return self.thread.is_alive()

    def stop(self, timeout=LONG_PATIENCE):
        """Ends after the present round; at least one must have been whole."""
        self.stopping.set()
        self.thread.join(timeout)
        check(not self.thread.is_alive(), f"fio hangs: not ended within {timeout} s")
        if self.failure is not None:
            raise self.failure
        check(self.rounds > 0, "no round of writes was whole")

    def end(self):
        self.stopping.set()
        if self.thread.is_alive() and self.process is not None:
            self.process.kill()
        self.thread.join(PATIENCE)


def nbdinfo(case, uri):
    """What the server told nbdinfo of this export."""
    need_programs("nbdinfo")
    done = case.run(["nbdinfo", "--json", uri])
    return json.loads(done.stdout)["exports"][0]


def nbdcopy(case, source, target, *options, timeout=LONG_PATIENCE):
    need_programs("nbdcopy")
    case.run(["nbdcopy", *options, source, target], timeout=timeout)


def qemu_io(case, uri, *commands, status=0):
    need_programs("qemu-io")
    arguments = []
    for command in commands:
        arguments += ["-c", command]
    done = case.run(["qemu-io", "-f", "raw", *arguments, uri], status=status)
    # qemu-io answers a pattern that does not match with a line, not with its status.
    check("verification failed" not in done.stdout, f"qemu-io {commands}: {done.stdout}")
    return done


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(4 * MIB):
            digest.update(piece)
    return digest.hexdigest()


def random_file(case, name, size):
    """A file of random bytes, made of the test's random numbers."""
    path = case.directory / name
    with open(path, "wb") as file:
        for offset in range(0, size, 4 * MIB):
            file.write(case.random.randbytes(min(4 * MIB, size - offset)))
    return path


def nbdcopy_both_ways(case, source, uri, *options):
    """The SHA-256 of a file that went to the export and came back the same."""
    wanted = sha256(source)
    nbdcopy(case, source, uri, "--flush", *options)
    check_copy(case, uri, wanted, *options)
    return wanted


def check_copy(case, uri, wanted, *options):
    target = case.directory / "copied-back"
    nbdcopy(case, uri, target, *options)
    equal(sha256(target), wanted, "SHA-256 of what nbdcopy read")
    target.unlink()


def qemu_img_round(case, daemon, drives, uri):
    """Converted there and back as qcow2, compared with a drive lost, and checked."""
    need_programs("qemu-img")
    size = daemon.list("volume")[0]["size_bytes"]
    image = case.directory / "image.qcow2"
    raw = random_file(case, "raw", 96 * MIB)
    os.truncate(raw, size)
    case.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, image])
    case.run(["qemu-img", "convert", "-n", "-f", "qcow2", "-O", "raw", image, uri])
    case.run(["qemu-img", "compare", "-f", "qcow2", "-F", "raw", image, uri])
    daemon.wait_state("optimal")  # the first resync may still be under way
    daemon.cli("fail", "drive", drives[0])
    case.run(["qemu-img", "compare", "-f", "raw", "-F", "raw", raw, uri])
    back = case.directory / "back.qcow2"
    case.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", uri, back])
    case.run(["qemu-img", "check", back])
    case.run(["qemu-img", "compare", "-f", "raw", "-F", "qcow2", raw, back])
    # The comparison can fail.
    qemu_io(case, uri, "write -P 0x77 8M 4k")
    case.run(["qemu-img", "compare", "-f", "raw", "-F", "raw", raw, uri], status=1)


def qemu_io_round(case, uri):
    qemu_io(case, uri,
            "write -P 0x11 0 1M", "write -P 0x22 64k 64k", "write -P 0x33 100k 8k",
            "write -f -P 0x44 3M 4k", "flush",
            "read -P 0x11 0 64k", "read -P 0x22 64k 36k", "read -P 0x33 100k 8k",
            "read -P 0x22 108k 20k", "read -P 0x11 128k 896k", "read -P 0x44 3M 4k")
    qemu_io(case, uri, "write -z 32k 256k", "read -P 0 32k 256k", "read -P 0x11 0 32k",
            "read -P 0x11 288k 736k")
    qemu_io(case, uri, "discard 512k 256k", "read -P 0x11 288k 224k",
            "read -P 0x11 768k 256k")
    qemu_io(case, uri, "aio_write -P 0x61 8M 1M", "aio_write -P 0x62 9M 1M",
            "aio_write -P 0x63 10M 512", "aio_flush", "read -P 0x61 8M 1M",
            "read -P 0x62 9M 1M", "read -P 0x63 10M 512")
