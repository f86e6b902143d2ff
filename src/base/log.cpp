#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"

namespace warpraid {

namespace {

std::atomic<LogLevel> minimum_level{LogLevel::kInfo};
std::mutex sink_mutex;
LogSink installed_sink;

constexpr const char* kLevelNames[] = {"debug", "info", "warning", "error"};

}  // namespace

void set_log_level(LogLevel level) {
    minimum_level = level;
}

void set_log_sink(LogSink sink) {
    const std::lock_guard lock(sink_mutex);
    installed_sink = std::move(sink);
}

void log(LogLevel level, std::string_view text) {
    if (level < minimum_level.load()) return;
    const std::lock_guard lock(sink_mutex);
    if (installed_sink) {
        installed_sink(level, text);
        return;
    }
    const std::string time = format_time(SystemClock().wall_ns());
    std::fprintf(stderr, "%s %s %s\n", time.c_str(), kLevelNames[static_cast<int>(level)],
                 printable(text).c_str());
}

}  // namespace warpraid
