#include "parity/cpu/isal_coder.h"

#include <isa-l.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

#include "base/assert.h"
#include "parity/cpu/recovery.h"
#include "parity/gf256.h"

namespace warpraid::parity {

namespace {

// Passes that come back to the same bytes go block by block, so that these stay in the first-level
// cache.
constexpr std::size_t kBlockBytes = 4096;
// ISA-L expands each coefficient into this many bytes of table.
constexpr std::size_t kTableBytes = 32;

using Bytes = unsigned char;

Bytes* bytes(std::byte* memory) {
    return reinterpret_cast<Bytes*>(memory);
}

bool is_aligned(const std::byte* memory) {
    return reinterpret_cast<std::uintptr_t>(memory) % kAlignment == 0;
}

int as_length(std::size_t length_bytes) {
    WARPRAID_ASSERT(length_bytes <= INT_MAX);
    return static_cast<int>(length_bytes);
}

class IsalCoder final : public Coder {
  public:
    IsalCoder() {
        for (std::uint32_t column = 0; column < kColumnsMax; ++column) {
            Bytes both[2] = {1, gf256::power_of_two(column)};
            ec_init_tables(1, 2, both, p_and_q_tables_[column].data());
            ec_init_tables(1, 1, both + 1, q_tables_[column].data());
        }
        Bytes one = 1;
        ec_init_tables(1, 1, &one, p_table_.data());
    }

    std::string_view name() const override { return "isal"; }

    void submit(Batch& batch) override {
        for (Job& job : batch.jobs) run(job);
        batch.done = true;
    }

    std::size_t poll() override { return 0; }

  private:
    void run(Job& job);
    void encode(std::byte* const* data, std::uint32_t columns, std::size_t begin,
                std::size_t length, std::byte* p, std::byte* q);
    void update(const Job& job);
    void reconstruct(const Job& job);
    void solve(const Job& job, const Recovery& recovery, bool have_p, bool have_q);
    void verify(Job& job);
    void locate(Job& job);
    bool explain(Job& job, std::size_t begin, std::size_t length);

