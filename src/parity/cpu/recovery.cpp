#include "parity/cpu/recovery.h"

#include <algorithm>

#include "base/assert.h"
#include "parity/gf256.h"

namespace warpraid::parity {

namespace {

using gf256::inverse;
using gf256::power_of_two;

constexpr RecoveryRow kSumOfP = {1, 0, 0, 0};   // P'
constexpr RecoveryRow kSumOfQ = {0, 1, 0, 0};   // Q'
constexpr RecoveryRow kLackOfP = {1, 0, 1, 0};  // P' + P: the sum of the missing data columns
constexpr RecoveryRow kLackOfQ = {0, 1, 0, 1};  // Q' + Q: the same, each times its power of two

RecoveryRow add(RecoveryRow a, const RecoveryRow& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] ^= b[i];
    return a;
}

RecoveryRow scale(RecoveryRow row, std::uint8_t by) {
    for (std::uint8_t& coefficient : row) coefficient = gf256::multiply(coefficient, by);
    return row;
}

}  // namespace

Recovery plan_recovery(std::uint32_t columns, std::span<const std::uint32_t> missing, bool have_p,
                       bool have_q) {
    WARPRAID_ASSERT(columns >= 1 && columns <= kColumnsMax);
    WARPRAID_ASSERT(!missing.empty() && missing.size() <= 2);
    WARPRAID_ASSERT(missing.back() <= columns + 1);
    WARPRAID_ASSERT(missing.size() == 1 || missing[0] < missing[1]);
    const auto is_missing = [&](std::uint32_t index) {
        return std::ranges::find(missing, index) != missing.end();
    };
    WARPRAID_ASSERT(!(have_p && is_missing(columns)) && !(have_q && is_missing(columns + 1)));
    const auto data_missing = static_cast<std::uint32_t>(
        std::ranges::count_if(missing, [&](std::uint32_t index) { return index < columns; }));
    WARPRAID_ASSERT(data_missing <= std::uint32_t{have_p} + std::uint32_t{have_q});

    Recovery recovery;
    RecoveryRow in_p{};  // what the missing data columns add to P and to Q
    RecoveryRow in_q{};
    if (data_missing == 2) {
        // Dx + Dy = lack of P and 2^x Dx + 2^y Dy = lack of Q.
        const std::uint8_t x = power_of_two(missing[0]);
        const std::uint8_t y = power_of_two(missing[1]);
        const RecoveryRow dx = scale(add(kLackOfQ, scale(kLackOfP, y)), inverse(x ^ y));
        recovery.rows[recovery.count++] = dx;
        recovery.rows[recovery.count++] = add(kLackOfP, dx);
    } else if (data_missing == 1) {
        const std::uint8_t x = power_of_two(missing[0]);
        in_p = have_p ? kLackOfP : scale(kLackOfQ, inverse(x));
        in_q = scale(in_p, x);
        recovery.rows[recovery.count++] = in_p;
    }
    if (is_missing(columns)) recovery.rows[recovery.count++] = add(kSumOfP, in_p);
    if (is_missing(columns + 1)) recovery.rows[recovery.count++] = add(kSumOfQ, in_q);
    return recovery;
}

}  // namespace warpraid::parity
