#include "engine/ratios.h"

#include <algorithm>
#include <memory>

#include "engine/measure.h"

namespace warpraid::bench {

namespace {

struct Runner {
    std::unique_ptr<Rig> rig;
    std::unique_ptr<Load> load;
};

Result<Runner> make_runner(const Config& config, geometry::Level level, DriveSet& drives,
                           const Clock& clock) {
    Runner runner;
    GroupChoice group = config.group;
    group.level = level;
    WARPRAID_TRY_ASSIGN(runner.rig, Rig::make(clock, drives, group));
    LoadOptions options = config.load;
    options.span_bytes = runner.rig->engine().limits().size_bytes;
    WARPRAID_TRY_ASSIGN(runner.load,
                        Load::make(runner.rig->engine(), runner.rig->arena(), clock, options));
    WARPRAID_TRY(prefill(*runner.rig, clock, options.span_bytes));
    return runner;
}

}  // namespace

Result<RatioReport> measure_ratios(const Config& config, const Clock& clock) {
    WARPRAID_TRY_ASSIGN(const auto drives, DriveSet::open(config.drives, config.flags.block_bytes));
    RatioReport report;
    report.config = config;
    report.members = drives->count();
    report.target = kRatioTarget;
    std::vector<Runner> runners;
    for (const geometry::Level level :
         {geometry::Level::kRaid0, geometry::Level::kRaid5, geometry::Level::kRaid6}) {
        WARPRAID_TRY_ASSIGN(Runner runner, make_runner(config, level, *drives, clock));
        report.coder = runner.rig->coder_name();
        RatioLine line;
        line.level = geometry::to_text(level);
        line.parities = runner.rig->layout().parity_columns();
        report.lines.push_back(std::move(line));
        runners.push_back(std::move(runner));
    }
    const auto members = static_cast<double>(report.members);
    for (std::uint32_t round = 0; round < config.flags.repeat; ++round) {
        double raid0_cpu_ns = 0;
        for (std::size_t i = 0; i < runners.size(); ++i) {
            WARPRAID_TRY_ASSIGN(const Sample sample, measure(*runners[i].rig, *runners[i].load,
                                                             clock, config.flags.seconds));
            RatioLine& line = report.lines[i];
            line.mb_per_s.push_back(sample.mb_per_s);
            if (i == 0) raid0_cpu_ns = sample.cpu_ns_per_io;
            const double share = (members - line.parities) / members;
            line.ratios.push_back(sample.mb_per_s / (report.lines[0].mb_per_s.back() * share));
            line.cpu_ratios.push_back(raid0_cpu_ns / sample.cpu_ns_per_io / share);
        }
    }
    return report;
}

}  // namespace warpraid::bench
