#include "engine/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/size_text.h"

namespace warpraid::bench {

namespace {

using Json = nlohmann::ordered_json;

Spread spread_over(const std::vector<Sample>& samples, double Sample::* field) {
    std::vector<double> values;
    for (const Sample& sample : samples) values.push_back(sample.*field);
    return spread_of(std::move(values));
}

Json to_json(const Spread& spread) {
    return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

Json to_json(const Machine& machine) {
    return {{"cpu", machine.cpu},
            {"cpus", machine.cpus},
            {"memory_bytes", machine.memory_bytes},
            {"kernel", machine.kernel},
            {"compiler", machine.compiler}};
}

array::EngineCounters sum_of(const std::vector<Sample>& samples) {
    array::EngineCounters sum;
    for (const Sample& sample : samples) {
        sum.reads += sample.counters.reads;
        sum.writes += sample.counters.writes;
        sum.full_stripes += sample.counters.full_stripes;
        sum.read_modify_writes += sample.counters.read_modify_writes;
        sum.reconstruct_writes += sample.counters.reconstruct_writes;
        sum.degraded_reads += sample.counters.degraded_reads;
        sum.joined_writes += sample.counters.joined_writes;
        sum.member_commands += sample.counters.member_commands;
        sum.member_bytes_read += sample.counters.member_bytes_read;
        sum.member_bytes_written += sample.counters.member_bytes_written;
    }
    return sum;
}

std::string failed_text(const std::vector<std::uint32_t>& failed) {
    return failed.empty() ? "none" : fmt::format("{}", fmt::join(failed, ","));
}

Json config_json(const EngineReport& report) {
    const Config& config = report.config;
    return {{"level", geometry::to_text(config.group.level)},
            {"members", report.members},
            {"drives", config.drives.text},
            {"chunk_bytes", config.group.chunk_bytes},
            {"block_bytes", report.block_bytes},
            {"parity", report.coder},
            {"failed", config.failed},
            {"pattern", to_text(config.load.pattern)},
            {"request_bytes", config.load.request_bytes},
            {"depth", config.load.depth},
            {"jobs", config.load.jobs},
            {"shards", config.flags.shards},
            {"span_bytes", report.span_bytes},
            {"seconds", config.flags.seconds},
            {"repeat", config.flags.repeat},
            {"seed", config.flags.seed}};
}

Json counters_json(const array::EngineCounters& counters) {
    return {{"reads", counters.reads},
            {"writes", counters.writes},
            {"full_stripes", counters.full_stripes},
            {"read_modify_writes", counters.read_modify_writes},
            {"reconstruct_writes", counters.reconstruct_writes},
            {"degraded_reads", counters.degraded_reads},
            {"joined_writes", counters.joined_writes},
            {"member_commands", counters.member_commands},
            {"member_bytes_read", counters.member_bytes_read},
            {"member_bytes_written", counters.member_bytes_written}};
}

struct Row {
    const char* name;
    const char* key;
    double Sample::* field;
};
constexpr Row kRows[] = {{"MB/s", "mb_per_s", &Sample::mb_per_s},
                         {"IOPS", "iops", &Sample::iops},
                         {"p50 us", "p50_us", &Sample::p50_us},
                         {"p99 us", "p99_us", &Sample::p99_us},
                         {"CPU ns/IO", "cpu_ns_per_io", &Sample::cpu_ns_per_io}};

}  // namespace

std::string to_text(const Machine& machine) {
    return fmt::format("{}, {} CPUs, {}, {}", machine.cpu, machine.cpus,
                       format_size(machine.memory_bytes), machine.kernel);
}

std::string to_table(const EngineReport& report, const Machine& machine) {
    const Config& config = report.config;
    std::string text = fmt::format("machine  {}\n", to_text(machine));
    text += fmt::format("group    {} of {} drives ({}), chunk {}, parity {}, failed {}\n",
                        geometry::to_text(config.group.level), report.members, config.drives.text,
                        format_size(config.group.chunk_bytes), report.coder,
                        failed_text(config.failed));
    text += fmt::format("load     {} {}, {} jobs x depth {}, {} s x {} runs over {}\n\n",
                        to_text(config.load.pattern), format_size(config.load.request_bytes),
                        config.load.jobs, config.load.depth, config.flags.seconds,
                        config.flags.repeat, format_size(report.span_bytes));
    text += fmt::format("{:<10}{:>14}{:>14}{:>14}\n", "", "median", "min", "max");
    for (const Row& row : kRows) {
        const Spread spread = spread_over(report.samples, row.field);
        text += fmt::format("{:<10}{:>14.1f}{:>14.1f}{:>14.1f}\n", row.name, spread.median,
                            spread.min, spread.max);
    }
    const array::EngineCounters sum = sum_of(report.samples);
    const auto requests = static_cast<double>(std::max<std::uint64_t>(1, sum.reads + sum.writes));
    text += fmt::format("\nstripes written: full {}, read-modify-write {}, reconstruct-write {}\n",
                        sum.full_stripes, sum.read_modify_writes, sum.reconstruct_writes);
    text +=
        fmt::format("degraded reads {}, joined writes {}\n", sum.degraded_reads, sum.joined_writes);
    text += fmt::format("per request: {:.2f} drive commands, {:.0f} bytes read, {:.0f} written\n",
                        static_cast<double>(sum.member_commands) / requests,
                        static_cast<double>(sum.member_bytes_read) / requests,
                        static_cast<double>(sum.member_bytes_written) / requests);
    return text;
}

std::string to_json(const EngineReport& report, const Machine& machine) {
    Json json;
    json["config"] = config_json(report);
    json["machine"] = to_json(machine);
    Json spreads;
    for (const Row& row : kRows) {
        const Spread spread = spread_over(report.samples, row.field);
        json[row.key] = spread.median;
        spreads[row.key] = to_json(spread);
    }
    json["spread"] = spreads;
    json["counters"] = counters_json(sum_of(report.samples));
    Json runs = Json::array();
    for (const Sample& sample : report.samples) {
        Json run = {{"seconds", sample.seconds}};
        for (const Row& row : kRows) run[row.key] = sample.*row.field;
        runs.push_back(run);
    }
    json["runs"] = runs;
    return json.dump(2) + "\n";
}

std::string to_table(const RatioReport& report, const Machine& machine) {
    const Config& config = report.config;
    std::string text = fmt::format("machine  {}\n", to_text(machine));
    text += fmt::format("groups   on {} drives ({}), chunk {}, parity {}\n", report.members,
                        config.drives.text, format_size(config.group.chunk_bytes), report.coder);
    text += fmt::format("load     {} {}, depth {}, {} s x {} rounds, levels in turn\n\n",
                        to_text(config.load.pattern), format_size(config.load.request_bytes),
                        config.load.depth, config.flags.seconds, config.flags.repeat);
    text += fmt::format("{:<8}{:>12}{:>9}{:>9}{:>10}{:>8}{:>8}{:>12}\n", "level", "MB/s median",
                        "min", "max", "ratio", "min", "max", "CPU ratio");
    for (const RatioLine& line : report.lines) {
        const Spread speed = spread_of(line.mb_per_s);
        const Spread ratio = spread_of(line.ratios);
        const Spread cpu = spread_of(line.cpu_ratios);
        text += fmt::format("{:<8}{:>12.0f}{:>9.0f}{:>9.0f}{:>10.3f}{:>8.3f}{:>8.3f}{:>12.3f}",
                            line.level, speed.median, speed.min, speed.max, ratio.median, ratio.min,
                            ratio.max, cpu.median);
        if (line.parities != 0) {
            text += fmt::format("  target {:.2f} {}", report.target,
                                ratio.median >= report.target ? "met" : "missed");
        }
        text += "\n";
    }
    text +=
        "\nratio: to RAID 0's (n - p) / n share in the same round, by throughput and by CPU time\n";
    return text;
}

std::string to_json(const RatioReport& report, const Machine& machine) {
    const Config& config = report.config;
    Json json;
    json["config"] = {{"members", report.members},
                      {"drives", config.drives.text},
                      {"chunk_bytes", config.group.chunk_bytes},
                      {"parity", report.coder},
                      {"pattern", to_text(config.load.pattern)},
                      {"request_bytes", config.load.request_bytes},
                      {"depth", config.load.depth},
                      {"seconds", config.flags.seconds},
                      {"repeat", config.flags.repeat},
                      {"seed", config.flags.seed}};
    json["machine"] = to_json(machine);
    json["target"] = report.target;
    Json levels = Json::array();
    for (const RatioLine& line : report.lines) {
        levels.push_back({{"level", line.level},
                          {"parities", line.parities},
                          {"mb_per_s", to_json(spread_of(line.mb_per_s))},
                          {"ratio", to_json(spread_of(line.ratios))},
                          {"cpu_ratio", to_json(spread_of(line.cpu_ratios))},
                          {"mb_per_s_by_round", line.mb_per_s},
                          {"ratio_by_round", line.ratios}});
    }
    json["levels"] = levels;
    return json.dump(2) + "\n";
}

}  // namespace warpraid::bench
