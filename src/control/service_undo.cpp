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
                        "given back without it: bring it back and try again",
                        drive_text(drive.identity), group)};
}

/// Where the drive is by the mark on it; a copy of it leaves two of them.
Result<std::string> find_marked(std::span<const ScanEntry> entries, const UndoRecord& record,
                                const UndoDrive& wanted) {
    const ScanEntry* found = nullptr;
    bool is_name_taken = false;
    for (const ScanEntry& entry : entries) {
        if (entry.mark != format::ProtectiveMark{record.group, wanted.member}) {
            is_name_taken |= undo_key(entry.drive.identity) == wanted.key;
            continue;
        }
        if (found == nullptr) {
            found = &entry;
            continue;
        }
        return Error{ErrorCode::kDuplicateMember,
                     fmt::format("{} and {} are copies of each other, and only one was a member of "
                                 "group {}: take the copy away",
                                 drive_text(found->drive.identity),
                                 drive_text(entry.drive.identity), record.name)};
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

Result<Uuid> ServiceImpl::find_undo(const std::string& name) {
    std::optional<Uuid> group;
    std::string problem;
    if (const Result<Running*> running = find_group(name); running.ok()) {
        group = (*running)->group->record().uuid;
    } else {
        problem = running.error().message;
        if (const Offline* offline = find_offline(name)) group = offline->uuid;
    }
    if (group && undo_.state(*group)) return *group;
    // One of which no drive is found is called what it was called last; so is one whose name
    // another group has taken since.
    for (const Uuid& kept : undo_.groups()) {
        const Result<UndoRecord> record = undo_.record(kept);
        if (kept.to_text() == name || (record.ok() && record->name == name)) return kept;
    }
    if (!group) return Error{ErrorCode::kNotFound, problem};
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
    if (const Running* running = find_running(record.group)) {
        const std::vector<format::Member>& members = running->group->record().members;
        for (std::size_t index = 0; index < members.size(); ++index) {
            const Slot slot(static_cast<std::uint8_t>(index));
            if (members[index].drive != wanted.member || !running->group->is_live(slot)) continue;
            return running->group->drive(slot)->identity().path;
        }
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
        if (!fits || entry.mark || !is_of(record, entry)) continue;
        const auto drive = provider_.open(entry.drive.identity.path, io::OpenMode::kReadOnly);
        if (!drive.ok()) continue;
        const Result<bool> has_it = holds(**drive, image);
        if (has_it.ok() && *has_it) return undo_.remove_image(record.group, before.member);
    }
    return path.error();
}

Status ServiceImpl::restore_drives(const Uuid& group, std::span<const ScanEntry> entries) {
    WARPRAID_TRY_ASSIGN(const UndoRecord record, undo_.record(group));
    for (const ScanEntry& entry : entries) {
        const format::GroupRecord* now = record_of(entry.drive);
        if (now == nullptr || now->uuid != group || now->table != format::Table::kWritten) continue;
        return Error{ErrorCode::kInUse,
                     fmt::format("group {} was given volumes by another machine since, as {} says",
                                 record.name, drive_text(entry.drive.identity))};
    }
    Status status = success();
    for (const UndoDrive& before : record.drives) {
        if (!undo_.is_waiting(group, before.member)) continue;
        Status restored = restore_drive(record, before, entries);
        if (!restored.ok() && status.ok()) status = std::move(restored);
    }
    WARPRAID_TRY(std::move(status));
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
    WARPRAID_TRY_ASSIGN(const UndoRecord record, undo_.record(group));
    WARPRAID_TRY(check_undo(record, scan_all()));
    const Running* running = find_running(group);
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
