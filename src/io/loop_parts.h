// What every event loop is made of: posted tasks, pollers, and the completion phase. Shared by the
// product's reactor, the manual one and the simulator's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "io/command.h"
#include "io/reactor.h"

namespace warpraid::io {

/// Tasks from any thread for one shard.
class TaskQueue {
  public:
    /// Any thread. Returns whether the queue was empty, so that the caller wakes the loop only
    /// once.
    bool push(std::function<void()> task);
    /// Any thread.
    bool empty() const;
    /// The shard: runs what was there at the call, in order; tasks posted meanwhile wait for the
    /// next call. Returns whether anything ran.
    bool run();

  private:
    mutable std::mutex mutex_;
    std::vector<std::function<void()>> tasks_;
    std::vector<std::function<void()>> running_;
};

/// Pollers may add and remove pollers, themselves included, while they run.
class PollerList {
  public:
    void add(Poller& poller);
    void remove(Poller& poller);
    /// Calls each once; returns whether any did something.
    bool run(std::uint64_t now_ns);

  private:
    std::vector<Poller*> pollers_;
    bool running_ = false;
    bool has_holes_ = false;
};

/// The completion phase: runs the commands that are in `completed` at the call; what they complete
/// in turn waits for the next call. Returns whether anything ran.
bool run_completed(CommandFifo& completed);

}  // namespace warpraid::io
