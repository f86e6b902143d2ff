"""What the drives of a test are: sparse files, or loop devices over such files; and what others may
have left on them."""

import os
import pathlib
import struct
import zlib

from harness import Skip, need_programs, need_root


class Files:
    """Drives that are files: their groups have blocks of 512 bytes unless told otherwise."""

    sector = 512

    def __init__(self, case):
        self.case = case
        self.number = 0

    def make(self, size):
        self.number += 1
        return self.case.file(f"made-{self.number}.img", size)

    def several(self, count, size):
        return [self.make(size) for _ in range(count)]

    def discard(self, path):
        """Gives back the space of a drive that no daemon holds."""
        path.unlink()


class Loops:
    """Loop devices over files of the test, taken down at its end. `transfer_bytes_max`: what the
    device itself takes at once; the kernel cuts what is longer."""

    def __init__(self, case, sector=512, transfer_bytes_max=None):
        need_root()
        need_programs("losetup")
        self.case = case
        self.sector = sector
        self.transfer_bytes_max = transfer_bytes_max
        self.number = 0

    def make(self, size, sector=None, read_only=False):
        self.number += 1
        backing = self.case.file(f"loop-{self.number}.raw", size)
        return self.attach(backing, sector, ["--read-only"] if read_only else [])

    def several(self, count, size, sector=None):
        return [self.make(size, sector) for _ in range(count)]

    def attach(self, backing, sector=None, options=()):
        done = self.case.run(["losetup", "--find", "--show",
                              f"--sector-size={sector or self.sector}", *options, backing],
                             status=None)
        if done.returncode != 0:
            raise Skip(f"no loop devices: {done.stderr.strip()}")
        device = done.stdout.strip()
        self.case.cleanup(lambda: self.detach(device, status=None))
        if self.transfer_bytes_max is not None:
            self.limit_transfers(device)
        return device

    def limit_transfers(self, device):
        """The limit stays with the number of the device, so it is taken back at the end."""
        limit = pathlib.Path("/sys/block", pathlib.Path(device).name, "queue/max_sectors_kb")
        before = limit.read_text()
        try:
            limit.write_text(str(self.transfer_bytes_max // 1024))
        except OSError as error:
            raise Skip(f"no limit on transfers of {device}: {error}") from None
        self.case.cleanup(lambda: limit.write_text(before))

    def detach(self, device, status=0):
        self.case.run(["losetup", "--detach", device], status=status)

    def backing(self, device):
        return self.case.run(["losetup", "--noheadings", "--output=BACK-FILE",
                              device]).stdout.strip()

    def discard(self, device):
        """The device goes at the end of the test."""


def put(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def put_gpt(path):
    """A protective MBR and a table with one partition, as any partitioning tool leaves them."""
    blocks = os.stat(path).st_size // 512
    entries = bytearray(128 * 128)
    struct.pack_into("<16s16sQQQ", entries, 0, bytes(range(16)), bytes(range(16, 32)), 2048,
                     blocks - 2049, 0)
    table_crc = zlib.crc32(entries)

    def header(my, other, table):
        raw = struct.pack("<8sIIIIQQQQ16sQIII", b"EFI PART", 0x10000, 92, 0, 0, my, other, 34,
                          blocks - 34, bytes(range(32, 48)), table, 128, 128, table_crc)
        return raw[:16] + struct.pack("<I", zlib.crc32(raw)) + raw[20:]

    mbr = bytearray(512)
    struct.pack_into("<BBBBBBBBII", mbr, 446, 0, 0, 2, 0, 0xEE, 0xFF, 0xFF, 0xFF, 1,
                     min(blocks - 1, 0xFFFFFFFF))
    mbr[510:] = b"\x55\xaa"
    put(path, 0, mbr + header(1, blocks - 1, 2).ljust(512, b"\0") + entries)
    put(path, (blocks - 33) * 512, entries + header(blocks - 1, 1, blocks - 33).ljust(512, b"\0"))
