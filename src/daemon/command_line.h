// warpraidd's command line.
#pragma once

#include <optional>
#include <string>

#include "daemon/demo.h"
#include "daemon/options.h"

namespace warpraid::daemon {

struct CommandLine {
    /// Set: nothing to run, end with this status after printing `text` (to standard error when the
    /// status is not 0).
    std::optional<int> exit_status;
    std::string text;
    /// Set: run the demo instead of the daemon.
    std::optional<demo::Options> demo;
    Options options;
};

/// Reads the configuration file that the flags name, then lets the flags override it.
CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace warpraid::daemon
