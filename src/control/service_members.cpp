// Members put out and replaced, and spares.
#include <fmt/format.h>

#include <algorithm>

#include "control/service_impl.h"

namespace warpraid::control {

using format::LeaveReason;
using format::MemberState;

namespace {

/// What has to be in sync before another member can leave.
std::string what_to_await(const format::GroupRecord& record) {
    std::string slots;
    for (std::size_t slot = 0; slot < record.members.size(); ++slot) {
        const MemberState state = record.members[slot].state;
        if (state == MemberState::kInSync) continue;
        slots +=
            fmt::format("{}slot {} ({})", slots.empty() ? "" : ", ", slot, format::to_text(state));
    }
    if (slots.empty()) return "no command puts it out: move the data to another group";
    return "wait until these are in sync, or 'replace drive' what is in them: " + slots;
}

}  // namespace

Status ServiceImpl::check_expendable(Running& running, Slot slot) {
    Group& group = *running.group;
    if (!group.survives_without(slot)) {
        return Error{
            ErrorCode::kWrongState,
            fmt::format("drive {} in slot {} of group {} is needed: {} would lose data "
                        "without it; {}",
                        group.record().members[slot.get()].serial, slot.get(), running.name,
                        geometry::to_text(group.layout().level()), what_to_await(group.record()))};
    }
    if (!group.is_live(slot) || !group.needs_all_members()) return success();
    return Error{ErrorCode::kWrongState,
                 fmt::format("drive {} in slot {} of group {} is needed until the resync after the "
                             "unclean stop has ended: wait for that",
                             group.record().members[slot.get()].serial, slot.get(), running.name)};
}

Result<MemberInfo> ServiceImpl::fail_drive(const FailDrive& command) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(const MemberPlace place,
                        find_seen_member(command.drive, command.generation));
    Group& group = *place.running->group;
    if (group.failed()) return Error{ErrorCode::kGroupFailed, group.failure()};
    const format::Member& member = member_of(place);
    const std::string text = fmt::format("drive {} ({}), member {} of group {},", member.serial,
                                         member.path, place.slot.get(), place.running->name);
    if (!group.is_live(place.slot)) {
        return Error{
            ErrorCode::kWrongState,
            fmt::format("{} is {} already, not in sync or being rebuilt: put another drive "
                        "there with 'replace drive {}:{} DRIVE'",
                        text, format::to_text(member.state), place.running->name,
                        place.slot.get())};
    }
    WARPRAID_TRY(check_expendable(*place.running, place.slot));
    group.put_out(place.slot, MemberState::kFailed, LeaveReason::kOperator);
    if (group.failed()) return Error{ErrorCode::kGroupFailed, group.failure()};
    environment_.wake();
    return describe_member(group, place.slot);
}

Result<MemberInfo> ServiceImpl::replace_drive(const ReplaceDrive& command) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(const MemberPlace place,
                        find_seen_member(command.old_drive, command.generation));
    Group& group = *place.running->group;
    if (group.failed()) {
        return Error{ErrorCode::kGroupFailed,
                     "no drive can join a failed group: " + group.failure()};
    }
    WARPRAID_TRY(check_released(*place.running));
    WARPRAID_TRY(check_expendable(*place.running, place.slot));
    // A spare is a free drive too, for the slot it is named for.
    WARPRAID_TRY_ASSIGN(const RegisteredDrive* registered, registry_.find(command.new_drive));
    const auto spare = std::find_if(spares_.begin(), spares_.end(), [&](const Spare& other) {
        return registered != nullptr && identity_key(other.drive->identity()) == registered->key();
    });
    OpenedDrive opened;
    if (spare == spares_.end()) {
        WARPRAID_TRY_ASSIGN(opened, open_free_drive(command.new_drive, command.force));
        WARPRAID_TRY(check_replacement(group, place.slot, opened));
        Known before = known();
        const auto added = registry_.add(opened.drive->identity(), opened.drive->limits());
        if (!added.ok()) return added.error();
        WARPRAID_TRY(save_or_restore(std::move(before)));
    } else {
        opened.drive = std::move(spare->drive);
        const Status fits = check_replacement(group, place.slot, opened);
        if (!fits.ok()) {
            spare->drive = std::move(opened.drive);
            return fits.error();
        }
        spares_.erase(spare);
    }
    WARPRAID_TRY(group.take_in(place.slot, std::move(opened.drive)));
    environment_.wake();
    return describe_member(group, place.slot);
}

// ---- spares -------------------------------------------------------------------------------------

