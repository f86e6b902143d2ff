#include "meta/superblock_io.h"

#include <algorithm>
#include <vector>

#include "base/limits.h"

namespace warpraid::meta {
namespace {

std::uint64_t offset_of(const io::BlockingDrive& drive, Copy copy) {
    return copy == Copy::kFirst ? format::kSuperblockOffset
                                : format::superblock_copy_offset(drive.limits().size_bytes);
}

}  // namespace

std::string describe(const io::DriveIdentity& identity) {
    return "drive " + identity.serial + " (" + identity.path + ")";
}

Result<format::Superblock> read_copy(io::BlockingDrive& drive, Copy copy) {
    if (drive.limits().size_bytes < limits::kDriveBytesMin) {
        return Error{ErrorCode::kNoSuperblock, "too small for a superblock"};
    }
    std::vector<std::byte> bytes(format::kSuperblockBytes);
    WARPRAID_TRY(drive.read(offset_of(drive, copy), bytes));
    WARPRAID_TRY_ASSIGN(format::Superblock superblock, format::decode_superblock(bytes));
    if (superblock.copy != static_cast<std::uint8_t>(copy)) {
        return Error{ErrorCode::kBadSuperblock, "superblock: it belongs at the other end"};
    }
    return superblock;
}

Status write_copy(io::BlockingDrive& drive, const format::Superblock& superblock, Copy copy) {
    format::Superblock placed = superblock;
    placed.copy = static_cast<std::uint8_t>(copy);
    std::vector<std::byte> bytes(format::kSuperblockBytes);
    format::encode(placed, bytes);
    return drive.write(offset_of(drive, copy), bytes);
}

Status write_zeroes(io::BlockingDrive& drive, std::uint64_t offset, std::uint64_t bytes) {
    const std::vector<std::byte> zeroes(std::min<std::uint64_t>(bytes, kMiB));
    while (bytes != 0) {
        const std::uint64_t part = std::min<std::uint64_t>(bytes, zeroes.size());
        WARPRAID_TRY(drive.write(offset, std::span(zeroes).first(part)));
        offset += part;
        bytes -= part;
    }
    return success();
}

}  // namespace warpraid::meta
