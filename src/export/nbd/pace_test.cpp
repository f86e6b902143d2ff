#include "export/nbd/pace.h"

#include <gtest/gtest.h>

namespace warpraid::nbd {
namespace {

constexpr std::uint64_t kSecond = kNanosecondsPerSecond;

TEST(Pace, who_holds_more_must_move_more) {
    EXPECT_EQ(progress_needed(0), kProgressBytesMin);
    EXPECT_EQ(progress_needed(512 * kKiB), kProgressBytesMin);
    EXPECT_EQ(progress_needed(32 * kMiB), 4 * kMiB);
}

TEST(Pace, the_turn_lasts_until_the_needed_bytes_have_moved) {
    Pace pace;
    EXPECT_EQ(pace.waited_ns(), 0U);
    for (std::uint64_t second = 0; second <= 5; ++second) {
        pace.look(second * kSecond, static_cast<std::int64_t>(10 * second), 100);
        EXPECT_EQ(pace.waited_ns(), second * kSecond);
    }
    pace.look(6 * kSecond, 100, 100);
    EXPECT_EQ(pace.waited_ns(), 0U);
    // All of them again, from here.
    pace.look(7 * kSecond, 199, 100);
    EXPECT_EQ(pace.waited_ns(), kSecond);
    pace.look(8 * kSecond, 200, 100);
    EXPECT_EQ(pace.waited_ns(), 0U);
}

TEST(Pace, time_before_its_turn_does_not_count) {
    Pace pace;
    pace.look(0, 0, 100);
    pace.look(kSecond, 0, 100);
    pace.restart();
    EXPECT_EQ(pace.waited_ns(), 0U);
    pace.look(100 * kSecond, 0, 100);
    EXPECT_EQ(pace.waited_ns(), 0U);
}

TEST(Pace, time_the_server_was_away_is_not_the_clients) {
    Pace pace;
    pace.look(0, 0, 100);
    pace.look(1000 * kSecond, 0, 100);
    EXPECT_EQ(pace.waited_ns(), Pace::kLookNsMax);
}

TEST(Pace, an_estimate_that_falls_is_not_held_against_the_client) {
    Pace pace;
    pace.look(0, 50, 100);
    pace.look(kSecond, 0, 100);
    EXPECT_EQ(pace.waited_ns(), kSecond);
    pace.look(2 * kSecond, 100, 100);
    EXPECT_EQ(pace.waited_ns(), 0U);
}

}  // namespace
}  // namespace warpraid::nbd
