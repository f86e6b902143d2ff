// A FIFO of objects that carry their own link: no allocation, an object is in at most one list.
// Not thread-safe; each list belongs to one shard.
#pragma once

#include <cstddef>

#include "base/assert.h"

namespace warpraid {

/// Base of anything that can wait in an IntrusiveFifo<T>. `T` derives from FifoLink<T>.
template <typename T>
class FifoLink {
  public:
    bool is_queued() const { return queued_; }

  private:
    template <typename U>
    friend class IntrusiveFifo;
    T* next_ = nullptr;
    bool queued_ = false;
};

template <typename T>
class IntrusiveFifo {
  public:
    IntrusiveFifo() = default;
    IntrusiveFifo(const IntrusiveFifo&) = delete;
    IntrusiveFifo& operator=(const IntrusiveFifo&) = delete;

    bool empty() const { return head_ == nullptr; }
    std::size_t size() const { return size_; }
    T* front() { return head_; }
    /// The one behind `item`, which must be in this list; null at the end.
    static T* after(T& item) { return link(item).next_; }

    void push_back(T& item) {
        FifoLink<T>& node = link(item);
        WARPRAID_ASSERT(!node.queued_);
        node.queued_ = true;
        node.next_ = nullptr;
        (tail_ != nullptr ? link(*tail_).next_ : head_) = &item;
        tail_ = &item;
        ++size_;
    }
    void push_front(T& item) {
        FifoLink<T>& node = link(item);
        WARPRAID_ASSERT(!node.queued_);
        node.queued_ = true;
        node.next_ = head_;
        head_ = &item;
        if (tail_ == nullptr) tail_ = &item;
        ++size_;
    }
    T* pop_front() {
        T* item = head_;
        if (item != nullptr) remove_after(nullptr, *item);
        return item;
    }
    /// Removes `item`, whose predecessor is `previous` (null when it is the first).
    void remove_after(T* previous, T& item) {
        FifoLink<T>& node = link(item);
        WARPRAID_ASSERT(node.queued_);
        (previous != nullptr ? link(*previous).next_ : head_) = node.next_;
        if (tail_ == &item) tail_ = previous;
        node.next_ = nullptr;
        node.queued_ = false;
        --size_;
    }
    /// Moves everything of `other` to the end of this list.
    void splice_back(IntrusiveFifo& other) {
        while (T* item = other.pop_front()) push_back(*item);
    }

  private:
    static FifoLink<T>& link(T& item) { return static_cast<FifoLink<T>&>(item); }

    T* head_ = nullptr;
    T* tail_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace warpraid
