// One command from options to exit status, with the outside given.
#pragma once

#include <functional>
#include <string>

#include "api/client.h"
#include "base/result.h"
#include "cli/options.h"
#include "cli/request.h"

namespace warpraid::cli {

struct Outside {
    std::function<Result<api::Reply>(const Request&)> send;
    std::function<void(const std::string&)> output;   // standard output
    std::function<void(const std::string&)> problem;  // standard error
    /// Shows the question and returns whether the answer was yes; empty when there is nobody to
    /// ask.
    std::function<bool(const std::string&)> ask;
    /// Waits a second and returns whether to show the status again.
    std::function<bool()> again;
};

/// The exit status: 0 done, 1 refused or failed; `health` 0 to 2; `assemble` 0, 3, 4.
int run(const Options& options, const Outside& outside);

/// As `run` reports it: JSON on standard output or one line on standard error.
void report(const Options& options, const Outside& outside, const Error& error);

}  // namespace warpraid::cli
