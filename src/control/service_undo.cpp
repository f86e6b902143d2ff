// Undoing a forced create. What it overwrites is kept before the first byte is written, and nothing
// else of the drives is written until the group gets its first volume, which ends it.
#include <fmt/format.h>

#include <algorithm>

#include "control/service_impl.h"
#include "control/undo_images.h"

namespace warpraid::control {

namespace {

/// A drive without a serial number and a world-wide id is told by the superblock that it got, and
/// by its path only where it carries none of the group.
bool is_drive(const UndoDrive& wanted, const meta::FoundDrive& found, const Uuid& group) {
    if (!wanted.identity.serial.empty() || !wanted.identity.wwid.empty()) {
        return identity_key(found.identity) == identity_key(wanted.identity);
    }
    const format::GroupRecord* record = record_of(found);
    if (record != nullptr && record->uuid == group) return found.superblock->drive == wanted.member;
    return identity_key(found.identity) == identity_key(wanted.identity);
}

const ScanEntry* find_entry(std::span<const ScanEntry> entries, const UndoDrive& wanted,
                            const Uuid& group) {
    for (const ScanEntry& entry : entries) {
        if (is_drive(wanted, entry.drive, group)) return &entry;
    }
    return nullptr;
}

Error missing(const UndoDrive& drive, const std::string& group) {
    return {ErrorCode::kDriveMissing,
            fmt::format("{} is not found, and what it held before group {} was made cannot be "
                        "given back without it: bring it back and try again",
                        drive_text(drive.identity), group)};
}

}  // namespace

Status ServiceImpl::keep_for_undo(const format::GroupRecord& record,
                                  std::span<const OpenedDrive> opened) {
    UndoRecord undo;
    undo.group = record.uuid;
    undo.name = record.name;
    WARPRAID_ASSERT(opened.size() == record.members.size());
    for (std::size_t index = 0; index < opened.size(); ++index) {
        WARPRAID_TRY_ASSIGN(UndoDrive image,
                            take_image(*opened[index].drive, record.members[index].drive));
        undo.drives.push_back(std::move(image));
    }
    const Status kept = undo_.keep(undo);
    if (kept.ok()) return success();
    return Error{ErrorCode::kStateNotSaved,
                 "nothing was written to the drives, because what --force overwrites could not be "
                 "kept for undo: " +
                     kept.error().message +
                     ": make room in the state directory, or make it writable, and try again"};
}

// ---- its end ------------------------------------------------------------------------------------

Status ServiceImpl::check_released(const Running& running) {
    if (!running.group->is_held()) return success();
    return Error{ErrorCode::kWrongState,
                 fmt::format("group {} is held until its first volume is made, so that what its "
                             "drives held before can be given back: create a volume first, or "
                             "'undo group {}'",
                             running.name, running.name)};
}

void ServiceImpl::end_undo(const Running& running) {
    WARPRAID_ASSERT(!running.group->is_held());
    const Uuid& group = running.group->record().uuid;
    if (!undo_.state(group)) return;
    const Status removed = undo_.remove(group);
    if (!removed.ok()) {
        report(Severity::kWarning, "undo-file-left", removed.error().message, running.name);
        return;
    }
    report(Severity::kInfo, "undo-ended",
           fmt::format("what the drives of group {} held before is kept no longer", running.name),
           running.name);
}

// ---- giving back --------------------------------------------------------------------------------

Result<Uuid> ServiceImpl::find_undo(const std::string& name) {
    std::optional<Uuid> group;
    std::string problem;
    if (const Result<Running*> running = find_group(name); running.ok()) {
        group = (*running)->group->record().uuid;
    } else {
        problem = running.error().message;
        if (const Offline* offline = find_offline(name)) group = offline->uuid;
    }
    // One of which no drive is found is called what it was called when it was made.
    for (const Uuid& kept : undo_.groups()) {
        if (group) break;
        const Result<UndoRecord> record = undo_.read(kept);
        if (kept.to_text() == name || (record.ok() && record->name == name)) group = kept;
    }
    if (!group) return Error{ErrorCode::kNotFound, problem};
    if (undo_.state(*group)) return *group;
    return Error{
        ErrorCode::kWrongState,
        fmt::format("nothing is kept here of what the drives of group {} held before: that "
                    "is only so from a 'create group --force' that overwrote something to "
                    "the first volume, and on the machine that made it",
                    name)};
}

// Of the record's drives, all of them, or nothing is begun.
Status ServiceImpl::check_undo(const UndoRecord& record, std::span<const ScanEntry> entries) {
    for (const UndoDrive& before : record.drives) {
        const ScanEntry* entry = find_entry(entries, before, record.group);
        if (entry == nullptr) return missing(before, record.name);
        auto drive = provider_.open(entry->drive.identity.path, io::OpenMode::kReadOnly);
        if (!drive.ok()) return missing(before, record.name);
        if ((*drive)->limits().read_only) {
            return Error{ErrorCode::kDriveReadOnly,
                         drive_text(before.identity) + " is read-only: nothing was undone"};
        }
        WARPRAID_TRY(check_restorable(**drive, before, record.group));
        if (superblock_of(**drive, record.group)) continue;
        return Error{ErrorCode::kInUse,
                     fmt::format("{} does not carry a superblock of group {} any more, somebody "
                                 "else wrote to it: nothing was undone",
                                 drive_text(before.identity), record.name)};
    }
    return success();
}

Status ServiceImpl::restore_drive(const UndoRecord& record, const UndoDrive& before,
                                  std::span<const ScanEntry> entries) {
    const ScanEntry* entry = find_entry(entries, before, record.group);
    if (entry == nullptr) return missing(before, record.name);
    WARPRAID_TRY_ASSIGN(const auto drive,
                        provider_.open(entry->drive.identity.path, io::OpenMode::kExclusive));
    if (!is_drive(before, meta::examine(*drive), record.group)) return missing(before, record.name);
    const Status allowed = check_restorable(*drive, before, record.group);
    if (allowed.ok()) return give_back(*drive, before);
    if (allowed.error().code != ErrorCode::kInUse) return allowed;
    // Waiting longer would not change it, and what is there now is somebody's.
    report(Severity::kWarning, "undo-gave-up",
           allowed.error().message + ": what it held before group " + record.name +
               " was made is not given back",
           record.name, before.identity.serial);
    return success();
}

Status ServiceImpl::restore_drives(const Uuid& group, std::span<const ScanEntry> entries) {
    WARPRAID_TRY_ASSIGN(const UndoRecord record, undo_.read(group));
    UnfinishedUndo& unfinished = unfinished_undos_[group];
    unfinished.group = record.name;
    unfinished.drives.clear();
    Status status = success();
    for (const UndoDrive& before : record.drives) {
        unfinished.drives.push_back(
            {before.identity, before.member, before.size_bytes, /*head=*/{}, /*tail=*/{}});
        Status restored = restore_drive(record, before, entries);
        if (!restored.ok() && status.ok()) status = std::move(restored);
    }
    WARPRAID_TRY(std::move(status));
    WARPRAID_TRY(undo_.remove(group));
    report(Severity::kInfo, "group-undone",
           fmt::format("the drives of group {} hold again what they held before", record.name),
           record.name);
    return success();
}

Status ServiceImpl::finish_undo(const Uuid& group, std::span<const ScanEntry> entries) {
    Status status = restore_drives(group, entries);
    if (status.ok()) {
        unfinished_undos_.erase(group);
        const std::string uuid = group.to_text();
        std::erase_if(saved_groups_, [&](const SavedGroup& saved) { return saved.uuid == uuid; });
        return success();
    }
    const std::string& problem = status.error().message;
    UnfinishedUndo& unfinished = unfinished_undos_[group];
    if (unfinished.group.empty()) unfinished.group = group.to_text();
    if (unfinished.problem != problem) report(Severity::kError, "undo-incomplete", problem);
    unfinished.problem = problem;
    return status;
}

Error ServiceImpl::undo_problem(const Uuid& group, const std::string& name) const {
    const auto found = unfinished_undos_.find(group);
    return {
        ErrorCode::kWrongState,
        fmt::format("the drives of group {} are being given back what they held before: {}; to "
                    "leave them as they are, 'undo group {} --abandon'",
                    name, found != unfinished_undos_.end() ? found->second.problem : "not finished",
                    name)};
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

Status ServiceImpl::check_not_to_be_restored(const meta::FoundDrive& drive) const {
    for (const auto& [group, unfinished] : unfinished_undos_) {
        for (const UndoDrive& wanted : unfinished.drives) {
            if (!is_drive(wanted, drive, group)) continue;
            return Error{
                ErrorCode::kInUse,
                fmt::format("{} is one of the drives that are being given back what they "
                            "held before group {} was made: wait for that, or end it with "
                            "'undo group {} --abandon'",
                            drive_text(drive.identity), unfinished.group, unfinished.group)};
        }
    }
    return success();
}

// ---- commands -----------------------------------------------------------------------------------

Status ServiceImpl::begin_undo(const Uuid& group) {
    WARPRAID_TRY_ASSIGN(const UndoRecord record, undo_.read(group));
    WARPRAID_TRY(check_undo(record, scan_all()));
    // Whether it can be stored at all is asked before anything is gone.
    WARPRAID_TRY(save_state());
    WARPRAID_TRY(undo_.change(group, UndoState::kRestoring));
    // Ending it waits, and looks after the faults of those that are in the list meanwhile.
    std::unique_ptr<Running> ended;
    for (auto& running : running_) {
        if (running->group->record().uuid == group) ended = std::move(running);
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
    WARPRAID_TRY(undo_.remove(group));
    unfinished_undos_.erase(group);
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
