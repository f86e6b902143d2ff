// Cuts the parts of a batch into slabs: horizontal cuts of a stripe in which every data column is
// touched as a whole or not at all. Pure but for the storage it fills.
#pragma once

#include <cstdint>
#include <span>

#include "array/slab_plan.h"
#include "block/device.h"
#include "geometry/layout.h"

namespace warpraid::array {

/// A contiguous range of one host request.
struct Part {
    block::Request* request = nullptr;
    std::uint64_t offset = 0;  // group offset
    std::uint64_t length = 0;
    std::byte* memory = nullptr;  // null: zeros are written
    std::uint64_t end() const { return offset + length; }
};

struct Slab {
    Stripe stripe;
    std::uint32_t low = 0;  // in the chunk
    std::uint32_t high = 0;
    ColumnMask touched = 0;
    /// Index of the first of popcount(touched) host pointers, in column order.
    std::uint32_t first_source = 0;
    std::uint32_t height() const { return high - low; }
};

/// Taller slabs are cut, so that the scratch of one slab stays bounded whatever the chunk.
inline constexpr std::uint32_t kSlabHeightMax = 256 * 1024;

struct SlabSpace {
    std::span<Slab> slabs;
    std::span<std::byte*> sources;
    std::uint32_t slab_count = 0;
    std::uint32_t source_count = 0;
};

/// An upper bound of the slabs that `parts` parts over `stripes` stripes can be cut into.
std::uint64_t slabs_bound(const geometry::Layout& layout, std::uint64_t stripes,
                          std::uint64_t parts);

/// `parts` do not overlap and ascend; the space must hold slabs_bound(). `zeros` points to at least
/// kSlabHeightMax zero bytes, the source of parts without memory.
void cut_slabs(const geometry::Layout& layout, std::span<const Part> parts, std::byte* zeros,
               SlabSpace& space);

}  // namespace warpraid::array
