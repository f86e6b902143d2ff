#include "engine/measure.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "base/units.h"

namespace warpraid::bench {

namespace {

std::uint64_t thread_cpu_ns() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * kNanosecondsPerSecond +
           static_cast<std::uint64_t>(time.tv_nsec);
}

void turn_for(Rig& rig, const Clock& clock, double seconds) {
    const std::uint64_t end =
        clock.monotonic_ns() + static_cast<std::uint64_t>(seconds * kNanosecondsPerSecond);
    while (clock.monotonic_ns() < end && rig.faults() == 0) rig.turn();
}

array::EngineCounters difference(const array::EngineCounters& after,
                                 const array::EngineCounters& before) {
    array::EngineCounters result;
    result.reads = after.reads - before.reads;
    result.read_bytes = after.read_bytes - before.read_bytes;
    result.writes = after.writes - before.writes;
    result.written_bytes = after.written_bytes - before.written_bytes;
    result.full_stripes = after.full_stripes - before.full_stripes;
    result.read_modify_writes = after.read_modify_writes - before.read_modify_writes;
    result.reconstruct_writes = after.reconstruct_writes - before.reconstruct_writes;
    result.degraded_reads = after.degraded_reads - before.degraded_reads;
    result.replans = after.replans - before.replans;
    result.joined_writes = after.joined_writes - before.joined_writes;
    result.member_commands = after.member_commands - before.member_commands;
    result.member_bytes_read = after.member_bytes_read - before.member_bytes_read;
    result.member_bytes_written = after.member_bytes_written - before.member_bytes_written;
    return result;
}

Status check(const Rig& rig, const LoadCounts& counts) {
    if (counts.errors == 0 && rig.faults() == 0) return success();
    return Error{ErrorCode::kIo, fmt::format("{} requests and {} drive commands failed",
                                             counts.errors, rig.faults())};
}

}  // namespace

Result<Sample> measure(Rig& rig, Load& load, const Clock& clock, double seconds) {
    load.start();
    turn_for(rig, clock, std::min(0.5, seconds / 4));
    WARPRAID_TRY(check(rig, load.take()));
    const array::EngineCounters before = rig.engine().counters();
    const std::uint64_t started_ns = clock.monotonic_ns();
    const std::uint64_t cpu_started_ns = thread_cpu_ns();
    turn_for(rig, clock, seconds);
    const std::uint64_t cpu_ns = thread_cpu_ns() - cpu_started_ns;
    const std::uint64_t elapsed_ns = clock.monotonic_ns() - started_ns;
    const array::EngineCounters after = rig.engine().counters();
    const LoadCounts counts = load.take();
    load.stop();
    while (!load.drained()) rig.turn();
    rig.settle();
    WARPRAID_TRY(check(rig, counts));

    Sample sample;
    sample.seconds = static_cast<double>(elapsed_ns) / 1e9;
    const auto requests = static_cast<double>(counts.requests);
    sample.iops = requests / sample.seconds;
    sample.mb_per_s = static_cast<double>(counts.bytes) / 1e6 / sample.seconds;
    sample.p50_us = static_cast<double>(counts.latency_ns.quantile(0.50)) / 1e3;
    sample.p99_us = static_cast<double>(counts.latency_ns.quantile(0.99)) / 1e3;
    if (counts.requests != 0) sample.cpu_ns_per_io = static_cast<double>(cpu_ns) / requests;
    sample.counters = difference(after, before);
    load.take();
    return sample;
}

Status prefill(Rig& rig, const Clock& clock, std::uint64_t bytes) {
    LoadOptions options;
    options.pattern = Pattern::kWrite;
    options.request_bytes = std::min<std::uint64_t>(2 * kMiB, bytes);
    options.depth = 8;
    options.span_bytes = bytes;
    WARPRAID_TRY_ASSIGN(const auto load, Load::make(rig.engine(), rig.arena(), clock, options));
    load->start();
    std::uint64_t written = 0;
    LoadCounts counts;
    while (written < bytes && counts.errors == 0 && rig.faults() == 0) {
        rig.turn();
        counts = load->take();
        written += counts.bytes;
    }
    load->stop();
    while (!load->drained()) rig.turn();
    rig.settle();
    return check(rig, counts);
}

}  // namespace warpraid::bench
