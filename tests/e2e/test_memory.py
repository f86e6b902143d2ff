"""Resident memory of the daemon: idle with one group of eight drives, and after much work."""

import re

import clients
from daemon import Daemon
from harness import MIB, check

ENGINE_ARENA = 64
NBD_ARENA = 32
ALLOWED = 64


def resident_mib(daemon):
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def mappings(daemon):
    """(start, bytes that can be written, KiB resident, name) of each mapping."""
    found = []
    with open(f"/proc/{daemon.process.pid}/smaps", encoding="utf-8") as lines:
        for line in lines:
            head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)", line)
            if head:
                start, end = int(head[1], 16), int(head[2], 16)
                writable = end - start if head[3].startswith("rw") else 0
                name = head[4].strip()
            elif line.startswith("Rss:"):
                found.append((start, writable, int(line.split()[1]), name))
    return found


def arenas(daemon):
    """Where the buffer arenas start. A page of theirs becomes resident when it is first used, and
    that says nothing about growth: they are as large as they were made."""
    return {start for start, size, _, name in mappings(daemon) if not name and size >= 32 * MIB}


def resident_besides_mib(daemon, left_out):
    return sum(resident for start, _, resident, _ in mappings(daemon)
               if start not in left_out) / 1024


def is_sanitized(daemon):
    with open(f"/proc/{daemon.process.pid}/maps", encoding="utf-8") as maps:
        text = maps.read()
    return "libasan" in text or "libtsan" in text


def test_idle_memory(case):
    """Under 64 MiB plus what was configured for buffers, before and after work."""
    daemon = Daemon(case, options=["--engine-arena", f"{ENGINE_ARENA}M",
                                   "--nbd-arena", f"{NBD_ARENA}M"]).start()
    drives = daemon.make_drives(8, 256 * MIB)
    uri = daemon.make_group("raid6", drives)
    daemon.wait_idle()
    bound = ALLOWED + ENGINE_ARENA + NBD_ARENA
    idle = resident_mib(daemon)
    pattern = clients.Pattern(case.random.getrandbits(28), size=128 * MIB, depth=64)
    clients.write_pattern(case, uri, pattern)
    daemon.wait_idle()
    worked = resident_mib(daemon)
    print(f"    resident: {idle:.1f} MiB idle, {worked:.1f} MiB after work, allowed {bound} MiB",
          flush=True)
    if is_sanitized(daemon):
        case.note("a sanitizer's own memory is not the product's: figures not judged")
        return
    check(idle < bound and worked < bound, f"{idle:.1f} and {worked:.1f} MiB, allowed {bound}")


def test_memory_does_not_grow(case):
    """Many clients, commands and rebuilds later it is about as large as before."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(4, 96 * MIB)
    uri = daemon.make_group("raid5", drives)
    daemon.wait_idle()

    def work():
        for number in range(20):
            clients.qemu_io(case, uri, f"write -P {number + 1} 0 1M", "read 0 4M")
            daemon.http("GET", "status")
        clients.write_pattern(case, uri, clients.Pattern(case.random.getrandbits(28)))
        daemon.verify()

    work()
    left_out = arenas(daemon)
    check(left_out, "no buffer arena was found")
    before = resident_besides_mib(daemon, left_out)
    for _ in range(3):
        work()
    after = resident_besides_mib(daemon, left_out)
    print(f"    resident besides the arenas: {before:.1f} MiB, then {after:.1f} MiB",
          flush=True)
    check(after < before + 8, f"{before:.1f} MiB, then {after:.1f} MiB")
