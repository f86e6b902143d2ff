// The data thread with everything that lives on it: reactor, NBD server, parity coder, buffers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "control/shard.h"
#include "io/arena.h"

namespace warpraid::daemon {

struct DataShardOptions {
    std::uint64_t engine_arena_bytes = 0;
    std::uint64_t nbd_arena_bytes = 0;
    bool register_buffers = false;
};

class DataShard {
  public:
    /// Returns when the thread turns its loop. The reactor's error explains what the kernel
    /// refused.
    static Result<std::unique_ptr<DataShard>> start(const DataShardOptions& options,
                                                    const Clock& clock);
    /// Closes what NBD connections are left, after their requests, and ends the thread. Nothing
    /// else may still use the shard.
    ~DataShard();
    DataShard(const DataShard&) = delete;
    DataShard& operator=(const DataShard&) = delete;

    control::Shard& shard() { return shard_; }
    /// The NBD server accepts connections on `listener` from now on.
    void listen(UniqueFd listener);

  private:
    explicit DataShard(const Clock& clock) : clock_(clock) {}
    void thread_main(const DataShardOptions& options);
    void announce(Status status);

    const Clock& clock_;
    std::unique_ptr<io::BufferArena> engine_arena_;
    std::unique_ptr<io::BufferArena> nbd_arena_;
    control::Shard shard_;
    bool stopping_ = false;  // the data thread's own

    std::mutex mutex_;
    std::condition_variable started_;
    std::optional<Status> start_status_;
    std::thread thread_;
};

}  // namespace warpraid::daemon
