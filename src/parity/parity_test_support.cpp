#include "parity/parity_test_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"

namespace warpraid::parity::testing {

namespace {

constexpr std::size_t kGuardBytes = kAlignment;
constexpr std::byte kGuard{0x5a};

}  // namespace

std::uint8_t twice(std::uint8_t value) {
    std::uint32_t wide = std::uint32_t{value} << 1;
    if (wide > 0xff) wide ^= 0x11d;
    return static_cast<std::uint8_t>(wide);
}

void TestStripe::Free::operator()(std::byte* memory) const {
    std::free(memory);
}

TestStripe::TestStripe(std::uint32_t columns, std::size_t length_bytes, SeededRandom& random)
    : columns_(columns), length_bytes_(length_bytes) {
    for (std::uint32_t index = 0; index < columns + 2; ++index) {
        auto* memory =
            static_cast<std::byte*>(std::aligned_alloc(kAlignment, length_bytes + kGuardBytes));
        WARPRAID_ASSERT(memory != nullptr);
        std::fill_n(memory + length_bytes, kGuardBytes, kGuard);
        memory_.emplace_back(memory);
        pointers_.push_back(memory);
        randomize(index, random);
    }
    refresh_parity();
}

// Q by Horner's rule: (((D[n-1] * 2) + D[n-2]) * 2 + ...) + D[0].
void TestStripe::refresh_parity() {
    for (std::size_t i = 0; i < length_bytes_; ++i) {
        std::uint8_t p = 0;
        std::uint8_t q = 0;
        for (std::uint32_t column = columns_; column-- > 0;) {
            const auto value = std::to_integer<std::uint8_t>(pointers_[column][i]);
            p ^= value;
            q = twice(q) ^ value;
        }
        pointers_[p_index()][i] = std::byte{p};
        pointers_[q_index()][i] = std::byte{q};
    }
}

void TestStripe::fill(std::uint32_t index, std::byte value) {
    std::fill_n(pointers_[index], length_bytes_, value);
}

void TestStripe::randomize(std::uint32_t index, SeededRandom& random) {
    for (std::size_t i = 0; i < length_bytes_; i += sizeof(std::uint64_t)) {
        const std::uint64_t value = random.next();
        std::memcpy(pointers_[index] + i, &value, sizeof(value));
    }
}

std::vector<std::byte> TestStripe::snapshot(std::uint32_t index) const {
    return {pointers_[index], pointers_[index] + length_bytes_};
}

std::vector<std::vector<std::byte>> TestStripe::snapshot() const {
    std::vector<std::vector<std::byte>> all;
    for (std::uint32_t index = 0; index < columns_ + 2; ++index) all.push_back(snapshot(index));
    return all;
}

std::string TestStripe::difference(const std::vector<std::vector<std::byte>>& expected) const {
    for (std::uint32_t index = 0; index < columns_ + 2; ++index) {
        const std::byte* column = pointers_[index];
        for (std::size_t i = 0; i < length_bytes_; ++i) {
            if (column[i] != expected[index][i]) {
                return fmt::format("column {} of {}+2, byte {} of {}: {:#04x}, expected {:#04x}",
                                   index, columns_, i, length_bytes_,
                                   std::to_integer<unsigned>(column[i]),
                                   std::to_integer<unsigned>(expected[index][i]));
            }
        }
        const std::byte* guard = column + length_bytes_;
        if (!std::all_of(guard, guard + kGuardBytes, [](std::byte b) { return b == kGuard; })) {
            return fmt::format("column {} of {}+2: written past its {} bytes", index, columns_,
                               length_bytes_);
        }
    }
    return {};
}

Job TestStripe::job(JobKind kind) const {
    Job job;
    job.kind = kind;
    job.columns = columns_;
    job.length_bytes = length_bytes_;
    job.data = pointers_.data();
    job.p = pointers_[p_index()];
    job.q = pointers_[q_index()];
    return job;
}

void run(Coder& coder, Job& job) {
    Batch batch;
    batch.jobs = std::span(&job, 1);
    coder.submit(batch);
    while (!batch.done) coder.poll();
}

std::string check_reconstruct(Coder& coder, TestStripe& stripe, std::vector<std::uint32_t> missing,
                              bool null_p, bool null_q) {
    const auto original = stripe.snapshot();
    auto expected = original;
    for (std::uint32_t index : missing) {
        stripe.fill(index, std::byte{0xa5});
        const bool skipped =
            (index == stripe.p_index() && null_p) || (index == stripe.q_index() && null_q);
        if (skipped) std::ranges::fill(expected[index], std::byte{0xa5});
    }
    Job job = stripe.job(JobKind::kReconstruct);
    if (null_p) job.p = nullptr;
    if (null_q) job.q = nullptr;
    job.missing_count = static_cast<std::uint32_t>(missing.size());
    std::ranges::copy(missing, job.missing);
    run(coder, job);
    std::string found = stripe.difference(expected);
    for (std::uint32_t index : missing) {
        std::ranges::copy(original[index], stripe.column(index));
    }
    if (found.empty()) return {};
    return fmt::format("{} of {} columns x {} bytes, missing {} and {}{}{}: {}", coder.name(),
                       stripe.columns(), stripe.length_bytes(), missing.front(), missing.back(),
                       null_p ? ", no P" : "", null_q ? ", no Q" : "", found);
}

std::string check_reconstruct_all_ways(Coder& coder, TestStripe& stripe,
                                       std::vector<std::uint32_t> missing) {
    const auto is_missing = [&](std::uint32_t index) {
        return std::ranges::find(missing, index) != missing.end();
    };
    const auto data_missing = std::ranges::count_if(
        missing, [&](std::uint32_t index) { return index < stripe.columns(); });
    for (int nulls = 0; nulls < 4; ++nulls) {
        const bool null_p = (nulls & 1) != 0;
        const bool null_q = (nulls & 2) != 0;
        const bool p_readable = !null_p && !is_missing(stripe.p_index());
        const bool q_readable = !null_q && !is_missing(stripe.q_index());
        if (int{p_readable} + int{q_readable} < data_missing) continue;
        std::string found = check_reconstruct(coder, stripe, missing, null_p, null_q);
        if (!found.empty()) return found;
    }
    return {};
}

}  // namespace warpraid::parity::testing
