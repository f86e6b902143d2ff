// Undoing a forced create. What it overwrites is kept before the first byte is written, and nothing
// else of the drives is written until the group gets its first volume, which ends it.
#include <fmt/format.h>

#include <algorithm>

#include "control/service_impl.h"
#include "control/undo_images.h"

namespace warpraid::control {

namespace {

/// Whether it may be one of the record's drives: by what is written on it, by what was written on
/// it before, or by its name.
bool is_of(const UndoRecord& record, const ScanEntry& entry) {
    if (entry.mark && entry.mark->set == record.group) return true;
    const std::string key = undo_key(entry.drive.identity);
    const auto& superblock = entry.drive.superblock;
    return std::any_of(record.drives.begin(), record.drives.end(), [&](const UndoDrive& drive) {
        const bool was_it = superblock && superblock->drive == drive.former;
        return drive.key == key || (was_it && !drive.former.is_nil());
    });
}

Error missing(const UndoDrive& drive, const std::string& group) {
    return {ErrorCode::kDriveMissing,
            fmt::format("{} is not found, and what it held before group {} was made cannot be "
                        "given back without it: bring it back, or register it with create drive, "
                        "and try again",
                        drive_text(drive.identity), group)};
}

bool is_marked(const ScanEntry& entry, const UndoRecord& record, const UndoDrive& wanted) {
    return entry.mark == format::ProtectiveMark{record.group, wanted.member};
}

Error copies(const io::DriveIdentity& one, const io::DriveIdentity& other,
             const UndoRecord& record) {
    return {ErrorCode::kDuplicateMember,
            fmt::format("{} and {} are copies of each other, and only one was a member of group "
                        "{}: take the copy away, or forget it with delete drive",
                        drive_text(one), drive_text(other), record.name)};
}

/// Where the drive is by the mark on it; a copy of it leaves two of them.
Result<std::string> find_marked(std::span<const ScanEntry> entries, const UndoRecord& record,
                                const UndoDrive& wanted) {
    const ScanEntry* found = nullptr;
    bool is_name_taken = false;
    for (const ScanEntry& entry : entries) {
        if (!is_marked(entry, record, wanted)) {
            is_name_taken |= undo_key(entry.drive.identity) == wanted.key;
            continue;
        }
        if (found != nullptr) return copies(found->drive.identity, entry.drive.identity, record);
        found = &entry;
    }
    if (found != nullptr) return found->drive.identity.path;
    if (!is_name_taken) return missing(wanted, record.name);
    return Error{ErrorCode::kInUse,
                 fmt::format("{} is no member of group {} any more: somebody else wrote to it, or "
                             "another drive has its name",
                             drive_text(wanted.identity), record.name)};
}

}  // namespace

Status ServiceImpl::keep_for_undo(const format::GroupRecord& record,
                                  std::span<const OpenedDrive> opened) {
    UndoRecord undo;
    undo.group = record.uuid;
    undo.name = record.name;
    std::vector<UndoImage> images;
    WARPRAID_ASSERT(opened.size() == record.members.size());
    for (std::size_t index = 0; index < opened.size(); ++index) {
        WARPRAID_TRY_ASSIGN(TakenImage taken,
                            take_image(*opened[index].drive, record.members[index].drive));
        undo.drives.push_back(std::move(taken.drive));
        images.push_back(std::move(taken.image));
    }
    const Status kept = undo_.keep(undo, images);
    if (kept.ok()) return success();
    return Error{ErrorCode::kStateNotSaved,
                 "nothing was written to the drives, because what --force overwrites could not be "
                 "kept for undo: " +
                     kept.error().message +
                     ": make room in the state directory, or make it writable, and try again"};
}

// ---- its end ------------------------------------------------------------------------------------

Status ServiceImpl::check_released(const Running& running) const {
    if (!running.group->is_held()) return success();
    const bool is_undoable = check_undoable(running.group->record().uuid).ok();
    return Error{ErrorCode::kWrongState,
                 fmt::format("group {} is held until its first volume is made, so that what its "
                             "drives held before can be given back: create a volume first, or "
                             "'{} group {}{}'",
                             running.name, is_undoable ? "undo" : "delete", running.name,
                             is_undoable ? "" : " --clear")};
}

Status ServiceImpl::check_undoable(const Uuid& group) const {
    if (undo_.state(group)) return undo_.check(group);
    return Error{ErrorCode::kNotFound, "nothing is kept on this machine"};
}

void ServiceImpl::end_undo(const Running& running) {
    WARPRAID_ASSERT(!running.group->is_held());
    const Uuid& group = running.group->record().uuid;
    if (!undo_.state(group)) return;
    const Status removed = forget_undo(group);
    if (!removed.ok()) {
        report(Severity::kWarning, "undo-file-left", removed.error().message, running.name);
        return;
    }
    report(Severity::kInfo, "undo-ended",
           fmt::format("what the drives of group {} held before is kept no longer", running.name),
           running.name);
}

// ---- giving back --------------------------------------------------------------------------------

bool ServiceImpl::is_undo_called(const Uuid& group, const std::string& name) const {
    if (name == group.to_text()) return true;
    if (const Running* running = find_running(group)) {
        return running->name == name || std::to_string(running->id) == name;
    }
    if (const Offline* offline = find_offline(group.to_text())) {
        return offline->name == name || std::to_string(offline->id) == name;
    }
    // One of which no drive is found is called what it was called last.
    const Result<UndoRecord> record = undo_.record(group);
    return record.ok() && record->name == name;
}

std::vector<Uuid> ServiceImpl::undos_called(const std::string& name) const {
    std::vector<Uuid> called;
    for (const Uuid& group : undo_.groups()) {
        if (is_undo_called(group, name)) called.push_back(group);
    }
    return called;
}

Result<Uuid> ServiceImpl::find_undo(const std::string& name) {
    const std::vector<Uuid> called = undos_called(name);
    if (called.size() == 1) return called.front();
    if (called.size() > 1) {
        std::vector<std::string> uuids;
        for (const Uuid& group : called) uuids.push_back(group.to_text());
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("'{}' names {} groups whose drives held something before: give "
                                 "the uuid of the one that is meant, {}",
                                 name, called.size(), fmt::join(uuids, " or "))};
    }
    const Result<Running*> running = find_group(name);
    if (!running.ok() && find_offline(name) == nullptr) return running.error();
    return Error{
        ErrorCode::kWrongState,
        fmt::format("nothing is kept here of what the drives of group {} held before: that "
                    "is only so from a 'create group --force' that overwrote something to "
                    "the first volume, and on the machine that made it",
                    name)};
}

