#include "intent/member_io.h"

#include <cstdlib>

#include "base/assert.h"
#include "base/limits.h"
#include "format/bitmap_page.h"

namespace warpraid::intent {

using format::kBitmapPageBytes;

void MemberIo::FreeMemory::operator()(std::byte* memory) const {
    std::free(memory);
}

MemberIo::MemberIo(MemberIoOwner& owner_in, Slot slot_in, io::Drive& drive_in, std::uint32_t pages)
    : owner(&owner_in),
      slot(slot_in),
      drive(drive_in),
      owes_page(pages),
      images_(static_cast<std::byte*>(
          std::aligned_alloc(limits::kBufferAlignment, pages * kBitmapPageBytes))),
      segments_(pages),
      writes_(pages),
      writing_(pages) {
    static_assert(kBitmapPageBytes % limits::kBufferAlignment == 0);
    WARPRAID_ASSERT(images_ != nullptr);
    for (std::uint32_t page = 0; page < pages; ++page) {
        segments_[page] = iovec{image(page).data(), kBitmapPageBytes};
    }
}

std::span<std::byte> MemberIo::image(std::uint32_t page) {
    WARPRAID_ASSERT(!writing_[page]);
    return {images_.get() + page * kBitmapPageBytes, kBitmapPageBytes};
}

void MemberIo::write(std::uint32_t page) {
    WARPRAID_ASSERT(!writing_[page]);
    io::Command& command = writes_[page];
    command = io::Command{};
    command.opcode = io::Opcode::kWrite;
    command.fua = true;
    command.offset = format::kBitmapOffset + page * kBitmapPageBytes;
    command.length_bytes = kBitmapPageBytes;
    command.segments = std::span(&segments_[page], 1);
    command.slot = slot.get();
    command.owner = this;
    command.complete = &on_page_written;
    writing_[page] = true;
    ++in_flight_;
    drive.submit(command);
}

void MemberIo::flush() {
    flush_ = io::Command{};
    flush_.opcode = io::Opcode::kFlush;
    flush_.slot = slot.get();
    flush_.owner = this;
    flush_.complete = &on_flushed;
    ++in_flight_;
    drive.submit(flush_);
}

void MemberIo::on_page_written(io::Command& command) {
    auto& self = *static_cast<MemberIo*>(command.owner);
    const auto page = static_cast<std::uint32_t>(&command - self.writes_.data());
    self.writing_[page] = false;
    --self.in_flight_;
    if (self.owner != nullptr) self.owner->page_written(self, page, command.error);
}

void MemberIo::on_flushed(io::Command& command) {
    auto& self = *static_cast<MemberIo*>(command.owner);
    --self.in_flight_;
    if (self.owner != nullptr) self.owner->flushed(self, command.error);
}

}  // namespace warpraid::intent
