// How fast a client gets on with its side of a transfer, and how fast it must be. Pure: the caller
// looks every now and then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/units.h"

namespace warpraid::nbd {

/// A client whose turn it is must move this part of the memory it holds within its patience. So
/// what a single request holds comes back after so many patiences, and a client over a link of
/// 10 Mbit/s may hold all it is given at the patience of 10 s.
inline constexpr std::size_t kHeldPartsPerPatience = 8;
/// And at least this: a byte now and then is no progress.
inline constexpr std::size_t kProgressBytesMin = 64 * kKiB;

constexpr std::size_t progress_needed(std::size_t held_bytes) {
    return std::max(kProgressBytesMin, held_bytes / kHeldPartsPerPatience);
}

class Pace {
  public:
    /// Of the time between two looks no more than this counts: the server itself was away, and the
    /// client could not go on without it.
    static constexpr std::uint64_t kLookNsMax = 1 * kNanosecondsPerSecond;

    /// It is not the client's turn.
    void restart() { is_watched_ = false; }
    /// It is. `moved_bytes` counts from any beginning; it may fall where it is an estimate, which
    /// is never held against the client.
    void look(std::uint64_t now_ns, std::int64_t moved_bytes, std::size_t needed_bytes) {
        if (!is_watched_) {
            *this = Pace(now_ns, moved_bytes);
            return;
        }
        waited_ns_ += std::min(now_ns - looked_ns_, kLookNsMax);
        looked_ns_ = now_ns;
        begun_bytes_ = std::min(begun_bytes_, moved_bytes);
        if (moved_bytes - begun_bytes_ >= static_cast<std::int64_t>(needed_bytes)) {
            *this = Pace(now_ns, moved_bytes);
        }
    }
    /// How long its turn has lasted without the needed bytes having moved.
    std::uint64_t waited_ns() const { return is_watched_ ? waited_ns_ : 0; }

    Pace() = default;

  private:
    Pace(std::uint64_t now_ns, std::int64_t moved_bytes)
        : is_watched_(true), looked_ns_(now_ns), begun_bytes_(moved_bytes) {}

    bool is_watched_ = false;
    std::uint64_t looked_ns_ = 0;
    std::uint64_t waited_ns_ = 0;
    std::int64_t begun_bytes_ = 0;
};

}  // namespace warpraid::nbd
