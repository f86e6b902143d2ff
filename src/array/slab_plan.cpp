#include "array/slab_plan.h"

#include <bit>

#include "base/assert.h"

namespace warpraid::array {

namespace {

ColumnMask data_mask(const SlabInput& input) {
    return static_cast<ColumnMask>((std::uint64_t{1} << input.columns) - 1);
}

ColumnMask parity_mask(const SlabInput& input) {
    return static_cast<ColumnMask>(((std::uint64_t{1} << input.parities) - 1) << input.columns);
}

int count(ColumnMask mask) {
    return std::popcount(mask);
}

}  // namespace

SlabPlan plan_recovery(const SlabInput& input) {
    SlabPlan plan;
    const ColumnMask data = data_mask(input);
    const ColumnMask missing = data & ~input.readable;
    const ColumnMask parity = parity_mask(input) & input.readable;
    if (count(missing) > count(parity) || count(missing) > 2) return plan;
    plan.mode = SlabMode::kReconstructRead;
    plan.reads = data & input.readable;
    if (count(missing) == 1) {
        plan.reads |= parity & (~parity + 1);  // P when it is there, else Q
    } else if (count(missing) == 2) {
        plan.reads |= parity;
    }
    for (ColumnMask rest = missing; rest != 0; rest &= rest - 1) {
        plan.missing[plan.missing_count++] = static_cast<std::uint32_t>(std::countr_zero(rest));
    }
    return plan;
}

SlabPlan plan_slab(const SlabInput& input) {
    WARPRAID_ASSERT(input.touched != 0 && (input.touched & ~data_mask(input)) == 0);
    WARPRAID_ASSERT(input.columns + input.parities <= 32);
    SlabPlan plan;
    if (!input.write) {
        if ((input.touched & ~input.readable) != 0) return plan_recovery(input);
        plan.mode = SlabMode::kDirect;
        plan.reads = input.touched;
        return plan;
    }

    const ColumnMask untouched = data_mask(input) & ~input.touched;
    const ColumnMask live_parity = parity_mask(input) & input.writable;
    plan.writes = (input.touched & input.writable) | live_parity;
    if (live_parity == 0) {
        plan.mode = plan.writes != 0 ? SlabMode::kPlainWrite : SlabMode::kLost;
        return plan;
    }
    const bool can_update =
        ((input.touched | live_parity) & ~input.readable) == 0 && !input.distrust_parity;
    const bool can_encode = (untouched & ~input.readable) == 0;
    const int update_reads = count(input.touched | live_parity);
    if (can_encode && (!can_update || count(untouched) <= update_reads)) {
        plan.mode = SlabMode::kEncode;
        plan.reads = untouched;
    } else if (can_update ||
               (!can_encode && ((input.touched | live_parity) & ~input.readable) == 0)) {
        plan.mode = SlabMode::kUpdate;
        plan.reads = input.touched | live_parity;
    } else {
        const ColumnMask writes = plan.writes;
        plan = plan_recovery(input);
        plan.writes = writes;
        if (plan.mode != SlabMode::kLost) plan.mode = SlabMode::kRecoverWrite;
    }
    return plan;
}

}  // namespace warpraid::array
