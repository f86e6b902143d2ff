#include "tasks/throttle.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace warpraid::tasks {
namespace {

constexpr std::uint64_t kSecond = kNanosecondsPerSecond;

// Bytes that pass in `seconds` when asked every `turn_ns` for pieces of `piece` bytes.
std::uint64_t passed(Throttle& throttle, std::uint64_t start_ns, std::uint64_t seconds,
                     std::uint64_t turn_ns, std::uint64_t piece) {
    std::uint64_t bytes = 0;
    for (std::uint64_t now = start_ns; now < start_ns + seconds * kSecond; now += turn_ns) {
        while (throttle.allows(now)) {
            throttle.take(piece, now);
            bytes += piece;
        }
    }
    return bytes;
}

TEST(Throttle, KeepsTheRateWhateverTheTurnsAndThePieces) {
    for (const std::uint64_t turn_ns : {100'000ull, 1'000'000ull, 50'000'000ull}) {
        for (const std::uint64_t piece : {64 * kKiB, kMiB, 8 * kMiB}) {
            Throttle throttle(100 * kMiB);
            const std::uint64_t bytes = passed(throttle, 7 * kSecond, 10, turn_ns, piece);
            EXPECT_GE(bytes, 990 * kMiB) << turn_ns << " " << piece;
            EXPECT_LE(bytes, 1010 * kMiB + piece) << turn_ns << " " << piece;
        }
    }
}

TEST(Throttle, APieceLargerThanASecondIsPaidForAfterwards) {
    Throttle throttle(kMiB);
    EXPECT_EQ(passed(throttle, kSecond, 1, 1'000'000, 4 * kMiB), 4 * kMiB);
    EXPECT_EQ(passed(throttle, 2 * kSecond, 3, 1'000'000, 4 * kMiB), 0u);
    EXPECT_EQ(passed(throttle, 5 * kSecond, 1, 1'000'000, 4 * kMiB), 4 * kMiB);
}

TEST(Throttle, IdleTimeIsNotSavedUp) {
    Throttle throttle(100 * kMiB);
    passed(throttle, kSecond, 1, 1'000'000, kMiB);
    const std::uint64_t bytes = passed(throttle, 1000 * kSecond, 1, 1'000'000, kMiB);
    EXPECT_LE(bytes, 112 * kMiB);
}

TEST(Throttle, ZeroIsUnlimitedAndANewRateCountsAtOnce) {
    Throttle throttle(0);
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(throttle.allows(kSecond));
        throttle.take(kGiB, kSecond);
    }
    throttle.set_rate(kMiB);
    EXPECT_TRUE(throttle.allows(kSecond));
    throttle.take(kMiB, kSecond);
    EXPECT_FALSE(throttle.allows(2 * kSecond - 1));
    EXPECT_TRUE(throttle.allows(2 * kSecond));
    throttle.take(kGiB, 2 * kSecond);
    throttle.set_rate(kGiB);
    EXPECT_TRUE(throttle.allows(2 * kSecond));
}

}  // namespace
}  // namespace warpraid::tasks
