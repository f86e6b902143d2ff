// The commands of one member's bitmap: a write per page and a flush, with the memory they need. It
// outlives its membership until the drive has given all commands back. Private to intent/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"
#include "io/command.h"
#include "io/drive.h"

namespace warpraid::intent {

struct MemberIo;

/// Told when a command of a member that is still one has ended; not told about others.
class MemberIoOwner {
  public:
    virtual ~MemberIoOwner() = default;
    virtual void page_written(MemberIo& member, std::uint32_t page, int error) = 0;
    virtual void flushed(MemberIo& member, int error) = 0;
};

struct MemberIo {
    MemberIo(MemberIoOwner& owner, Slot slot, io::Drive& drive, std::uint32_t pages);

    /// Memory for the next write of `page`; not while one is in flight.
    std::span<std::byte> image(std::uint32_t page);
    void write(std::uint32_t page);
    void flush();
    std::uint32_t in_flight() const { return in_flight_; }

    MemberIoOwner* owner;  // null once the drive is no member any more
    Slot slot;
    io::Drive& drive;
    bool failed = false;  // reported; no more pages are sent to it
    /// What the rounds and the flush under way still wait for. A failed member owes until it
    /// leaves.
    std::vector<bool> owes_page;
    bool owes_flush = false;

  private:
    struct FreeMemory {
        void operator()(std::byte* memory) const;
    };

    static void on_page_written(io::Command& command);
    static void on_flushed(io::Command& command);

    std::unique_ptr<std::byte, FreeMemory> images_;
    std::vector<iovec> segments_;
    std::vector<io::Command> writes_;
    std::vector<bool> writing_;
    io::Command flush_;
    std::uint32_t in_flight_ = 0;
};

}  // namespace warpraid::intent
