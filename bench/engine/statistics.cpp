#include "engine/statistics.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace warpraid::bench {

std::size_t Histogram::bucket_of(std::uint64_t value) {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    if (width <= kSubBits + 1) return static_cast<std::size_t>(value);
    const unsigned shift = width - kSubBits - 1;
    return (std::size_t{shift} << kSubBits) + static_cast<std::size_t>(value >> shift);
}

std::uint64_t Histogram::bucket_end(std::size_t bucket) {
    if (bucket < (std::size_t{2} << kSubBits)) return bucket;
    const std::size_t shift = (bucket >> kSubBits) - 1;
    const std::uint64_t top = bucket - (shift << kSubBits);
    return ((top + 1) << shift) - 1;
}

std::uint64_t Histogram::quantile(double share) const {
    const double wanted = share * static_cast<double>(count_);
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
        if (buckets_[bucket] == 0) continue;
        seen += buckets_[bucket];
        if (static_cast<double>(seen) >= wanted) return bucket_end(bucket);
    }
    return 0;
}

Spread spread_of(std::vector<double> values) {
    WARPRAID_ASSERT(!values.empty());
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    const double median =
        values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
    return {median, values.front(), values.back()};
}

}  // namespace warpraid::bench
