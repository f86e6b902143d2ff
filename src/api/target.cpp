#include "api/target.h"

namespace warpraid::api {

namespace {

Error bad(std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

Result<std::string> percent_decode(std::string_view text) {
    std::string decoded;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            decoded += text[i];
            continue;
        }
        const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0) return bad("a broken %-escape in the request's address");
        const char byte = static_cast<char>(high * 16 + low);
        if (byte == '\0') return bad("a zero byte in the request's address");
        decoded += byte;
        i += 2;
    }
    return decoded;
}

/// Cuts the part before `separator` off the front of `text`; the separator goes too.
std::string_view cut(std::string_view& text, char separator) {
    const std::size_t at = text.find(separator);
    const std::string_view front = text.substr(0, at);
    text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
    return front;
}

}  // namespace

Result<Target> parse_target(std::string_view text) {
    if (text.size() > kTargetBytesMax) {
        return bad("the request's address is longer than " + std::to_string(kTargetBytesMax) +
                   " bytes");
    }
    Target target;
    std::string_view query = text;
    std::string_view path = cut(query, '?');
    if (path.empty() || path.front() != '/') return bad("the request's address has no path");
    path.remove_prefix(1);
    while (true) {
        const bool is_last = path.find('/') == std::string_view::npos;
        WARPRAID_TRY_ASSIGN(std::string piece, percent_decode(cut(path, '/')));
        if (piece.empty()) {
            return Error{ErrorCode::kBadName,
                         "an empty name in the request's address: give the name of what is meant"};
        }
        target.pieces.push_back(std::move(piece));
        if (is_last) break;
    }
    while (!query.empty()) {
        std::string_view value = cut(query, '&');
        WARPRAID_TRY_ASSIGN(std::string key, percent_decode(cut(value, '=')));
        WARPRAID_TRY_ASSIGN(std::string decoded, percent_decode(value));
        if (!target.query.emplace(key, std::move(decoded)).second) {
            return bad("the parameter '" + key + "' is given twice");
        }
    }
    return target;
}

}  // namespace warpraid::api
