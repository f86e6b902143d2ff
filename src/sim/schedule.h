// One schedule: a group is made, used and hurt within what its level survives, healed, and checked
// block by block. A function of its seed alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "geometry/layout.h"

namespace warpraid::sim {

struct ScheduleOptions {
    std::uint64_t seed = 0;
    std::uint64_t operations = 500;
    std::optional<geometry::Level> level;  // else any
    bool verbose = false;                  // tells what happens, on standard error
    std::filesystem::path directory;       // for state files
};

struct ScheduleResult {
    std::optional<std::string> problem;  // what is wrong, one line
    std::uint64_t operations = 0;
    std::uint64_t crashes = 0;
    std::uint64_t faults = 0;
    std::uint64_t digest = 0;  // of all that the drives hold, and the time: equal for equal seeds
};

ScheduleResult run_schedule(const ScheduleOptions& options);

}  // namespace warpraid::sim
