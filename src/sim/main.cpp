#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>

#include "base/log.h"
#include "base/random.h"
#include "sim/schedule.h"

namespace {

using namespace warpraid;

struct Options {
    std::uint64_t seeds = 100;
    std::uint64_t first_seed = 0;
    double minutes = 0;
    std::string level;
    sim::ScheduleOptions schedule;
};

int run(const Options& options) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const auto minutes = [&] {
        return std::chrono::duration<double>(Clock::now() - start).count() / 60;
    };
    std::uint64_t schedules = 0, failures = 0, operations = 0, crashes = 0, faults = 0;
    while (options.minutes > 0 ? minutes() < options.minutes : schedules < options.seeds) {
        sim::ScheduleOptions one = options.schedule;
        one.seed = options.first_seed + schedules++;
        const sim::ScheduleResult result = sim::run_schedule(one);
        operations += result.operations;
        crashes += result.crashes;
        faults += result.faults;
        if (!result.problem) continue;
        ++failures;
        std::printf("seed %llu: %s; again: warpraid-sim --seeds 1 --first %llu --verbose%s\n",
                    static_cast<unsigned long long>(one.seed), result.problem->c_str(),
                    static_cast<unsigned long long>(one.seed),
                    options.level.empty() ? "" : (" --level " + options.level).c_str());
        std::fflush(stdout);
    }
    std::printf("%llu operations, %llu crashes, %llu faults in %.1f s\n",
                static_cast<unsigned long long>(operations),
                static_cast<unsigned long long>(crashes), static_cast<unsigned long long>(faults),
                minutes() * 60);
    std::printf("%llu schedules, %llu failures\n", static_cast<unsigned long long>(schedules),
                static_cast<unsigned long long>(failures));
    return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    options.first_seed = SystemRandom().next() >> 16;
    CLI::App app(
        "Warpraid in a simulated machine: schedules of work and faults, each from its seed");
    app.add_option("--seeds", options.seeds, "How many schedules")->capture_default_str();
    app.add_option("--first", options.first_seed, "Seed of the first; the others follow (random)");
    app.add_option("--minutes", options.minutes, "Run so long, however many schedules that is");
    app.add_option("--level", options.level, "Only groups of this level, such as raid6 (any)");
    app.add_option("--operations", options.schedule.operations, "Requests in a schedule")
        ->capture_default_str();
    app.add_flag("--verbose", options.schedule.verbose, "Tell what happens");
    CLI11_PARSE(app, argc, argv);
    if (!options.level.empty()) {
        const auto level = geometry::parse_level(options.level);
        if (!level.ok()) {
            std::fprintf(stderr, "warpraid-sim: --level: %s\n", level.error().message.c_str());
            return 2;
        }
        options.schedule.level = *level;
    }
    options.schedule.directory = std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp";
    if (!options.schedule.verbose) set_log_sink([](LogLevel, std::string_view) {});
    std::printf("first seed %llu\n", static_cast<unsigned long long>(options.first_seed));
    return run(options);
}
