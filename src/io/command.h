// A command to a drive on the data path.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/intrusive_list.h"

namespace warpraid::io {

class Drive;

enum class Opcode : std::uint8_t { kRead, kWrite, kFlush, kDiscard, kWriteZeroes };

/// One command. Owned by the submitter and alive, with its segments and their memory, until
/// `complete` has been called. All offsets and lengths are multiples of the drive's block; segment
/// addresses are aligned to limits::kBufferAlignment or at least to the drive's block.
struct Command : FifoLink<Command> {
    Opcode opcode = Opcode::kRead;
    bool fua = false;                // kWrite, kWriteZeroes: durable when completed
    std::uint64_t offset = 0;        // on the drive, from its first byte
    std::uint64_t length_bytes = 0;  // sum of the segments for kRead and kWrite
    std::span<const iovec> segments;

    /// Called on the owning shard from Reactor's completion phase, never inside submit().
    void (*complete)(Command&) = nullptr;
    /// For the submitter; not looked at.
    void* owner = nullptr;
    std::uint8_t slot = 0;

    /// 0, or a positive errno: EIO and friends from the drive, ETIMEDOUT past its deadline,
    /// ENODEV when the drive is gone. A short transfer is EIO.
    int error = 0;

    // For the drive's implementation.
    Drive* drive = nullptr;
    std::uint64_t deadline_ns = 0;
    std::uint64_t done_bytes = 0;
    Command* started_before = nullptr;
    Command* started_after = nullptr;
    std::uint8_t step = 0;
    std::uint8_t attempts = 0;
    bool overdue = false;
    bool in_kernel = false;
};

/// Completed commands on their way back to their submitters.
using CommandFifo = IntrusiveFifo<Command>;

}  // namespace warpraid::io
