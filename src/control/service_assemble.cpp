// Groups from superblocks: at start, on command, and whenever drives turn up.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "control/service_impl.h"

namespace warpraid::control {

namespace {

std::vector<meta::FoundDrive> found_drives(std::span<const ScanEntry> entries) {
    std::vector<meta::FoundDrive> found;
    for (const ScanEntry& entry : entries) found.push_back(entry.drive);
    return found;
}

std::string outcome_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::kIncomplete:
        case ErrorCode::kDriveMissing:
            return "incomplete";
        case ErrorCode::kBadSuperblock:
        case ErrorCode::kUnsupportedVersion:
        case ErrorCode::kUnsupportedLayout:
            return "corrupt";
        default:
            return "refused";
    }
}

bool is_damage(const meta::FoundDrive& drive) {
    return drive.problem && outcome_of(drive.problem->code) == "corrupt";
}

/// Whether the group that was asked for is there, but deleted.
std::optional<Error> find_deleted(std::span<const ScanEntry> entries,
                                  const AssembleOptions& options) {
    std::string drives;
    for (const ScanEntry& entry : entries) {
        const format::GroupRecord* record = record_of(entry.drive);
        const bool is_it =
            record != nullptr && record->destroyed && !entry.has_signature &&
            (record->name == options.group || record->uuid.to_text() == options.group);
        if (!is_it) continue;
        drives += (drives.empty() ? "" : ", ") + drive_text(entry.drive.identity);
    }
    if (drives.empty() || options.destroyed) return std::nullopt;
    return Error{ErrorCode::kDestroyed,
                 fmt::format("group {} was deleted, as its drives say ({}), and only one that was "
                             "not is started: bring it back with 'assemble {} --destroyed'",
                             options.group, drives, options.group)};
}

AssembleOutcome failure_of(const meta::Candidate& candidate, const Error& error) {
    return {candidate.name, candidate.group.to_text(), outcome_of(error.code),
            std::string(to_text(error.code)), error.message};
}

}  // namespace

std::vector<ScanEntry> ServiceImpl::scan_all() {
    std::vector<std::string> paths = registry_.paths();
    for (std::string& path : provider_.list(options_.drive_patterns)) {
        paths.push_back(std::move(path));
    }
    const std::vector<io::BlockingDrive*> held = held_drives();
    std::vector<ScanEntry> entries = scan(provider_, paths, held);
    registry_.note_scan(entries);
    // Drives that took each other's places: one is where the other was.
    if (registry_.lacks_any()) {
        for (ScanEntry& entry : scan(provider_, registry_.former_paths(), held)) {
            const RegisteredDrive* drive = registry_.find_key(identity_key(entry.drive.identity));
            if (drive == nullptr || drive->present) continue;
            registry_.note(entry);
            entries.push_back(std::move(entry));
        }
    }
    forget_copies(entries);
    note_copies(entries);
    return entries;
}

std::vector<ScanEntry> ServiceImpl::scan_usable() {
    return usable(scan_all());
}

std::vector<ScanEntry> ServiceImpl::usable(std::vector<ScanEntry> entries) const {
    std::erase_if(entries,
                  [&](const ScanEntry& entry) { return !check_not_to_be_restored(entry).ok(); });
    return entries;
}

Status ServiceImpl::resolve_preferred(std::string& name) {
    if (name.empty()) return success();
    WARPRAID_TRY_ASSIGN(const RegisteredDrive* drive, registry_.find(name));
    if (drive == nullptr) {
        return Error{ErrorCode::kNotFound,
                     "no registered drive is called '" + name + "': see list drive"};
    }
    WARPRAID_TRY(check_path_means(name, drive->identity));
    name = drive->identity.serial;
    return success();
}

