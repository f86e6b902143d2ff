// warpraid-bench: the engine measured inside this process, over RAM, null or real drives.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/size_text.h"
#include "base/units.h"
#include "engine/measure.h"
#include "engine/options.h"
#include "engine/ratios.h"
#include "engine/report.h"
#include "engine/serve.h"

namespace warpraid::bench {

namespace {

constexpr std::uint64_t kSpanBytesDefault = 4 * kGiB;

Result<EngineReport> measure_engine(const Config& config, const Clock& clock) {
    WARPRAID_TRY_ASSIGN(const auto drives, DriveSet::open(config.drives, config.flags.block_bytes));
    WARPRAID_TRY_ASSIGN(const auto rig, Rig::make(clock, *drives, config.group));
    EngineReport report;
    report.config = config;
    report.coder = rig->coder_name();
    report.members = rig->layout().members();
    report.block_bytes = rig->layout().block_bytes();
    const std::uint64_t size = rig->engine().limits().size_bytes;
    report.span_bytes =
        config.span_bytes != 0 ? config.span_bytes : std::min(size, kSpanBytesDefault);
    LoadOptions options = config.load;
    options.span_bytes = report.span_bytes;
    WARPRAID_TRY_ASSIGN(const auto load, Load::make(rig->engine(), rig->arena(), clock, options));
    if (drives->keeps_data()) WARPRAID_TRY(prefill(*rig, clock, report.span_bytes));
    if (!config.failed.empty()) WARPRAID_TRY(rig->fail(config.failed));
    for (std::uint32_t run = 0; run < config.flags.repeat; ++run) {
        WARPRAID_TRY_ASSIGN(const Sample sample, measure(*rig, *load, clock, config.flags.seconds));
        report.samples.push_back(sample);
    }
    return report;
}

int serve_group(Config config, const Clock& clock) {
    config.group.with_sockets = true;
    const auto served = [&]() -> Status {
        WARPRAID_TRY_ASSIGN(const auto drives,
                            DriveSet::open(config.drives, config.flags.block_bytes));
        WARPRAID_TRY_ASSIGN(const auto rig, Rig::make(clock, *drives, config.group));
        return serve(*rig, config.flags.socket);
    }();
    if (served.ok()) return 0;
    fmt::print(stderr, "warpraid-bench: {}\n", served.error().message);
    return 1;
}

template <typename Report>
int print(const Result<Report>& report, bool json) {
    if (!report.ok()) {
        fmt::print(stderr, "warpraid-bench: {}\n", report.error().message);
        return 1;
    }
    const Machine machine = describe_machine();
    fmt::print("{}", json ? to_json(*report, machine) : to_table(*report, machine));
    return 0;
}

int run(int argc, char** argv) {
    CLI::App app("Measures Warpraid's engine in this process.");
    app.require_subcommand(1);
    Flags engine_flags;
    CLI::App& engine = *app.add_subcommand("engine", "one load on one group");
    add_drive_flags(engine, engine_flags);
    add_engine_flags(engine, engine_flags);
    add_run_flags(engine, engine_flags);
    Flags ratio_flags;
    ratio_flags.seconds = 2;
    CLI::App& ratios = *app.add_subcommand(
        "ratios", "sequential 2 MiB writes of RAID 5 and 6 against RAID 0 on the same drives");
    add_drive_flags(ratios, ratio_flags);
    add_run_flags(ratios, ratio_flags);
    Flags serve_flags;
    CLI::App& served = *app.add_subcommand("serve", "one group over NBD, for clients to measure");
    add_drive_flags(served, serve_flags);
    add_serve_flags(served, serve_flags);
    CLI11_PARSE(app, argc, argv);

    const bool is_engine = engine.parsed();
    const Flags& flags = served.parsed() ? serve_flags : is_engine ? engine_flags : ratio_flags;
    const Result<Config> config = make_config(flags);
    if (!config.ok()) {
        fmt::print(stderr, "warpraid-bench: {}\n", config.error().message);
        return 2;
    }
    const SystemClock clock;
    if (served.parsed()) return serve_group(*config, clock);
    if (is_engine) return print(measure_engine(*config, clock), flags.wants_json());
    return print(measure_ratios(*config, clock), flags.wants_json());
}

}  // namespace

}  // namespace warpraid::bench

int main(int argc, char** argv) {
    return warpraid::bench::run(argc, argv);
}
