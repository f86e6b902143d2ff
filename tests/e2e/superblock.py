"""A hex editor for superblocks, written from docs/on-disk-format.md: for tests of what the product
makes of superblocks that it would never write."""

import os
import struct

from harness import MIB, check

MAGIC = b"WARPRAID"
BYTES = 16 * 1024
FIRST_COPY = 64 * 1024
VERSION_AT, CHECKSUM_AT, COPY_AT = 8, 12, 16
GROUP_UUID_AT, GENERATION_AT, LAYOUT_AT, DESTROYED_AT, NAME_BYTES_AT, NAME_AT = 64, 80, 140, 141, 143, 144
NAME_BYTES_MAX = 32


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def copies(path):
    """Offsets of the two copies of a drive's superblock."""
    size = os.stat(path).st_size
    with open(path, "rb") as file:
        file.seek(size - MIB)
        second = file.read(MIB).find(MAGIC)
        file.seek(FIRST_COPY)
        check(file.read(len(MAGIC)) == MAGIC and second >= 0, f"{path} has no two superblocks")
    return FIRST_COPY, size - MIB + second


def edit(path, change, mend=True):
    """`change(bytearray)` on both copies; with `mend` their checksums are made right again."""
    for offset in copies(path):
        with open(path, "r+b") as file:
            file.seek(offset)
            block = bytearray(file.read(BYTES))
            change(block)
            if mend:
                plain = bytearray(block)
                plain[CHECKSUM_AT:CHECKSUM_AT + 4] = bytes(4)
                plain[COPY_AT] = 0
                struct.pack_into("<I", block, CHECKSUM_AT, crc32c(plain))
            file.seek(offset)
            file.write(block)


def has_right_checksum(path):
    """Whether this editor and the product agree on how checksums are made."""
    with open(path, "rb") as file:
        file.seek(FIRST_COPY)
        block = bytearray(file.read(BYTES))
    (stored,) = struct.unpack_from("<I", block, CHECKSUM_AT)
    block[CHECKSUM_AT:CHECKSUM_AT + 4] = bytes(4)
    block[COPY_AT] = 0
    return stored == crc32c(block)


def generation(path):
    """Of the commit that a drive took part in last."""
    with open(path, "rb") as file:
        file.seek(FIRST_COPY + GENERATION_AT)
        return struct.unpack("<Q", file.read(8))[0]


def set_name(path, name):
    def change(block):
        block[NAME_BYTES_AT] = len(name)
        block[NAME_AT:NAME_AT + NAME_BYTES_MAX] = name.ljust(NAME_BYTES_MAX, b"\0")

    edit(path, change)


def set_byte(path, offset, value, mend=True):
    def change(block):
        block[offset] = value

    edit(path, change, mend)
