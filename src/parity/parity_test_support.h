// A stripe in memory whose parity is computed from first principles, and the checks that every
// coder must pass on it. For the tests of coders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "parity/coder.h"

namespace warpraid::parity::testing {

/// 2 * value in the field by shift and reduce.
std::uint8_t twice(std::uint8_t value);

/// Column numbers: data 0..columns-1, P = columns, Q = columns + 1. Every column is followed by a
/// guard that finds writes past its end.
class TestStripe {
  public:
    /// Random data and right parity.
    TestStripe(std::uint32_t columns, std::size_t length_bytes, SeededRandom& random);

    std::uint32_t columns() const { return columns_; }
    std::size_t length_bytes() const { return length_bytes_; }
    std::uint32_t p_index() const { return columns_; }
    std::uint32_t q_index() const { return columns_ + 1; }
    std::byte* column(std::uint32_t index) { return pointers_[index]; }
    std::byte* const* data() const { return pointers_.data(); }

    /// P and Q recomputed from the data.
    void refresh_parity();
    void fill(std::uint32_t index, std::byte value);
    void randomize(std::uint32_t index, SeededRandom& random);
    std::vector<std::byte> snapshot(std::uint32_t index) const;
    std::vector<std::vector<std::byte>> snapshot() const;
    /// Empty when every column has the bytes of `expected` and every guard is whole.
    std::string difference(const std::vector<std::vector<std::byte>>& expected) const;

    /// A job of `kind` with data, P and Q of this stripe.
    Job job(JobKind kind) const;

  private:
    struct Free {
        void operator()(std::byte* memory) const;
    };
    std::uint32_t columns_;
    std::size_t length_bytes_;
    std::vector<std::unique_ptr<std::byte, Free>> memory_;
    std::vector<std::byte*> pointers_;
};

/// Runs one job to its end.
void run(Coder& coder, Job& job);

/// Loses `missing` (one or two, ascending), reconstructs, and compares everything. `null_p` and
/// `null_q` give no pointer for that parity, so that it is neither read nor written. Empty when
/// right.
std::string check_reconstruct(Coder& coder, TestStripe& stripe, std::vector<std::uint32_t> missing,
                              bool null_p, bool null_q);

/// check_reconstruct for every combination of null pointers that the contract allows for
/// `missing`.
std::string check_reconstruct_all_ways(Coder& coder, TestStripe& stripe,
                                       std::vector<std::uint32_t> missing);

}  // namespace warpraid::parity::testing
