#include "base/time_text.h"

#include <fmt/format.h>

#include <ctime>

#include "base/clock.h"

namespace warpraid {

std::string format_time(std::uint64_t wall_ns) {
    const auto seconds = static_cast<std::time_t>(wall_ns / kNanosecondsPerSecond);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                       parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                       wall_ns % kNanosecondsPerSecond / kNanosecondsPerMillisecond);
}

std::string format_duration(std::uint64_t seconds) {
    if (seconds < 60) return fmt::format("{}s", seconds);
    if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
    return fmt::format("{}h{:02}m", seconds / 3600, seconds % 3600 / 60);
}

}  // namespace warpraid
