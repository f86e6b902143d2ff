#include "format/utf16.h"

#include <cstddef>
#include <cstdint>

namespace warpraid::format {
namespace {

bool is_surrogate(std::uint32_t value) {
    return value >= 0xd800 && value < 0xe000;
}

/// Bytes that follow a first byte of UTF-8, and the smallest character that needs them.
struct Lead {
    std::size_t more;
    std::uint32_t bits;
    std::uint32_t least;
};

std::optional<Lead> read_lead(unsigned char byte) {
    if (byte < 0x80) return Lead{0, byte, 0};
    if ((byte & 0xe0) == 0xc0) return Lead{1, byte & 0x1fu, 0x80};
    if ((byte & 0xf0) == 0xe0) return Lead{2, byte & 0x0fu, 0x800};
    if ((byte & 0xf8) == 0xf0) return Lead{3, byte & 0x07u, 0x10000};
    return std::nullopt;
}

/// The character at `at`, which moves behind it.
std::optional<std::uint32_t> read_character(std::string_view text, std::size_t& at) {
    const auto lead = read_lead(static_cast<unsigned char>(text[at]));
    if (!lead || text.size() - at <= lead->more) return std::nullopt;
    std::uint32_t value = lead->bits;
    for (std::size_t i = 1; i <= lead->more; ++i) {
        const auto byte = static_cast<unsigned char>(text[at + i]);
        if ((byte & 0xc0) != 0x80) return std::nullopt;
        value = value << 6 | (byte & 0x3fu);
    }
    if (value < lead->least || value > 0x10ffff || is_surrogate(value)) return std::nullopt;
    at += lead->more + 1;
    return value;
}

void append_utf8(std::string& text, std::uint32_t value) {
    if (value < 0x80) {
        text += static_cast<char>(value);
        return;
    }
    const int more = value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;
    const std::uint32_t marks[4] = {0, 0xc0, 0xe0, 0xf0};
    text += static_cast<char>(marks[more] | value >> (6 * more));
    for (int i = more - 1; i >= 0; --i) {
        text += static_cast<char>(0x80 | (value >> (6 * i) & 0x3f));
    }
}

}  // namespace

std::optional<std::u16string> utf8_to_utf16(std::string_view text) {
    std::u16string result;
    for (std::size_t at = 0; at < text.size();) {
        const auto value = read_character(text, at);
        if (!value) return std::nullopt;
        if (*value < 0x10000) {
            result += static_cast<char16_t>(*value);
        } else {
            result += static_cast<char16_t>(0xd800 + (*value - 0x10000) / 0x400);
            result += static_cast<char16_t>(0xdc00 + (*value - 0x10000) % 0x400);
        }
    }
    return result;
}

std::string utf16_to_utf8(std::u16string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::uint32_t value = text[i];
        if (is_surrogate(value)) {
            const std::uint32_t low = i + 1 < text.size() ? text[i + 1] : 0;
            const bool pair = value < 0xdc00 && low >= 0xdc00 && low < 0xe000;
            value = pair ? 0x10000 + (value - 0xd800) * 0x400 + (low - 0xdc00) : 0xfffd;
            if (pair) ++i;
        }
        append_utf8(result, value);
    }
    return result;
}

}  // namespace warpraid::format
