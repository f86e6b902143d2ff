// Assembling groups from the superblocks that a scan found: a pure decision, no I/O. Roles come
// from superblocks only, never from paths.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/superblock.h"
#include "io/drive.h"

namespace warpraid::meta {

/// A drive as the scan saw it: the newest valid copy of its superblock, or why there is none.
struct FoundDrive {
    io::DriveIdentity identity;
    io::DriveLimits limits;
    std::optional<format::Superblock> superblock;
    std::optional<Error> problem;  // kBadSuperblock, kUnsupportedVersion, kUnsupportedLayout
    bool damaged_copy = false;     // one of the two copies is bad or older: rewrite it once running
};

/// Reads both superblock copies of `drive`; strictly read-only. A drive whose first copy was
/// overwritten by something with a signature is not ours any more, whatever its last MiB still
/// says: problem kHasSignature.
FoundDrive examine(io::BlockingDrive& drive);

/// What others have left on `drive` ("ext4 file system"); the protective superblock and our own do
/// not count. Strictly read-only.
Result<std::vector<std::string>> foreign_signatures(io::BlockingDrive& drive);

/// What a group is known to have come to, whatever the drives that are here say.
struct KnownState {
    Generation generation;  // of its last commit
    std::string drives;     // those that were in sync then, for a message
};

struct AssemblyOptions {
    /// Start although half or more of the members last known in sync are absent, a degraded
    /// parity group is dirty, or the drives know an older state only than is known.
    bool force = false;
    /// Settles a split brain: the drive (serial or uuid text) whose history is kept.
    std::string preferred_drive = {};
    /// Also offer destroyed groups.
    bool destroyed = false;
    /// Wall time stamped on members whose state changes.
    std::uint64_t now_ns = 0;
    /// Names of groups that run: another group of such a name is called otherwise.
    std::map<std::string, Uuid> taken_names = {};
    /// Groups that do not start from drives that left them earlier.
    std::map<Uuid, KnownState> known = {};
};

/// One group as it can be started.
struct Assembly {
    /// The newest record, with member states as they must be at start: absent members kMissing,
    /// out- of-date ones kMissing with reason kStale; serials, models, paths and sizes as found.
    /// Not yet committed.
    format::GroupRecord record;
    /// Per slot: index into the scan of the drive that belongs there, or nothing. Filled for
    /// `returning` and `outdated` slots too; nothing for members that were put out (kFailed).
    std::vector<std::optional<std::size_t>> drives;
    /// Slots whose drive is out of date but may be recovered by the bitmap (its departure is the
    /// record's own memory and it has not lived a life of its own).
    std::vector<Slot> returning;
    /// Slots whose drive is out of date and needs a full rebuild.
    std::vector<Slot> outdated;
    /// Drives with a damaged or older copy; the next commit mends them.
    std::vector<Slot> damaged;
    std::vector<std::string> warnings;
};

/// A group that was found: startable, or why not.
struct Candidate {
    Uuid group;
    /// Unique among the candidates: of several groups with one name, all but the oldest get a part
    /// of their uuid appended (the record keeps the stored name). Bytes as stored, see
    /// format/record.h.
    std::string name;
    std::optional<Assembly> assembly;
    std::optional<Error> problem;     // kIncomplete, kQuorumLost, kSplitBrain, kDuplicateMember ...
    std::vector<std::size_t> drives;  // indices into the scan, all that name this group
};

/// Groups found in `scan`, sorted by uuid. One bad group never hides another.
std::vector<Candidate> assemble(std::span<const FoundDrive> scan, const AssemblyOptions& options);

/// The check that assemble() cannot make, since it does no I/O: call it with what
/// Store::read_bitmap() said before the group starts. kDirtyDegraded when a parity group was not
/// stopped in order, has dirty regions, and lacks members: the missing blocks of stripes that were
/// being written cannot be computed. Mirrors start, and so does anything with `force`.
Status check_dirty_start(const Assembly& assembly, std::span<const std::uint64_t> dirty,
                         const AssemblyOptions& options);

}  // namespace warpraid::meta
