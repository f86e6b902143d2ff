// A set of small integers with "lowest member" in a handful of steps: a bitmap with a summary
// bitmap over its words, and one over that, until one word is left. No heap after construction. One
// thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"

namespace warpraid::io {

class BitTree {
  public:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};

    BitTree() = default;
    /// Holds numbers below `count`; empty at first.
    explicit BitTree(std::uint64_t count) : count_(count) {
        for (std::uint64_t bits = count; bits > 0;) {
            const std::uint64_t words = (bits + 63) / 64;
            levels_.emplace_back(words, 0);
            bits = words > 1 ? words : 0;
        }
    }

    bool contains(std::uint64_t number) const {
        return number < count_ && (levels_[0][number / 64] & bit(number)) != 0;
    }
    void insert(std::uint64_t number) {
        WARPRAID_ASSERT(number < count_ && !contains(number));
        for (auto& words : levels_) {
            const bool was_empty = words[number / 64] == 0;
            words[number / 64] |= bit(number);
            if (!was_empty) return;
            number /= 64;
        }
    }
    void erase(std::uint64_t number) {
        WARPRAID_ASSERT(contains(number));
        for (auto& words : levels_) {
            words[number / 64] &= ~bit(number);
            if (words[number / 64] != 0) return;
            number /= 64;
        }
    }
    /// kNone when empty.
    std::uint64_t lowest() const {
        if (levels_.empty() || levels_.back()[0] == 0) return kNone;
        std::uint64_t word = 0;
        for (std::size_t level = levels_.size(); level-- > 0;) {
            word = word * 64 + static_cast<std::uint64_t>(std::countr_zero(levels_[level][word]));
        }
        return word;
    }

  private:
    static std::uint64_t bit(std::uint64_t number) { return std::uint64_t{1} << (number % 64); }

    std::uint64_t count_ = 0;
    std::vector<std::vector<std::uint64_t>> levels_;
};

}  // namespace warpraid::io
