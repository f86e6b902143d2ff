// The coder contract, for every coder that finishes without a GPU: all results are compared with
// parity from first principles (parity_test_support.h), never with another coder.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/base_test_support.h"
#include "parity/cpu/isal_coder.h"
#include "parity/parity_test_support.h"
#include "parity/reference.h"

namespace warpraid::parity::testing {
namespace {

using Maker = std::unique_ptr<Coder> (*)();

class CoderContract : public ::testing::TestWithParam<Maker> {
  protected:
    CoderContract() : coder(GetParam()()), random(test_seed()) {}

    /// A multiple of kAlignment up to a little over two of any coder's inner blocks.
    std::size_t any_length() { return kAlignment * (1 + random.below(140)); }

    std::unique_ptr<Coder> coder;
    SeededRandom random;
};

TEST_P(CoderContract, encodes_p_and_q_and_each_alone_for_every_column_count) {
    for (std::uint32_t columns = 1; columns <= kColumnsMax; ++columns) {
        for (std::size_t length : {std::size_t{64}, std::size_t{192}, any_length()}) {
            TestStripe stripe(columns, length, random);
            const auto right = stripe.snapshot();
            for (int which = 0; which < 4; ++which) {
                auto expected = right;
                stripe.fill(stripe.p_index(), std::byte{0xa5});
                stripe.fill(stripe.q_index(), std::byte{0xa5});
                Job job = stripe.job(JobKind::kEncode);
                if ((which & 1) != 0) {
                    job.p = nullptr;
                    std::ranges::fill(expected[stripe.p_index()], std::byte{0xa5});
                }
                if ((which & 2) != 0) {
                    job.q = nullptr;
                    std::ranges::fill(expected[stripe.q_index()], std::byte{0xa5});
                }
                run(*coder, job);
                ASSERT_EQ(stripe.difference(expected), "") << "without " << which;
            }
        }
    }
}

TEST_P(CoderContract, updates_parity_as_if_it_were_encoded_anew) {
    for (int round = 0; round < 200; ++round) {
        const auto columns = static_cast<std::uint32_t>(1 + random.below(kColumnsMax));
        TestStripe stripe(columns, any_length(), random);
        TestStripe old(columns, stripe.length_bytes(), random);
        std::vector<std::uint32_t> changed;
        for (std::uint32_t i = 0; i < columns; ++i) {
            if (random.below(3) == 0) changed.push_back(i);
        }
        std::vector<std::byte*> old_data;
        std::vector<std::byte*> new_data;
        auto before = stripe.snapshot();
        for (std::uint32_t i : changed) {
            std::ranges::copy(before[i], old.column(i));
            stripe.randomize(i, random);
            old_data.push_back(old.column(i));
            new_data.push_back(stripe.column(i));
        }
        const std::vector<std::byte> old_p = stripe.snapshot(stripe.p_index());
        const std::vector<std::byte> old_q = stripe.snapshot(stripe.q_index());
        stripe.refresh_parity();
        const auto after = stripe.snapshot();
        for (int which = 0; which < 3; ++which) {
            auto expected = after;
            std::ranges::copy(old_p, stripe.column(stripe.p_index()));
            std::ranges::copy(old_q, stripe.column(stripe.q_index()));
            Job job = stripe.job(JobKind::kUpdate);
            job.data = old_data.data();
            job.new_data = new_data.data();
            job.update_columns = changed.data();
            job.update_count = static_cast<std::uint32_t>(changed.size());
            if (which == 1) job.p = nullptr, expected[stripe.p_index()] = old_p;
            if (which == 2) job.q = nullptr, expected[stripe.q_index()] = old_q;
            run(*coder, job);
            ASSERT_EQ(stripe.difference(expected), "")
                << changed.size() << " changed columns, without " << which;
        }
    }
}

TEST_P(CoderContract, reconstructs_every_one_or_two_columns_of_small_stripes) {
    for (std::uint32_t columns = 1; columns <= 12; ++columns) {
        TestStripe stripe(columns, any_length(), random);
        for (std::uint32_t a = 0; a < columns + 2; ++a) {
            ASSERT_EQ(check_reconstruct_all_ways(*coder, stripe, {a}), "");
            for (std::uint32_t b = a + 1; b < columns + 2; ++b) {
                ASSERT_EQ(check_reconstruct_all_ways(*coder, stripe, {a, b}), "");
            }
        }
    }
}

TEST_P(CoderContract, reconstructs_any_columns_of_wide_stripes) {
    for (std::uint32_t columns = 13; columns <= kColumnsMax; ++columns) {
        TestStripe stripe(columns, any_length(), random);
        for (int round = 0; round < 12; ++round) {
            const auto a = static_cast<std::uint32_t>(random.below(columns + 1));
            const auto b = static_cast<std::uint32_t>(a + 1 + random.below(columns + 1 - a));
            ASSERT_EQ(check_reconstruct_all_ways(*coder, stripe, {a}), "");
            ASSERT_EQ(check_reconstruct_all_ways(*coder, stripe, {a, b}), "");
        }
    }
}

TEST_P(CoderContract, verifies_and_finds_any_single_wrong_byte) {
    for (std::uint32_t columns = 1; columns <= kColumnsMax; ++columns) {
        TestStripe stripe(columns, any_length(), random);
        const auto matches = [&](bool with_p, bool with_q) {
            Job job = stripe.job(JobKind::kVerify);
            if (!with_p) job.p = nullptr;
            if (!with_q) job.q = nullptr;
            run(*coder, job);
            return job.matches;
        };
        ASSERT_TRUE(matches(true, true) && matches(true, false) && matches(false, true));
        for (std::uint32_t index = 0; index < columns + 2; ++index) {
            const std::size_t last = stripe.length_bytes() - 1;
            for (std::size_t i : {std::size_t{0}, last, random.below(last)}) {
                const auto bit = std::byte{1} << static_cast<int>(random.below(8));
                stripe.column(index)[i] ^= bit;
                ASSERT_FALSE(matches(true, true)) << index << " of " << columns;
                ASSERT_EQ(matches(true, false), index == stripe.q_index());
                ASSERT_EQ(matches(false, true), index == stripe.p_index());
                stripe.column(index)[i] ^= bit;
            }
        }
    }
}

TEST_P(CoderContract, locates_every_single_wrong_column) {
    for (std::uint32_t columns = 1; columns <= kColumnsMax; ++columns) {
        TestStripe stripe(columns, any_length(), random);
        const auto right = stripe.snapshot();
        Job clean = stripe.job(JobKind::kLocate);
        clean.verdict = LocateVerdict::kAmbiguous;
        run(*coder, clean);
        ASSERT_EQ(clean.verdict, LocateVerdict::kClean);
        for (std::uint32_t index = 0; index < columns + 2; ++index) {
            for (bool whole : {false, true}) {
                if (whole) {
                    stripe.randomize(index, random);
                } else {
                    stripe.column(index)[random.below(stripe.length_bytes())] ^= std::byte{0x10};
                }
                Job job = stripe.job(JobKind::kLocate);
                run(*coder, job);
                if (index < columns) {
                    ASSERT_EQ(job.verdict, LocateVerdict::kData) << index << " of " << columns;
                    ASSERT_EQ(job.located_column, index) << columns;
                } else {
                    ASSERT_EQ(job.verdict,
                              index == stripe.p_index() ? LocateVerdict::kP : LocateVerdict::kQ);
                }
                std::ranges::copy(right[index], stripe.column(index));
            }
        }
    }
}

TEST_P(CoderContract, calls_two_wrong_columns_ambiguous) {
    // Wrong at different bytes, so that no single column explains both.
    for (std::uint32_t columns : {1u, 2u, 6u, 30u, 32u}) {
        TestStripe stripe(columns, any_length() + kAlignment, random);
        for (std::uint32_t a = 0; a < columns + 2; ++a) {
            for (std::uint32_t b = a + 1; b < columns + 2; ++b) {
                const std::size_t at_a = random.below(stripe.length_bytes());
                const std::size_t at_b =
                    (at_a + 1 + random.below(stripe.length_bytes() - 1)) % stripe.length_bytes();
                stripe.column(a)[at_a] ^= std::byte{0x01};
                stripe.column(b)[at_b] ^= std::byte{0x01};
                Job job = stripe.job(JobKind::kLocate);
                run(*coder, job);
                ASSERT_EQ(job.verdict, LocateVerdict::kAmbiguous) << a << ", " << b;
                ASSERT_EQ(job.located_column, 0u);
                stripe.column(a)[at_a] ^= std::byte{0x01};
                stripe.column(b)[at_b] ^= std::byte{0x01};
            }
        }
    }
}

TEST_P(CoderContract, calls_a_column_that_the_stripe_does_not_have_ambiguous) {
    // P off by 1 and Q by 2^9 at one byte look like column 9, which a stripe of 4 has not.
    TestStripe stripe(4, any_length(), random);
    stripe.column(stripe.p_index())[7] ^= std::byte{0x01};
    stripe.column(stripe.q_index())[7] ^= std::byte{0x3a};
    Job job = stripe.job(JobKind::kLocate);
    run(*coder, job);
    EXPECT_EQ(job.verdict, LocateVerdict::kAmbiguous);
}

TEST_P(CoderContract, finishes_every_job_of_a_batch) {
    TestStripe one(3, any_length(), random);
    TestStripe two(7, any_length(), random);
    const auto right_one = one.snapshot();
    const auto right_two = two.snapshot();
    one.fill(one.p_index(), std::byte{0});
    two.fill(4, std::byte{0});
    Job jobs[3] = {one.job(JobKind::kEncode), two.job(JobKind::kReconstruct),
                   two.job(JobKind::kVerify)};
    jobs[1].missing_count = 1;
    jobs[1].missing[0] = 4;
    Batch batch;
    batch.jobs = jobs;
    coder->submit(batch);
    while (!batch.done) coder->poll();
    EXPECT_EQ(one.difference(right_one), "");
    EXPECT_EQ(two.difference(right_two), "");
    EXPECT_TRUE(jobs[2].matches);

    Batch empty;
    coder->submit(empty);
    while (!empty.done) coder->poll();
}

INSTANTIATE_TEST_SUITE_P(, CoderContract, ::testing::Values(make_reference_coder, make_isal_coder),
                         [](const auto& maker) {
                             return std::string(maker.param == make_isal_coder ? "isal"
                                                                               : "reference");
                         });

}  // namespace
}  // namespace warpraid::parity::testing
