// The engine's live picture of its members: the adopted view, which regions of rebuilding members
// are still stale, and which regions are suspect after an unclean stop. One shard; allocates only
// in adopt() and set_suspect().
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "array/view.h"
#include "geometry/layout.h"
#include "intent/bitmap.h"

namespace warpraid::array {

/// Bits by slot.
using SlotMask = std::uint32_t;
constexpr SlotMask slot_bit(Slot slot) {
    return SlotMask{1} << slot.get();
}

class Membership {
  public:
    Membership(const geometry::Layout& layout, std::uint64_t region_stripes);

    void adopt(const View& view, const intent::Bitmap& bitmap);
    const View& view() const { return view_; }
    bool failed() const { return view_.failed; }
    /// Grows when a view brings other members, or gives one another access; not when a record was
    /// only stored again (a checkpoint, a name).
    std::uint64_t epoch() const { return epoch_; }

    std::uint32_t region_count() const { return region_count_; }
    Region region_of(Stripe stripe) const {
        return Region(static_cast<std::uint32_t>(stripe.get() / region_stripes_));
    }
    Stripe region_first_stripe(Region region) const;
    Stripe region_end_stripe(Region region) const;

    /// Members that hold the right content of `stripe` (when parity is right): to be read from and
    /// written to.
    SlotMask usable(Stripe stripe) const;
    /// Rebuilding members that do not hold `stripe` yet.
    SlotMask stale(Stripe stripe) const { return rebuilding_ & ~usable(stripe); }
    SlotMask full() const { return full_; }
    SlotMask rebuilding() const { return rebuilding_; }
    SlotMask missing() const { return all_ & ~full_; }

    io::Drive* drive(Slot slot) const { return view_.members[slot.get()].drive; }
    std::uint64_t drive_offset(Slot slot, std::uint64_t data_offset) const {
        return view_.members[slot.get()].data_offset + data_offset;
    }

    /// Stripes first.. were rebuilt on `slots`, in ascending order within a region.
    void note_rebuilt(SlotMask slots, Stripe first, std::uint32_t count);
    std::uint32_t stale_regions(Slot slot) const;
    bool is_region_stale(Slot slot, Region region) const;
    std::uint64_t rebuilt_bytes(Slot slot) const;

    void set_suspect(std::span<const std::uint64_t> bits);
    bool is_suspect(Region region) const {
        return suspect_count_ != 0 && test(suspect_, region.get());
    }
    /// Stripes first.. were made to agree, in ascending order within a region.
    void note_resynced(Stripe first, std::uint32_t count);

  private:
    using Bits = std::vector<std::uint64_t>;
    /// How far into a region, in ascending order, background work has come.
    struct Cursor {
        bool active = false;
        Region region;
        Stripe next;
        /// Moves over [first, first + count); true when that completed the region.
        bool advance(const Membership& owner, Stripe first, std::uint32_t count);
    };
    struct Rebuild {
        Bits stale;
        std::uint32_t stale_count = 0;
        Cursor cursor;
    };

    static bool test(const Bits& bits, std::uint32_t index) {
        return (bits[index / 64] >> (index % 64) & 1) != 0;
    }
    void start_rebuild(std::uint32_t slot, const intent::Bitmap& bitmap);
    Bits make_bits(bool value) const;
    void mask_tail(Bits& bits) const;

    const geometry::Layout& layout_;
    std::uint64_t region_stripes_;
    std::uint32_t region_count_;
    View view_;
    std::uint64_t epoch_ = 0;
    SlotMask all_ = 0;
    SlotMask full_ = 0;
    SlotMask rebuilding_ = 0;
    std::array<Rebuild, limits::kMembersMax> rebuilds_;
    Bits suspect_;
    std::uint32_t suspect_count_ = 0;
    Cursor resync_;
};

}  // namespace warpraid::array
