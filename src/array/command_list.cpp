#include "array/command_list.h"

#include <bit>

namespace warpraid::array {

namespace {
constexpr std::uint16_t kEnd = 0xffff;
}

void CommandList::clear() {
    piece_count_ = 0;
    segment_count_ = 0;
    used_slots_ = 0;
}

void CommandList::add(Slot slot, std::uint64_t data_offset, std::byte* memory,
                      std::uint32_t length) {
    WARPRAID_ASSERT(piece_count_ < pieces_.size() && pieces_.size() < kEnd);
    const auto index = static_cast<std::uint16_t>(piece_count_++);
    pieces_[index] = Piece{data_offset, memory, length, kEnd, slot};
    Chain& chain = chains_[slot.get()];
    if ((used_slots_ & slot_bit(slot)) == 0) {
        used_slots_ |= slot_bit(slot);
        chain.first = index;
        chain.drive = membership_.drive(slot);
        chain.drive_base = membership_.drive_offset(slot, 0);
        WARPRAID_ASSERT(chain.drive != nullptr);
    } else {
        pieces_[chain.last].next = index;
    }
    chain.last = index;
}

bool CommandList::refers_to(const io::Drive& drive) const {
    for (std::uint32_t rest = used_slots_; rest != 0; rest &= rest - 1) {
        if (chains_[static_cast<std::size_t>(std::countr_zero(rest))].drive == &drive) return true;
    }
    return false;
}

// Takes pieces off the slot's chain while they follow each other; true when the chain is empty.
bool CommandList::fill(io::Command& command, std::uint32_t slot) {
    Chain& chain = chains_[slot];
    const std::uint32_t first_segment = segment_count_;
    const std::uint64_t start = pieces_[chain.first].data_offset;
    std::uint64_t end = start;
    std::uint16_t index = chain.first;
    while (index != kEnd && pieces_[index].data_offset == end) {
        const Piece& piece = pieces_[index];
        const bool first = segment_count_ == first_segment;
        iovec* last = first ? nullptr : &segments_[segment_count_ - 1];
        if (last != nullptr &&
            static_cast<std::byte*>(last->iov_base) + last->iov_len == piece.memory) {
            last->iov_len += piece.length;
        } else {
            if (segment_count_ - first_segment == limits::kSegmentsPerCommandMax) break;
            segments_[segment_count_++] = iovec{piece.memory, piece.length};
        }
        end += piece.length;
        index = piece.next;
    }
    command.segments = segments_.subspan(first_segment, segment_count_ - first_segment);
    command.offset = chain.drive_base + start;
    command.length_bytes = end - start;
    command.drive = chain.drive;
    chain.first = index;
    return index == kEnd;
}

std::span<io::Command> CommandList::build(io::Opcode opcode, bool fua) {
    segment_count_ = 0;
    std::size_t built = 0;
    while (used_slots_ != 0 && built < commands_.size()) {
        const auto slot = static_cast<std::uint32_t>(std::countr_zero(used_slots_));
        io::Command& command = commands_[built++];
        command.opcode = opcode;
        command.fua = fua;
        command.error = 0;
        command.slot = static_cast<std::uint8_t>(slot);
        if (fill(command, slot)) used_slots_ &= used_slots_ - 1;
    }
    return commands_.first(built);
}

}  // namespace warpraid::array
