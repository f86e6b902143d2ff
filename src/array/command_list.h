// Collects the pieces of an operation and turns them into as few drive commands as possible: pieces
// of one member that follow each other on the drive become one vectored command, so that a small
// chunk costs nothing on large requests. Storage is given by the owner; no heap.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>

#include "array/membership.h"
#include "base/limits.h"
#include "io/command.h"

namespace warpraid::array {

struct Piece {
    std::uint64_t data_offset = 0;  // in the member's data area
    std::byte* memory = nullptr;
    std::uint32_t length = 0;
    std::uint16_t next = 0;  // of the same slot
    Slot slot;
};

class CommandList {
  public:
    CommandList(const Membership& membership, std::span<Piece> pieces, std::span<iovec> segments,
                std::span<io::Command> commands)
        : membership_(membership), pieces_(pieces), segments_(segments), commands_(commands) {}

    void clear();
    /// Pieces of one slot in ascending order merge; any order is right. The slot's drive is looked
    /// up now, so that the list stays valid when a new view is adopted before build().
    void add(Slot slot, std::uint64_t data_offset, std::byte* memory, std::uint32_t length);
    bool empty() const { return piece_count_ == 0; }
    std::uint32_t room() const { return static_cast<std::uint32_t>(pieces_.size()) - piece_count_; }

    /// Fills commands (opcode, offset, segments, drive); returns them. May return fewer than all
    /// when commands run out: take the first part, run it, then call again for the rest.
    std::span<io::Command> build(io::Opcode opcode, bool fua);
    bool has_more() const { return used_slots_ != 0; }
    /// Whether commands still to be built would go to `drive`.
    bool refers_to(const io::Drive& drive) const;

  private:
    struct Chain {
        std::uint16_t first = 0;
        std::uint16_t last = 0;
        io::Drive* drive = nullptr;
        std::uint64_t drive_base = 0;  // drive offset of data offset 0
    };
    bool fill(io::Command& command, std::uint32_t slot);

    const Membership& membership_;
    std::span<Piece> pieces_;
    std::span<iovec> segments_;
    std::span<io::Command> commands_;
    std::uint32_t piece_count_ = 0;
    std::uint32_t segment_count_ = 0;
    SlotMask used_slots_ = 0;
    std::array<Chain, limits::kMembersMax> chains_;
};

}  // namespace warpraid::array
