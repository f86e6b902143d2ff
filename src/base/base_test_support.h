// For tests of every layer: a clock that stands still until it is moved, and the seed of a random
// test.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "base/random.h"

namespace warpraid {

class ManualClock final : public Clock {
  public:
    std::uint64_t monotonic_ns() const override { return now_ns; }
    std::uint64_t wall_ns() const override { return now_ns; }
    std::uint64_t now_ns = 1;
};

/// Random, or what the environment's WARPRAID_SEED says; printed, so that a run can be repeated.
inline std::uint64_t test_seed() {
    const char* given = std::getenv("WARPRAID_SEED");
    const std::uint64_t seed =
        given != nullptr ? std::strtoull(given, nullptr, 0) : SystemRandom().next();
    std::printf("WARPRAID_SEED=%llu\n", static_cast<unsigned long long>(seed));
    return seed;
}

}  // namespace warpraid
