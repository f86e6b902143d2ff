// Randomness comes in through constructors, so that a simulator can own it.
#pragma once

#include <cstdint>

namespace warpraid {

class Random {
  public:
    virtual ~Random() = default;
    virtual std::uint64_t next() = 0;
};

/// Reproducible from its seed (xoshiro256**). Not for secrets. One thread.
class SeededRandom final : public Random {
  public:
    explicit SeededRandom(std::uint64_t seed);
    std::uint64_t next() override;
    /// Uniform enough in [0, bound); bound > 0.
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }

  private:
    std::uint64_t state_[4];
};

/// The kernel's generator. Any thread.
class SystemRandom final : public Random {
  public:
    std::uint64_t next() override;
};

}  // namespace warpraid
