#include "base/uuid.h"

namespace warpraid {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_dash_position(std::size_t index) {
    return index == 8 || index == 13 || index == 18 || index == 23;
}

}  // namespace

Uuid Uuid::make(Random& random) {
    Uuid uuid;
    for (std::size_t half = 0; half < 2; ++half) {
        const std::uint64_t word = random.next();
        for (std::size_t i = 0; i < 8; ++i) {
            uuid.bytes[half * 8 + i] = static_cast<std::uint8_t>(word >> (8 * i));
        }
    }
    uuid.bytes[6] = static_cast<std::uint8_t>((uuid.bytes[6] & 0x0f) | 0x40);
    uuid.bytes[8] = static_cast<std::uint8_t>((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}

std::optional<Uuid> Uuid::parse(std::string_view text) {
    if (text.size() != 36) return std::nullopt;
    Uuid uuid;
    std::size_t nibble = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (is_dash_position(i)) {
            if (text[i] != '-') return std::nullopt;
            continue;
        }
        const int value = hex_value(text[i]);
        if (value < 0) return std::nullopt;
        std::uint8_t& byte = uuid.bytes[nibble / 2];
        byte = static_cast<std::uint8_t>((byte << 4) | value);
        ++nibble;
    }
    return uuid;
}

std::string Uuid::to_text() const {
    std::string text;
    for (std::uint8_t byte : bytes) {
        if (is_dash_position(text.size())) text += '-';
        text += kHex[byte >> 4];
        text += kHex[byte & 15];
    }
    return text;
}

}  // namespace warpraid
