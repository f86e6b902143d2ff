#include "sim/time.h"

#include <algorithm>

namespace warpraid::sim {

void Time::at(std::uint64_t when_ns, std::function<void()> event) {
    events_.push({std::max(when_ns, now_ns_), order_++, std::move(event)});
}

void Time::advance(std::uint64_t idle_ns) {
    const std::uint64_t limit_ns = now_ns_ + idle_ns;
    if (events_.empty() || events_.top().when_ns > limit_ns) {
        now_ns_ = limit_ns;
        return;
    }
    now_ns_ = events_.top().when_ns;
    const std::function<void()> event = events_.top().run;
    events_.pop();
    event();
}

}  // namespace warpraid::sim
