// A byte rate over time, with a little credit for the past so that turns of the loop that come late
// do not lower the rate. Pure arithmetic; time is given.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace warpraid::tasks {

class Throttle {
  public:
    explicit Throttle(std::uint64_t bytes_per_second_max) : rate_(bytes_per_second_max) {}

    /// 0 is unlimited. Counts from now on: nothing is owed from before.
    void set_rate(std::uint64_t bytes_per_second_max) {
        rate_ = bytes_per_second_max;
        ready_ns_ = 0;
    }

    /// Whether something may start now, whatever its size.
    bool allows(std::uint64_t now_ns) const { return rate_ == 0 || now_ns >= ready_ns_; }

    /// `bytes` (< 16 GiB) have been started: the next start is due when their time has passed.
    void take(std::uint64_t bytes, std::uint64_t now_ns) {
        if (rate_ == 0) return;
        const std::uint64_t oldest = now_ns > kCreditNs ? now_ns - kCreditNs : 0;
        ready_ns_ = std::max(ready_ns_, ready_ns_ == 0 ? now_ns : oldest);
        ready_ns_ += bytes * kNanosecondsPerSecond / rate_;
    }

  private:
    static constexpr std::uint64_t kCreditNs = 100 * kNanosecondsPerMillisecond;
    std::uint64_t rate_;
    std::uint64_t ready_ns_ = 0;  // when the next start is due; 0: nothing was started yet
};

}  // namespace warpraid::tasks
