// Rounds without parity: direct reads, mirrored and striped writes, zeroing of whole stripes.
#include <algorithm>
#include <bit>

#include "array/engine_impl.h"

namespace warpraid::array {

bool Engine::Impl::plan_simple_round(Batch& batch) {
    batch.list.clear();
    if (batch.kind == BatchKind::kZero) {
        const std::uint64_t stripe_bytes = layout.stripe_data_bytes();
        const std::uint64_t depth = layout.stripe_depth_bytes();
        const std::uint64_t first = batch.begin / stripe_bytes;
        const std::uint64_t stripes = (batch.end - batch.begin) / stripe_bytes;
        // A member that is being rebuilt gets the zeros too: they are what it would be given.
        for (SlotMask rest = membership.full() | membership.rebuilding(); rest != 0;
             rest &= rest - 1) {
            batch.list.add(Slot(static_cast<std::uint8_t>(std::countr_zero(rest))), first * depth,
                           nullptr, static_cast<std::uint32_t>(stripes * depth));
        }
        return issue(batch, io::Opcode::kWriteZeroes, Step::kFinish);
    }
    for (std::uint32_t i = 0; i < batch.part_count; ++i) {
        const bool covered = batch.kind == BatchKind::kRead
                                 ? add_read_pieces(batch.list, batch.parts[i], batch.avoid)
                                 : add_mirror_writes(batch, batch.parts[i]);
        if (!covered) batch.part_errors |= 1u << i;
    }
    if (batch.kind == BatchKind::kRead && batch.part_errors != 0) {
        batch.step = Step::kFinish;
        return true;
    }
    return issue(batch, batch.kind == BatchKind::kRead ? io::Opcode::kRead : io::Opcode::kWrite,
                 Step::kFinish);
}

// One piece to every usable copy of each chunk. False when some chunk has no usable copy at all.
bool Engine::Impl::add_mirror_writes(Batch& batch, const Part& part) {
    bool covered = true;
    std::uint64_t offset = part.offset;
    while (offset < part.end()) {
        const geometry::Position position = layout.locate(offset);
        const std::uint64_t left_in_chunk = layout.chunk_bytes() - position.offset_in_chunk;
        std::uint64_t length = std::min(left_in_chunk, part.end() - offset);
        if (part.memory == nullptr) length = std::min<std::uint64_t>(length, kSlabHeightMax);
        std::byte* memory =
            part.memory == nullptr ? zeros.data() : part.memory + (offset - part.offset);
        const SlotMask usable = membership.usable(position.stripe);
        bool written = false;
        for (std::uint32_t copy = 0; copy < layout.copies(); ++copy) {
            const geometry::Placement place =
                layout.data_placement(position.stripe, position.column, copy);
            if ((usable & slot_bit(place.slot)) == 0) continue;
            batch.list.add(place.slot, place.data_offset + position.offset_in_chunk, memory,
                           static_cast<std::uint32_t>(length));
            written = true;
        }
        covered = covered && written;
        offset += length;
    }
    return covered;
}

}  // namespace warpraid::array
