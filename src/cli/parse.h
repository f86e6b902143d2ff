// The grammar of the command line.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/options.h"

namespace warpraid::cli {

inline constexpr int kUsageStatus = 2;

struct Parsed {
    std::optional<Options> options;
    /// Without options: how to end, and what to print.
    int exit_status = 0;
    std::string output;
    std::string problem;  // for standard error
};

Parsed parse(int argc, const char* const* argv);

/// "0-7" becomes "0" to "7", "./a" the whole path; everything else stays. kInvalidArgument for a
/// range that goes down or names more drives than there can be.
Result<std::vector<std::string>> expand_drives(const std::vector<std::string>& words);

}  // namespace warpraid::cli
