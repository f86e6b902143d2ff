#include "base/size_text.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdlib>

namespace warpraid {

namespace {

constexpr std::string_view kSuffixes = "KMGTP";

Error bad_size(std::string_view text) {
    return Error{ErrorCode::kBadSize,
                 fmt::format("'{}' is not a size: write a number with K, M, G or T, such as 64K",
                             text.substr(0, 64))};
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
    std::size_t end = 0;
    bool dot = false;
    while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) != 0 ||
                                 (text[end] == '.' && !dot))) {
        dot = dot || text[end] == '.';
        ++end;
    }
    if (end == 0 || end > 24 || text[0] == '.') return bad_size(text);
    std::string_view suffix = text.substr(end);
    int power = 0;
    if (!suffix.empty()) {
        const std::size_t index =
            kSuffixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(suffix[0]))));
        if (index != std::string_view::npos) {
            power = static_cast<int>(index) + 1;
            suffix.remove_prefix(1);
        }
        if (suffix != "" && suffix != "B" && suffix != "b" &&
            !(power > 0 && (suffix == "iB" || suffix == "ib"))) {
            return bad_size(text);
        }
    }
    const long double value =
        std::strtold(std::string(text.substr(0, end)).c_str(), nullptr) * std::pow(1024.0L, power);
    if (value >= 18446744073709551616.0L || value != std::floor(value)) return bad_size(text);
    return static_cast<std::uint64_t>(value);
}

std::string format_size(std::uint64_t bytes) {
    if (bytes < 1024) return fmt::format("{} B", bytes);
    double value = static_cast<double>(bytes);
    std::size_t power = 0;
    while (value >= 1024.0 && power < kSuffixes.size()) {
        value /= 1024.0;
        ++power;
    }
    return fmt::format("{:.1f} {}iB", value, kSuffixes[power - 1]);
}

}  // namespace warpraid
