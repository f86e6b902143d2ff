#include "base/clock.h"

#include <ctime>

namespace warpraid {

namespace {

std::uint64_t read_clock(clockid_t id) {
    timespec now{};
    ::clock_gettime(id, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * kNanosecondsPerSecond +
           static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint64_t SystemClock::monotonic_ns() const {
    return read_clock(CLOCK_MONOTONIC);
}
std::uint64_t SystemClock::wall_ns() const {
    return read_clock(CLOCK_REALTIME);
}

}  // namespace warpraid
