// The drive contracts. A physical drive has two faces: a *blocking* one for the control plane
// (superblocks, signatures, partition tables) and an *asynchronous* one per shard for data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/command.h"

namespace warpraid::io {

class Reactor;

/// What a drive is, wherever its path points today.
struct DriveIdentity {
    std::string path;    // as opened
    std::string serial;  // hardware serial; for a plain file a stable id made of device and inode
    std::string model;   // "file", "ram", or the hardware's model
    std::string wwid;    // world-wide id when the hardware has one, else empty
};

struct DriveLimits {
    std::uint64_t size_bytes = 0;
    std::uint32_t logical_block_bytes = 512;   // smallest addressable unit
    std::uint32_t physical_block_bytes = 512;  // smallest unit written without read-modify-write
    bool read_only = false;
    bool rotational_cache = true;  // has a volatile write cache, so flush matters
};

/// Data-path face, bound to one shard. All calls on that shard.
class Drive {
  public:
    virtual ~Drive() = default;
    /// Starts `command`; its `complete` runs later from the reactor's completion phase, on success
    /// and on error alike. kWriteZeroes always works (written out where the device has no command
    /// for it); kDiscard may do nothing.
    virtual void submit(Command& command) = 0;
    virtual const DriveLimits& limits() const = 0;
    /// Commands submitted and not yet completed.
    virtual std::uint32_t in_flight() const = 0;
    /// Whether any command is past its deadline right now. The kernel may still hold its memory, so
    /// the command itself completes later; the member can be put out at once.
    virtual bool overdue() const { return false; }
    /// For reactors: called in the completion phase just before `complete`, for commands whose
    /// `drive` is this one.
    virtual void note_completed(Command& command) { static_cast<void>(command); }
};

/// Control-plane face. Blocking; one thread at a time per object.
class BlockingDrive {
  public:
    virtual ~BlockingDrive() = default;
    virtual const DriveIdentity& identity() const = 0;
    virtual const DriveLimits& limits() const = 0;
    /// Offset and size must be multiples of the logical block; the buffer may be unaligned.
    virtual Status read(std::uint64_t offset, std::span<std::byte> to) = 0;
    virtual Status write(std::uint64_t offset, std::span<const std::byte> from) = 0;
    virtual Status flush() = 0;
    /// Looks at the hardware again (size, presence); kDriveMissing when it is gone, kMemberTooSmall
    /// when it shrank: what lay behind its end is lost, even if it grows back.
    virtual Status probe() = 0;
};

/// How a drive is opened. Reading never changes a byte of it.
enum class OpenMode : std::uint8_t {
    kReadOnly,   // examine: works while others use it
    kExclusive,  // a member or a candidate: fails with kDriveBusy when somebody else holds it
};

/// Opens drives by path; the product implementation is io/uring, the simulator has its own.
class DriveProvider {
  public:
    virtual ~DriveProvider() = default;
    /// kDriveMissing, kDriveBusy, kDriveReadOnly (kExclusive only), kDriveOpen.
    virtual Result<std::unique_ptr<BlockingDrive>> open(const std::string& path, OpenMode mode) = 0;
    /// The asynchronous face of an opened drive on `reactor`'s shard. Call on that shard, or before
    /// it runs. `command_timeout_ns` is the deadline of every command; 0 is none. The blocking
    /// drive must outlive it.
    virtual Result<std::unique_ptr<Drive>> bind(BlockingDrive& drive, Reactor& reactor,
                                                std::uint64_t command_timeout_ns) = 0;
    /// Whether the two opened drives are known to be one piece of storage: two names of a device or
    /// file, or one stacked on the other. False says only that nothing of the kind is known.
    virtual bool share_storage(const BlockingDrive& first, const BlockingDrive& second) = 0;
    /// Paths that match the patterns (shell globs) and may be drives, sorted, without duplicates.
    virtual std::vector<std::string> list(std::span<const std::string> patterns) = 0;
};

}  // namespace warpraid::io
