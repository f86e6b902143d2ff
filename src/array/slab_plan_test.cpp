#include "array/slab_plan.h"

#include <gtest/gtest.h>

#include <bit>

namespace warpraid::array {
namespace {

int count(ColumnMask mask) {
    return std::popcount(mask);
}

// Every input for small stripes.
template <typename Check>
void for_each_input(Check check) {
    for (std::uint32_t columns = 1; columns <= 5; ++columns) {
        for (std::uint32_t parities = 1; parities <= 2; ++parities) {
            const std::uint32_t all = columns + parities;
            for (ColumnMask touched = 1; touched < (1u << columns); ++touched) {
                for (ColumnMask writable = 0; writable < (1u << all); ++writable) {
                    for (ColumnMask avoid = 0; avoid < (1u << all); ++avoid) {
                        if ((avoid & ~writable) != 0) continue;
                        SlabInput input;
                        input.columns = columns;
                        input.parities = parities;
                        input.touched = touched;
                        input.writable = writable;
                        input.readable = writable & ~avoid;
                        check(input);
                    }
                }
            }
        }
    }
}

ColumnMask data_of(const SlabInput& input) {
    return (1u << input.columns) - 1;
}
ColumnMask parity_of(const SlabInput& input) {
    return ((1u << input.parities) - 1) << input.columns;
}

TEST(SlabPlan, reads_only_what_can_be_read_and_loses_only_what_is_really_lost) {
    for_each_input([](SlabInput input) {
        const SlabPlan plan = plan_slab(input);
        const int missing = count(data_of(input) & ~input.readable);
        const int parity = count(parity_of(input) & input.readable);
        const bool wanted_missing = (input.touched & ~input.readable) != 0;
        ASSERT_EQ(plan.mode == SlabMode::kLost, wanted_missing && missing > parity);
        if (plan.mode == SlabMode::kLost) return;
        ASSERT_EQ(plan.reads & ~input.readable, 0u);
        ASSERT_EQ(plan.writes, 0u);
        if (!wanted_missing) {
            ASSERT_EQ(plan.reads, input.touched);
        } else {
            ASSERT_EQ(static_cast<int>(plan.missing_count), missing);
            // As many columns as there is data, never more.
            ASSERT_EQ(count(plan.reads), static_cast<int>(input.columns));
        }
    });
}

TEST(SlabPlan, writes_every_live_touched_column_and_all_live_parity) {
    for_each_input([](SlabInput input) {
        for (const bool distrust : {false, true}) {
            input.write = true;
            input.distrust_parity = distrust;
            const SlabPlan plan = plan_slab(input);
            if (plan.mode == SlabMode::kLost) continue;
            const ColumnMask live_parity = parity_of(input) & input.writable;
            ASSERT_EQ(plan.writes, (input.touched & input.writable) | live_parity);
            ASSERT_EQ(plan.reads & ~input.readable, 0u);
        }
    });
}

TEST(SlabPlan, knows_all_it_needs_to_make_parity) {
    for_each_input([](SlabInput input) {
        for (const bool distrust : {false, true}) {
            input.write = true;
            input.distrust_parity = distrust;
            const SlabPlan plan = plan_slab(input);
            const ColumnMask untouched = data_of(input) & ~input.touched;
            const ColumnMask live_parity = parity_of(input) & input.writable;
            if (plan.mode == SlabMode::kEncode) {
                ASSERT_EQ(plan.reads, untouched);
            } else if (plan.mode == SlabMode::kUpdate) {
                ASSERT_EQ(plan.reads, input.touched | live_parity);
            } else if (plan.mode == SlabMode::kRecoverWrite) {
                ASSERT_EQ(plan.reads & data_of(input), data_of(input) & input.readable);
                ASSERT_EQ(count(plan.reads & parity_of(input)),
                          static_cast<int>(plan.missing_count));
            } else if (plan.mode == SlabMode::kPlainWrite) {
                ASSERT_EQ(live_parity, 0u);
            }
        }
    });
}

TEST(SlabPlan, writes_whenever_anything_allows_it) {
    for_each_input([](SlabInput input) {
        input.write = true;
        const SlabPlan plan = plan_slab(input);
        const ColumnMask live_parity = parity_of(input) & input.writable;
        const ColumnMask untouched = data_of(input) & ~input.touched;
        const bool encode = (untouched & ~input.readable) == 0;
        const bool update = ((input.touched | live_parity) & ~input.readable) == 0;
        const bool recover =
            count(data_of(input) & ~input.readable) <= count(parity_of(input) & input.readable);
        const bool plain = live_parity == 0 && (input.touched & input.writable) != 0;
        const bool possible = live_parity == 0 ? plain : encode || update || recover;
        ASSERT_EQ(plan.mode != SlabMode::kLost, possible);
    });
}

TEST(SlabPlan, takes_the_cheaper_of_update_and_encode_by_reads) {
    SlabInput input;
    input.write = true;
    input.columns = 8;
    input.parities = 2;
    input.readable = input.writable = (1u << 10) - 1;
    input.touched = 1;  // update reads 3, encode 7
    EXPECT_EQ(plan_slab(input).mode, SlabMode::kUpdate);
    input.touched = 0x0f;  // update reads 6, encode 4
    EXPECT_EQ(plan_slab(input).mode, SlabMode::kEncode);
    input.touched = 0xff;
    EXPECT_EQ(plan_slab(input).mode, SlabMode::kEncode);
    EXPECT_EQ(plan_slab(input).reads, 0u);
    input.touched = 1;
    input.distrust_parity = true;
    EXPECT_EQ(plan_slab(input).mode, SlabMode::kEncode);
}

}  // namespace
}  // namespace warpraid::array
