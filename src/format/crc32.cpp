#include "format/crc32.h"

#include <array>

namespace warpraid::format {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
    constexpr std::uint32_t kPolynomial = 0xedb88320;
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value & 1) != 0 ? value >> 1 ^ kPolynomial : value >> 1;
        }
        table[byte] = value;
    }
    return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes) {
    std::uint32_t sum = 0xffffffff;
    for (const std::byte byte : bytes) {
        sum = sum >> 8 ^ kTable[(sum ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
    }
    return ~sum;
}

}  // namespace warpraid::format
