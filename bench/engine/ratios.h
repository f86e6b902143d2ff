// What parity costs: RAID 0, 5 and 6 on the same drives, one after the other in every round, so
// that what disturbs the machine disturbs all of them.
#pragma once

#include "base/clock.h"
#include "engine/report.h"

namespace warpraid::bench {

inline constexpr double kRatioTarget = 0.60;

Result<RatioReport> measure_ratios(const Config& config, const Clock& clock);

}  // namespace warpraid::bench
