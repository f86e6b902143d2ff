// What the program prints: tables for people, JSON for tools.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/machine.h"
#include "engine/measure.h"
#include "engine/options.h"

namespace warpraid::bench {

/// "AMD EPYC 9554, 2 CPUs, 23.5 GiB, Linux 6.12" in one line.
std::string to_text(const Machine& machine);

struct EngineReport {
    Config config;
    std::string coder;
    std::uint32_t members = 0;
    std::uint32_t block_bytes = 0;
    std::uint64_t span_bytes = 0;
    std::vector<Sample> samples;  // at least one
};
std::string to_table(const EngineReport& report, const Machine& machine);
std::string to_json(const EngineReport& report, const Machine& machine);

/// A level's share of RAID 0, measured in the same rounds.
struct RatioLine {
    std::string level;
    std::uint32_t parities = 0;
    std::vector<double> mb_per_s;
    std::vector<double> ratios;  // by round, to RAID 0's (n - p) / n share; 1 for RAID 0 itself
    /// The same from what a byte costs the thread in CPU time: free of what else the machine does.
    std::vector<double> cpu_ratios;
};
struct RatioReport {
    Config config;
    std::string coder;
    std::uint32_t members = 0;
    double target = 0;
    std::vector<RatioLine> lines;
};
std::string to_table(const RatioReport& report, const Machine& machine);
std::string to_json(const RatioReport& report, const Machine& machine);

}  // namespace warpraid::bench