Result<std::string> ServiceImpl::find_undo_drive(const UndoRecord& record, const UndoDrive& wanted,
                                                 std::span<const ScanEntry> entries) {
    // A scan does not look at those that are in use.
    if (const std::optional<MemberPlace> place = find_live_member(wanted.member)) {
        const io::DriveIdentity& identity = place->running->group->drive(place->slot)->identity();
        for (const ScanEntry& entry : entries) {
            if (!is_marked(entry, record, wanted)) continue;
            return copies(identity, entry.drive.identity, record);
        }
        return identity.path;
    }
    return find_marked(entries, record, wanted);
}

// All of the record's drives, or nothing is begun.
Status ServiceImpl::check_undo(const UndoRecord& record, std::span<const ScanEntry> entries) {
    for (const UndoDrive& before : record.drives) {
        WARPRAID_TRY_ASSIGN(const std::string path, find_undo_drive(record, before, entries));
        const auto drive = provider_.open(path, io::OpenMode::kReadOnly);
        if (!drive.ok()) return missing(before, record.name);
        if ((*drive)->limits().read_only) {
            return Error{ErrorCode::kDriveReadOnly,
                         drive_text(before.identity) + " is read-only: nothing was undone"};
        }
        WARPRAID_TRY_ASSIGN(const UndoImage image, undo_.read(record.group, before));
        WARPRAID_TRY(check_restorable(**drive, record.group, before, image));
    }
    return success();
}

