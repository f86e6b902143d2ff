#include "sim/host.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"

namespace warpraid::sim {

namespace {

using block::Operation;

constexpr std::uint64_t kCallBlocksMax = 96;
constexpr std::uint32_t kCallsMax = 8;

bool is_write(Operation operation) {
    return operation == Operation::kWrite || operation == Operation::kWriteZeroes;
}

}  // namespace

struct Host::Call {
    explicit Call(std::size_t bytes)
        : memory(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)), &std::free) {}

    std::unique_ptr<std::byte, decltype(&std::free)> memory;
    Host* host = nullptr;
    block::Request request;
    bool in_use = false;
    std::uint64_t first = 0, count = 0;
    std::uint64_t write = 0;             // of a write: its number
    std::uint64_t flush = 0;             // of a flush: when it started
    std::vector<Model::Sight> sights{};  // of a read
};

Host::Host(SeededRandom& random, std::uint64_t offset, std::uint64_t blocks,
           std::uint32_t block_bytes)
    : random_(random), offset_(offset), model_(blocks, block_bytes) {
    for (std::uint32_t i = 0; i < kCallsMax; ++i) {
        calls_.push_back(std::make_unique<Call>(kCallBlocksMax * block_bytes));
        calls_.back()->host = this;
    }
}

Host::~Host() {
    WARPRAID_ASSERT(in_flight_ == 0);
}

Host::Call* Host::free_call() {
    for (const auto& call : calls_) {
        if (!call->in_use) return call.get();
    }
    return nullptr;
}

/// What happens to blocks that are written twice at once is not promised.
bool Host::is_free(std::uint64_t first, std::uint64_t count, bool for_writing) const {
    return std::none_of(calls_.begin(), calls_.end(), [&](const auto& call) {
        const bool is_apart = first >= call->first + call->count || call->first >= first + count;
        return call->in_use && !is_apart && for_writing && is_write(call->request.operation);
    });
}

void Host::send(std::uint32_t depth) {
    while (device_ != nullptr && in_flight_ < std::min(depth, kCallsMax)) {
        Call* call = free_call();
        if (call == nullptr) return;
        send_one(*call);
        if (!call->in_use) return;
    }
}

void Host::send_one(Call& call) {
    const std::uint64_t kind = random_.below(20);
    if (kind == 0) return start(call, Operation::kFlush, 0, 0);
    const Operation operation = kind < 12    ? Operation::kWrite
                                : kind == 12 ? Operation::kWriteZeroes
                                             : Operation::kRead;
    const std::uint64_t most = random_.below(4) == 0 ? kCallBlocksMax : 4;
    const std::uint64_t count = std::min(1 + random_.below(most), model_.blocks());
    const std::uint64_t first = random_.below(model_.blocks() - count + 1);
    if (!is_free(first, count, is_write(operation))) return;
    start(call, operation, first, count);
}

void Host::start(Call& call, Operation operation, std::uint64_t first, std::uint64_t count) {
    call.in_use = true;
    call.first = first;
    call.count = count;
    call.request = {};
    call.request.operation = operation;
    call.request.offset = offset_ + first * model_.block_bytes();
    call.request.length_bytes = count * model_.block_bytes();
    call.request.owner = &call;
    call.request.complete = [](block::Request& request) {
        Call& ended = *static_cast<Call*>(request.owner);
        ended.host->end(ended);
    };
    const std::span<std::byte> bytes{call.memory.get(), call.request.length_bytes};
    if (operation == Operation::kFlush) {
        call.request.offset = 0;
        call.flush = model_.start_flush();
    } else if (operation == Operation::kRead) {
        call.request.data = bytes.data();
        std::memset(bytes.data(), 0xa5, bytes.size());
        call.sights = model_.start_read(first, count);
    } else {
        call.request.fua = random_.below(8) == 0;
        call.write = model_.start_write(first, count, operation == Operation::kWriteZeroes);
        if (operation == Operation::kWrite) {
            call.request.data = bytes.data();
            model_.fill(call.write, first, bytes);
        }
    }
    ++in_flight_;
    ++sent_;
    device_->submit(call.request);
}

void Host::end(Call& call) {
    --in_flight_;
    call.in_use = false;
    const block::Request& request = call.request;
    const bool done = request.error == 0 && !is_gone_;
    if (!done && !is_gone_ && !problem_) {
        problem_ = "a request of " + std::to_string(call.count) + " blocks at block " +
                   std::to_string(call.first) + " ended with " + std::strerror(request.error);
    }
    if (is_write(request.operation)) {
        model_.end_write(call.write, call.first, call.count, done, request.fua);
    } else if (request.operation == Operation::kFlush) {
        if (done) model_.end_flush(call.flush);
    } else if (done && !problem_) {
        problem_ = model_.check(call.first, {call.memory.get(), request.length_bytes}, call.sights);
    }
}

void Host::come_back() {
    WARPRAID_ASSERT(is_gone_ && in_flight_ == 0);
    is_gone_ = false;
    model_.crash();
}

bool Host::read_all() {
    if (in_flight_ != 0) return false;
    if (next_to_read_ == model_.blocks()) {
        next_to_read_ = 0;
        return true;
    }
    const std::uint64_t count = std::min(kCallBlocksMax, model_.blocks() - next_to_read_);
    start(*calls_.front(), Operation::kRead, next_to_read_, count);
    next_to_read_ += count;
    return false;
}

}  // namespace warpraid::sim
