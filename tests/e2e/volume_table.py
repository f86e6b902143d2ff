"""A hex editor for the names in a group's table of volumes, written from docs/on-disk-format.md: for
members that hold the group's bytes as they are, as those of RAID 1 do."""

import struct
import zlib

from harness import MIB, check, equal

MAGIC = b"EFI PART"
HEADER_BYTES = 92
HEADER_CRC_AT, MY_BLOCK_AT, ENTRIES_BLOCK_AT, ENTRIES_CRC_AT = 16, 24, 72, 88
ENTRIES, ENTRY_BYTES, NAME_AT, NAME_UNITS = 128, 128, 56, 36


def headers(path):
    """Where the two headers lie in a member."""
    data = path.read_bytes()
    first = data.find(MAGIC, MIB)
    second = data.rfind(MAGIC)
    check(0 < first < second, f"{path} has no two tables of volumes")
    return first, second


def set_names(path, names, block=512):
    """`names`: UTF-16 units by the volume's number, at most 36. Both copies stay right otherwise."""
    first, second = headers(path)
    start = first - block  # of the group's bytes
    with open(path, "r+b") as file:
        for place in (first, second):
            file.seek(place)
            header = bytearray(file.read(HEADER_BYTES))
            equal(checksum_of(header), field(header, "<I", HEADER_CRC_AT), "a header's checksum")
            equal(start + field(header, "<Q", MY_BLOCK_AT) * block, place, "where a header lies")
            file.seek(start + field(header, "<Q", ENTRIES_BLOCK_AT) * block)
            entries = bytearray(file.read(ENTRIES * ENTRY_BYTES))
            equal(zlib.crc32(entries), field(header, "<I", ENTRIES_CRC_AT), "the entries' checksum")
            for number, units in names.items():
                at = number * ENTRY_BYTES + NAME_AT
                check(any(entries[at - NAME_AT:at]), f"{path} has no volume {number}")
                entries[at:at + 2 * NAME_UNITS] = struct.pack(
                    f"<{NAME_UNITS}H", *units, *[0] * (NAME_UNITS - len(units)))
            file.seek(start + field(header, "<Q", ENTRIES_BLOCK_AT) * block)
            file.write(entries)
            struct.pack_into("<I", header, ENTRIES_CRC_AT, zlib.crc32(entries))
            struct.pack_into("<I", header, HEADER_CRC_AT, checksum_of(header))
            file.seek(place)
            file.write(header)


def field(header, form, at):
    return struct.unpack_from(form, header, at)[0]


def checksum_of(header):
    plain = bytearray(header)
    plain[HEADER_CRC_AT:HEADER_CRC_AT + 4] = bytes(4)
    return zlib.crc32(plain)


def units_of(text):
    """UTF-16 as it is, lone surrogates too."""
    data = text.encode("utf-16-le", "surrogatepass")
    return struct.unpack(f"<{len(data) // 2}H", data)
