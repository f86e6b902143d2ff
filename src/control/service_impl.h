// The service: all groups, drives, spares and exports behind one lock, and one worker thread that
// looks after them by state: faults, background work, spares, drives that come back.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "block/slice.h"
#include "control/event_log.h"
#include "control/group.h"
#include "control/registry.h"
#include "control/scan.h"
#include "control/service.h"
#include "control/state_file.h"
#include "control/undo_store.h"
#include "meta/assembly.h"
#include "meta/store.h"

namespace warpraid::control {

class ServiceImpl final : public Service {
  public:
    ServiceImpl(const ServiceOptions& options, io::DriveProvider& provider, Shard& shard,
                const Clock& clock, Random& random);
    ~ServiceImpl() override;
    Status open();
    /// What the worker does every 100 ms, where there is none.
    void look_after();
    /// The engine of a running group, for a host that is no client. kNotFound.
    Result<block::Device*> device(const std::string& group);

    // queries.cpp
    std::vector<DriveInfo> drives() override;
    std::vector<GroupInfo> groups() override;
    std::vector<VolumeInfo> volumes() override;
    std::vector<SpareInfo> spares() override;
    std::vector<ExportRecord> exports() override;
    std::vector<Event> events(std::uint64_t after, std::size_t limit) override;
    Health health() override;
    std::vector<DriveInfo> examine() override;

    // service_drives.cpp
    Result<std::vector<DriveInfo>> create_drive(const CreateDrive& command) override;
    Status delete_drive(const std::string& drive) override;
    Status reset_identity(const std::string& drive) override;

    // service_create.cpp
    Result<GroupInfo> create_group(const CreateGroup& command) override;
    Status delete_group(const std::string& group, bool clear) override;
    Status edit_group(const EditGroup& command) override;
    Status verify_group(const std::string& group) override;
    Status stop_verify(const std::string& group) override;

    // service_undo.cpp
    Status undo_group(const std::string& group) override;
    Status abandon_undo(const std::string& group) override;

    // service_volumes.cpp
    Result<std::vector<VolumeInfo>> create_volume(const CreateVolume& command) override;
    Status delete_volume(const std::string& group, const std::string& volume) override;
    Status rename_volume(const std::string& group, const std::string& volume,
                         const std::string& name) override;
    Result<ExportRecord> export_volume(const std::string& group, const std::string& volume,
                                       bool read_only) override;
    Status unexport_volume(const std::string& group, const std::string& volume) override;

    // service_members.cpp
    Result<std::vector<SpareInfo>> create_spare(const CreateSpare& command) override;
    Status delete_spare(const std::string& drive) override;
    Result<MemberInfo> fail_drive(const FailDrive& command) override;
    Result<MemberInfo> replace_drive(const ReplaceDrive& command) override;

    // service_assemble.cpp
    Result<std::vector<AssembleOutcome>> assemble(const AssembleOptions& options) override;

    void shut_down() override;

  private:
    friend struct ServiceTestAccess;
    struct Running {
        std::uint32_t id = 0;
        std::string name;  // unique here; the record keeps the stored one
        std::unique_ptr<Group> group;
        std::string uuid() const { return group->record().uuid.to_text(); }
    };
    struct Offline {
        std::uint32_t id = 0;
        Uuid uuid;
        std::string name;
        Error problem;
        std::optional<format::GroupRecord> record;  // the newest that was found
    };
    struct Spare {
        format::SpareRecord record;
        std::unique_ptr<io::BlockingDrive> drive;  // held, so that nobody else takes it
    };
    struct Export {
        std::string group_uuid;
        format::Partition volume;
        std::string name;
        bool read_only = false;
        std::unique_ptr<block::Slice> slice;
    };
    /// What state.json keeps.
    struct Known {
        Registry registry;
        std::vector<SavedGroup> groups;
        std::vector<SavedExport> exports;
    };
    struct MemberPlace {
        Running* running = nullptr;
        Slot slot;
    };
    struct OpenedDrive {
        std::unique_ptr<io::BlockingDrive> drive;
        ScanEntry look;
    };
    /// A drive that carries the superblock of a live member, which is another drive.
    struct MemberCopy {
        io::DriveIdentity identity;
        Uuid drive;  // of the superblock
    };
    struct Keeper {
        io::BlockingDrive* drive = nullptr;
        std::unique_ptr<io::BlockingDrive> opened;  // unless a group holds it
    };
    using Lock = std::lock_guard<std::mutex>;

