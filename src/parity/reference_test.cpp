// Answers worked out by hand, which do not depend on any code of ours. The rest of the contract is
// tested for every coder alike in cpu/contract_test.cpp.
#include "parity/reference.h"

#include <gtest/gtest.h>

#include "parity/parity_test_support.h"

namespace warpraid::parity::testing {
namespace {

struct Known {
    std::vector<std::uint8_t> data;
    std::uint8_t p;
    std::uint8_t q;
};

// Q = D0 + 2 D1 + 4 D2 + 8 D3 + ... in the field with 0x11d.
const Known kKnown[] = {
    {{0x42}, 0x42, 0x42},                             // one column: 2^0 = 1
    {{0x00, 0x80}, 0x80, 0x1d},                       // 2 * 0x80 overflows once
    {{0x01, 0x01, 0x01}, 0x01, 0x07},                 // 1 + 2 + 4
    {{0x11, 0x22, 0x33, 0x44}, 0x44, 0x83},           // 11 + 44 + cc + 1a
    {{0xff, 0xff}, 0x00, 0x1c},                       // ff + e3
    {{0, 0, 0, 0, 0, 0, 0, 0, 0x01}, 0x01, 0x1d},     // 2^8
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02}, 0x02, 0x74},  // 2 * 2^9 = 2^10
};

TEST(ReferenceCoder, gives_the_parity_worked_out_by_hand) {
    SeededRandom random(1);
    const auto coder = make_reference_coder();
    for (const Known& known : kKnown) {
        TestStripe stripe(static_cast<std::uint32_t>(known.data.size()), kAlignment, random);
        for (std::uint32_t i = 0; i < stripe.columns(); ++i) {
            stripe.fill(i, std::byte{known.data[i]});
        }
        Job job = stripe.job(JobKind::kEncode);
        run(*coder, job);
        EXPECT_EQ(stripe.column(stripe.p_index())[0], std::byte{known.p}) << &known - kKnown;
        EXPECT_EQ(stripe.column(stripe.q_index())[0], std::byte{known.q}) << &known - kKnown;
    }
}

TEST(ReferenceCoder, solves_two_lost_columns_worked_out_by_hand) {
    // D1 and D2 of 11 22 33 44 from P = 44, Q = 83.
    SeededRandom random(2);
    TestStripe stripe(4, kAlignment, random);
    const std::uint8_t columns[] = {0x11, 0, 0, 0x44, 0x44, 0x83};
    for (std::uint32_t i = 0; i < 6; ++i) stripe.fill(i, std::byte{columns[i]});
    Job job = stripe.job(JobKind::kReconstruct);
    job.missing_count = 2;
    job.missing[0] = 1;
    job.missing[1] = 2;
    run(*make_reference_coder(), job);
    EXPECT_EQ(stripe.column(1)[0], std::byte{0x22});
    EXPECT_EQ(stripe.column(2)[0], std::byte{0x33});
}

TEST(TestStripe, notices_a_wrong_byte_and_a_write_past_the_end) {
    SeededRandom random(3);
    TestStripe stripe(2, kAlignment, random);
    const auto original = stripe.snapshot();
    EXPECT_EQ(stripe.difference(original), "");
    stripe.column(1)[5] ^= std::byte{1};
    EXPECT_NE(stripe.difference(original), "");
    stripe.column(1)[5] ^= std::byte{1};
    stripe.column(0)[kAlignment] ^= std::byte{1};
    EXPECT_NE(stripe.difference(original), "");
}

}  // namespace
}  // namespace warpraid::parity::testing
