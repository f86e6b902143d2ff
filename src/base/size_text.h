// Sizes as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace warpraid {

/// "4096", "64K", "1.5M", "3GiB", "2T" (powers of 1024; suffix case and "iB"/"B" do not matter).
/// Fails with kBadSize on anything else, on fractions of a byte and on overflow.
Result<std::uint64_t> parse_size(std::string_view text);
/// "64.0 KiB", "3.0 GiB"; exact bytes below 1 KiB.
std::string format_size(std::uint64_t bytes);

}  // namespace warpraid
