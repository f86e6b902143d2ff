#include "base/printable.h"

#include <cstddef>

namespace warpraid {

std::string printable(std::string_view text) {
    std::string clean;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto byte = static_cast<unsigned char>(text[at]);
        const unsigned next = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0u;
        // U+0080 to U+009F in UTF-8.
        const bool is_wide_control = byte == 0xc2 && next >= 0x80 && next < 0xa0;
        const bool is_control = byte < 0x20 || byte == 0x7f || is_wide_control;
        clean += is_control ? '?' : text[at];
        if (is_wide_control) ++at;
    }
    return clean;
}

}  // namespace warpraid
