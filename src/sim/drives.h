// Simulated drives: both faces of the drive contracts over a Medium, with a time for everything and
// faults that a schedule switches. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "io/drive.h"
#include "io/reactor.h"
#include "sim/medium.h"
#include "sim/time.h"

namespace warpraid::sim {

/// One drive, whoever has it open.
struct DriveState {
    DriveState(const std::string& name, std::uint64_t size_bytes, std::uint32_t block_bytes)
        : serial(name), medium(size_bytes, block_bytes) {}

    std::string serial;
    Medium medium;
    bool gone = false;  // pulled: every command fails, nothing is found at its path
    bool held = false;  // open for writing
    bool fails_writes = false;
    bool fails_flushes = false;
    std::uint32_t read_errors = 0;     // so many of the next reads fail
    std::uint64_t failed_read_ns = 0;  // when the last of them was sent
    std::uint64_t latency_ns = 20'000;
    std::uint64_t commands = 0;  // submitted, ever
};

class Drives final : public io::DriveProvider {
  public:
    Drives(Time& time, SeededRandom& random) : time_(time), random_(random) {}

    /// At "/sim/<serial>".
    DriveState& add(const std::string& serial, std::uint64_t size_bytes, std::uint32_t block_bytes);
    DriveState& drive(const std::string& serial) { return *drives_.at(path_of(serial)); }
    static std::string path_of(const std::string& serial) { return "/sim/" + serial; }

    /// The host stops here: nothing that it sends from now on arrives anywhere, until thaw().
    /// Drives keep what is in their caches, unless their power is cut.
    void freeze() { frozen_ = true; }
    void cut_power();
    void thaw() { frozen_ = false; }
    bool frozen() const { return frozen_; }
    /// Of all that all drives hold.
    std::uint64_t digest() const;

    Result<std::unique_ptr<io::BlockingDrive>> open(const std::string& path,
                                                    io::OpenMode mode) override;
    Result<std::unique_ptr<io::Drive>> bind(io::BlockingDrive& drive, io::Reactor& reactor,
                                            std::uint64_t command_timeout_ns) override;
    bool share_storage(const io::BlockingDrive& first, const io::BlockingDrive& second) override;
    std::vector<std::string> list(std::span<const std::string> patterns) override;

  private:
    Time& time_;
    SeededRandom& random_;
    bool frozen_ = false;
    std::map<std::string, std::shared_ptr<DriveState>> drives_;
};

}  // namespace warpraid::sim
