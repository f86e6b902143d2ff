// How missing columns come from the others. With P' and Q' the sums over the data columns that are
// there (P and Q computed as if the missing ones were zero), every missing column is a sum of
// coefficient * {P', Q', P, Q}. Pure; no memory of a job is touched. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "parity/coder.h"

namespace warpraid::parity {

/// Coefficients of P', Q', P, Q. That of a parity that cannot be read is 0.
using RecoveryRow = std::array<std::uint8_t, 4>;

struct Recovery {
    std::uint32_t count = 0;  // as many as columns are missing, in their order
    std::array<RecoveryRow, 2> rows{};
};

/// For `missing` (1 or 2, ascending, numbered as Job::missing) of a stripe of `columns` data
/// columns. `have_p` / `have_q`: the parity can be read (never true for a missing one). Asserts
/// that what is left is enough. A lone missing data column is taken from P when that is there.
Recovery plan_recovery(std::uint32_t columns, std::span<const std::uint32_t> missing, bool have_p,
                       bool have_q);

}  // namespace warpraid::parity
