#include "array/slab_cutter.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/assert.h"

namespace warpraid::array {

namespace {

constexpr std::size_t kCutsMax = 2 + 2 * 64;

// The heights at which anything starts or ends in one stripe.
struct Cuts {
    std::array<std::uint32_t, kCutsMax> at;
    std::size_t count = 0;

    void add(std::uint32_t value) {
        WARPRAID_ASSERT(count < at.size());
        at[count++] = value;
    }
    void sort_unique() {
        std::sort(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(count));
        const auto* end = std::unique(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(count));
        count = static_cast<std::size_t>(end - at.begin());
    }
};

// The host memory of [address, address + length) when one part covers it.
bool find_source(std::span<const Part> parts, std::uint64_t address, std::uint32_t length,
                 std::byte* zeros, std::byte*& source) {
    for (const Part& part : parts) {
        if (part.offset > address) return false;
        if (address + length <= part.end()) {
            source = part.memory == nullptr ? zeros : part.memory + (address - part.offset);
            return true;
        }
    }
    return false;
}

void cut_height(const geometry::Layout& layout, std::span<const Part> parts, std::byte* zeros,
                const Slab& shape, SlabSpace& space) {
    const std::uint64_t base = shape.stripe.get() * layout.stripe_data_bytes();
    Slab slab = shape;
    slab.touched = 0;
    slab.first_source = space.source_count;
    for (std::uint32_t column = 0; column < layout.data_columns(); ++column) {
        const std::uint64_t address =
            base + std::uint64_t{column} * layout.chunk_bytes() + slab.low;
        std::byte* source = nullptr;
        if (!find_source(parts, address, slab.height(), zeros, source)) continue;
        slab.touched |= ColumnMask{1} << column;
        WARPRAID_ASSERT(space.source_count < space.sources.size());
        space.sources[space.source_count++] = source;
    }
    if (slab.touched == 0) return;
    WARPRAID_ASSERT(space.slab_count < space.slabs.size());
    space.slabs[space.slab_count++] = slab;
}

void cut_stripe(const geometry::Layout& layout, Stripe stripe, std::span<const Part> parts,
                std::byte* zeros, SlabSpace& space) {
    const std::uint64_t begin = stripe.get() * layout.stripe_data_bytes();
    const std::uint64_t end = begin + layout.stripe_data_bytes();
    const std::uint32_t chunk = layout.chunk_bytes();
    Cuts cuts;
    cuts.add(0);
    cuts.add(chunk);
    for (const Part& part : parts) {
        if (part.offset > begin)
            cuts.add(static_cast<std::uint32_t>((part.offset - begin) % chunk));
        if (part.end() < end) cuts.add(static_cast<std::uint32_t>((part.end() - begin) % chunk));
    }
    cuts.sort_unique();
    for (std::size_t i = 0; i + 1 < cuts.count; ++i) {
        for (std::uint32_t low = cuts.at[i]; low < cuts.at[i + 1]; low += kSlabHeightMax) {
            Slab shape;
            shape.stripe = stripe;
            shape.low = low;
            shape.high = std::min(low + kSlabHeightMax, cuts.at[i + 1]);
            cut_height(layout, parts, zeros, shape, space);
        }
    }
}

}  // namespace

std::uint64_t slabs_bound(const geometry::Layout& layout, std::uint64_t stripes,
                          std::uint64_t parts) {
    const std::uint64_t heights = divide_up(layout.chunk_bytes(), kSlabHeightMax);
    return stripes * heights + 2 * parts;
}

void cut_slabs(const geometry::Layout& layout, std::span<const Part> parts, std::byte* zeros,
               SlabSpace& space) {
    WARPRAID_ASSERT(!parts.empty());
    const std::uint64_t stripe_bytes = layout.stripe_data_bytes();
    std::size_t first = 0;
    std::uint64_t stripe = parts.front().offset / stripe_bytes;
    while (first < parts.size()) {
        stripe = std::max(stripe, parts[first].offset / stripe_bytes);
        const std::uint64_t end = (stripe + 1) * stripe_bytes;
        std::size_t last = first;
        while (last < parts.size() && parts[last].offset < end) ++last;
        cut_stripe(layout, Stripe(stripe), parts.subspan(first, last - first), zeros, space);
        while (first < parts.size() && parts[first].end() <= end) ++first;
        ++stripe;
    }
}

}  // namespace warpraid::array
