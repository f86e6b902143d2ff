#include "base/crc32c.h"

#include <array>

namespace warpraid {

namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
        }
        table[i] = value;
    }
    return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

}  // namespace

// A table is enough here: only metadata is summed so far, a few KiB per commit.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous) {
    std::uint32_t value = ~previous;
    for (std::byte byte : bytes) {
        value = (value >> 8) ^ kTable[(value ^ static_cast<std::uint32_t>(byte)) & 0xff];
    }
    return ~value;
}

}  // namespace warpraid
