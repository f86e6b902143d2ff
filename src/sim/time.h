// Simulated time: a clock that moves only from one event to the next. What happens at the same time
// happens in the order in which it was asked for, so a run depends on nothing but its seed. One
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/clock.h"

namespace warpraid::sim {

class Time final : public Clock {
  public:
    std::uint64_t monotonic_ns() const override { return now_ns_; }
    std::uint64_t wall_ns() const override { return kEpochNs + now_ns_; }

    /// `event` runs at that time, or at once when it is over.
    void at(std::uint64_t when_ns, std::function<void()> event);
    void after(std::uint64_t delay_ns, std::function<void()> event) {
        at(now_ns_ + delay_ns, std::move(event));
    }
    /// Moves to the next event and runs it; by `idle_ns` when there is none before that.
    void advance(std::uint64_t idle_ns);

  private:
    struct Event {
        std::uint64_t when_ns;
        std::uint64_t order;
        std::function<void()> run;
        bool operator<(const Event& other) const {  // the queue has its largest on top
            return when_ns != other.when_ns ? when_ns > other.when_ns : order > other.order;
        }
    };
    static constexpr std::uint64_t kEpochNs = 1'700'000'000'000'000'000;

    std::uint64_t now_ns_ = 1;
    std::uint64_t order_ = 0;
    std::priority_queue<Event> events_;
};

}  // namespace warpraid::sim
