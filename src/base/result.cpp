#include "base/result.h"

#include <cstring>

namespace warpraid {

namespace {

struct ErrorRow {
    std::string_view text;
    int posix;
    int http;
};

constexpr ErrorRow kRows[] = {
#define WARPRAID_ERROR_ROW(name, text, posix, http) {text, posix, http},
    WARPRAID_ERROR_TABLE(WARPRAID_ERROR_ROW)
#undef WARPRAID_ERROR_ROW
};

const ErrorRow& row_of(ErrorCode code) noexcept {
    return kRows[static_cast<std::size_t>(code)];
}

}  // namespace

std::string_view to_text(ErrorCode code) noexcept {
    return row_of(code).text;
}
int to_errno(ErrorCode code) noexcept {
    return row_of(code).posix;
}
int to_http_status(ErrorCode code) noexcept {
    return row_of(code).http;
}

Error system_error(ErrorCode code, std::string_view what, int error_number) {
    char buffer[128] = {};
    const char* text = strerror_r(error_number, buffer, sizeof buffer);
    return Error{code, std::string(what) + ": " + text};
}

}  // namespace warpraid
