// Runs a load on a rig for a while and says what came through.
#pragma once

#include <cstdint>
#include <vector>

#include "array/engine.h"
#include "base/clock.h"
#include "engine/load.h"
#include "engine/rig.h"
#include "engine/statistics.h"

namespace warpraid::bench {

/// One run. MB are 10^6 bytes; times are of the host's requests, from submit to completion.
struct Sample {
    double seconds = 0;
    double iops = 0;
    double mb_per_s = 0;
    double p50_us = 0;
    double p99_us = 0;
    double cpu_ns_per_io = 0;  // of the thread that does everything
    array::EngineCounters counters;
};

/// Starts the load, lets it run in, counts for `seconds`, stops it and lets it drain. kIo when a
/// request or a drive failed.
Result<Sample> measure(Rig& rig, Load& load, const Clock& clock, double seconds);

/// Writes the first `bytes` of the group once, so that reads find data and memory is in place.
Status prefill(Rig& rig, const Clock& clock, std::uint64_t bytes);

}  // namespace warpraid::bench
