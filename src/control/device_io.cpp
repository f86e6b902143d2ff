#include "control/device_io.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/units.h"
#include "io/arena.h"

namespace warpraid::control {

namespace {

constexpr std::chrono::milliseconds kLookAround{5};
constexpr std::size_t kPieceBytes = 256 * kKiB;

/// One request under way; finished on the shard.
struct Call {
    block::Request request;
    io::Buffer buffer;
    std::span<std::byte> to;
    Completion completion;
    int error = 0;
};

void finish(block::Request& request) {
    Call& call = *static_cast<Call*>(request.owner);
    call.error = request.error;
    if (call.error == 0 && !call.to.empty()) {
        std::memcpy(call.to.data(), call.buffer.data(), call.to.size());
    }
    call.buffer.release();
    call.completion.set();
}

}  // namespace

void Completion::set() {
    const std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_one();
}

void Completion::wait(const Shard& shard, const Meanwhile& meanwhile) {
    std::unique_lock lock(mutex_);
    while (shard.turn && !is_set_) {
        lock.unlock();
        shard.turn();
        if (meanwhile) meanwhile();
        lock.lock();
    }
    while (!changed_.wait_for(lock, kLookAround, [&] { return is_set_; })) {
        lock.unlock();
        if (meanwhile) meanwhile();
        lock.lock();
    }
}

void wait_on_shard(Shard& shard, const std::function<bool()>& condition,
                   const Meanwhile& meanwhile) {
    for (;;) {
        bool holds = false;
        shard.run([&] { holds = condition(); });
        if (holds) return;
        if (meanwhile) meanwhile();
        if (shard.turn) continue;
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable pause;
        pause.wait_for(lock, kLookAround);
    }
}

Status DeviceIo::execute(block::Operation operation, std::uint64_t offset, std::span<std::byte> to,
                         std::span<const std::byte> from) {
    Call call;
    const std::size_t size = std::max(to.size(), from.size());
    call.to = to;
    call.request.operation = operation;
    call.request.fua = operation == block::Operation::kWrite;
    call.request.offset = offset;
    call.request.length_bytes = size;
    call.request.owner = &call;
    call.request.complete = finish;
    // Under load the arena may be empty for a moment.
    wait_on_shard(
        shard_,
        [&] {
            if (size != 0) {
                call.buffer = shard_.engine_arena->try_acquire(size);
                if (!call.buffer) return false;
                call.request.data = call.buffer.data();
                if (!from.empty()) std::memcpy(call.buffer.data(), from.data(), from.size());
            }
            device_.submit(call.request);
            return true;
        },
        meanwhile_);
    call.completion.wait(shard_, meanwhile_);
    if (call.error == 0) return success();
    return system_error(ErrorCode::kIo, "the group cannot be read or written", call.error);
}

Status DeviceIo::read(std::uint64_t offset, std::span<std::byte> to) {
    while (!to.empty()) {
        const std::span<std::byte> piece = to.first(std::min(to.size(), kPieceBytes));
        WARPRAID_TRY(execute(block::Operation::kRead, offset, piece, {}));
        offset += piece.size();
        to = to.subspan(piece.size());
    }
    return success();
}

Status DeviceIo::write(std::uint64_t offset, std::span<const std::byte> from) {
    while (!from.empty()) {
        const std::span<const std::byte> piece = from.first(std::min(from.size(), kPieceBytes));
        WARPRAID_TRY(execute(block::Operation::kWrite, offset, {}, piece));
        offset += piece.size();
        from = from.subspan(piece.size());
    }
    return success();
}

Status DeviceIo::flush() {
    return execute(block::Operation::kFlush, 0, {}, {});
}

}  // namespace warpraid::control
