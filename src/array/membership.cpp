#include "array/membership.h"

#include <algorithm>
#include <bit>

namespace warpraid::array {

namespace {

std::uint32_t count_bits(const std::vector<std::uint64_t>& bits) {
    std::uint32_t count = 0;
    for (std::uint64_t word : bits) count += static_cast<std::uint32_t>(std::popcount(word));
    return count;
}

}  // namespace

Membership::Membership(const geometry::Layout& layout, std::uint64_t region_stripes)
    : layout_(layout),
      region_stripes_(region_stripes),
      region_count_(static_cast<std::uint32_t>(divide_up(layout.stripes(), region_stripes))) {
    WARPRAID_ASSERT(region_stripes > 0);
    WARPRAID_ASSERT(divide_up(layout.stripes(), region_stripes) <= limits::kRegionsMax);
    all_ = static_cast<SlotMask>((std::uint64_t{1} << layout.members()) - 1);
    suspect_ = make_bits(false);
}

Membership::Bits Membership::make_bits(bool value) const {
    Bits bits(divide_up(region_count_, 64), value ? ~std::uint64_t{0} : 0);
    mask_tail(bits);
    return bits;
}

void Membership::mask_tail(Bits& bits) const {
    bits.resize(divide_up(region_count_, 64), 0);
    const std::uint32_t rest = region_count_ % 64;
    if (rest != 0) bits.back() &= (std::uint64_t{1} << rest) - 1;
}

Stripe Membership::region_first_stripe(Region region) const {
    return Stripe(region.get() * region_stripes_);
}

Stripe Membership::region_end_stripe(Region region) const {
    return Stripe(std::min((region.get() + 1) * region_stripes_, layout_.stripes()));
}

void Membership::adopt(const View& view, const intent::Bitmap& bitmap) {
    const View previous = view_;
    view_ = view;
    full_ = 0;
    rebuilding_ = 0;
    bool changed = view.failed != previous.failed;
    for (std::uint32_t slot = 0; slot < layout_.members(); ++slot) {
        const MemberView& now = view.members[slot];
        const MemberView& before = previous.members[slot];
        WARPRAID_ASSERT((now.access == Access::kNone) == (now.drive == nullptr));
        changed = changed || now.access != before.access || now.drive != before.drive;
        if (now.access == Access::kFull) full_ |= SlotMask{1} << slot;
        if (now.access != Access::kRebuilding) continue;
        rebuilding_ |= SlotMask{1} << slot;
        const bool continues = before.access == Access::kRebuilding && before.drive == now.drive;
        if (!continues) start_rebuild(slot, bitmap);
    }
    if (changed) ++epoch_;
}

void Membership::start_rebuild(std::uint32_t slot, const intent::Bitmap& bitmap) {
    Rebuild& rebuild = rebuilds_[slot];
    const MemberView& member = view_.members[slot];
    rebuild.cursor = Cursor{};
    if (member.by_bitmap) {
        rebuild.stale = bitmap.dirty_or_missed();
        mask_tail(rebuild.stale);
    } else {
        // Whole regions below the checkpoint are valid; a region it cuts is done again.
        rebuild.stale = make_bits(true);
        const std::uint64_t region_bytes = region_stripes_ * layout_.stripe_depth_bytes();
        const std::uint64_t valid =
            std::min<std::uint64_t>(member.rebuilt_bytes / region_bytes, region_count_);
        for (std::uint64_t region = 0; region < valid; ++region) {
            rebuild.stale[region / 64] &= ~(std::uint64_t{1} << (region % 64));
        }
    }
    rebuild.stale_count = count_bits(rebuild.stale);
}

SlotMask Membership::usable(Stripe stripe) const {
    SlotMask mask = full_;
    for (SlotMask rest = rebuilding_; rest != 0; rest &= rest - 1) {
        const auto slot = static_cast<std::uint32_t>(std::countr_zero(rest));
        const Rebuild& rebuild = rebuilds_[slot];
        const Region region = region_of(stripe);
        const bool passed = rebuild.cursor.active && rebuild.cursor.region == region &&
                            stripe < rebuild.cursor.next;
        if (passed || !test(rebuild.stale, region.get())) mask |= SlotMask{1} << slot;
    }
    return mask;
}

bool Membership::Cursor::advance(const Membership& owner, Stripe first, std::uint32_t count) {
    const Region at = owner.region_of(first);
    if (first == owner.region_first_stripe(at)) {
        active = true;
        region = at;
        next = first;
    }
    if (!active || region != at || next != first) return false;
    next = Stripe(first.get() + count);
    WARPRAID_ASSERT(next <= owner.region_end_stripe(at));
    if (next != owner.region_end_stripe(at)) return false;
    active = false;
    return true;
}

void Membership::note_rebuilt(SlotMask slots, Stripe first, std::uint32_t count) {
    for (SlotMask rest = slots & rebuilding_; rest != 0; rest &= rest - 1) {
        Rebuild& rebuild = rebuilds_[static_cast<std::size_t>(std::countr_zero(rest))];
        const std::uint32_t region = region_of(first).get();
        if (!test(rebuild.stale, region)) continue;
        if (!rebuild.cursor.advance(*this, first, count)) continue;
        rebuild.stale[region / 64] &= ~(std::uint64_t{1} << (region % 64));
        --rebuild.stale_count;
    }
}

std::uint32_t Membership::stale_regions(Slot slot) const {
    if ((rebuilding_ & slot_bit(slot)) == 0) return 0;
    return rebuilds_[slot.get()].stale_count;
}

bool Membership::is_region_stale(Slot slot, Region region) const {
    return (rebuilding_ & slot_bit(slot)) != 0 && test(rebuilds_[slot.get()].stale, region.get());
}

std::uint64_t Membership::rebuilt_bytes(Slot slot) const {
    const std::uint64_t all = layout_.stripes() * layout_.stripe_depth_bytes();
    if ((rebuilding_ & slot_bit(slot)) == 0) return all;
    const Bits& stale = rebuilds_[slot.get()].stale;
    for (std::uint32_t word = 0; word < stale.size(); ++word) {
        if (stale[word] == 0) continue;
        const Region first(word * 64 + static_cast<std::uint32_t>(std::countr_zero(stale[word])));
        return region_first_stripe(first).get() * layout_.stripe_depth_bytes();
    }
    return all;
}

void Membership::set_suspect(std::span<const std::uint64_t> bits) {
    suspect_.assign(bits.begin(), bits.end());
    mask_tail(suspect_);
    suspect_count_ = count_bits(suspect_);
    resync_ = Cursor{};
}

void Membership::note_resynced(Stripe first, std::uint32_t count) {
    const std::uint32_t region = region_of(first).get();
    if (!test(suspect_, region) || !resync_.advance(*this, first, count)) return;
    suspect_[region / 64] &= ~(std::uint64_t{1} << (region % 64));
    --suspect_count_;
}

}  // namespace warpraid::array
