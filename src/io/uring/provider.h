// The product implementation of drives and reactors: io_uring over O_DIRECT block devices and plain
// files.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "io/arena.h"
#include "io/drive.h"
#include "io/reactor.h"

namespace warpraid::io::uring {

struct ReactorOptions {
    std::uint32_t ring_entries = 1024;
    /// Registered as fixed buffers when the kernel and its memory limit allow; may be null.
    BufferArena* arena = nullptr;
};

/// What the kernel granted to a reactor; everything works without it, only slower.
struct ReactorInfo {
    bool deferred_task_run = false;  // completions are taken over only when the loop asks
    bool registered_buffers = false;
    bool registered_files = false;
    int buffers_error = 0;  // errno of a refused registration: ENOMEM is the memory lock limit
};

/// Must be created on the thread that will run it (single issuer). The first error explains the
/// likely cause (seccomp, sysctl kernel.io_uring_disabled, memory lock limit).
Result<std::unique_ptr<Reactor>> make_reactor(const Clock& clock, const ReactorOptions& options);

/// `reactor` must come from make_reactor().
ReactorInfo describe(const Reactor& reactor);

/// `drives` given to bind() must come from this provider's open(); the reactor from make_reactor().
std::unique_ptr<DriveProvider> make_drive_provider();

}  // namespace warpraid::io::uring
