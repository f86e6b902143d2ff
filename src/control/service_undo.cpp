// Undoing a forced create. What it overwrites is kept before the first byte is written, and nothing
// else of the drives is written until the group gets its first volume, which ends it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "control/service_impl.h"
#include "control/undo_images.h"

namespace warpraid::control {

namespace {

const ScanEntry* find_entry(std::span<const ScanEntry> entries, const UndoDrive& wanted) {
    for (const ScanEntry& entry : entries) {
        if (identity_key(entry.drive.identity) == identity_key(wanted.identity)) return &entry;
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

Status ServiceImpl::load_undo() {
    WARPRAID_TRY(undo_.load());
    for (const Uuid& group : undo_.groups_in(UndoState::kEnding)) {
        if (was_deleted(group.to_text())) static_cast<void>(undo_.remove(group).ok());
    }
    return success();
}

Status ServiceImpl::keep_for_undo(const format::GroupRecord& record,
                                  std::span<const OpenedDrive> opened) {
    UndoRecord undo;
    undo.group = record.uuid;
    undo.name = record.name;
    for (const OpenedDrive& drive : opened) {
        WARPRAID_TRY_ASSIGN(UndoDrive image, take_image(*drive.drive));
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

// Nothing of a held group is ever brought into agreement here, so all of its bitmap stays dirty.
// RAID 0 has none: a group of it that was used elsewhere meanwhile is not told apart.
Result<bool> ServiceImpl::is_still_held(const Group::Start& start) {
    const Uuid& group = start.record.uuid;
    if (!undo_.state(group)) return false;
    const geometry::Layout layout = geometry::Layout::make(start.record.shape).value();
    if (layout.level() == geometry::Level::kRaid0) return true;
    const std::uint64_t regions = divide_up(layout.stripes(), start.record.region_stripes);
    std::uint64_t dirty = 0;
    for (const std::uint64_t word : start.dirty) {
        dirty += static_cast<std::uint64_t>(std::popcount(word));
    }
    if (start.resync && dirty == regions) return true;
    WARPRAID_TRY(undo_.remove(group));
    report(Severity::kWarning, "undo-ended",
           fmt::format("group {} was used elsewhere: what its drives held before is kept no longer",
                       start.record.name),
           start.record.name);
    return false;
}

// The state of the file goes first: from then on nobody is promised what the table overwrites.
Status ServiceImpl::end_undo(Running& running) {
    const Uuid group = running.group->record().uuid;
    const auto kept = [&](const Status& status) {
        return Error{ErrorCode::kStateNotSaved,
                     fmt::format("group {} stays held, because that its undo is over could not be "
                                 "recorded: {}: make room in the state directory, or make it "
                                 "writable, and try again",
                                 running.name, status.error().message)};
    };
    if (const Status changed = undo_.change(group, UndoState::kEnding); !changed.ok()) {
        return kept(changed);
    }
    WARPRAID_TRY(running.group->volumes().format());
    if (const Status removed = undo_.remove(group); !removed.ok()) return kept(removed);
    running.group->release();
    report(Severity::kInfo, "undo-ended",
           fmt::format("what the drives of group {} held before is kept no longer", running.name),
           running.name);
    return success();
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
    if (!group) return Error{ErrorCode::kNotFound, problem};
    if (undo_.state(*group) == UndoState::kKept) return *group;
    return Error{ErrorCode::kWrongState,
                 fmt::format("nothing is kept of what the drives of group {} held before: that is "
                             "only so from a 'create group --force' that overwrote something to "
                             "the first volume",
                             name)};
}

// Of the record's drives, all of them, or nothing is begun.
Status ServiceImpl::check_undo(const UndoRecord& record, std::span<const ScanEntry> entries) {
    for (const UndoDrive& before : record.drives) {
        const ScanEntry* entry = find_entry(entries, before);
        if (entry == nullptr) return missing(before, record.name);
        auto drive = provider_.open(entry->drive.identity.path, io::OpenMode::kReadOnly);
        if (!drive.ok()) return missing(before, record.name);
        if ((*drive)->limits().read_only) {
            return Error{ErrorCode::kDriveReadOnly,
                         drive_text(before.identity) + " is read-only: nothing was undone"};
        }
        WARPRAID_TRY(check_restorable(**drive, before, record.group));
        if (is_of_group(**drive, record.group)) continue;
        return Error{ErrorCode::kInUse,
                     fmt::format("{} does not carry a superblock of group {} any more, somebody "
                                 "else wrote to it: nothing was undone",
                                 drive_text(before.identity), record.name)};
    }
    return success();
}

Status ServiceImpl::restore_drive(const UndoRecord& record, const UndoDrive& before,
                                  std::span<const ScanEntry> entries) {
    const ScanEntry* entry = find_entry(entries, before);
    if (entry == nullptr) return missing(before, record.name);
    WARPRAID_TRY_ASSIGN(const auto drive,
                        provider_.open(entry->drive.identity.path, io::OpenMode::kExclusive));
    if (identity_key(drive->identity()) != identity_key(before.identity)) {
        return missing(before, record.name);
    }
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

Status ServiceImpl::finish_undo(const Uuid& group, std::span<const ScanEntry> entries) {
    const auto finish = [&]() -> Status {
        WARPRAID_TRY_ASSIGN(const UndoRecord record, undo_.read(group));
        Status status = success();
        for (const UndoDrive& before : record.drives) {
            Status restored = restore_drive(record, before, entries);
            if (!restored.ok() && status.ok()) status = std::move(restored);
        }
        WARPRAID_TRY(std::move(status));
        WARPRAID_TRY(undo_.remove(group));
        report(Severity::kInfo, "group-undone",
               fmt::format("the drives of group {} hold again what they held before", record.name),
               record.name);
        return success();
    };
    Status status = finish();
    if (status.ok()) {
        undo_problems_.erase(group);
        const std::string uuid = group.to_text();
        std::erase_if(saved_groups_, [&](const SavedGroup& saved) { return saved.uuid == uuid; });
        return success();
    }
    const std::string& problem = status.error().message;
    if (undo_problems_[group] != problem) report(Severity::kError, "undo-incomplete", problem);
    undo_problems_[group] = problem;
    return status;
}

Error ServiceImpl::undo_problem(const Uuid& group, const std::string& name) const {
    const auto found = undo_problems_.find(group);
    return {ErrorCode::kWrongState,
            fmt::format("the drives of group {} are being given back what they held before: {}",
                        name, found != undo_problems_.end() ? found->second : "not finished")};
}

bool ServiceImpl::finish_undos(std::span<const ScanEntry> entries) {
    bool has_changed = false;
    for (const Uuid& group : undo_.groups_in(UndoState::kRestoring)) {
        has_changed = finish_undo(group, entries).ok() || has_changed;
    }
    if (has_changed) try_to_save_state();
    return has_changed;
}

Status ServiceImpl::undo_group(const std::string& name) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(const Uuid group, find_undo(name));
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
    const Status finished = finish_undo(group, scan_all());
    // What they belonged to before may be whole again.
    assemble_found(scan_all(), AssembleOptions{}, false);
    try_to_save_state();
    return finished;
}

}  // namespace warpraid::control
