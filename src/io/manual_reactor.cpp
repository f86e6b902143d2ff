#include "io/manual_reactor.h"

#include "base/assert.h"

namespace warpraid::io {

void ManualReactor::submit(SocketOperation& operation) {
    static_cast<void>(operation);
    WARPRAID_ASSERT(!"a manual reactor has no sockets");
}

void ManualReactor::cancel(SocketOperation& operation) {
    static_cast<void>(operation);
    WARPRAID_ASSERT(!"a manual reactor has no sockets");
}

bool ManualReactor::run_once(std::uint64_t wait_ns_max) {
    static_cast<void>(wait_ns_max);
    now_ns_ = clock_.monotonic_ns();
    bool did_something = run_completed(completed_);
    if (tasks_.run()) did_something = true;
    if (pollers_.run(now_ns_)) did_something = true;
    return did_something;
}

bool ManualReactor::run_until_idle(std::uint64_t turns_max) {
    for (std::uint64_t turn = 0; turn < turns_max; ++turn) {
        if (!run_once(0)) return true;
    }
    return false;
}

}  // namespace warpraid::io
