// A page of the write-intent bitmap on disk. Pages lie one behind the other from kBitmapOffset in
// the first MiB of every member. A page that does not decode counts as all dirty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/limits.h"
#include "base/result.h"
#include "base/uuid.h"

namespace warpraid::format {

inline constexpr std::uint64_t kBitmapOffset = 128 * kKiB;
inline constexpr std::size_t kBitmapPageBytes = 4096;
inline constexpr std::size_t kBitmapHeaderBytes = 64;
inline constexpr std::uint32_t kBitsPerPage = (kBitmapPageBytes - kBitmapHeaderBytes) * 8;
inline constexpr std::uint32_t kBitmapPagesMax =
    (limits::kRegionsMax + kBitsPerPage - 1) / kBitsPerPage;

struct BitmapPageHeader {
    Uuid group;
    std::uint32_t page = 0;
    std::uint64_t sequence = 0;  // grows with every write of this page
};

/// `bits` (kBitsPerPage / 8 bytes, bit i of byte b is region b * 8 + i of this page) and the header
/// to `to` (kBitmapPageBytes).
void encode(const BitmapPageHeader& header, std::span<const std::byte> bits,
            std::span<std::byte> to);
/// Fails with kBadSuperblock unless magic, checksum, group and page number all fit. The bits are
/// from.subspan(kBitmapHeaderBytes).
Result<BitmapPageHeader> decode_bitmap_page(std::span<const std::byte> from, const Uuid& group,
                                            std::uint32_t page);

}  // namespace warpraid::format
