// The drives a measurement runs on, and the loop they complete on. RAM and null drives need no
// kernel and run on the manual reactor; files and block devices run on the product's io_uring.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "io/arena.h"
#include "io/drive.h"
#include "io/ram.h"
#include "io/reactor.h"

namespace warpraid::bench {

/// What the operator asked for: "ram:10x256M", "null:10", "file:DIR" or paths.
struct DriveChoice {
    enum class Kind : std::uint8_t { kRam, kNull, kFiles, kPaths };
    Kind kind = Kind::kRam;
    std::uint32_t count = 0;
    std::uint64_t bytes = 0;         // of each; not used with kPaths
    std::string directory;           // kFiles: drive files are made here and removed at the end
    std::vector<std::string> paths;  // kPaths
    std::string text;                // as given, for the report
};

/// `members` and `bytes` 0 leave the choice to `texts`, or to defaults where those say nothing.
/// kInvalidArgument, kBadSize.
Result<DriveChoice> parse_drives(const std::vector<std::string>& texts, std::uint32_t members,
                                 std::uint64_t bytes);

/// What outlives a single loop: memory, files, open devices. One DriveSet may serve several loops
/// one after the other.
class DriveSet {
  public:
    /// Devices and files are opened exclusively. `block_bytes` is for RAM, null and file drives.
    static Result<std::unique_ptr<DriveSet>> open(const DriveChoice& choice,
                                                  std::uint32_t block_bytes);
    ~DriveSet();
    DriveSet(const DriveSet&) = delete;
    DriveSet& operator=(const DriveSet&) = delete;

    std::uint32_t count() const { return choice_.count; }
    /// Of the smallest.
    std::uint64_t bytes() const;
    std::uint32_t block_bytes() const;
    /// Whether what is written can be read back.
    bool keeps_data() const { return choice_.kind != DriveChoice::Kind::kNull; }

    /// `with_sockets` makes it the product's even where the drives do not need it.
    Result<std::unique_ptr<io::Reactor>> make_reactor(const Clock& clock, io::BufferArena& arena,
                                                      bool with_sockets);
    Result<std::vector<std::unique_ptr<io::Drive>>> bind(io::Reactor& reactor);

  private:
    DriveSet() = default;

    DriveChoice choice_;
    std::uint32_t block_bytes_ = 0;
    std::vector<std::shared_ptr<io::RamStore>> stores_;
    std::unique_ptr<io::DriveProvider> provider_;
    std::vector<std::unique_ptr<io::BlockingDrive>> devices_;
    std::vector<std::string> made_files_;
};

}  // namespace warpraid::bench
