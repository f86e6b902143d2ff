// The protective MD superblock: a Linux MD 1.2 superblock at 4 KiB that makes blkid, udev and mkfs
// see a RAID member, while bit 31 of its feature map, which MD does not know, keeps MD from ever
// assembling it. Written once when a drive joins. Whose a drive is, is told by our own superblock;
// this one tells it only of drives that a create has begun to overwrite (control/undo_images.h).
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/units.h"
#include "base/uuid.h"
#include "geometry/layout.h"

namespace warpraid::format {

inline constexpr std::uint64_t kProtectiveMdOffset = 4 * kKiB;
inline constexpr std::size_t kProtectiveMdBytes = 4096;
inline constexpr std::uint32_t kProtectiveFeatureBit = 1u << 31;

struct ProtectiveMd {
    Uuid set;  // the group; of a global spare its own drive uuid
    Uuid drive;
    std::string name;  // shown by mdadm --examine as "warpraid:<name>", cut to 32 bytes
    std::uint64_t created_seconds = 0;
    std::uint64_t data_offset = 0;
    bool spare = false;
    Slot slot;              // not for spares
    geometry::Shape shape;  // not for spares
};

/// Which drive it is, and of what. Both lie in the first 512 bytes, as the checksum over them does:
/// on any drive they are written as a whole or not at all.
struct ProtectiveMark {
    Uuid set, drive;
    bool operator==(const ProtectiveMark&) const = default;
};

/// `to` is kProtectiveMdBytes long.
void encode(const ProtectiveMd& superblock, std::span<std::byte> to);
/// The sum MD stores at offset 216 of a version 1 superblock of `bytes` (256 and two per device).
std::uint32_t md_checksum(std::span<const std::byte> bytes);
/// Whether these bytes (at least 256) are an MD version 1 superblock with the protective bit.
bool is_protective_md(std::span<const std::byte> bytes);
/// Of bytes that encode() wrote (at least 512); nothing when they are anything else.
std::optional<ProtectiveMark> decode_protective_mark(std::span<const std::byte> bytes);

}  // namespace warpraid::format
