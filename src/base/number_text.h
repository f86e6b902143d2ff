// Whole numbers in text: decimal digits (or those of another base) and nothing else, no sign, no
// space. Pure; any thread.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace warpraid {

/// Whether `text` is decimal digits only, whatever their number.
constexpr bool is_whole_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// The number that all of `text` says; none when it says something else or does not fit.
template <std::unsigned_integral Number>
std::optional<Number> parse_whole_number(std::string_view text, int base = 10) {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace warpraid
