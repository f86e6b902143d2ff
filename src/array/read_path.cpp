// Healthy reads: straight from the members into the host's memory, without a lock. Mirrored levels
// read degraded the same way, from another copy.
#include <cerrno>

#include "array/engine_impl.h"

namespace warpraid::array {

// Where every wanted chunk can be read as it is.
bool Engine::Impl::can_read_directly(const Part& part) const {
    if (!layout.has_parity()) return true;
    if (membership.missing() == 0) return true;
    const std::uint64_t chunk = layout.chunk_bytes();
    for (std::uint64_t offset = round_down(part.offset, chunk); offset < part.end();
         offset += chunk) {
        const geometry::Position position = layout.locate(offset);
        const Slot slot = layout.data_placement(position.stripe, position.column, 0).slot;
        if ((membership.usable(position.stripe) & slot_bit(slot)) == 0) return false;
    }
    return true;
}

// A usable copy: the first one while the region awaits resync (so that every read sees the same
// content), else the one whose drive has least to do. copies() when there is none.
std::uint32_t Engine::Impl::choose_copy(const geometry::Position& position, SlotMask usable) const {
    const std::uint32_t copies = layout.copies();
    const bool first_only = membership.is_suspect(membership.region_of(position.stripe));
    std::uint32_t best = copies;
    std::uint32_t best_load = 0;
    // Neighbouring MiBs prefer different copies, so that an idle mirror still spreads streams.
    const std::uint64_t start =
        layout.group_offset_of(position) / kMiB + position.stripe.get() / 64;
    for (std::uint32_t i = 0; i < copies; ++i) {
        const auto copy = first_only ? i : static_cast<std::uint32_t>((start + i) % copies);
        const Slot slot = layout.data_placement(position.stripe, position.column, copy).slot;
        if ((usable & slot_bit(slot)) == 0) continue;
        if (first_only) return copy;
        const std::uint32_t load = membership.drive(slot)->in_flight();
        if (best == copies || load < best_load) {
            best = copy;
            best_load = load;
        }
    }
    return best;
}

bool Engine::Impl::add_read_pieces(CommandList& list, const Part& part, SlotMask avoid) const {
    std::uint64_t offset = part.offset;
    while (offset < part.end()) {
        const geometry::Position position = layout.locate(offset);
        const std::uint64_t left_in_chunk = layout.chunk_bytes() - position.offset_in_chunk;
        const std::uint64_t length = std::min(left_in_chunk, part.end() - offset);
        const SlotMask usable = membership.usable(position.stripe) & ~avoid;
        const std::uint32_t copy = choose_copy(position, usable);
        if (copy == layout.copies()) return false;
        const geometry::Placement place =
            layout.data_placement(position.stripe, position.column, copy);
        list.add(place.slot, place.data_offset + position.offset_in_chunk,
                 part.memory + (offset - part.offset), static_cast<std::uint32_t>(length));
        offset += length;
    }
    return true;
}

bool Engine::Impl::start_fast_read(const Part& part) {
    const std::uint64_t chunk = layout.chunk_bytes();
    const std::uint64_t chunks = part.end() / chunk - part.offset / chunk + 1;
    if (chunks > ReadOperation::kPieces) {
        Batch* batch = acquire_batch(BatchKind::kRead);
        if (batch == nullptr) return false;
        batch->direct = true;
        batch->parts[batch->part_count++] = part;
        take_part(*part.request, part);
        batch->step = Step::kPlan;
        run(*batch);
        return true;
    }
    ReadOperation* operation = free_reads.pop_front();
    if (operation == nullptr) return false;
    operation->part = part;
    operation->group.restart();
    operation->list.clear();
    take_part(*part.request, part);
    if (!add_read_pieces(operation->list, part, 0)) {
        free_reads.push_front(*operation);
        part_done(part, EIO);
        return true;
    }
    const std::span<io::Command> commands = operation->list.build(io::Opcode::kRead, false);
    WARPRAID_ASSERT(!operation->list.has_more());
    operation->group.pending = static_cast<std::uint32_t>(commands.size());
    for (io::Command& command : commands) start_command(command, *operation);
    return true;
}

void Engine::Impl::read_finished(ReadOperation& operation) {
    if (operation.group.failed != 0) {
        failed_reads.push_back(operation);
        return;
    }
    part_done(operation.part, 0);
    free_reads.push_front(operation);
    dispatch_needed = true;
}

}  // namespace warpraid::array
