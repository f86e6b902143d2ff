// Errors are values. A function that can fail returns Result<T> (or Status when there is nothing to
// return); the error carries a stable code and one line that names the thing, what was found, what
// was needed and what to do. Not for the data path: there an io completion carries an errno.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "base/error_table.h"

namespace warpraid {

enum class ErrorCode {
#define WARPRAID_ERROR_ENUMERATOR(name, text, posix, http) name,
    WARPRAID_ERROR_TABLE(WARPRAID_ERROR_ENUMERATOR)
#undef WARPRAID_ERROR_ENUMERATOR
};

/// The stable text of a code, as printed in JSON ("member-too-small").
std::string_view to_text(ErrorCode code) noexcept;
/// The errno a block or socket caller sees for this code.
int to_errno(ErrorCode code) noexcept;
/// The HTTP status of the API's answer for this code.
int to_http_status(ErrorCode code) noexcept;

struct Error {
    ErrorCode code = ErrorCode::kInternal;
    std::string message;
};

/// An error that ends a system call: "<what>: <text of errno>".
Error system_error(ErrorCode code, std::string_view what, int error_number);

template <typename T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return ok(); }

    T& value() & {
        WARPRAID_ASSERT(ok());
        return *std::get_if<0>(&state_);
    }
    const T& value() const& {
        WARPRAID_ASSERT(ok());
        return *std::get_if<0>(&state_);
    }
    T&& value() && {
        WARPRAID_ASSERT(ok());
        return std::move(*std::get_if<0>(&state_));
    }
    const Error& error() const& {
        WARPRAID_ASSERT(!ok());
        return *std::get_if<1>(&state_);
    }
    Error&& error() && {
        WARPRAID_ASSERT(!ok());
        return std::move(*std::get_if<1>(&state_));
    }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }

  private:
    std::variant<T, Error> state_;
};

struct Done {};
/// The outcome of something that returns nothing.
using Status = Result<Done>;
inline Status success() {
    return Done{};
}

}  // namespace warpraid

#define WARPRAID_CONCAT_INNER(a, b) a##b
#define WARPRAID_CONCAT(a, b) WARPRAID_CONCAT_INNER(a, b)

/// Returns the error of a Status to the caller.
#define WARPRAID_TRY(expression)                                    \
    do {                                                            \
        auto try_status = (expression);                             \
        if (!try_status.ok()) return std::move(try_status).error(); \
    } while (false)

/// Declares `target` from a Result, or returns its error to the caller.
#define WARPRAID_TRY_ASSIGN(target, expression)                           \
    auto WARPRAID_CONCAT(try_result_, __LINE__) = (expression);           \
    if (!WARPRAID_CONCAT(try_result_, __LINE__).ok())                     \
        return std::move(WARPRAID_CONCAT(try_result_, __LINE__)).error(); \
    target = std::move(WARPRAID_CONCAT(try_result_, __LINE__)).value()