Status ServiceImpl::restore_drive(const UndoRecord& record, const UndoDrive& before,
                                  std::span<const ScanEntry> entries) {
    WARPRAID_TRY_ASSIGN(const UndoImage image, undo_.read(record.group, before));
    const Result<std::string> path = find_marked(entries, record, before);
    if (path.ok()) {
        WARPRAID_TRY_ASSIGN(const auto drive, provider_.open(*path, io::OpenMode::kExclusive));
        WARPRAID_TRY(check_restorable(*drive, record.group, before, image));
        WARPRAID_TRY(give_back(*drive, image));
        return undo_.remove_image(record.group, before.member);
    }
    // A crash may have come before the create got to it, or when it had just got all of it back.
    // What proves that is what it holds, whatever its name.
    for (const ScanEntry& entry : entries) {
        const bool fits = entry.drive.limits.size_bytes == before.size_bytes;
        // It may carry the mark of another group, to which it belonged before.
        const bool is_overwritten = entry.mark && entry.mark->set == record.group;
        if (!fits || is_overwritten || !is_of(record, entry)) continue;
        const auto drive = provider_.open(entry.drive.identity.path, io::OpenMode::kReadOnly);
        if (!drive.ok()) continue;
        const Result<bool> has_it = holds(**drive, image);
        if (has_it.ok() && *has_it) return undo_.remove_image(record.group, before.member);
    }
    return path.error();
}

// What it held is kept until it has got it back, so one without an image has, or somebody took the
// image away.
Status ServiceImpl::check_restored(const UndoRecord& record, const UndoDrive& before,
                                   std::span<const ScanEntry> entries) {
    for (const ScanEntry& entry : entries) {
        if (!is_marked(entry, record, before)) continue;
        return Error{ErrorCode::kNotFound,
                     fmt::format("{} has not got back what it held before group {} was made, and "
                                 "that is not kept any more",
                                 drive_text(entry.drive.identity), record.name)};
    }
    return success();
}

Status ServiceImpl::restore_drives(const Uuid& group, std::span<const ScanEntry> entries) {
    WARPRAID_TRY_ASSIGN(const UndoRecord record, undo_.record(group));
    for (const ScanEntry& entry : entries) {
        const format::GroupRecord* now = record_of(entry.drive);
        if (now == nullptr || now->uuid != group || now->table == format::Table::kHeld) continue;
        return Error{ErrorCode::kInUse,
                     fmt::format("group {} is held no longer, as {} says: its first volume was "
                                 "asked for",
                                 record.name, drive_text(entry.drive.identity))};
    }
    // Each of them is told: who gives up must know whose bytes are lost.
    std::optional<Error> problem;
    for (const UndoDrive& before : record.drives) {
        const Status restored = undo_.is_waiting(group, before.member)
                                    ? restore_drive(record, before, entries)
                                    : check_restored(record, before, entries);
        if (restored.ok()) continue;
        if (problem) {
            problem->message += "; " + restored.error().message;
        } else {
            problem = restored.error();
        }
    }
    if (problem) return *problem;
    WARPRAID_TRY(forget_undo(group));
    report(Severity::kInfo, "group-undone",
           fmt::format("the drives of group {} hold again what they held before", record.name),
           record.name);
    return success();
}

Status ServiceImpl::forget_undo(const Uuid& group) {
    Status removed = undo_.remove(group);
    if (!undo_.state(group)) undo_problems_.erase(group);
    return removed;
}

Status ServiceImpl::finish_undo(const Uuid& group, std::span<const ScanEntry> entries) {
    Status status = restore_drives(group, entries);
    if (status.ok()) {
        const std::string uuid = group.to_text();
        std::erase_if(saved_groups_, [&](const SavedGroup& saved) { return saved.uuid == uuid; });
        return success();
    }
    std::string& problem = undo_problems_[group];
    if (problem != status.error().message) {
        problem = status.error().message;
        report(Severity::kError, "undo-incomplete", problem);
    }
    return status;
}

