// Request targets: percent-encoded path pieces and query parameters. Pieces may hold any byte,
// since drives are named by their paths ("/api/v1/drives/%2Fdev%2Fnvme0n1").
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace warpraid::api {

inline constexpr std::size_t kTargetBytesMax = 4096;

struct Target {
    std::vector<std::string> pieces;           // decoded, of the path
    std::map<std::string, std::string> query;  // decoded
};

/// kInvalidArgument: too long, no leading slash, a broken escape, a zero byte, or a query parameter
/// given twice. kBadName: an empty piece.
Result<Target> parse_target(std::string_view text);

}  // namespace warpraid::api
