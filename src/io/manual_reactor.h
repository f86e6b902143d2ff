// A reactor without a kernel, for tests and for anything that steps shards by hand: it never sleeps
// and has no sockets. One thread, except post().
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "io/loop_parts.h"
#include "io/reactor.h"

namespace warpraid::io {

class ManualReactor final : public Reactor {
  public:
    /// `clock` must outlive the reactor.
    explicit ManualReactor(const Clock& clock) : clock_(clock), now_ns_(clock.monotonic_ns()) {}

    CommandFifo& completed_commands() override { return completed_; }
    /// Sockets are not supported: an assertion.
    void submit(SocketOperation& operation) override;
    void cancel(SocketOperation& operation) override;
    void add_poller(Poller& poller) override { pollers_.add(poller); }
    void remove_poller(Poller& poller) override { pollers_.remove(poller); }
    void post(std::function<void()> task) override { tasks_.push(std::move(task)); }
    std::uint64_t now_ns() const override { return now_ns_; }
    /// Completions, posted tasks, pollers; returns at once whatever `wait_ns_max` is.
    bool run_once(std::uint64_t wait_ns_max = 0) override;

    /// Turns the loop until a turn does nothing, at most `turns_max` times. Returns whether it came
    /// to rest.
    bool run_until_idle(std::uint64_t turns_max = 1'000'000);

  private:
    const Clock& clock_;
    std::uint64_t now_ns_;
    CommandFifo completed_;
    TaskQueue tasks_;
    PollerList pollers_;
};

}  // namespace warpraid::io
