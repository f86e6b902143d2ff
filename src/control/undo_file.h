// What is kept of the drives of a forced create: a record that names them, and of each an image,
// the bytes that the create overwrites. Pure; any thread.
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

/// kRestoring: the drives are to get back what they held. So it starts, because a create that a
/// crash cuts short is taken back, and so it ends when the operator undoes it. kKept: the group is
/// made, and undo is possible for as long as it is held.
enum class UndoState : std::uint8_t { kRestoring, kKept };

/// One drive, before the create.
struct UndoDrive {
    io::DriveIdentity identity;  // for messages: texts only as far as they are UTF-8
    std::string key;             // undo_key() of it
    Uuid member;                 // the identity that it gets as a member of the group
    Uuid former;                 // the one that its superblock gave it before; nil without
    std::uint64_t size_bytes = 0;
    std::uint32_t checksum = 0;  // of its image
};

struct UndoRecord {
    Uuid group;
    std::string name;
    UndoState state = UndoState::kRestoring;
    std::vector<UndoDrive> drives;
};

/// The first MiB of a drive, and its tail from the second superblock on. No bytes outside of these
/// are written by making a group, until it gets its first volume.
struct UndoImage {
    std::vector<std::byte> head, tail;
    bool operator==(const UndoImage&) const = default;
};

constexpr std::size_t undo_head_bytes() {
    return limits::kHeadReserveBytesMin;
}
/// Where the tail of a drive of this size starts, and how long it is; kDriveBytesMin at least.
std::uint64_t undo_tail_offset(std::uint64_t drive_bytes);
std::size_t undo_tail_bytes(std::uint64_t drive_bytes);

/// The most that the text of a record can have: names and texts of 32 drives are far shorter.
inline constexpr std::uint64_t kUndoRecordBytesMax = 512 * kKiB;

/// One line of JSON, and a line with its checksum.
std::string encode_undo(const UndoRecord& record);
/// kInvalidArgument, naming what is wrong with the text.
Result<UndoRecord> decode_undo(std::string_view text);

std::uint32_t checksum_of(const UndoImage& image);

/// The identity_key() of a drive as hexadecimal digits: a serial number may be any bytes, and JSON
/// takes none that are not UTF-8.
std::string undo_key(const io::DriveIdentity& identity);

}  // namespace warpraid::control
