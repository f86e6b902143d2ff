// Which ranges of the group's address space are held by operations in flight. A few dozen at most,
// so a walk over the holders is enough; no heap. One shard.
#pragma once

#include <cstdint>

#include "base/assert.h"

namespace warpraid::array {

/// Embedded in an operation that may hold a range [begin, end) of group offsets.
struct RangeHolder {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool shared = false;  // readers of a stable stripe do not exclude each other
    bool held = false;
    RangeHolder* next = nullptr;
    RangeHolder* previous = nullptr;
};

class RangeLock {
  public:
    bool conflicts(std::uint64_t begin, std::uint64_t end, bool shared) const {
        for (const RangeHolder* holder = first_; holder != nullptr; holder = holder->next) {
            if (begin < holder->end && holder->begin < end && !(shared && holder->shared)) {
                return true;
            }
        }
        return false;
    }
    bool try_lock(RangeHolder& holder) {
        WARPRAID_ASSERT(!holder.held && holder.begin < holder.end);
        if (conflicts(holder.begin, holder.end, holder.shared)) return false;
        holder.held = true;
        holder.previous = nullptr;
        holder.next = first_;
        if (first_ != nullptr) first_->previous = &holder;
        first_ = &holder;
        return true;
    }
    void unlock(RangeHolder& holder) {
        WARPRAID_ASSERT(holder.held);
        holder.held = false;
        (holder.previous != nullptr ? holder.previous->next : first_) = holder.next;
        if (holder.next != nullptr) holder.next->previous = holder.previous;
        ++releases_;
    }
    /// Grows with every unlock: those who wait look again only when it changed.
    std::uint64_t releases() const { return releases_; }
    bool empty() const { return first_ == nullptr; }

  private:
    RangeHolder* first_ = nullptr;
    std::uint64_t releases_ = 0;
};

}  // namespace warpraid::array
