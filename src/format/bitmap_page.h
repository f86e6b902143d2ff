// A page of the write-intent bitmap on disk: two maps of the same regions. Pages lie one behind the
// other from kBitmapOffset in the first MiB of every member. A page that does not decode counts as
// all dirty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "base/uuid.h"

namespace warpraid::format {

inline constexpr std::uint64_t kBitmapOffset = 128 * kKiB;
inline constexpr std::size_t kBitmapPageBytes = 4096;
inline constexpr std::size_t kBitmapHeaderBytes = 64;
inline constexpr std::size_t kBitmapMapBytes = (kBitmapPageBytes - kBitmapHeaderBytes) / 2;
inline constexpr std::size_t kBitmapDirtyOffset = kBitmapHeaderBytes;
inline constexpr std::size_t kBitmapMissedOffset = kBitmapDirtyOffset + kBitmapMapBytes;
inline constexpr std::uint32_t kBitsPerPage = kBitmapMapBytes * 8;
inline constexpr std::uint32_t kBitmapPagesMax =
    (limits::kRegionsMax + kBitsPerPage - 1) / kBitsPerPage;

struct BitmapPageHeader {
    Uuid group;
    std::uint32_t page = 0;
    std::uint64_t sequence = 0;  // grows with every write of this page
};

/// The two maps of a group as a whole: one bit for each region, LSB first. Dirty: members may
/// disagree there. Missed: members that are away do not have it.
struct BitmapContent {
    std::vector<std::uint64_t> dirty;
    std::vector<std::uint64_t> missed;

    /// Members agree everywhere: what is dirty can only be what others missed.
    void note_agreement();
};

/// The maps of a page, kBitmapMapBytes each: bit i of byte b is region b * 8 + i of this page.
struct BitmapMaps {
    std::span<const std::byte> dirty;
    std::span<const std::byte> missed;
};

/// Header and maps to `to` (kBitmapPageBytes), where the maps must not lie yet.
void encode(const BitmapPageHeader& header, const BitmapMaps& maps, std::span<std::byte> to);
/// Of a page that decode_bitmap_page() took.
BitmapMaps bitmap_maps(std::span<const std::byte> from);
/// Fails with kBadSuperblock unless magic, checksum, group and page number all fit.
Result<BitmapPageHeader> decode_bitmap_page(std::span<const std::byte> from, const Uuid& group,
                                            std::uint32_t page);

}  // namespace warpraid::format