    // service_impl.cpp
    /// Some seconds at most; those that stay busy are named when their group is not started.
    void wait_for_busy_drives();
    void work();
    void look_after_everything();
    void look_after_faults();
    /// kStateNotSaved; health tells it too, and the worker tries again, until it works.
    Status save_state();
    /// For changes that hold all the same: they are on the drives.
    void try_to_save_state() { static_cast<void>(save_state()); }
    Known known() const { return {registry_, saved_groups_, saved_exports_}; }
    /// A change that cannot be made durable is taken back.
    Status save_or_restore(Known before);
    void restore(Known before);
    void look_after_files();
    void report(Severity severity, const std::string& kind, const std::string& text,
                const std::string& group = {}, const std::string& serial = {},
                const std::string& volume = {});
    /// Unless the same text was told before.
    void warn_once(const std::string& kind, const std::string& text, const std::string& group = {},
                   const std::string& serial = {});
    Result<Running*> find_group(const std::string& name);
    /// Null when no group that was found and not started is called that.
    const Offline* find_offline(const std::string& name) const;
    /// As find_group(), refused while the group is failed.
    Result<Running*> find_working_group(const std::string& name);
    Running* find_running(const Uuid& uuid) const;
    /// Kept in the order of their numbers, so that lists read the same after a restart.
    Running& add_running(std::unique_ptr<Running> running);
    std::uint32_t group_id(const std::string& uuid);
    SavedGroup& saved_group(const std::string& uuid);
    std::vector<io::BlockingDrive*> held_drives() const;

    // service_names.cpp
    /// kStaleToken when it is a path that another drive had before. `has_looked`: the caller knows
    /// where the members of the group are as of now.
    Result<MemberPlace> find_member(const std::string& name, bool has_looked = false);
    /// kStaleToken also when the group is not at the generation that the caller saw.
    Result<MemberPlace> find_seen_member(const std::string& name,
                                         const std::optional<std::uint64_t>& generation);
    Result<MemberPlace> find_member_at(const std::string& path, bool has_looked);
    Status check_not_moved(const MemberPlace& place, const std::string& path,
                           const io::DriveIdentity& there);
    /// For drives that would lose something: kStaleToken when `name` is a path, and `drive` is not
    /// the only one that was ever seen there.
    Status check_path_means(const std::string& name, const io::DriveIdentity& drive);
    /// Those that are live first.
    std::vector<MemberPlace> member_places();
    static const format::Member& member_of(const MemberPlace& place);
    /// The live member whose superblock says that, whichever drive it is.
    std::optional<MemberPlace> find_live_member(const Uuid& drive) const;

    // drive_checks.cpp
    Result<OpenedDrive> open_free_drive(const std::string& name, bool force);
    Status check_not_held(const io::DriveIdentity& identity) const;
    /// What a copy of a live member is, and what to do about it.
    static std::string copy_text(const io::DriveIdentity& copy, const MemberPlace& place);
    Status check_content(const ScanEntry& look, bool force) const;
    Result<std::vector<OpenedDrive>> open_free_drives(std::span<const std::string> names,
                                                      bool force);
    static Status check_size(const io::DriveIdentity& identity, const io::DriveLimits& limits);
    static Status check_replacement(const Group& group, Slot slot, const OpenedDrive& opened);

    // service_drives.cpp
    Status check_new_drive(const std::string& path);
    void note_registered_copy(std::uint32_t id);
    /// The other drives that carry the superblock that `look` shows. kWrongState when there are
    /// none, or when this one is the original.
    Result<std::vector<Keeper>> find_keepers(const ScanEntry& look);
    /// Whether `keeper` still has that superblock once `copy` has lost it.
    Status check_keeper(io::BlockingDrive& copy, const format::Superblock& superblock,
                        io::BlockingDrive& keeper);
    /// Files that it had to make are in `new_files`, also when it fails.
    Result<std::vector<DriveInfo>> register_drives(std::span<const std::string> paths,
                                                   std::uint64_t file_bytes,
                                                   std::vector<std::string>& new_files);