Result<std::vector<AssembleOutcome>> ServiceImpl::assemble(const AssembleOptions& command) {
    const Lock lock(mutex_);
    std::vector<ScanEntry> entries = scan_usable();
    AssembleOptions options = command;
    WARPRAID_TRY(resolve_preferred(options.preferred_drive));
    const std::optional<Error> deleted = find_deleted(entries, options);
    // A drive of a deleted group that somebody else uses is his, whatever its superblocks say.
    std::erase_if(entries, [&](const ScanEntry& entry) {
        const format::GroupRecord* record = record_of(entry.drive);
        if (record == nullptr || !record->destroyed || !entry.has_signature) return false;
        if (options.destroyed) report_reused(entry, record->name);
        return true;
    });
    std::vector<AssembleOutcome> outcomes = assemble_found(entries, options, false);
    take_back_members(entries);
    try_to_save_state();
    if (outcomes.empty() && !options.group.empty()) {
        if (deleted) return *deleted;
        return Error{ErrorCode::kNotFound, "no drive that was found belongs to a group '" +
                                               options.group +
                                               "': register its drives with create drive"};
    }
    return outcomes;
}

std::vector<AssembleOutcome> ServiceImpl::assemble_found(std::span<const ScanEntry> entries,
                                                         const AssembleOptions& options,
                                                         bool quietly) {
    meta::AssemblyOptions how;
    how.force = options.force;
    how.preferred_drive = options.preferred_drive;
    how.destroyed = options.destroyed;
    how.now_ns = clock_.wall_ns();
    how.taken_names = taken_names();
    const auto is_wanted = [&](const std::string& name, const std::string& uuid) {
        return options.group.empty() || options.group == name || options.group == uuid ||
               options.group == std::to_string(group_id(uuid));
    };
    std::vector<AssembleOutcome> outcomes;
    std::vector<Running*> failed;
    for (const auto& running : running_) {
        if (!is_wanted(running->name, running->uuid())) continue;
        if (running->group->failed() && (!quietly || running->group->failed_by_absence())) {
            failed.push_back(running.get());
            failed_at_[running->group->record().uuid] = running->group->committed();
            continue;
        }
        outcomes.push_back({running->name, running->uuid(), "already-running", "", ""});
    }
    how.known = failed_at_;
    for (Running* running : failed) {
        const std::string name = running->name;
        const std::string uuid = running->uuid();
        const std::string reason = running->group->failure();
        const Uuid group = running->group->record().uuid;
        if (restart_failed(*running, entries, how)) {
            outcomes.push_back({name, uuid, "started", "", ""});
        } else if (find_running(group) != nullptr) {
            outcomes.push_back({name, uuid, "incomplete", "group-failed", reason});
        }
    }
    // One that was stopped and did not start again holds its drives no more: it is judged below by
    // what they say now.
    std::vector<ScanEntry> after_restarts;
    if (!failed.empty()) {
        after_restarts = scan_usable();
        entries = after_restarts;
        how.taken_names = taken_names();
    }
    offline_.clear();
    for (const meta::Candidate& candidate : meta::assemble(found_drives(entries), how)) {
        if (find_running(candidate.group) != nullptr) continue;
        if (candidate.problem && was_deleted(candidate.group.to_text())) continue;
        const bool wanted = is_wanted(candidate.name, candidate.group.to_text());
        const Error not_wanted{ErrorCode::kWrongState, "it was not asked for: run assemble"};
        Status status = candidate.problem.value_or(not_wanted);
        if (wanted) status = try_candidate(candidate, entries, how);
        if (!status.ok()) note_offline(candidate, entries, status.error(), quietly);
        if (!wanted) continue;
        if (status.ok()) {
            outcomes.push_back({candidate.name, candidate.group.to_text(), "started", "", ""});
        } else {
            outcomes.push_back(failure_of(candidate, status.error()));
        }
    }
    note_leftovers(entries, quietly);
    note_copies(entries);  // of members of groups that have started
    for (const ScanEntry& entry : entries) {
        if (!options.group.empty() || !is_damage(entry.drive)) continue;
        outcomes.push_back({"", "", "corrupt", std::string(to_text(entry.drive.problem->code)),
                            entry.drive.problem->message});
    }
    return outcomes;
}

std::map<std::string, Uuid> ServiceImpl::taken_names() const {
    std::map<std::string, Uuid> names;
    for (const auto& running : running_) {
        names.emplace(running->name, running->group->record().uuid);
    }
    return names;
}

bool ServiceImpl::was_deleted(const std::string& uuid) const {
    return std::find(deleted_groups_.begin(), deleted_groups_.end(), uuid) != deleted_groups_.end();
}

