// The log: one line per thing an operator may want to know. Never called per I/O. Lines go to
// standard error as "<RFC 3339 time> <level> <text>", or to the sink a test installs. Any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace warpraid {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Lines below `level` are dropped.
void set_log_level(LogLevel level);
/// Replaces where lines go; an empty function restores standard error.
void set_log_sink(LogSink sink);
void log(LogLevel level, std::string_view text);

inline void log_info(std::string_view text) {
    log(LogLevel::kInfo, text);
}
inline void log_warning(std::string_view text) {
    log(LogLevel::kWarning, text);
}
inline void log_error(std::string_view text) {
    log(LogLevel::kError, text);
}

}  // namespace warpraid