Error ServiceImpl::undo_problem(const Uuid& group, const std::string& name) const {
    const auto found = undo_problems_.find(group);
    return {
        ErrorCode::kWrongState,
        fmt::format("the drives of group {} are being given back what they held before: {}; to "
                    "leave them as they are, 'undo group {} --abandon'",
                    name, found != undo_problems_.end() ? found->second : "not finished", name)};
}

std::vector<ScanEntry> ServiceImpl::finish_undos(std::vector<ScanEntry> entries) {
    bool has_changed = false;
    for (const Uuid& group : undo_.groups_in(UndoState::kRestoring)) {
        has_changed = finish_undo(group, entries).ok() || has_changed;
    }
    if (!has_changed) return usable(std::move(entries));
    try_to_save_state();
    return scan_usable();
}

Status ServiceImpl::check_not_to_be_restored(const ScanEntry& entry) const {
    for (const Uuid& group : undo_.groups_in(UndoState::kRestoring)) {
        WARPRAID_TRY_ASSIGN(const UndoRecord record, undo_.record(group));
        if (!is_of(record, entry)) continue;
        return Error{ErrorCode::kInUse,
                     fmt::format("{} is one of the drives that are being given back what they "
                                 "held before group {} was made: wait for that, or end it with "
                                 "'undo group {} --abandon'",
                                 drive_text(entry.drive.identity), record.name, record.name)};
    }
    return success();
}

// ---- commands -----------------------------------------------------------------------------------

Status ServiceImpl::begin_undo(const Uuid& group) {
    const Running* running = find_running(group);
    if (running != nullptr && !running->group->is_held()) {
        return Error{ErrorCode::kWrongState,
                     fmt::format("group {} is held no longer, since its first volume was asked "
                                 "for: what its drives held before cannot be given back",
                                 running->name)};
    }
    const Result<UndoRecord> kept = undo_.record(group);
    if (!kept.ok()) {
        return Error{kept.error().code,
                     fmt::format("{}; 'undo group {} --abandon' forgets it once the group does "
                                 "not run",
                                 kept.error().message, group.to_text())};
    }
    const UndoRecord& record = *kept;
    WARPRAID_TRY(check_undo(record, scan_all()));
    const std::string name = running != nullptr ? running->name : record.name;
    // Whether it can be stored at all is asked before anything is gone.
    WARPRAID_TRY(save_state());
    WARPRAID_TRY(undo_.change(group, UndoState::kRestoring, name));
    // Ending it waits, and looks after the faults of those that are in the list meanwhile.
    std::unique_ptr<Running> ended;
    for (auto& other : running_) {
        if (other.get() == running) ended = std::move(other);
    }
    std::erase(running_, nullptr);
    ended.reset();
    release_spares_of(group);
    return success();
}

Status ServiceImpl::undo_group(const std::string& name) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(const Uuid group, find_undo(name));
    if (undo_.state(group) == UndoState::kKept) WARPRAID_TRY(begin_undo(group));
    const Status finished = finish_undo(group, scan_all());
    // What they belonged to before may be whole again.
    assemble_found(scan_usable(), AssembleOptions{}, false);
    try_to_save_state();
    return finished;
}

Status ServiceImpl::abandon_undo(const std::string& name) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(const Uuid group, find_undo(name));
    if (const Running* running = find_running(group)) {
        return Error{ErrorCode::kWrongState,
                     fmt::format("group {} runs and is held: its first volume ends that, and so "
                                 "does 'delete group {} --clear'",
                                 running->name, running->name)};
    }
    WARPRAID_TRY(forget_undo(group));
    report(Severity::kWarning, "undo-abandoned",
           fmt::format("what the drives of group {} held before is kept no longer: they stay as "
                       "they are",
                       name),
           name);
    assemble_found(scan_usable(), AssembleOptions{}, false);
    try_to_save_state();
    return success();
}

}  // namespace warpraid::control