    std::array<std::array<Bytes, 2 * kTableBytes>, kColumnsMax> p_and_q_tables_{};
    std::array<std::array<Bytes, kTableBytes>, kColumnsMax> q_tables_{};
    std::array<Bytes, kTableBytes> p_table_{};
    std::array<Bytes, 2 * 4 * kTableBytes> recovery_tables_{};
    alignas(kAlignment) std::array<std::byte, kBlockBytes> p_block_{};
    alignas(kAlignment) std::array<std::byte, kBlockBytes> q_block_{};
    alignas(kAlignment) std::array<std::byte, kBlockBytes> zero_block_{};  // never written
};

void IsalCoder::run(Job& job) {
    WARPRAID_ASSERT(job.columns >= 1 && job.columns <= kColumnsMax);
    WARPRAID_ASSERT(job.length_bytes % kAlignment == 0);
    WARPRAID_ASSERT(is_aligned(job.p) && is_aligned(job.q));
    const std::uint32_t pointers = job.kind == JobKind::kUpdate ? job.update_count : job.columns;
    for (std::uint32_t i = 0; i < pointers; ++i) WARPRAID_ASSERT(is_aligned(job.data[i]));
    switch (job.kind) {
        case JobKind::kEncode:
            return encode(job.data, job.columns, 0, job.length_bytes, job.p, job.q);
        case JobKind::kUpdate:
            return update(job);
        case JobKind::kReconstruct:
            return reconstruct(job);
        case JobKind::kVerify:
            return verify(job);
        case JobKind::kLocate:
            return locate(job);
    }
}

// P and/or Q of `length` bytes of every column from `begin` on, into `p` and `q`. A null column is
// zeros, if `length` is at most a block.
void IsalCoder::encode(std::byte* const* data, std::uint32_t columns, std::size_t begin,
                       std::size_t length, std::byte* p, std::byte* q) {
    if (length == 0) return;
    if (p == nullptr && q != nullptr && columns > 1) {
        // ISA-L has no kernel for Q alone: P goes to scratch.
        for (std::size_t done = 0; done < length; done += kBlockBytes) {
            encode(data, columns, begin + done, std::min(kBlockBytes, length - done),
                   p_block_.data(), q + done);
        }
        return;
    }
    std::array<void*, kColumnsMax + 2> vectors;
    for (std::uint32_t i = 0; i < columns; ++i) {
        WARPRAID_ASSERT(data[i] != nullptr || length <= kBlockBytes);
        vectors[i] = data[i] != nullptr ? data[i] + begin : zero_block_.data();
    }
    const int sources = static_cast<int>(columns);
    if (columns == 1) {  // fewer than ISA-L's RAID kernels take; 2^0 = 1, so Q is P
        if (p != nullptr) std::memcpy(p, vectors[0], length);
        if (q != nullptr) std::memcpy(q, vectors[0], length);
    } else if (q != nullptr) {
        vectors[columns] = p;
        vectors[columns + 1] = q;
        WARPRAID_ASSERT(pq_gen(sources + 2, as_length(length), vectors.data()) == 0);
    } else if (p != nullptr) {
        vectors[columns] = p;
        WARPRAID_ASSERT(xor_gen(sources + 1, as_length(length), vectors.data()) == 0);
    }
}

// The old and the new content are added one after the other (old + new is the change), which needs
// no scratch: ISA-L's xor would write scratch past the cache on CPUs without AVX-512.
void IsalCoder::update(const Job& job) {
    for (std::uint32_t i = 0; i < job.update_count; ++i) {
        WARPRAID_ASSERT(job.update_columns[i] < job.columns);
        WARPRAID_ASSERT(is_aligned(job.new_data[i]));
    }
    std::array<Bytes*, 2> parity{};
    for (std::size_t begin = 0; begin < job.length_bytes; begin += kBlockBytes) {
        const int length = as_length(std::min(kBlockBytes, job.length_bytes - begin));
        int rows = 0;
        if (job.p != nullptr) parity[static_cast<std::size_t>(rows++)] = bytes(job.p + begin);
        if (job.q != nullptr) parity[static_cast<std::size_t>(rows++)] = bytes(job.q + begin);
        if (rows == 0) return;
        for (std::uint32_t i = 0; i < job.update_count; ++i) {
            const std::uint32_t column = job.update_columns[i];
            Bytes* tables = p_and_q_tables_[column].data();
            if (job.q == nullptr) tables = p_table_.data();
            if (job.p == nullptr) tables = q_tables_[column].data();
            for (std::byte* content : {job.data[i], job.new_data[i]}) {
                ec_encode_data_update(length, 1, rows, 0, tables, bytes(content + begin),
                                      parity.data());
            }
        }
    }
}

void IsalCoder::reconstruct(const Job& job) {
    WARPRAID_ASSERT(job.missing_count >= 1 && job.missing_count <= 2);
    const std::span missing(job.missing, job.missing_count);
    const auto is_missing = [&](std::uint32_t index) {
        return std::ranges::find(missing, index) != missing.end();
    };
    const bool p_missing = is_missing(job.columns);
    const bool q_missing = is_missing(job.columns + 1);
    if (missing[0] >= job.columns) {
        return encode(job.data, job.columns, 0, job.length_bytes, p_missing ? job.p : nullptr,
                      q_missing ? job.q : nullptr);
    }
    const bool have_p = job.p != nullptr && !p_missing;
    const bool have_q = job.q != nullptr && !q_missing;
    const bool lone = missing.size() == 1 || (q_missing && job.q == nullptr);
    if (lone && have_p) {
        // The xor of all others: P takes the place of the missing column.
        std::array<std::byte*, kColumnsMax> others;
        std::copy_n(job.data, job.columns, others.begin());
        others[missing[0]] = job.p;
        return encode(others.data(), job.columns, 0, job.length_bytes, job.data[missing[0]],
                      nullptr);
    }
    solve(job, plan_recovery(job.columns, missing, have_p, have_q), have_p, have_q);
}

// Block by block: P' and Q' into scratch, by the same fast kernel as encoding and with zeros for
// what is missing; then the missing columns from these few.
void IsalCoder::solve(const Job& job, const Recovery& recovery, bool have_p, bool have_q) {
    std::array<std::byte*, kColumnsMax> present;
    std::copy_n(job.data, job.columns, present.begin());
    std::array<std::byte*, 2> targets{};
    std::uint32_t rows[2] = {};
    std::uint32_t row_count = 0;
    for (std::uint32_t i = 0; i < job.missing_count; ++i) {
        const std::uint32_t index = job.missing[i];
        std::byte* target = index == job.columns ? job.p : job.q;
        if (index < job.columns) {
            target = job.data[index];
            present[index] = nullptr;
        }
        if (target == nullptr) continue;
        targets[row_count] = target;
        rows[row_count++] = i;
    }
    if (row_count == 0) return;

    const bool used[4] = {true, true, have_p, have_q};  // of P', Q', P, Q
    std::array<Bytes, 2 * 4> coefficients{};
    std::size_t filled = 0;
    for (std::uint32_t row = 0; row < row_count; ++row) {
        for (std::size_t input = 0; input < 4; ++input) {
            if (used[input]) coefficients[filled++] = recovery.rows[rows[row]][input];
        }
    }
    const int input_count = 2 + int{have_p} + int{have_q};
    const int output_count = static_cast<int>(row_count);
    ec_init_tables(input_count, output_count, coefficients.data(), recovery_tables_.data());

    for (std::size_t begin = 0; begin < job.length_bytes; begin += kBlockBytes) {
        const std::size_t length = std::min(kBlockBytes, job.length_bytes - begin);
        encode(present.data(), job.columns, begin, length, p_block_.data(), q_block_.data());
        std::array<Bytes*, 4> inputs = {bytes(p_block_.data()), bytes(q_block_.data())};
        std::size_t next = 2;
        if (have_p) inputs[next++] = bytes(job.p + begin);
        if (have_q) inputs[next++] = bytes(job.q + begin);
        std::array<Bytes*, 2> outputs = {bytes(targets[0] + begin)};
        if (row_count == 2) outputs[1] = bytes(targets[1] + begin);
        ec_encode_data(as_length(length), input_count, output_count, recovery_tables_.data(),
                       inputs.data(), outputs.data());
    }
}

void IsalCoder::verify(Job& job) {
    job.matches = true;
    for (std::size_t begin = 0; begin < job.length_bytes && job.matches; begin += kBlockBytes) {
        const std::size_t length = std::min(kBlockBytes, job.length_bytes - begin);
        encode(job.data, job.columns, begin, length, job.p != nullptr ? p_block_.data() : nullptr,
               job.q != nullptr ? q_block_.data() : nullptr);
        job.matches =
            (job.p == nullptr || std::memcmp(p_block_.data(), job.p + begin, length) == 0) &&
            (job.q == nullptr || std::memcmp(q_block_.data(), job.q + begin, length) == 0);
    }
}

void IsalCoder::locate(Job& job) {
    WARPRAID_ASSERT(job.p != nullptr && job.q != nullptr);
    job.verdict = LocateVerdict::kClean;
    job.located_column = 0;
    for (std::size_t begin = 0; begin < job.length_bytes; begin += kBlockBytes) {
        const std::size_t length = std::min(kBlockBytes, job.length_bytes - begin);
        encode(job.data, job.columns, begin, length, p_block_.data(), q_block_.data());
        if (std::memcmp(p_block_.data(), job.p + begin, length) == 0 &&
            std::memcmp(q_block_.data(), job.q + begin, length) == 0) {
            continue;
        }
        if (!explain(job, begin, length)) {
            job.verdict = LocateVerdict::kAmbiguous;
            job.located_column = 0;
            return;
        }
    }
}

// Narrows the verdict by the wrong bytes of a block whose right parity lies in the scratch blocks;
// false when no single column explains them all. An error e in column z shows as e in P and 2^z e
// in Q; an error in P or Q shows there alone.
bool IsalCoder::explain(Job& job, std::size_t begin, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) {
        const auto in_p = static_cast<std::uint8_t>(p_block_[i] ^ job.p[begin + i]);
        const auto in_q = static_cast<std::uint8_t>(q_block_[i] ^ job.q[begin + i]);
        if (in_p == 0 && in_q == 0) continue;
        LocateVerdict verdict = LocateVerdict::kData;
        std::uint32_t column = 0;
        if (in_q == 0) {
            verdict = LocateVerdict::kP;
        } else if (in_p == 0) {
            verdict = LocateVerdict::kQ;
        } else {
            column = gf256::log_of(gf256::multiply(in_q, gf256::inverse(in_p)));
            if (column >= job.columns) return false;
        }
        if (job.verdict != LocateVerdict::kClean &&
            (job.verdict != verdict || job.located_column != column)) {
            return false;
        }
        job.verdict = verdict;
        job.located_column = column;
    }
    return true;
}

}  // namespace

std::unique_ptr<Coder> make_isal_coder() {
    return std::make_unique<IsalCoder>();
}

}  // namespace warpraid::parity
