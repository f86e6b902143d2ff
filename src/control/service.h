// The one owner of groups: validated commands change state, queries return plain values, every
// change leaves an event. Knows no HTTP and no JSON. Any thread may call; commands run one at a
// time. Every refusal happens before the first byte is written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "array/engine.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "control/shard.h"
#include "format/record.h"
#include "geometry/layout.h"
#include "io/drive.h"
#include "tasks/recovery.h"

namespace warpraid::control {

// ---- what queries return ------------------------------------------------------------------------

enum class DriveUse : std::uint8_t {
    kUnconfigured,  // registered, free to use
    kMember,
    kSpare,
    kForeign,  // carries a superblock of a group that is not running here, or a signature
    kMissing,  // registered, not found now
};

struct DriveInfo {
    std::uint32_t id = 0;  // small number for the command line; stable while registered
    std::string path, serial, model, wwid;
    std::uint64_t size_bytes = 0;
    std::uint32_t logical_block_bytes = 0, physical_block_bytes = 0;
    DriveUse use = DriveUse::kUnconfigured;
    std::string group;  // name, when a member or spare of one
    std::optional<std::uint32_t> slot;
    std::string detail;  // "in use by group data", "ext4 file system", a problem
};

enum class GroupState : std::uint8_t {
    kOptimal,
    kDegraded,
    kRebuilding,
    kResyncing,
    kHeld, /* made by force, waits for its first volume: it can be undone where it was made */
    kFailed,
    kOffline /* found, not started */
};

struct MemberInfo {
    std::uint32_t slot = 0;
    std::string serial, path, model, drive_uuid;
    std::uint64_t drive_bytes = 0;
    std::uint64_t unused_tail_bytes = 0;  // of a drive bigger than the group uses
    format::MemberState state = format::MemberState::kInSync;
    format::LeaveReason reason = format::LeaveReason::kNone;
    std::uint64_t since_ns = 0;
    std::uint64_t read_errors = 0, write_errors = 0;
};

struct TaskInfo {
    tasks::Progress progress;
    std::uint64_t bytes_per_second = 0;
    std::optional<std::uint64_t> eta_seconds;
};

struct GroupInfo {
    std::uint32_t id = 0;
    std::string uuid, name;
    GroupState state = GroupState::kOptimal;
    bool held = false;      // as in kHeld, whatever else the state is
    bool undoable = false;  // and what its drives held before is kept here
    std::string reason;     // kOffline, kFailed: why, and what to do
    std::string reason_code;
    geometry::Shape shape;
    std::uint64_t capacity_bytes = 0, free_bytes = 0, stripe_bytes = 0;
    std::uint64_t generation = 0;
    std::vector<MemberInfo> members;
    std::optional<TaskInfo> task;
    /// Last verify pass: stripes checked and found to disagree.
    std::optional<tasks::Progress> last_verify;
    std::uint32_t dirty_regions = 0, missed_regions = 0, regions = 0;
    std::uint64_t resynced_bytes = 0;  // member data bytes since start
    std::uint64_t rebuild_bytes_per_second_max = 0;
    array::EngineCounters counters;
};

struct VolumeInfo {
    std::uint32_t group_id = 0, id = 0;  // id: GPT entry number within the group
    std::string group, name, uuid;
    std::uint64_t start = 0, size_bytes = 0;
    std::uint32_t block_bytes = 0;
    bool exported = false;
};

struct SpareInfo {
    std::uint32_t drive_id = 0;
    std::string serial, path;
    std::uint64_t drive_bytes = 0;
    std::string group;  // empty: global
};

struct ExportRecord {
    std::string group, volume;
    std::string name;  // NBD export name
    std::string uri;   // nbd+unix:///name?socket=path
    bool read_only = false;
    std::uint32_t connections = 0;
};

enum class Severity : std::uint8_t { kInfo, kWarning, kError };
struct Event {
    std::uint64_t id = 0;
    std::uint64_t time_ns = 0;
    Severity severity = Severity::kInfo;
    std::string kind;  // stable: "member-failed", "rebuild-started", "group-created", ...
    std::string group, volume, drive_serial;
    std::string text;
};

/// `health`: the worst state of anything, for exit codes: 0 fine, 1 attention (degraded,
/// rebuilding, resyncing, copies of members, the state directory in trouble), 2 failed or offline.
struct Health {
    int level = 0;
    std::vector<std::string> findings;
};

// ---- commands -----------------------------------------------------------------------------------

struct CreateDrive {
    std::vector<std::string> paths;
    /// When a path does not exist: make a sparse file of this size. 0: the path must exist.
    std::uint64_t file_bytes = 0;
};
struct CreateGroup {
    std::string name;  // empty: "dg<id>"
    geometry::Level level = geometry::Level::kRaid5;
    std::vector<std::string> drives;  // ids, serials, or paths, each one drive
    std::uint64_t chunk_bytes = 0;    // 0: 64 KiB
    std::uint32_t copies = 2;         // RAID 10
    std::uint32_t block_bytes = 0;    // 0: the largest logical block of the members
    bool exact_size = false;
    bool force = false;  // overwrite signatures and superblocks of groups that are not running
};
struct EditGroup {
    std::string group;
    std::optional<std::string> name;
    std::optional<std::uint64_t> rebuild_bytes_per_second_max;
};
struct CreateVolume {
    std::string group;
    std::string name;              // empty: "vd<id>"; with count > 1 a prefix
    std::uint64_t size_bytes = 0;  // 0: all that is free (divided by count)
    std::uint32_t count = 1;
};
struct FailDrive {
    std::string drive;
    /// When given, the generation the caller saw: refuses with kStaleToken when the group moved on.
    std::optional<std::uint64_t> generation;
};
struct ReplaceDrive {
    std::string old_drive;  // member in any state, or "group:slot" for an empty slot
    std::string new_drive;
    bool force = false;
    std::optional<std::uint64_t> generation = {};  // as of FailDrive
};
struct CreateSpare {
    std::vector<std::string> drives;
    std::string group;  // empty: global
    bool force = false;
};
struct AssembleOptions {
    std::string group;  // empty: all
    bool force = false, destroyed = false;
    std::string preferred_drive;  // id, serial, wwid or path
};
struct AssembleOutcome {
    std::string group, uuid;
    std::string outcome;  // "started", "already-running", "incomplete", "refused", "corrupt"
    std::string code, message;
};

class Service {
  public:
    virtual ~Service() = default;

