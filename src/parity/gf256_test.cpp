#include "parity/gf256.h"

#include <gtest/gtest.h>

namespace warpraid::parity::gf256 {
namespace {

// Multiplication of polynomials over GF(2), then reduction by 0x11d from the top bit down.
std::uint8_t plain_multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (std::uint32_t bit = 0; bit < 8; ++bit) {
        if ((b >> bit & 1) != 0) product ^= a << bit;
    }
    for (std::uint32_t bit = 15; bit >= 8; --bit) {
        if ((product >> bit & 1) != 0) product ^= 0x11du << (bit - 8);
    }
    return static_cast<std::uint8_t>(product);
}

TEST(Gf256, multiplies_like_polynomials_for_every_pair) {
    for (std::uint32_t a = 0; a < 256; ++a) {
        for (std::uint32_t b = 0; b < 256; ++b) {
            ASSERT_EQ(multiply(static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b)),
                      plain_multiply(a, b))
                << a << " * " << b;
        }
    }
}

TEST(Gf256, inverts_and_takes_the_log_of_everything_but_zero) {
    for (std::uint32_t a = 1; a < 256; ++a) {
        const auto value = static_cast<std::uint8_t>(a);
        EXPECT_EQ(plain_multiply(a, inverse(value)), 1) << a;
        EXPECT_EQ(power_of_two(log_of(value)), value);
        EXPECT_LT(log_of(value), kOrder);
    }
}

TEST(Gf256, has_the_powers_of_two_of_linux_raid6) {
    // The first powers beyond one byte, each twice the one before, less 0x11d when it overflows.
    constexpr std::uint8_t kPowers[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80,
                                        0x1d, 0x3a, 0x74, 0xe8, 0xcd, 0x87, 0x13, 0x26};
    std::uint32_t power = 0;
    for (std::uint8_t expected : kPowers) EXPECT_EQ(power_of_two(power++), expected);
    EXPECT_EQ(power_of_two(kOrder - 1), 0x8e);  // 1 / 2
    EXPECT_EQ(power_of_two(kOrder), 1);         // and no smaller power is 1
    for (std::uint32_t i = 1; i < kOrder; ++i) EXPECT_NE(power_of_two(i), 1) << i;
}

}  // namespace
}  // namespace warpraid::parity::gf256