    // service_create.cpp
    Status check_command(const CreateGroup& command) const;
    Status check_group_name(const std::string& name, const Uuid* except) const;
    Result<format::GroupRecord> plan_group(const CreateGroup& command, const std::string& name,
                                           std::span<const OpenedDrive> opened);
    Status prepare_members(const format::GroupRecord& record, std::span<OpenedDrive> opened,
                           std::span<const std::uint64_t> dirty);
    Result<std::unique_ptr<Group>> start_new_group(const format::GroupRecord& record,
                                                   std::vector<OpenedDrive> opened);
    bool overwrites_something(std::span<const OpenedDrive> opened) const;
    void release_spares_of(const Uuid& group);

    // service_undo.cpp
    /// Before the first byte is written. kStateNotSaved, or a drive's error.
    Status keep_for_undo(const format::GroupRecord& record, std::span<const OpenedDrive> opened);
    /// kWrongState while the group is held.
    Status check_released(const Running& running) const;
    /// Whether all that a held group's drives held before is here. The reason when not.
    Status check_undoable(const Uuid& group) const;
    /// Forgets what is kept for a group that is held no more.
    void end_undo(const Running& running);
    bool is_undo_called(const Uuid& group, const std::string& name) const;
    /// The groups of that name, uuid or number for which something is kept.
    std::vector<Uuid> undos_called(const std::string& name) const;
    /// The only one of them.
    Result<Uuid> find_undo(const std::string& name);
    /// The path of the drive that the record knows by that identity.
    Result<std::string> find_undo_drive(const UndoRecord& record, const UndoDrive& wanted,
                                        std::span<const ScanEntry> entries);
    Status check_undo(const UndoRecord& record, std::span<const ScanEntry> entries);
    /// All drives can be given back what they held: the group is ended, and it begins.
    Status begin_undo(const Uuid& group);
    Status restore_drive(const UndoRecord& record, const UndoDrive& before,
                         std::span<const ScanEntry> entries);
    static Status check_restored(const UndoRecord& record, const UndoDrive& before,
                                 std::span<const ScanEntry> entries);
    Status restore_drives(const Uuid& group, std::span<const ScanEntry> entries);
    Status forget_undo(const Uuid& group);
    /// Gives back what is kept. When it fails, it is tried again at every look for drives.
    Status finish_undo(const Uuid& group, std::span<const ScanEntry> entries);
    /// Why the group is not to be started.
    Error undo_problem(const Uuid& group, const std::string& name) const;
    /// All that was begun, on the drives of a scan; returns what scan_usable() sees then.
    std::vector<ScanEntry> finish_undos(std::vector<ScanEntry> entries);
    /// kInUse when it waits for what it held before, or others of its group do.
    Status check_not_to_be_restored(const ScanEntry& entry) const;

    // service_assemble.cpp
    std::vector<ScanEntry> scan_all();
    /// Without drives that are to get back what they held before: whatever they carry now is not to
    /// be started, nor to be a spare.
    std::vector<ScanEntry> scan_usable();
    /// What scan_usable() leaves of a scan.
    std::vector<ScanEntry> usable(std::vector<ScanEntry> entries) const;
    /// Makes a serial number of what names a drive.
    Status resolve_preferred(std::string& name);
    std::vector<AssembleOutcome> assemble_found(std::span<const ScanEntry> entries,
                                                const AssembleOptions& options, bool quietly);
    Status try_candidate(const meta::Candidate& candidate, std::span<const ScanEntry> entries,
                         const meta::AssemblyOptions& options);
    Status start_candidate(const meta::Candidate& candidate, std::span<const ScanEntry> entries,
                           const meta::AssemblyOptions& options);
    Result<Group::Start> open_members(const meta::Assembly& assembly,
                                      std::span<const ScanEntry> entries,
                                      const meta::AssemblyOptions& options);
    bool restart_failed(Running& running, std::span<const ScanEntry> entries,
                        const meta::AssemblyOptions& options);
    bool was_deleted(const std::string& uuid) const;
    std::map<std::string, Uuid> taken_names() const;
    /// Groups that were deleted here and are remembered by drives that were not there or not in use
    /// then. One that is whole again was brought back to life elsewhere and is none of these.
    void note_leftovers(std::span<const ScanEntry> entries, bool quietly);
    void note_offline(const meta::Candidate& candidate, std::span<const ScanEntry> entries,
                      const Error& problem, bool quietly);

