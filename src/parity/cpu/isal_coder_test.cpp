// ISA-L against the plain coder, byte for byte, on random jobs of every kind: also on stripes whose
// parity is wrong, where first principles say nothing of the outcome but that both agree.
#include "parity/cpu/isal_coder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "parity/parity_test_support.h"
#include "parity/reference.h"

namespace warpraid::parity::testing {
namespace {

/// Two stripes with the same bytes.
struct Twins {
    Twins(std::uint32_t columns, std::size_t length_bytes, std::uint64_t seed)
        : random(seed), ours(columns, length_bytes, random), plain(columns, length_bytes, random) {
        copy();
    }
    void copy() {
        for (std::uint32_t i = 0; i < ours.columns() + 2; ++i) {
            std::ranges::copy(ours.snapshot(i), plain.column(i));
        }
    }
    SeededRandom random;
    TestStripe ours;
    TestStripe plain;
};

Twins any_twins() {
    const auto columns = *rc::gen::inRange<std::uint32_t>(1, kColumnsMax + 1);
    const auto units = *rc::gen::inRange<std::size_t>(1, 200);
    return Twins(columns, units * kAlignment, *rc::gen::arbitrary<std::uint64_t>());
}

void set_missing(Job& job, std::uint32_t a, std::uint32_t b) {
    job.missing[0] = std::min(a, b);
    job.missing[1] = std::max(a, b);
    job.missing_count = a == b ? 1 : 2;
}

RC_GTEST_PROP(IsalCoder, encodes_and_reconstructs_like_the_plain_coder, ()) {
    Twins twins = any_twins();
    const std::uint32_t columns = twins.ours.columns();
    const auto isal = make_isal_coder();
    const auto plain = make_reference_coder();
    // Whatever P and Q hold: the coders must agree on inconsistent stripes too.
    twins.ours.randomize(columns, twins.random);
    twins.ours.randomize(columns + 1, twins.random);
    twins.copy();
    Job our_job = twins.ours.job(JobKind::kReconstruct);
    Job plain_job = twins.plain.job(JobKind::kReconstruct);
    const auto a = static_cast<std::uint32_t>(twins.random.below(columns + 2));
    const auto b = static_cast<std::uint32_t>(twins.random.below(columns + 2));
    set_missing(our_job, a, b);
    set_missing(plain_job, a, b);
    run(*isal, our_job);
    run(*plain, plain_job);
    RC_ASSERT(twins.ours.difference(twins.plain.snapshot()) == "");

    our_job.kind = plain_job.kind = JobKind::kEncode;
    run(*isal, our_job);
    run(*plain, plain_job);
    RC_ASSERT(twins.ours.difference(twins.plain.snapshot()) == "");
}

RC_GTEST_PROP(IsalCoder, updates_like_the_plain_coder, ()) {
    Twins twins = any_twins();
    const std::uint32_t columns = twins.ours.columns();
    TestStripe other(columns, twins.ours.length_bytes(), twins.random);
    std::vector<std::uint32_t> changed;
    std::vector<std::byte*> new_data;
    std::vector<std::byte*> old_data;
    for (std::uint32_t i = 0; i < columns; ++i) {
        if (twins.random.below(2) == 0) continue;
        changed.push_back(i);
        old_data.push_back(twins.ours.column(i));
        new_data.push_back(other.column(i));
    }
    Job our_job = twins.ours.job(JobKind::kUpdate);
    Job plain_job = twins.plain.job(JobKind::kUpdate);
    for (Job* job : {&our_job, &plain_job}) {
        job->data = old_data.data();
        job->new_data = new_data.data();
        job->update_columns = changed.data();
        job->update_count = static_cast<std::uint32_t>(changed.size());
    }
    const auto isal = make_isal_coder();
    run(*isal, our_job);
    run(*make_reference_coder(), plain_job);
    RC_ASSERT(twins.ours.difference(twins.plain.snapshot()) == "");
}

RC_GTEST_PROP(IsalCoder, judges_damaged_stripes_like_the_plain_coder, ()) {
    Twins twins = any_twins();
    const std::uint64_t damages = twins.random.below(4);
    for (std::uint64_t i = 0; i < damages; ++i) {
        const auto index = static_cast<std::uint32_t>(twins.random.below(twins.ours.columns() + 2));
        // Few places and values, so that damage often meets damage.
        const std::size_t place = twins.random.below(3) * (twins.ours.length_bytes() - 1) / 2;
        twins.ours.column(index)[place] ^= std::byte{1} << static_cast<int>(twins.random.below(3));
    }
    twins.copy();
    const auto isal = make_isal_coder();
    const auto plain = make_reference_coder();
    for (JobKind kind : {JobKind::kVerify, JobKind::kLocate}) {
        Job our_job = twins.ours.job(kind);
        Job plain_job = twins.plain.job(kind);
        run(*isal, our_job);
        run(*plain, plain_job);
        RC_ASSERT(our_job.matches == plain_job.matches);
        RC_ASSERT(our_job.verdict == plain_job.verdict);
        RC_ASSERT(our_job.located_column == plain_job.located_column);
    }
    RC_ASSERT(twins.ours.difference(twins.plain.snapshot()) == "");
}

}  // namespace
}  // namespace warpraid::parity::testing
