// Members leave and join: recorded first, adopted by the engine then.
#include <fmt/format.h>

#include <utility>

#include "control/group.h"
#include "control/scan.h"

namespace warpraid::control {

using format::LeaveReason;
using format::MemberState;

std::vector<meta::MemberDrive> Group::live_drives() const {
    std::vector<meta::MemberDrive> live;
    for (std::uint32_t index = 0; index < layout_.members(); ++index) {
        const Slot slot(static_cast<std::uint8_t>(index));
        if (is_live(slot)) live.push_back({slot, members_[index].blocking.get()});
    }
    return live;
}

// Writes the record to all live members; those that cannot be written leave, and the rest is
// written again. False when too few were left.
bool Group::commit() {
    while (!failed()) {
        const meta::CommitOutcome outcome = store_.commit(record_, live_drives());
        if (outcome.ok()) {
            committed_generation_ = record_.generation;
            committed_in_sync_ = ~slots_not_in_sync();
            return true;
        }
        // Those that are gone first: they may leave the others as last copies.
        std::vector<Slot> present;
        for (const Slot slot : outcome.failed) {
            if (!drop_vanished(slot)) present.push_back(slot);
        }
        for (const Slot slot : present) drop(slot, MemberState::kFailed, LeaveReason::kWriteError);
    }
    return false;
}

meta::KnownState Group::committed() const {
    meta::KnownState known{committed_generation_, {}};
    for (std::uint32_t index = 0; index < layout_.members(); ++index) {
        if ((committed_in_sync_ >> index & 1) == 0) continue;
        const format::Member& member = record_.members[index];
        known.drives += known.drives.empty() ? "" : ", ";
        known.drives += fmt::format("drive {} ({})", member.serial, member.path);
    }
    return known;
}

// Takes a live member out of the record, not yet committed. False when the group cannot go on
// without it; the record then keeps it.
bool Group::drop(Slot slot, MemberState state, LeaveReason reason) {
    if (failed()) {
        fail(slot, reason);
        return false;
    }
    const std::string reason_text(format::to_text(reason));
    const std::string& serial = record_.members[slot.get()].serial;
    if (!layout_.survives(slots_not_in_sync() | 1u << slot.get())) {
        fail(slot, reason);
        return false;
    }
    const bool is_missing = state == MemberState::kMissing;
    report(is_missing ? Severity::kWarning : Severity::kError,
           is_missing ? "member-missing" : "member-failed",
           fmt::format("{} left the group: {}", member_text(slot), reason_text), serial);
    format::leave(record_.members[slot.get()], state, reason, environment_.clock.wall_ns());
    retire(slot);
    // What this one misses from here on is to be known to those that stay.
    if (has_member_to_leave()) record_.members[slot.get()].by_bitmap = false;
    members_[slot.get()].status.missing_since_ns = environment_.clock.monotonic_ns();
    look_for_work_ = true;
    return true;
}

// Takes a member out whose drive is not there any more as it was. False when it still is.
bool Group::drop_vanished(Slot slot) {
    const Status found = members_[slot.get()].blocking->probe();
    if (found.ok()) return false;
    if (!drop(slot, MemberState::kMissing, LeaveReason::kAbsent)) return true;
    // Should it grow back, it has holes that no bitmap knows of.
    if (found.error().code == ErrorCode::kMemberTooSmall) {
        record_.members[slot.get()].by_bitmap = false;
    }
    return true;
}

void Group::retire(Slot slot) {
    Member& member = members_[slot.get()];
    if (member.blocking == nullptr && member.drive == nullptr) return;
    retired_.push_back({std::move(member.blocking), std::move(member.drive)});
    member.status.present = false;
}

void Group::fail(Slot slot, LeaveReason reason) {
    MemberStatus& status = members_[slot.get()].status;
    if (status.lost) return;
    status.lost = reason;
    failed_by_absence_ = (!view_.failed || failed_by_absence_) && reason == LeaveReason::kAbsent;
    const bool is_first = !view_.failed;
    view_.failed = true;
    if (!is_first) return;
    failure_ = fmt::format(
        "{} was lost ({}) and {} cannot go on without it: {} and run assemble; nothing that was "
        "acknowledged is overwritten until then",
        member_text(slot), format::to_text(reason), geometry::to_text(layout_.level()),
        reason == LeaveReason::kAbsent ? "bring its drive back"
                                       : "make its drive work, which the kernel's log is about,");
    report(Severity::kError, "group-failed", failure_, record_.members[slot.get()].serial);
}

bool Group::must_record_missed() const {
    for (const format::Member& member : record_.members) {
        const bool may_need_bits =
            member.state == MemberState::kMissing || member.state == MemberState::kRebuilding;
        if (may_need_bits && member.by_bitmap) return true;
    }
    return false;
}

bool Group::has_member_to_leave() const {
    for (std::uint32_t index = 0; index < layout_.members(); ++index) {
        const bool is_to_leave = members_[index].status.is_to_leave();
        if (is_to_leave && is_live(Slot(static_cast<std::uint8_t>(index)))) return true;
    }
    return false;
}

void Group::build_view() {
    ++view_.version;
    for (std::uint32_t index = 0; index < layout_.members(); ++index) {
        const format::Member& member = record_.members[index];
        array::MemberView& view = view_.members[index];
        view = array::MemberView{};
        if (!is_live(Slot(static_cast<std::uint8_t>(index)))) continue;
        view.access = member.state == MemberState::kInSync ? array::Access::kFull
                                                           : array::Access::kRebuilding;
        view.drive = members_[index].drive.get();
        view.data_offset = member.data_offset;
        view.rebuilt_bytes = member.rebuilt_bytes;
        view.by_bitmap = member.by_bitmap;
        view.keeps_bitmap = !members_[index].status.bitmap_unwritable;
    }
}

void Group::adopt() {
    build_view();
    environment_.shard.run([&] {
        bitmap_->record_missed(must_record_missed());
        // A member that is to leave is not flushed for the bitmap, and may differ from the copy
        // that takes its place until it is out: after a crash in between their regions are
        // resynced.
        bitmap_->hold_clearing(has_member_to_leave());
        engine_->adopt(view_);
        // What was held against a slot until now was done by the drive it had before.
        for (const Slot slot : rebound_) faults_.forget(slot);
        rebound_.clear();
        if (view_.failed) recovery_->stop();
    });
}

void Group::commit_and_adopt() {
    commit();
    adopt();
}

Status Group::record_change() {
    commit_and_adopt();
    if (!failed()) return success();
    return Error{ErrorCode::kMetadataWrite, failure_};
}

void Group::put_out(Slot slot, MemberState state, LeaveReason reason) {
    drop(slot, state, reason);
    commit_and_adopt();
}

// ---- faults -------------------------------------------------------------------------------------

// A mirror's last copy of something stays whatever it fails to write: those requests end with the
// error, everything else on it can still be read. Parity without redundancy is another matter: a
// stripe written in part would change what the missing members are computed to hold, so there the
// group stops.
bool Group::is_last_copy(Slot slot) const {
    return !layout_.has_parity() && !survives_without(slot);
}

// A member that cannot be written leaves. The last copy of something stays until another has its
// data. That one may differ from it in what could not be written, so a rebuild that is cut short by
// a restart, after which nobody remembers that this member is to leave, starts from the beginning.
// True when the record changed: a drive that takes no writes at all may stay to be read.
bool Group::go_on_with_unwritable(Slot slot) {
    if (!is_last_copy(slot)) {
        drop(slot, MemberState::kFailed, LeaveReason::kWriteError);
        return true;
    }
    if (members_[slot.get()].status.data_unwritable) return false;
    members_[slot.get()].status.data_unwritable = true;
    bool changed = false;
    for (format::Member& member : record_.members) {
        changed = std::exchange(member.rebuilt_bytes, 0) != 0 || changed;
    }
    report(Severity::kError, "member-unwritable",
           fmt::format("{} could not be written but holds the last copy of some data: writes that "
                       "fail on it end with an error, and it leaves as soon as the missing members "
                       "are rebuilt",
                       member_text(slot)),
           record_.members[slot.get()].serial);
    return changed;
}

// Likewise for a member whose bitmap cannot be written. Those that could be told by it what they
// missed are to be rebuilt as a whole.
bool Group::go_on_without_bitmap_of(Slot slot) {
    if (!is_last_copy(slot)) {
        drop(slot, MemberState::kFailed, LeaveReason::kWriteError);
        return true;
    }
    if (members_[slot.get()].status.bitmap_unwritable) return false;
    members_[slot.get()].status.bitmap_unwritable = true;
    for (format::Member& member : record_.members) {
        if (member.state != MemberState::kInSync) member.by_bitmap = false;
    }
    report(Severity::kError, "member-bitmap-unwritable",
           fmt::format("{} cannot keep its write-intent bitmap but holds the last copy of some "
                       "data: replace it as soon as the missing members are rebuilt",
                       member_text(slot)),
           record_.members[slot.get()].serial);
    return true;
}

// Members that stayed only because they held the last copy leave once another has it.
void Group::put_out_unwritable() {
    for (std::uint32_t index = 0; index < layout_.members() && !failed(); ++index) {
        const Slot slot(static_cast<std::uint8_t>(index));
        const bool stays = !members_[index].status.is_to_leave() || !is_live(slot);
        if (stays || !survives_without(slot)) continue;
        put_out(slot, MemberState::kFailed, LeaveReason::kWriteError);
    }
}

// Takes out a member that answers no more.
bool Group::drop_silent(Slot slot, const MemberFaults& faults) {
    if (!faults.silent() || !is_live(slot)) return false;
    if (faults.fatal == array::FaultKind::kGone) {
        drop(slot, MemberState::kMissing, LeaveReason::kAbsent);
    } else {
        drop(slot, MemberState::kFailed, LeaveReason::kTimeout);
    }
    return true;
}

bool Group::take_fault(Slot slot, const MemberFaults& faults) {
    MemberStatus& status = members_[slot.get()].status;
    if (!is_live(slot)) return false;
    status.read_errors += faults.read_errors;
    status.write_errors += faults.write_errors;
    bool changed = false;
    if (faults.fatal) changed = go_on_with_unwritable(slot);
    if (faults.bitmap_unwritable && is_live(slot)) {
        changed = go_on_without_bitmap_of(slot) || changed;
    }
    if (changed) return true;
    const bool too_many = status.read_errors > environment_.options.read_errors_max;
    // The last redundancy is worth more than a drive that reads badly.
    if (!too_many || !survives_without(slot)) return false;
    drop(slot, MemberState::kFailed, LeaveReason::kReadErrors);
    return true;
}

bool Group::look_after_faults() {
    if (!faults_.any()) return false;
    const FaultBox::Faults faults = faults_.take();
    if (failed()) return false;
    const bool had_member_to_leave = has_member_to_leave();
    bool changed = false;
    // Those that are gone leave whatever happens; only then is it known who is a last copy.
    for (std::uint32_t index = 0; index < layout_.members(); ++index) {
        changed = drop_silent(Slot(static_cast<std::uint8_t>(index)), faults[index]) || changed;
    }
    for (std::uint32_t index = 0; index < layout_.members() && !failed(); ++index) {
        if (!faults[index].any()) continue;
        changed = take_fault(Slot(static_cast<std::uint8_t>(index)), faults[index]) || changed;
    }
    if (changed) {
        commit_and_adopt();
    } else if (has_member_to_leave() && !had_member_to_leave) {
        adopt();
    }
    return changed;
}

void Group::probe_members() {
    if (failed()) return;
    bool changed = false;
    for (std::uint32_t index = 0; index < layout_.members(); ++index) {
        const Slot slot(static_cast<std::uint8_t>(index));
        if (is_live(slot)) changed = drop_vanished(slot) || changed;
    }
    if (changed) commit_and_adopt();
}

// ---- joining ------------------------------------------------------------------------------------

Status Group::join(Slot slot, const format::Member& joined,
                   std::unique_ptr<io::BlockingDrive> drive) {
    const io::DriveIdentity identity = drive->identity();
    retire(slot);
    record_.members[slot.get()] = joined;
    const Status bound = bind(slot, std::move(drive));
    if (!bound.ok()) {
        format::leave(record_.members[slot.get()], MemberState::kFailed, LeaveReason::kWriteError,
                      environment_.clock.wall_ns());
    }
    look_for_work_ = true;
    retry_rebuild_ns_ = 0;
    commit_and_adopt();
    if (is_live(slot) && !failed()) return success();
    return Error{ErrorCode::kMetadataWrite,
                 fmt::format("drive {} ({}) could not be written when it joined group {} as member "
                             "{}: use another drive",
                             identity.serial, identity.path, record_.name, slot.get())};
}

Status Group::take_in(Slot slot, std::unique_ptr<io::BlockingDrive> drive) {
    const io::DriveIdentity& identity = drive->identity();
    format::Member joined;
    joined.drive = Uuid::make(environment_.random);
    joined.serial = identity.serial.substr(0, format::kSerialBytesMax);
    joined.model = identity.model.substr(0, format::kModelBytesMax);
    joined.path = identity.path.substr(0, format::kPathBytesMax);
    joined.drive_bytes = drive->limits().size_bytes;
    joined.data_offset = record_.members[slot.get()].data_offset;
    joined.state = MemberState::kRebuilding;
    joined.since_ns = environment_.clock.wall_ns();
    format::GroupRecord record = record_;
    record.members[slot.get()] = joined;
    WARPRAID_TRY(store_.prepare_member(*drive, record, slot));
    const std::string text = drive_text(identity);
    WARPRAID_TRY(join(slot, joined, std::move(drive)));
    report(
        Severity::kInfo, "rebuild-started",
        fmt::format("{} takes slot {} of group {} and is rebuilt", text, slot.get(), record_.name),
        joined.serial);
    return success();
}

Status Group::take_back(Slot slot, std::unique_ptr<io::BlockingDrive> drive, bool by_bitmap) {
    format::Member joined = record_.members[slot.get()];
    joined.path = drive->identity().path.substr(0, format::kPathBytesMax);
    joined.serial = drive->identity().serial.substr(0, format::kSerialBytesMax);
    joined.state = MemberState::kRebuilding;
    joined.reason = LeaveReason::kNone;
    joined.since_ns = environment_.clock.wall_ns();
    joined.rebuilt_bytes = 0;
    joined.by_bitmap = by_bitmap;
    const std::string text = drive_text(drive->identity());
    WARPRAID_TRY(join(slot, joined, std::move(drive)));
    report(Severity::kInfo, "member-returned",
           fmt::format("{} is back in slot {} of group {} and is brought up to date{}", text,
                       slot.get(), record_.name, by_bitmap ? " by the bitmap" : " as a whole"),
           joined.serial);
    return success();
}

Status Group::end_hold() {
    WARPRAID_ASSERT(is_held());
    record_.table = format::Table::kToBeWritten;
    WARPRAID_TRY(record_change());
    look_for_work_ = true;
    return success();
}

Status Group::write_table() {
    WARPRAID_ASSERT(!has_table() && !is_held());
    WARPRAID_TRY(volumes_->format());
    record_.table = format::Table::kWritten;
    return record_change();
}

Status Group::rename(const std::string& name) {
    record_.name = name;
    return record_change();
}

}  // namespace warpraid::control
