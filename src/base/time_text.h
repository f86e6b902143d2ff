// Times and durations as people and RFC 3339 write them.
#pragma once

#include <cstdint>
#include <string>

namespace warpraid {

/// Nanoseconds since 1970 as "2026-12-01T10:20:30.123Z".
std::string format_time(std::uint64_t wall_ns);
/// Seconds as "42s", "3m20s", "2h05m".
std::string format_duration(std::uint64_t seconds);

}  // namespace warpraid
