// The superblock: bytes on disk (docs/on-disk-format.md). Two copies per drive, one in the first
// MiB and one in the last. Packed, little-endian, CRC-32C; runtime structs are never written.
// encode(decode(x)) is x for every valid x. Decoding looks at untrusted bytes: every size is
// bounded, every reserved byte must be zero. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "base/result.h"
#include "format/record.h"

namespace warpraid::format {

inline constexpr std::size_t kSuperblockBytes = 16 * 1024;
inline constexpr std::uint64_t kSuperblockOffset = 64 * kKiB;  // first copy
inline constexpr std::uint32_t kFormatVersion = 1;

/// Where the second copy of a drive of this size lies: 4 KiB aligned, in its last MiB.
std::uint64_t superblock_copy_offset(std::uint64_t drive_bytes);
/// Where the members of a group whose smallest drive has this size start their data areas: all at
/// the same place. A replacement takes the data offset of its slot, whatever its own size.
std::uint64_t default_data_offset(std::uint64_t smallest_drive_bytes);

/// What one drive's superblock says: which drive this is, and the group it knows.
struct Superblock {
    Uuid drive;
    std::uint8_t copy = 0;                           // 0 first, 1 last; not covered by the checksum
    std::variant<GroupRecord, SpareRecord> content;  // member (of `slot`) or spare
    Slot slot;                                       // members only
};

/// `to` is kSuperblockBytes long; check_record() holds for a member's record.
void encode(const Superblock& superblock, std::span<std::byte> to);
/// kNoSuperblock (no magic), kBadSuperblock (checksum or a field out of range: named),
/// kUnsupportedVersion, kUnsupportedLayout.
Result<Superblock> decode_superblock(std::span<const std::byte> from);

}  // namespace warpraid::format
