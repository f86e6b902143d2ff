// Names of GPT partitions are UTF-16; ours are UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace warpraid::format {

/// Nothing when `text` is not valid UTF-8 (overlong forms and surrogates are not).
std::optional<std::u16string> utf8_to_utf16(std::string_view text);
/// Units that make no character become U+FFFD.
std::string utf16_to_utf8(std::u16string_view text);

}  // namespace warpraid::format
