// Reading and writing single superblock copies: what examine() and Store share. Blocking.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "format/superblock.h"
#include "io/drive.h"

namespace warpraid::meta {

/// The two places of a superblock on a drive.
enum class Copy : std::uint8_t { kFirst = 0, kSecond = 1 };

/// "drive SERIAL (PATH)", for messages.
std::string describe(const io::DriveIdentity& identity);

/// Decodes one copy. A copy in the other's place is kBadSuperblock; a failed read keeps its code.
Result<format::Superblock> read_copy(io::BlockingDrive& drive, Copy copy);
/// Does not flush.
Status write_copy(io::BlockingDrive& drive, const format::Superblock& superblock, Copy copy);
Status write_zeroes(io::BlockingDrive& drive, std::uint64_t offset, std::uint64_t bytes);

/// The identity of a commit; two superblocks of a group with equal ids carry the same record.
inline std::uint64_t commit_id_of(const format::Superblock& superblock) {
    const auto* record = std::get_if<format::GroupRecord>(&superblock.content);
    return record == nullptr ? 0 : record->commit_id;
}

}  // namespace warpraid::meta
