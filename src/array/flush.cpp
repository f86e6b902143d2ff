// Flush: one command per live member on behalf of every flush request that waits. Requests that
// arrive while one is under way share the next.
#include <bit>
#include <cerrno>

#include "array/engine_impl.h"

namespace warpraid::array {

void Engine::Impl::start_flush() {
    WARPRAID_ASSERT(!flush.active && flush.requests.empty());
    flush.active = true;
    flush.parked = false;
    flush.requests.splice_back(flush_waiting);
    issue_flush();
}

void Engine::Impl::issue_flush() {
    flush.group.restart();
    const SlotMask members = membership.failed() ? 0 : membership.full() | membership.rebuilding();
    flush.group.pending = static_cast<std::uint32_t>(std::popcount(members));
    if (members == 0) {
        end_flush(EIO);
        return;
    }
    for (SlotMask rest = members; rest != 0; rest &= rest - 1) {
        const auto slot = static_cast<std::uint8_t>(std::countr_zero(rest));
        io::Command& command = flush.commands[slot];
        command.opcode = io::Opcode::kFlush;
        command.fua = false;
        command.error = 0;
        command.slot = slot;
        command.offset = 0;
        command.length_bytes = 0;
        command.segments = {};
        command.drive = membership.drive(Slot(slot));
        start_command(command, flush);
    }
}

void Engine::Impl::flush_finished() {
    if (flush.group.failed == 0) {
        end_flush(0);
        return;
    }
    // Levels that cannot lose the member end the request with the error; others go on without it.
    if (must_end_with_error(flush.group)) {
        end_flush(EIO);
        return;
    }
    flush.parked = true;
    resume_flush();
    // A flush holds no stripe, so the other copies may have come back since the member failed: then
    // it was left in place, and nobody would take it out now.
    if (!flush.parked || layout.has_parity()) return;
    for (SlotMask rest = flush.group.failed; rest != 0; rest &= rest - 1) {
        const Slot slot(static_cast<std::uint8_t>(std::countr_zero(rest)));
        if (membership.drive(slot) != flush.group.drives[slot.get()]) continue;
        listener.member_fault(slot, FaultKind::kWriteError, EIO, 0);
    }
}

// The members that could not be flushed are out: what they held is lost to them, but every byte is
// on the others. Flush those again, since the flush of one may have failed before the view changed.
void Engine::Impl::resume_flush() {
    if (!flush.active || !flush.parked) return;
    if (!membership.failed() && must_leave(flush.group)) {
        if (must_end_with_error(flush.group)) end_flush(EIO);
        return;
    }
    flush.parked = false;
    issue_flush();
}

void Engine::Impl::end_flush(int error) {
    flush.active = false;
    flush.group.forget_drives();
    while (block::Request* request = flush.requests.pop_front()) {
        request->error = error;
        completed.push_back(*request);
    }
}

}  // namespace warpraid::array
