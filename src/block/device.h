// The device contract between exports (NBD, ublk) and the engine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "base/limits.h"

namespace warpraid::block {

enum class Operation : std::uint8_t { kRead, kWrite, kFlush, kTrim, kWriteZeroes };

/// One request. Owned by the submitter and alive, with its data, until `complete` is called, on the
/// device's shard and never inside submit(). An error means that the blocks are really lost (or the
/// device is): the engine has already used all redundancy.
struct Request : FifoLink<Request> {
    Operation operation = Operation::kRead;
    bool fua = false;                // kWrite, kTrim, kWriteZeroes: durable when completed
    std::uint64_t offset = 0;        // multiple of the block
    std::uint64_t length_bytes = 0;  // multiple of the block, > 0 (0 for kFlush)
    /// kRead, kWrite: one contiguous buffer aligned to limits::kBufferAlignment.
    std::byte* data = nullptr;

    void (*complete)(Request&) = nullptr;
    void* owner = nullptr;
    /// 0 or a positive errno (EIO, EINVAL, ENOSPC past the end, EROFS).
    int error = 0;

    // For the device's implementation.
    std::uint64_t parts_pending = 0;
    std::uint64_t next_offset = 0;
    std::uint64_t submit_offset = 0;
};

struct Limits {
    std::uint64_t size_bytes = 0;
    std::uint32_t block_bytes = 512;
    /// Multiple that makes writes cheapest (one stripe of user data).
    std::uint64_t optimal_bytes = 0;
    std::uint64_t request_bytes_max = limits::kRequestBytesMax;  // kRead, kWrite
    bool read_only = false;
};

/// All calls on the device's shard.
class Device {
  public:
    virtual ~Device() = default;
    virtual const Limits& limits() const = 0;
    /// Starts a request. One that does not fit the limits completes with EINVAL (ENOSPC for a
    /// write past the end) before any part of it is done.
    virtual void submit(Request& request) = 0;
    /// Completes `request` with `error` like any other, later, without looking at it.
    virtual void reject(Request& request, int error) = 0;
};

/// 0 when `request` fits `limits`, else the errno it must complete with.
int check_request(const Request& request, const Limits& limits);

}  // namespace warpraid::block
