// Blocking reads and writes through a group's engine, for the control plane's own small needs. The
// calling thread looks after members that fail meanwhile, since it holds the lock that anybody else
// would need for that.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>

#include "base/result.h"
#include "block/device.h"
#include "control/shard.h"

namespace warpraid::control {

/// Called again and again by a thread that waits for a shard while it holds the service's lock.
using Meanwhile = std::function<void()>;

/// Set once, on a shard; waited for by one control thread.
class Completion {
  public:
    void set();
    /// Returns when set; `meanwhile` runs every few milliseconds until then.
    void wait(const Shard& shard, const Meanwhile& meanwhile);

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_set_ = false;
};

/// Waits until `condition`, asked on the shard, holds.
void wait_on_shard(Shard& shard, const std::function<bool()>& condition,
                   const Meanwhile& meanwhile);

class DeviceIo {
  public:
    DeviceIo(block::Device& device, Shard& shard, Meanwhile meanwhile)
        : device_(device), shard_(shard), meanwhile_(std::move(meanwhile)) {}

    /// Offset and size are multiples of the device's block. kIo.
    Status read(std::uint64_t offset, std::span<std::byte> to);
    /// Durable when it returns.
    Status write(std::uint64_t offset, std::span<const std::byte> from);
    Status flush();

  private:
    Status execute(block::Operation operation, std::uint64_t offset, std::span<std::byte> to,
                   std::span<const std::byte> from);

    block::Device& device_;
    Shard& shard_;
    Meanwhile meanwhile_;
};

}  // namespace warpraid::control
