// One shard's event loop: one thread, one ring, its own pools. Completions are first collected,
// then run one after the other; nothing completes inside a submit call. Everything but post() is
// called on the shard's own thread.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "io/command.h"

namespace warpraid::io {

/// An operation on a socket or listening socket. Owned by the submitter, alive until completed.
struct SocketOperation : FifoLink<SocketOperation> {
    enum class Kind : std::uint8_t { kAccept, kReceive, kSend, kPoll };
    Kind kind = Kind::kReceive;
    int fd = -1;
    /// kReceive: up to `length` bytes to `data`. kSend: exactly `message` (the reactor restarts
    /// short sends; it may modify the iovec array that `message` points to).
    std::byte* data = nullptr;
    std::size_t length = 0;
    msghdr message{};
    std::uint32_t poll_events = 0;  // kPoll: one shot

    void (*complete)(SocketOperation&) = nullptr;
    void* owner = nullptr;
    /// kAccept: the new descriptor; kReceive: bytes, 0 at end; kSend: all bytes; or -errno.
    std::int64_t result = 0;

    /// kSend: how much of the message the kernel has taken, also while the operation is in flight.
    std::size_t sent_bytes = 0;

    // For the reactor's implementation.
    bool in_flight = false;
    bool in_kernel = false;
    bool cancelled = false;
};

/// Called once per turn of the loop after completions were run.
class Poller {
  public:
    virtual ~Poller() = default;
    /// Returns whether anything was done (a busy loop does not sleep).
    virtual bool poll(std::uint64_t now_ns) = 0;
};

class Reactor {
  public:
    virtual ~Reactor() = default;

    /// Where drives of this shard put their finished commands; run in the completion phase.
    virtual CommandFifo& completed_commands() = 0;
    virtual void submit(SocketOperation& operation) = 0;
    /// Asks the kernel to end an operation early; it still completes (with -ECANCELED or its
    /// result).
    virtual void cancel(SocketOperation& operation) = 0;

    virtual void add_poller(Poller& poller) = 0;
    virtual void remove_poller(Poller& poller) = 0;

    /// Any thread: runs `task` soon on the shard, and wakes it. Control plane only.
    virtual void post(std::function<void()> task) = 0;

    /// Monotonic time, refreshed each turn.
    virtual std::uint64_t now_ns() const = 0;
    /// One turn: collect, run completions, run posted tasks, poll, submit; sleeps up to
    /// `wait_ns_max` when there was nothing to do. Returns whether anything was done.
    virtual bool run_once(std::uint64_t wait_ns_max) = 0;
};

}  // namespace warpraid::io