    // Groups, drives and volumes are named by id, name, serial, uuid or path, whichever is unique.
    virtual std::vector<DriveInfo> drives() = 0;
    virtual std::vector<GroupInfo> groups() = 0;
    virtual std::vector<VolumeInfo> volumes() = 0;
    virtual std::vector<SpareInfo> spares() = 0;
    virtual std::vector<ExportRecord> exports() = 0;
    /// Events with id > `after`, oldest first, at most `limit`.
    virtual std::vector<Event> events(std::uint64_t after, std::size_t limit) = 0;
    virtual Health health() = 0;

    virtual Result<std::vector<DriveInfo>> create_drive(const CreateDrive& command) = 0;
    virtual Status delete_drive(const std::string& drive) = 0;
    /// Makes a blank drive of one that is a copy of another: wipes its superblocks.
    virtual Status reset_identity(const std::string& drive) = 0;
    virtual Result<GroupInfo> create_group(const CreateGroup& command) = 0;
    /// Marks the members' superblocks destroyed; with `clear` wipes them. Refused while exported,
    /// and without `clear` while the group is held.
    virtual Status delete_group(const std::string& group, bool clear) = 0;
    /// Gives the drives of a held group back what they held before it was made of them by force,
    /// and starts what can be started then. Refused once there was a volume, or when a drive is
    /// missing or was used otherwise. When it fails half-way it is taken up again by itself, and by
    /// calling it again.
    virtual Status undo_group(const std::string& group) = 0;
    /// Forgets what is kept for a group that does not run: drives that wait for what they held
    /// before are left as they are.
    virtual Status abandon_undo(const std::string& group) = 0;
    virtual Status edit_group(const EditGroup& command) = 0;
    virtual Result<std::vector<VolumeInfo>> create_volume(const CreateVolume& command) = 0;
    virtual Status delete_volume(const std::string& group, const std::string& volume) = 0;
    virtual Status rename_volume(const std::string& group, const std::string& volume,
                                 const std::string& name) = 0;
    virtual Result<std::vector<SpareInfo>> create_spare(const CreateSpare& command) = 0;
    virtual Status delete_spare(const std::string& drive) = 0;
    virtual Result<MemberInfo> fail_drive(const FailDrive& command) = 0;
    virtual Result<MemberInfo> replace_drive(const ReplaceDrive& command) = 0;
    virtual Result<ExportRecord> export_volume(const std::string& group, const std::string& volume,
                                               bool read_only) = 0;
    virtual Status unexport_volume(const std::string& group, const std::string& volume) = 0;
    /// Starts a read-only verify pass; progress and result are in GroupInfo.
    virtual Status verify_group(const std::string& group) = 0;
    virtual Status stop_verify(const std::string& group) = 0;
    /// Scans and starts what can be started; strictly read-only for what cannot.
    virtual Result<std::vector<AssembleOutcome>> assemble(const AssembleOptions& options) = 0;
    /// What a scan sees on each registered drive; never changes anything.
    virtual std::vector<DriveInfo> examine() = 0;

    /// Orderly stop: exports closed, bitmaps cleared, superblocks written.
    virtual void shut_down() = 0;
};

struct ServiceOptions {
    std::string state_directory;              // state.json, events.jsonl, undo/
    std::vector<std::string> drive_patterns;  // scanned besides registered paths
    std::string nbd_socket_path;
    std::uint64_t command_timeout_ns = 30'000'000'000;
    std::uint32_t read_errors_max = 20;  // corrected read errors before a member is put out
    std::uint64_t rebuild_bytes_per_second_max = 0;
    std::uint64_t absent_grace_ns = 3'000'000'000;  // before a spare takes an absent member's slot
    std::uint64_t bitmap_delay_ns = 5'000'000'000;  // a region's bit outlives its last write
    std::string host_name;
    /// False: no thread looks after the groups; the owner calls ServiceImpl::look_after().
    bool has_worker = true;
};

/// Reads the state directory, scans, assembles every group that can start, restores exports. The
/// shard must already run and outlive the service.
Result<std::unique_ptr<Service>> make_service(const ServiceOptions& options,
                                              io::DriveProvider& provider, Shard& shard,
                                              const Clock& clock, Random& random);

}  // namespace warpraid::control