void ServiceImpl::note_leftovers(std::span<const ScanEntry> entries, bool quietly) {
    std::map<Uuid, meta::Candidate> leftovers;
    std::map<Uuid, std::string> drives;
    for (std::size_t index = 0; index < entries.size(); ++index) {
        const format::GroupRecord* record = record_of(entries[index].drive);
        if (record == nullptr || record->destroyed || !was_deleted(record->uuid.to_text()))
            continue;
        const bool is_known =
            std::any_of(offline_.begin(), offline_.end(),
                        [&](const Offline& offline) { return offline.uuid == record->uuid; });
        if (is_known || find_running(record->uuid) != nullptr) continue;
        meta::Candidate& leftover = leftovers[record->uuid];
        leftover.group = record->uuid;
        leftover.name = record->name;
        leftover.drives.push_back(index);
        std::string& text = drives[record->uuid];
        text += (text.empty() ? "" : ", ") + drive_text(entries[index].drive.identity);
    }
    for (const auto& [uuid, leftover] : leftovers) {
        const Error problem{
            ErrorCode::kDestroyed,
            fmt::format("group {} was deleted while {} was no member in use, and still carries its "
                        "superblock: use that drive with --force, or take it away",
                        leftover.name, drives[uuid])};
        note_offline(leftover, entries, problem, quietly);
    }
}

void ServiceImpl::note_offline(const meta::Candidate& candidate, std::span<const ScanEntry> entries,
                               const Error& problem, bool quietly) {
    Offline offline;
    offline.uuid = candidate.group;
    offline.name = candidate.name;
    offline.id = group_id(candidate.group.to_text());
    offline.problem = problem;
    for (const std::size_t index : candidate.drives) {
        const format::GroupRecord* record = record_of(entries[index].drive);
        if (record == nullptr) continue;
        if (offline.record && offline.record->generation >= record->generation) continue;
        offline.record = *record;
    }
    offline_.push_back(std::move(offline));
    const bool is_new = said_.insert(candidate.group.to_text() + problem.message).second;
    if (!quietly || is_new) {
        const bool is_leftover = problem.code == ErrorCode::kDestroyed;
        report(is_leftover ? Severity::kWarning : Severity::kError,
               is_leftover ? "deleted-group-found" : "group-not-started", problem.message,
               candidate.name);
    }
}

// ---- starting -----------------------------------------------------------------------------------

Result<Group::Start> ServiceImpl::open_members(const meta::Assembly& assembly,
                                               std::span<const ScanEntry> entries,
                                               const meta::AssemblyOptions& options) {
    Group::Start start;
    start.record = assembly.record;
    start.record.destroyed = false;
    start.drives.resize(start.record.members.size());
    std::vector<meta::MemberDrive> readable;
    for (std::size_t index = 0; index < start.record.members.size(); ++index) {
        format::Member& member = start.record.members[index];
        const bool is_live = member.state == format::MemberState::kInSync ||
                             member.state == format::MemberState::kRebuilding;
        if (!is_live || !assembly.drives[index]) continue;
        const io::DriveIdentity& identity = entries[*assembly.drives[index]].drive.identity;
        auto drive = provider_.open(identity.path, io::OpenMode::kExclusive);
        if (!drive.ok()) {
            // Somebody else may be writing to it: that is for the operator to sort out.
            if (drive.error().code == ErrorCode::kDriveBusy) return std::move(drive).error();
            format::leave(member, format::MemberState::kMissing, format::LeaveReason::kAbsent,
                          clock_.wall_ns());
            continue;
        }
        readable.push_back({Slot(static_cast<std::uint8_t>(index)), drive->get()});
        start.drives[index] = std::move(drive).value();
    }
    WARPRAID_TRY_ASSIGN(const geometry::Layout layout, geometry::Layout::make(start.record.shape));
    const auto regions =
        static_cast<std::uint32_t>(divide_up(layout.stripes(), start.record.region_stripes));
    WARPRAID_TRY_ASSIGN(start.bitmap, store_.read_bitmap(start.record, regions, readable));
    meta::Assembly as_opened = assembly;
    as_opened.record = start.record;
    WARPRAID_TRY(meta::check_dirty_start(as_opened, start.bitmap.dirty, options));
    start.resync = !start.record.clean && layout.level() != geometry::Level::kRaid0;
    start.unclean = start.resync;
    if (!start.resync) start.bitmap.note_agreement();
    return start;
}

