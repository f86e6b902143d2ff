// The state of one request from its header to the last byte of its reply, and the pool these come
// from: allocated once, so that a request costs no heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/assert.h"
#include "base/intrusive_list.h"
#include "block/device.h"
#include "export/nbd/reply.h"
#include "io/arena.h"

namespace warpraid::nbd {

class Connection;

struct Frame : FifoLink<Frame> {
    block::Request request;
    io::Buffer data;
    Connection* connection = nullptr;
    Reply reply;
};

class FramePool {
  public:
    explicit FramePool(std::size_t count) : count_(count), frames_(new Frame[count]) {
        for (std::size_t i = 0; i < count; ++i) free_.push_back(frames_[i]);
    }
    ~FramePool() { WARPRAID_ASSERT(free_.size() == count_); }
    FramePool(const FramePool&) = delete;
    FramePool& operator=(const FramePool&) = delete;

    bool empty() const { return free_.empty(); }
    /// There must be one.
    Frame& take() {
        Frame* frame = free_.pop_front();
        WARPRAID_ASSERT(frame != nullptr);
        return *frame;
    }
    /// The one used last is the first to be used again: it is still in the cache.
    void give_back(Frame& frame) {
        frame.data.release();
        frame.connection = nullptr;
        free_.push_front(frame);
    }

  private:
    std::size_t count_;
    std::unique_ptr<Frame[]> frames_;
    IntrusiveFifo<Frame> free_;
};

}  // namespace warpraid::nbd
