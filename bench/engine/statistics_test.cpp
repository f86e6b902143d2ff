#include "engine/statistics.h"

#include <gtest/gtest.h>

namespace warpraid::bench {
namespace {

TEST(Histogram, small_values_are_exact) {
    Histogram histogram;
    for (std::uint64_t value = 1; value <= 100; ++value) histogram.add(value);
    EXPECT_EQ(histogram.count(), 100u);
    EXPECT_EQ(histogram.quantile(0.5), 50u);
    EXPECT_EQ(histogram.quantile(0.99), 99u);
    EXPECT_EQ(histogram.quantile(1.0), 100u);
}

TEST(Histogram, every_value_is_found_within_a_sixty_fourth) {
    for (std::uint64_t value = 1; value < (std::uint64_t{1} << 62); value += value / 7 + 1) {
        Histogram histogram;
        histogram.add(value);
        EXPECT_GE(histogram.quantile(1.0), value);
        EXPECT_LE(histogram.quantile(1.0), value + value / 64);
    }
    Histogram histogram;
    histogram.add(~std::uint64_t{0});
    EXPECT_EQ(histogram.quantile(0.5), ~std::uint64_t{0});
}

TEST(Histogram, one_slow_request_in_a_hundred_is_not_the_median) {
    Histogram histogram;
    for (int i = 0; i < 99; ++i) histogram.add(10);
    histogram.add(1'000'000);
    EXPECT_EQ(histogram.quantile(0.5), 10u);
    EXPECT_EQ(histogram.quantile(0.99), 10u);
    EXPECT_GE(histogram.quantile(0.995), 1'000'000u);
    EXPECT_EQ(Histogram().quantile(0.5), 0u);
}

TEST(Spread, median_of_odd_and_even_counts) {
    EXPECT_EQ(spread_of({5, 1, 9}).median, 5);
    EXPECT_EQ(spread_of({9, 1, 5, 7}).median, 6);
    EXPECT_EQ(spread_of({4}).median, 4);
    EXPECT_EQ(spread_of({5, 1, 9}).min, 1);
    EXPECT_EQ(spread_of({5, 1, 9}).max, 9);
}

}  // namespace
}  // namespace warpraid::bench
