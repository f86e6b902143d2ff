// Numbers from measurements: a latency histogram of fixed size and the spread of repeated runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpraid::bench {

/// Counts values in buckets that are exact below 128 and at most 1/64 wide above. No heap.
class Histogram {
  public:
    void add(std::uint64_t value) {
        ++buckets_[bucket_of(value)];
        ++count_;
    }
    std::uint64_t count() const { return count_; }
    /// The smallest bucket's upper end below or at which `share` (0 to 1) of the values lie; 0 when
    /// there are none.
    std::uint64_t quantile(double share) const;

  private:
    static constexpr unsigned kSubBits = 6;
    static constexpr std::size_t kBuckets = (64 - kSubBits + 1) << kSubBits;
    static std::size_t bucket_of(std::uint64_t value);
    static std::uint64_t bucket_end(std::size_t bucket);

    std::array<std::uint64_t, kBuckets> buckets_{};
    std::uint64_t count_ = 0;
};

/// Of repeated runs of one thing. The median of an even number of values is the mean of the middle
/// two.
struct Spread {
    double median = 0;
    double min = 0;
    double max = 0;
};
/// At least one value.
Spread spread_of(std::vector<double> values);

}  // namespace warpraid::bench
