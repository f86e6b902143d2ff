"""Groups whose volumes hold data that is known, and drives that go away."""

import oracle
from harness import MIB

SMALL = 96 * MIB


def made_group(case, daemon, level="raid5", count=5, name="g", prefix="drive",
               size=SMALL):
    """A group in sync with known data in the first MiB of its volume."""
    oracle.need_libnbd()
    drives = daemon.make_drives(count, size, prefix=prefix)
    daemon.make_group(level, drives, name=name, volume=f"v-{name}")
    data = case.random.randbytes(MIB)
    handle = oracle.connect(daemon.uri(f"v-{name}"))
    handle.pwrite(data, 0)
    handle.shutdown()
    daemon.wait_idle(name)
    return drives, data


def read_data(daemon, name="g", length=MIB):
    handle = oracle.connect(daemon.uri(f"v-{name}"))
    data = handle.pread(length, 0)
    handle.shutdown()
    return bytes(data)


def write_data(case, daemon, name="g", length=MIB):
    data = case.random.randbytes(length)
    handle = oracle.connect(daemon.uri(f"v-{name}"))
    handle.pwrite(data, 0)
    handle.flush()
    handle.shutdown()
    return data


def hidden(path):
    return path.with_name(path.name + ".hidden")


def hide(path):
    path.rename(hidden(path))


def unhide(path):
    hidden(path).rename(path)


def globs(case):
    return ["--drives", f"{case.directory}/*.img"]
