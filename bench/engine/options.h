// The command line of warpraid-bench.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/drive_set.h"
#include "engine/load.h"
#include "engine/rig.h"

namespace CLI {
class App;
}

namespace warpraid::bench {

/// As typed.
struct Flags {
    std::string level = "raid5";
    std::uint32_t members = 0;
    std::uint32_t copies = 2;
    std::string chunk = "64K";
    std::vector<std::string> drives = {"ram"};
    std::string drive_size;
    std::uint32_t block_bytes = 4096;
    std::string pattern = "write";
    std::string request_size = "2M";
    std::uint32_t depth = 32;
    std::uint32_t jobs = 1;
    std::uint32_t shards = 1;
    double seconds = 5;
    std::uint32_t repeat = 5;
    std::string span;
    std::uint32_t degraded = 0;
    std::vector<std::uint32_t> failed;
    std::string parity = "cpu";
    std::uint64_t seed = 1;
    std::string format = "table";
    bool json = false;
    bool overwrite = false;
    std::string socket;

    bool wants_json() const { return json || format == "json"; }
};

/// Understood and checked as far as possible without opening anything.
struct Config {
    Flags flags;
    DriveChoice drives;
    GroupChoice group;
    LoadOptions load;
    std::uint64_t span_bytes = 0;  // 0: all, or what fits the default
    std::vector<std::uint32_t> failed;
};

/// `flags` is filled by the parse of `app`; it must outlive it.
void add_drive_flags(CLI::App& app, Flags& flags);
void add_run_flags(CLI::App& app, Flags& flags);
void add_engine_flags(CLI::App& app, Flags& flags);
void add_serve_flags(CLI::App& app, Flags& flags);
Result<Config> make_config(const Flags& flags);

}  // namespace warpraid::bench
