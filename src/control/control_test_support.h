// For tests: a service over RAM drives with a real shard thread. Drives can vanish, come back, fail
// and be frozen (nothing that is written any more arrives), which together with a fresh service
// over the same bytes is a crash.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "control/service_impl.h"
#include "io/arena.h"
#include "io/manual_reactor.h"
#include "io/ram.h"

namespace warpraid::control {

/// One RAM drive and its faults; any thread.
struct TestDrive {
    std::string serial;
    std::shared_ptr<io::RamStore> store;
    std::uint64_t size_bytes = 0;
    std::uint32_t block_bytes = 512;
    std::atomic<bool> gone = false;
    std::atomic<bool> shrunk = false;  // only for probe and for the next opening
    std::atomic<bool> fail_writes = false;
    // The group's own writes that start here fail, unlike those of superblocks.
    std::atomic<std::uint64_t> fail_writes_from = 0, fail_writes_below = 0;
    std::atomic<bool> fail_flushes = false;
    /// Once so many copies of superblocks were written, the drive vanishes at the next.
    std::atomic<int> superblock_writes_left = std::numeric_limits<int>::max();
    std::atomic<std::uint64_t> failed_commands = 0;
    std::atomic<bool> fail_reads = false;
    std::atomic<bool> read_only = false;
    std::atomic<bool> anonymous = false;  // tells no serial number
    std::atomic<bool> held = false;
    std::atomic<bool> hold_bitmap = false;  // its writes stay under way, and fail in the end
    std::function<void()> before_write;     // of the blocking face; set before it is used
    std::atomic<std::uint32_t> bitmap_writes_held = 0;
    std::atomic<bool>* frozen = nullptr;
    std::atomic<std::uint64_t>* tear_seed = nullptr;
    std::atomic<std::uint64_t> writes = 0;
};

class TestProvider final : public io::DriveProvider {
  public:
    /// The drive's path is "/ram/<serial>".
    TestDrive& add(const std::string& serial, std::uint64_t size_bytes,
                   std::uint32_t block_bytes = 512);
    TestDrive& drive(const std::string& serial) {
        const std::lock_guard lock(mutex_);
        return *drives_.at("/ram/" + serial);
    }
    /// Another path of the drive.
    void alias(const std::string& serial, const std::string& path) {
        const std::lock_guard lock(mutex_);
        drives_[path] = drives_.at("/ram/" + serial);
    }
    /// A drive of another name and serial over the bytes of `serial`.
    TestDrive& add_over(const std::string& serial, const std::string& upper);
    /// Two drives change their paths.
    void swap_paths(const std::string& first, const std::string& second);
    /// The drive has another path from now on.
    void move(const std::string& serial, const std::string& path) {
        const std::lock_guard lock(mutex_);
        drives_[path] = drives_.at("/ram/" + serial);
        drives_.erase("/ram/" + serial);
    }
    std::vector<std::byte> bytes_of(const std::string& serial);

    Result<std::unique_ptr<io::BlockingDrive>> open(const std::string& path,
                                                    io::OpenMode mode) override;
    Result<std::unique_ptr<io::Drive>> bind(io::BlockingDrive& drive, io::Reactor& reactor,
                                            std::uint64_t command_timeout_ns) override;
    bool share_storage(const io::BlockingDrive& first, const io::BlockingDrive& second) override;
    std::vector<std::string> list(std::span<const std::string> patterns) override;

    std::atomic<bool> frozen = false;
    /// Unless 0: of the write at which `before_write` freezes the drives, some logical blocks
    /// arrive and some do not.
    std::atomic<std::uint64_t> tear_seed = 0;
    std::atomic<bool> knows_stacking = false;  // whether share_storage() tells anything

  private:
    std::mutex mutex_;  // tests add drives while the service scans
    std::map<std::string, std::shared_ptr<TestDrive>> drives_;
};

struct ServiceTestAccess {
    /// The engine of a running group.
    static block::Device& device(Service& service, const std::string& group);
    /// While the result lives, the service does nothing of its own.
    static std::unique_lock<std::mutex> pause(Service& service);
};

class World {
  public:
    World();
    ~World();

    Service& service() { return *service_; }
    void start();
    /// An orderly stop.
    void stop();
    /// Whatever the service still writes from here on never arrives.
    void crash();
    void crash_and_start() {
        crash();
        start();
    }

    /// Drives "d0".. of `size_bytes`, registered with the service.
    void add_drives(std::uint32_t count, std::uint64_t size_bytes = 80 * kMiB);
    GroupInfo make_group(geometry::Level level, std::uint32_t members,
                         const std::string& name = "g");
    GroupInfo group(const std::string& name = "g");
    /// Polls for up to five minutes; false when it never held.
    bool wait_for(const std::function<bool()>& condition);
    bool wait_for_state(GroupState state, const std::string& name = "g");
    std::size_t count_events(const std::string& kind);
    bool has_event(const std::string& kind) { return count_events(kind) != 0; }

    /// A pattern that says where it belongs; `seed` distinguishes versions.
    Status write_pattern(std::uint64_t offset, std::uint64_t bytes, std::uint64_t seed,
                         const std::string& name = "g");
    testing::AssertionResult holds_pattern(std::uint64_t offset, std::uint64_t bytes,
                                           std::uint64_t seed, const std::string& name = "g");
    /// Of rebuild and resync; 0: no limit. A test holds work with it that must last while it looks.
    void set_rebuild_rate(std::uint64_t bytes_per_second);
    /// Runs a verify pass to its end.
    std::uint64_t count_mismatches(const std::string& name = "g");

    TestProvider provider;
    ServiceOptions options;
    Shard shard;

  private:
    void run_shard();

    SystemClock clock_;
    SeededRandom random_;
    std::filesystem::path directory_;
    std::unique_ptr<io::ManualReactor> reactor_;
    std::unique_ptr<io::BufferArena> arena_;
    std::unique_ptr<parity::Coder> coder_;
    std::unique_ptr<nbd::Server> server_;
    std::atomic<bool> stopping_ = false;
    std::thread thread_;
    std::unique_ptr<Service> service_;
};

}  // namespace warpraid::control