    // service_return.cpp
    void adopt_spares(std::span<const ScanEntry> entries);
    void take_back_members(std::span<const ScanEntry> entries);
    void take_back(Running& running, std::span<const ScanEntry> entries);
    /// The live member that the drive, which is another one, is a copy of.
    std::optional<MemberPlace> find_original(const ScanEntry& entry) const;
    /// Reports those that were not known to be there.
    void note_copies(std::span<const ScanEntry> entries);
    /// Those that a whole scan did not see.
    void forget_copies(std::span<const ScanEntry> entries);
    void note_copy(const ScanEntry& entry, const MemberPlace& original);
    /// Once for each drive.
    void report_reused(const ScanEntry& entry, const std::string& group);
    void look_for_drives();
    bool is_drive_wanted() const;

    // service_members.cpp
    /// Whether the group can do without what the slot holds, be it an operator's wish.
    static Status check_expendable(Running& running, Slot slot);
    void use_spares();
    bool use_spare(Running& running, Slot slot);

    // service_volumes.cpp
    const Export& start_export(Running& running, const format::Partition& volume,
                               const std::string& name, bool read_only);
    void stop_export(Export& entry);
    void stop_exports(const std::string& group_uuid);
    void restore_exports(Running& running);
    bool is_exported(const Uuid& volume) const;
    /// By the volume's number, name or uuid, or by its own name.
    Result<Export*> find_export(const Running& running, const std::string& name) const;
    std::string choose_export_name(const Running& running, const format::Partition& volume) const;
    ExportRecord describe(const Export& entry);

    // queries.cpp
    void find_file_problems(Health& health);
    void find_copies(Health& health);
    DriveInfo describe(const RegisteredDrive& drive) const;
    GroupInfo describe(Running& running);
    GroupInfo describe(const Offline& offline) const;
    MemberInfo describe_member(const Group& group, Slot slot) const;
    VolumeInfo describe(const Running& running, const format::Partition& volume) const;
    SpareInfo describe(const Spare& spare);

    ServiceOptions options_;
    io::DriveProvider& provider_;
    Shard& shard_;
    const Clock& clock_;
    Random& random_;

    std::mutex mutex_;  // everything below
    EventLog events_;
    StateFile state_file_;
    UndoStore undo_;
    std::map<Uuid, std::string> undo_problems_;  // why those that were begun are not finished
    Registry registry_;
    std::vector<SavedGroup> saved_groups_;
    std::vector<SavedExport> saved_exports_;
    std::vector<std::string> deleted_groups_;  // the latest, by uuid: drives may remember them
    std::string unsaved_;                      // why the state on disk is not this one
    Environment environment_;
    meta::Store store_;
    std::vector<std::unique_ptr<Running>> running_;
    std::vector<Offline> offline_;
    std::vector<Spare> spares_;
    std::vector<std::unique_ptr<Export>> exports_;
    std::set<std::string> said_;                // what was reported once and stays true
    std::map<std::string, MemberCopy> copies_;  // that are there, by the keys of their identities
    /// Of groups that failed and did not start again yet.
    std::map<Uuid, meta::KnownState> failed_at_;
    std::uint64_t next_advance_ns_ = 0, next_look_ns_ = 0, next_scan_ns_ = 0, next_save_ns_ = 0;
    bool is_shut_down_ = false;

    std::mutex wake_mutex_;  // what follows
    std::condition_variable wake_changed_;
    bool woken_ = false;
    bool stopping_ = false;
    std::thread worker_;
};

}  // namespace warpraid::control
