// A block device in memory for tests and benchmarks: it completes on the next turn of its reactor,
// in submission order unless told otherwise, and counts what it was asked.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/assert.h"
#include "base/intrusive_list.h"
#include "block/device.h"
#include "io/reactor.h"

namespace warpraid::nbd {

class TestDevice final : public block::Device, public io::Poller {
  public:
    TestDevice(io::Reactor& reactor, std::uint64_t size_bytes, std::uint32_t block_bytes)
        : reactor_(reactor), bytes_(static_cast<std::byte*>(std::calloc(size_bytes, 1))) {
        WARPRAID_ASSERT(bytes_ != nullptr);
        limits_.size_bytes = size_bytes;
        limits_.block_bytes = block_bytes;
        limits_.optimal_bytes = 384 * 1024;
        reactor_.add_poller(*this);
    }
    ~TestDevice() override { reactor_.remove_poller(*this); }

    const block::Limits& limits() const override { return limits_; }
    void submit(block::Request& request) override {
        request.error = block::check_request(request, limits_);
        waiting_.push_back(request);
    }
    void reject(block::Request& request, int error) override {
        request.error = error;
        waiting_.push_back(request);
    }

    bool poll(std::uint64_t) override {
        if (waiting_.empty() || (held_ && !release_one_.exchange(false))) return false;
        IntrusiveFifo<block::Request> batch;
        batch.splice_back(waiting_);
        if (reversed_) reverse(batch);
        while (block::Request* request = batch.pop_front()) finish(*request);
        return true;
    }

    // Settings and counters; any thread.
    /// While held, nothing completes.
    void hold(bool held) { held_ = held; }
    /// Lets what is waiting go, once.
    void release_once() { release_one_ = true; }
    /// Completes what came in one turn backwards.
    void reverse_order(bool reversed) { reversed_ = reversed; }
    /// Requests that cover this byte fail with `error`.
    void fail_at(std::uint64_t offset, int error) {
        fail_offset_ = offset;
        fail_error_ = error;
    }
    std::atomic<std::uint64_t> reads = 0, writes = 0, flushes = 0, trims = 0, zeroes = 0, fuas = 0;
    std::atomic<std::uint64_t> longest_bytes = 0;

    /// For tests that look behind the server's back, on its thread.
    std::byte* bytes() { return bytes_.get(); }
    block::Limits& mutable_limits() { return limits_; }

  private:
    void reverse(IntrusiveFifo<block::Request>& batch) {
        IntrusiveFifo<block::Request> turned;
        while (block::Request* request = batch.pop_front()) turned.push_front(*request);
        batch.splice_back(turned);
    }

    void finish(block::Request& request) {
        if (request.error == 0) apply(request);
        request.complete(request);
    }

    void apply(block::Request& request) {
        const std::uint64_t end = request.offset + request.length_bytes;
        if (fail_error_ != 0 && request.offset <= fail_offset_ && fail_offset_ < end) {
            request.error = fail_error_;
            return;
        }
        if (request.length_bytes > longest_bytes) longest_bytes = request.length_bytes;
        if (request.fua) ++fuas;
        std::byte* place = bytes_.get() + request.offset;
        switch (request.operation) {
            case block::Operation::kRead:
                ++reads;
                std::memcpy(request.data, place, request.length_bytes);
                break;
            case block::Operation::kWrite:
                ++writes;
                std::memcpy(place, request.data, request.length_bytes);
                break;
            case block::Operation::kFlush:
                ++flushes;
                break;
            case block::Operation::kTrim:
                ++trims;
                break;
            case block::Operation::kWriteZeroes:
                ++zeroes;
                std::memset(place, 0, request.length_bytes);
                break;
        }
    }

    io::Reactor& reactor_;
    block::Limits limits_;
    struct Free {
        void operator()(std::byte* bytes) const { std::free(bytes); }
    };
    // From calloc: its pages cost nothing until they are used.
    std::unique_ptr<std::byte, Free> bytes_;
    IntrusiveFifo<block::Request> waiting_;
    std::atomic<bool> held_ = false, release_one_ = false, reversed_ = false;
    std::atomic<std::uint64_t> fail_offset_ = 0;
    std::atomic<int> fail_error_ = 0;
};

}  // namespace warpraid::nbd