Status ServiceImpl::try_candidate(const meta::Candidate& candidate,
                                  std::span<const ScanEntry> entries,
                                  const meta::AssemblyOptions& options) {
    if (undo_.state(candidate.group) == UndoState::kRestoring) {
        return undo_problem(candidate.group, candidate.name);
    }
    if (candidate.problem) return *candidate.problem;
    return start_candidate(candidate, entries, options);
}

Status ServiceImpl::start_candidate(const meta::Candidate& candidate,
                                    std::span<const ScanEntry> entries,
                                    const meta::AssemblyOptions& options) {
    WARPRAID_ASSERT(candidate.assembly.has_value());
    if (running_.size() >= limits::kGroupsMax) {
        return Error{
            ErrorCode::kLimitReached,
            fmt::format("{} groups are running, which is the most there can be: delete one first",
                        running_.size())};
    }
    const meta::Assembly& assembly = *candidate.assembly;
    WARPRAID_TRY_ASSIGN(Group::Start start, open_members(assembly, entries, options));
    const std::string uuid = candidate.group.to_text();
    SavedGroup& saved = saved_group(uuid);
    saved.name = candidate.name;
    start.rebuild_bytes_per_second_max = saved.rebuild_bytes_per_second_max != 0
                                             ? saved.rebuild_bytes_per_second_max
                                             : options_.rebuild_bytes_per_second_max;
    const bool resync = start.resync && start.record.table != format::Table::kHeld;
    auto running = std::make_unique<Running>();
    running->id = saved.id;
    running->name = candidate.name;
    WARPRAID_TRY_ASSIGN(running->group, Group::start(environment_, std::move(start)));
    for (const std::optional<std::size_t>& index : assembly.drives) {
        if (!index) continue;
        const meta::FoundDrive& drive = entries[*index].drive;
        const auto added = registry_.add(drive.identity, drive.limits);
        if (!added.ok()) {
            report(Severity::kWarning, "drive-not-registered", added.error().message);
        } else if (const format::GroupRecord* record = record_of(drive)) {
            (*added)->note_former_path(record->members[drive.superblock->slot.get()].path);
        }
    }
    Running& started = add_running(std::move(running));
    std::erase(deleted_groups_, uuid);
    for (const std::string& warning : assembly.warnings) {
        report(Severity::kWarning, "assembly-warning", warning, started.name);
    }
    report(Severity::kInfo, "group-started",
           fmt::format("group {} was started{}", started.name,
                       resync ? " after an unclean stop: dirty regions are resynchronised" : ""),
           started.name);
    // What lies in its data is what the drives held before.
    if (started.group->is_held()) return success();
    end_undo(started);
    const Status ready =
        started.group->has_table() ? started.group->volumes().load() : started.group->write_table();
    if (!ready.ok()) {
        report(Severity::kError, "volumes-unreadable", ready.error().message, started.name);
    }
    restore_exports(started);
    return success();
}

bool ServiceImpl::restart_failed(Running& running, std::span<const ScanEntry> entries,
                                 const meta::AssemblyOptions& options) {
    // The drives are held; what their superblocks say now is read beside that.
    const Group& group = *running.group;
    const Uuid uuid = group.record().uuid;
    std::vector<ScanEntry> found;
    for (std::uint32_t index = 0; index < group.layout().members(); ++index) {
        const io::BlockingDrive* held = group.drive(Slot(static_cast<std::uint8_t>(index)));
        if (held == nullptr) continue;
        auto drive = provider_.open(held->identity().path, io::OpenMode::kReadOnly);
        if (drive.ok()) found.push_back(look_at(**drive));
    }
    for (const ScanEntry& entry : entries) {
        const format::GroupRecord* record = record_of(entry.drive);
        if (record != nullptr && record->uuid == uuid) found.push_back(entry);
    }
    for (const meta::Candidate& candidate : meta::assemble(found_drives(found), options)) {
        if (candidate.group != uuid || !candidate.assembly) continue;
        stop_exports(uuid.to_text());
        running.group->stop();
        std::erase_if(running_, [&](const auto& other) { return other.get() == &running; });
        return start_candidate(candidate, found, options).ok();
    }
    return false;
}

}  // namespace warpraid::control
