#include "engine/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/limits.h"
#include "base/size_text.h"

namespace warpraid::bench {

void add_drive_flags(CLI::App& app, Flags& flags) {
    app.add_option("--drives", flags.drives,
                   "ram[:NxSIZE], null[:N] (moves no data), file:DIR (makes files there), or paths")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--members", flags.members, "drives, where --drives does not say (8)");
    app.add_option("--drive-size", flags.drive_size,
                   "of each ram, null or file drive (256M, 64G, 1G)");
    app.add_option("--block", flags.block_bytes, "logical block of ram, null and file drives")
        ->check(CLI::IsMember({512, 4096}))
        ->capture_default_str();
    app.add_option("--chunk", flags.chunk, "4K to 1M")->capture_default_str();
    app.add_option("--parity", flags.parity,
                   "cpu, gpu, auto (the fastest that is here) or reference (slow and plain)")
        ->check(CLI::IsMember({"cpu", "gpu", "auto", "reference"}))
        ->capture_default_str();
    app.add_flag("--overwrite", flags.overwrite,
                 "required with paths: everything on those drives is destroyed");
}

void add_run_flags(CLI::App& app, Flags& flags) {
    app.add_option("--depth", flags.depth, "requests in flight, per job")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--seconds", flags.seconds, "of each run")
        ->check(CLI::Range(0.01, 3600.0))
        ->capture_default_str();
    app.add_option("--repeat", flags.repeat, "runs; the median is what counts")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--seed", flags.seed, "of contents and random offsets")->capture_default_str();
    app.add_option("--format", flags.format, "table or json")
        ->check(CLI::IsMember({"table", "json"}))
        ->capture_default_str();
    app.add_flag("--json", flags.json, "the same as --format json");
}

namespace {

void add_level_flags(CLI::App& app, Flags& flags) {
    app.add_option("--level", flags.level, "raid0, raid1, raid5, raid6 or raid10")
        ->capture_default_str();
    app.add_option("--copies", flags.copies, "of raid10")->capture_default_str();
}

}  // namespace

void add_serve_flags(CLI::App& app, Flags& flags) {
    app.add_option("socket", flags.socket, "Unix socket to listen on; the export is named bench")
        ->required();
    add_level_flags(app, flags);
}

void add_engine_flags(CLI::App& app, Flags& flags) {
    add_level_flags(app, flags);
    app.add_option("--rw,--pattern", flags.pattern, "read, write, randread or randwrite")
        ->capture_default_str();
    app.add_option("--bs,--block-size", flags.request_size, "bytes of a request")
        ->capture_default_str();
    app.add_option("--jobs", flags.jobs, "sequential streams, each in its own part")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    app.add_option("--shards", flags.shards, "a group's engine lives on one")
        ->check(CLI::Range(1, 1))
        ->capture_default_str();
    app.add_option("--span", flags.span, "use only this much of the group (4G)");
    auto* degraded = app.add_option("--degraded", flags.degraded, "fail the first N members");
    app.add_option("--failed", flags.failed, "fail these members, such as 0,3")
        ->delimiter(',')
        ->excludes(degraded);
}

Result<Config> make_config(const Flags& flags) {
    Config config;
    config.flags = flags;
    std::uint64_t drive_bytes = 0;
    if (!flags.drive_size.empty()) {
        WARPRAID_TRY_ASSIGN(drive_bytes, parse_size(flags.drive_size));
    }
    WARPRAID_TRY_ASSIGN(config.drives, parse_drives(flags.drives, flags.members, drive_bytes));
    if (config.drives.kind == DriveChoice::Kind::kPaths && !flags.overwrite) {
        return Error{ErrorCode::kNotConfirmed,
                     fmt::format("everything on {} will be destroyed; say --overwrite to go on",
                                 config.drives.text)};
    }
    WARPRAID_TRY_ASSIGN(config.group.level, geometry::parse_level(flags.level));
    WARPRAID_TRY_ASSIGN(const std::uint64_t chunk, parse_size(flags.chunk));
    if (chunk < limits::kChunkBytesMin || chunk > limits::kChunkBytesMax) {
        return Error{ErrorCode::kBadChunk,
                     fmt::format("a chunk of {} is not between 4K and 1M", flags.chunk)};
    }
    config.group.chunk_bytes = static_cast<std::uint32_t>(chunk);
    config.group.copies = flags.copies;
    if (flags.parity == "gpu") {
        return Error{ErrorCode::kNotSupported,
                     "--parity gpu: this build has no GPU coder; say --parity cpu or auto"};
    }
    config.group.parity = flags.parity == "auto" ? "cpu" : flags.parity;
    WARPRAID_TRY_ASSIGN(config.load.pattern, parse_pattern(flags.pattern));
    WARPRAID_TRY_ASSIGN(config.load.request_bytes, parse_size(flags.request_size));
    config.load.depth = flags.depth;
    config.load.jobs = flags.jobs;
    config.load.seed = flags.seed;
    // The arena hands out powers of two.
    std::uint64_t buffer_bytes = io::BufferArena::kBlockBytesMin;
    while (buffer_bytes < config.load.request_bytes && buffer_bytes < limits::kRequestBytesMax) {
        buffer_bytes *= 2;
    }
    config.group.load_buffer_bytes = buffer_bytes * flags.depth * flags.jobs;
    if (!flags.span.empty()) {
        WARPRAID_TRY_ASSIGN(config.span_bytes, parse_size(flags.span));
    }
    config.failed = flags.failed;
    for (std::uint32_t slot = 0; slot < flags.degraded; ++slot) config.failed.push_back(slot);
    return config;
}

}  // namespace warpraid::bench
