// The file that keeps what a forced create overwrites on its drives: one line of JSON that names
// the group and the drives, then the first MiB of each drive and its tail from the second
// superblock on, and a checksum over all of it. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "base/uuid.h"
#include "io/drive.h"

namespace warpraid::control {

/// What one drive held.
struct UndoDrive {
    io::DriveIdentity identity;
    Uuid member;  // the identity that it gets as a member of the group
    std::uint64_t size_bytes = 0;
    std::vector<std::byte> head, tail;
};

/// What the drives of one group held before it was made of them.
struct UndoRecord {
    Uuid group;
    std::string name;
    std::vector<UndoDrive> drives;
};

/// No bytes outside of these are written by making a group, until it gets its first volume.
constexpr std::size_t undo_head_bytes() {
    return limits::kHeadReserveBytesMin;
}
/// Where the tail of a drive of this size starts, and how long it is; kDriveBytesMin at least.
std::uint64_t undo_tail_offset(std::uint64_t drive_bytes);
std::size_t undo_tail_bytes(std::uint64_t drive_bytes);

/// The most that a file can have.
inline constexpr std::uint64_t kUndoBytesMax =
    limits::kMembersMax * (limits::kHeadReserveBytesMin + limits::kTailReserveBytes) + kMiB;

std::string encode_undo(const UndoRecord& record);
/// kInvalidArgument, naming what is wrong with the text.
Result<UndoRecord> decode_undo(std::string_view text);

}  // namespace warpraid::control
