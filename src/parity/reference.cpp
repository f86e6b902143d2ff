#include "parity/reference.h"

#include <algorithm>

#include "base/assert.h"
#include "parity/gf256.h"

namespace warpraid::parity {
namespace {

using gf256::inverse;
using gf256::multiply;
using gf256::power_of_two;

std::uint8_t at(const std::byte* column, std::size_t i) {
    return std::to_integer<std::uint8_t>(column[i]);
}

/// P and Q contributions of a byte position: sums over all data columns but the (at most two) in
/// `skip`.
struct Sums {
    std::uint8_t p = 0;
    std::uint8_t q = 0;
};

Sums sums_without(const Job& job, std::size_t i, std::span<const std::uint32_t> skip) {
    Sums sums;
    for (std::uint32_t column = 0; column < job.columns; ++column) {
        if (std::ranges::find(skip, column) != skip.end()) continue;
        const std::uint8_t value = at(job.data[column], i);
        sums.p ^= value;
        sums.q ^= multiply(power_of_two(column), value);
    }
    return sums;
}

void encode(Job& job) {
    for (std::size_t i = 0; i < job.length_bytes; ++i) {
        const Sums sums = sums_without(job, i, {});
        if (job.p != nullptr) job.p[i] = std::byte{sums.p};
        if (job.q != nullptr) job.q[i] = std::byte{sums.q};
    }
}

void update(Job& job) {
    for (std::size_t i = 0; i < job.length_bytes; ++i) {
        for (std::uint32_t k = 0; k < job.update_count; ++k) {
            const std::uint8_t delta = at(job.data[k], i) ^ at(job.new_data[k], i);
            if (job.p != nullptr) job.p[i] ^= std::byte{delta};
            if (job.q != nullptr) {
                job.q[i] ^= std::byte{multiply(power_of_two(job.update_columns[k]), delta)};
            }
        }
    }
}

/// Two missing data columns x < y: from P, Dx + Dy; from Q, 2^x Dx + 2^y Dy.
void solve_two(Job& job, std::size_t i, std::uint32_t x, std::uint32_t y, Sums known) {
    const std::uint8_t sum_p = at(job.p, i) ^ known.p;
    const std::uint8_t sum_q = at(job.q, i) ^ known.q;
    const std::uint8_t divisor = power_of_two(x) ^ power_of_two(y);
    const std::uint8_t dx = multiply(inverse(divisor), sum_q ^ multiply(power_of_two(y), sum_p));
    if (job.data[x] != nullptr) job.data[x][i] = std::byte{dx};
    if (job.data[y] != nullptr) job.data[y][i] = static_cast<std::byte>(sum_p ^ dx);
}

/// One missing data column x. P is preferred; `use_p` is false when P is missing too or not given.
std::uint8_t solve_one(const Job& job, std::size_t i, std::uint32_t x, bool use_p, Sums known) {
    if (use_p) return at(job.p, i) ^ known.p;
    return multiply(inverse(power_of_two(x)), at(job.q, i) ^ known.q);
}

void reconstruct(Job& job) {
    WARPRAID_ASSERT(job.missing_count >= 1 && job.missing_count <= 2);
    const std::span missing(job.missing, job.missing_count);
    const auto is_missing = [&](std::uint32_t index) {
        return std::ranges::find(missing, index) != missing.end();
    };
    const auto data_missing = static_cast<std::size_t>(
        std::ranges::count_if(missing, [&](std::uint32_t m) { return m < job.columns; }));
    const std::span missing_data = missing.first(data_missing);  // ascending: data come first
    const bool p_missing = is_missing(job.columns);
    const bool q_missing = is_missing(job.columns + 1);

    for (std::size_t i = 0; i < job.length_bytes; ++i) {
        Sums sums = sums_without(job, i, missing_data);
        if (data_missing == 2) {
            solve_two(job, i, missing[0], missing[1], sums);
            continue;
        }
        if (data_missing == 1) {
            const std::uint32_t x = missing[0];
            const std::uint8_t value = solve_one(job, i, x, job.p != nullptr && !p_missing, sums);
            if (job.data[x] != nullptr) job.data[x][i] = std::byte{value};
            sums.p ^= value;
            sums.q ^= multiply(power_of_two(x), value);
        }
        if (p_missing && job.p != nullptr) job.p[i] = std::byte{sums.p};
        if (q_missing && job.q != nullptr) job.q[i] = std::byte{sums.q};
    }
}

void verify(Job& job) {
    job.matches = true;
    for (std::size_t i = 0; i < job.length_bytes && job.matches; ++i) {
        const Sums sums = sums_without(job, i, {});
        if (job.p != nullptr && at(job.p, i) != sums.p) job.matches = false;
        if (job.q != nullptr && at(job.q, i) != sums.q) job.matches = false;
    }
}

/// A wrong column z with error e gives syndromes e in P and 2^z e in Q at every wrong byte; a wrong
/// P or Q alone leaves the other syndrome zero. One culprit must explain every byte.
void locate(Job& job) {
    job.verdict = LocateVerdict::kClean;
    job.located_column = 0;
    for (std::size_t i = 0; i < job.length_bytes; ++i) {
        const Sums sums = sums_without(job, i, {});
        const std::uint8_t dp = at(job.p, i) ^ sums.p;
        const std::uint8_t dq = at(job.q, i) ^ sums.q;
        if (dp == 0 && dq == 0) continue;
        LocateVerdict here = LocateVerdict::kData;
        std::uint32_t column = 0;
        if (dq == 0) {
            here = LocateVerdict::kP;
        } else if (dp == 0) {
            here = LocateVerdict::kQ;
        } else {
            column = gf256::log_of(multiply(dq, inverse(dp)));
            if (column >= job.columns) here = LocateVerdict::kAmbiguous;
        }
        const bool first = job.verdict == LocateVerdict::kClean;
        const bool same = job.verdict == here && job.located_column == column;
        if (here == LocateVerdict::kAmbiguous || (!first && !same)) {
            job.verdict = LocateVerdict::kAmbiguous;
            job.located_column = 0;
            return;
        }
        job.verdict = here;
        job.located_column = column;
    }
}

class ReferenceCoder final : public Coder {
  public:
    std::string_view name() const override { return "reference"; }

    void submit(Batch& batch) override {
        for (Job& job : batch.jobs) run(job);
        batch.done = true;
    }

    std::size_t poll() override { return 0; }

  private:
    static void run(Job& job) {
        WARPRAID_ASSERT(job.length_bytes % kAlignment == 0);
        switch (job.kind) {
            case JobKind::kEncode:
                return encode(job);
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
};

}  // namespace

std::unique_ptr<Coder> make_reference_coder() {
    return std::make_unique<ReferenceCoder>();
}

}  // namespace warpraid::parity
