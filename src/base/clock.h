// Time comes in through constructors, so that a simulator can own it.
#pragma once

#include <cstdint>

namespace warpraid {

inline constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
inline constexpr std::uint64_t kNanosecondsPerMillisecond = 1'000'000;

/// Any thread may call.
class Clock {
  public:
    virtual ~Clock() = default;
    /// Never goes back; starts anywhere.
    virtual std::uint64_t monotonic_ns() const = 0;
    /// Since 1970-01-01 UTC.
    virtual std::uint64_t wall_ns() const = 0;
};

/// The kernel's clocks.
class SystemClock final : public Clock {
  public:
    std::uint64_t monotonic_ns() const override;
    std::uint64_t wall_ns() const override;
};

}  // namespace warpraid
