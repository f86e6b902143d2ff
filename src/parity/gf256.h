// Arithmetic of GF(2^8) with polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d) and generator 2: the
// field of Linux raid6. Tables are built at compile time. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>

namespace warpraid::parity::gf256 {

inline constexpr std::uint32_t kPolynomial = 0x11d;
/// Powers of the generator repeat after this many.
inline constexpr std::uint32_t kOrder = 255;

namespace detail {

struct Tables {
    std::array<std::uint8_t, 2 * kOrder>
        exp{};                            // doubled, so that a sum of two logs needs no modulo
    std::array<std::uint8_t, 256> log{};  // log[0] is unused
};

constexpr Tables make_tables() {
    Tables tables;
    std::uint32_t value = 1;
    for (std::uint32_t i = 0; i < kOrder; ++i) {
        tables.exp[i] = static_cast<std::uint8_t>(value);
        tables.exp[i + kOrder] = static_cast<std::uint8_t>(value);
        tables.log[value] = static_cast<std::uint8_t>(i);
        value <<= 1;
        if ((value & 0x100) != 0) value ^= kPolynomial;
    }
    return tables;
}

inline constexpr Tables kTables = make_tables();

}  // namespace detail

/// 2^power, the coefficient of column `power` in Q.
constexpr std::uint8_t power_of_two(std::uint32_t power) {
    return detail::kTables.exp[power % kOrder];
}

/// The power of two that `value` is; `value` must not be 0.
constexpr std::uint32_t log_of(std::uint8_t value) {
    return detail::kTables.log[value];
}

constexpr std::uint8_t multiply(std::uint8_t a, std::uint8_t b) {
    if (a == 0 || b == 0) return 0;
    return detail::kTables.exp[log_of(a) + log_of(b)];
}

/// `value` must not be 0.
constexpr std::uint8_t inverse(std::uint8_t value) {
    return detail::kTables.exp[kOrder - log_of(value)];
}

}  // namespace warpraid::parity::gf256