Result<std::vector<SpareInfo>> ServiceImpl::create_spare(const CreateSpare& command) {
    const Lock lock(mutex_);
    Running* dedicated = nullptr;
    if (!command.group.empty()) {
        WARPRAID_TRY_ASSIGN(dedicated, find_group(command.group));
    }
    WARPRAID_TRY_ASSIGN(std::vector<OpenedDrive> opened,
                        open_free_drives(command.drives, command.force));
    for (const OpenedDrive& drive : opened) {
        if (dedicated == nullptr) continue;
        WARPRAID_TRY(check_replacement(*dedicated->group, Slot(0), drive));
    }
    Known before = known();
    for (const OpenedDrive& drive : opened) {
        const auto added = registry_.add(drive.drive->identity(), drive.drive->limits());
        if (added.ok()) continue;
        restore(std::move(before));
        return added.error();
    }
    WARPRAID_TRY(save_or_restore(std::move(before)));
    std::vector<SpareInfo> made;
    for (OpenedDrive& drive : opened) {
        const io::DriveIdentity identity = drive.drive->identity();
        Spare spare;
        spare.record.drive = Uuid::make(random_);
        if (dedicated != nullptr) spare.record.group = dedicated->group->record().uuid;
        spare.record.serial = identity.serial.substr(0, format::kSerialBytesMax);
        spare.record.drive_bytes = drive.drive->limits().size_bytes;
        WARPRAID_TRY_ASSIGN(RegisteredDrive * registered,
                            registry_.add(identity, drive.drive->limits()));
        WARPRAID_TRY(store_.write_spare(*drive.drive, spare.record));
        registered->superblock.reset();
        registered->finding.clear();
        registered->has_signature = false;
        spare.drive = std::move(drive.drive);
        spares_.push_back(std::move(spare));
        made.push_back(describe(spares_.back()));
        const std::string owner = dedicated == nullptr ? "any group" : "group " + dedicated->name;
        report(Severity::kInfo, "spare-created", drive_text(identity) + " is a spare for " + owner,
               dedicated == nullptr ? "" : dedicated->name, identity.serial);
    }
    environment_.wake();
    return made;
}

Status ServiceImpl::delete_spare(const std::string& name) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(const RegisteredDrive* registered, registry_.find(name));
    const auto spare = std::find_if(spares_.begin(), spares_.end(), [&](const Spare& other) {
        return registered != nullptr && identity_key(other.drive->identity()) == registered->key();
    });
    if (spare == spares_.end()) {
        return Error{ErrorCode::kNotFound, "no spare is called '" + name + "': see list spare"};
    }
    const io::DriveIdentity identity = spare->drive->identity();
    WARPRAID_TRY(check_path_means(name, identity));
    WARPRAID_TRY(store_.clear(*spare->drive));
    registry_.note(look_at(*spare->drive));  // what the last scan saw on it is gone
    spares_.erase(spare);
    report(Severity::kInfo, "spare-deleted", drive_text(identity) + " is no longer a spare", {},
           identity.serial);
    return success();
}

// Spares act by state: whatever slot is empty now and has been for long enough gets one.
void ServiceImpl::use_spares() {
    if (spares_.empty()) return;
    const std::uint64_t now_ns = clock_.monotonic_ns();
    for (const auto& running : running_) {
        Group& group = *running->group;
        if (group.is_held()) continue;
        const std::size_t count = group.layout().members();
        for (std::size_t index = 0; index < count && !group.failed(); ++index) {
            const Slot slot(static_cast<std::uint8_t>(index));
            const MemberState state = group.record().members[index].state;
            const std::uint64_t since_ns = group.member_status(slot).missing_since_ns;
            const bool is_absent = state == MemberState::kMissing;
            const bool is_due = state == MemberState::kFailed ||
                                (is_absent && now_ns >= since_ns + options_.absent_grace_ns);
            if (is_due) use_spare(*running, slot);
        }
    }
}

bool ServiceImpl::use_spare(Running& running, Slot slot) {
    Group& group = *running.group;
    auto best = spares_.end();
    for (auto spare = spares_.begin(); spare != spares_.end(); ++spare) {
        const bool is_dedicated = spare->record.group == group.record().uuid;
        if (!is_dedicated && !spare->record.group.is_nil()) continue;
        OpenedDrive opened;
        opened.drive = std::move(spare->drive);
        const bool fits = check_replacement(group, slot, opened).ok();
        spare->drive = std::move(opened.drive);
        if (!fits) continue;
        const auto rank = [](const Spare& other) {
            return std::pair(other.record.group.is_nil(), other.drive->limits().size_bytes);
        };
        if (best == spares_.end() || rank(*spare) < rank(*best)) best = spare;
    }
    if (best == spares_.end()) return false;
    std::unique_ptr<io::BlockingDrive> drive = std::move(best->drive);
    spares_.erase(best);
    const io::DriveIdentity identity = drive->identity();
    report(Severity::kWarning, "spare-activated",
           fmt::format("spare {} takes slot {} of group {}", drive_text(identity), slot.get(),
                       running.name),
           running.name, identity.serial);
    const Status taken = group.take_in(slot, std::move(drive));
    if (taken.ok()) return true;
    report(Severity::kError, "spare-failed", taken.error().message, running.name, identity.serial);
    return false;
}

}  // namespace warpraid::control
