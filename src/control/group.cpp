#include "control/group.h"

#include <fmt/format.h>

#include <utility>

namespace warpraid::control {

Group::Group(Environment& environment, format::GroupRecord record, const geometry::Layout& layout)
    : environment_(environment),
      store_(environment.random),
      record_(std::move(record)),
      layout_(layout),
      faults_(environment.wake) {}

Group::~Group() {
    tear_down();
}

Result<std::unique_ptr<Group>> Group::start(Environment& environment, Start start) {
    WARPRAID_TRY_ASSIGN(const geometry::Layout layout, geometry::Layout::make(start.record.shape));
    WARPRAID_ASSERT(start.drives.size() == layout.members());
    std::unique_ptr<Group> group(new Group(environment, std::move(start.record), layout));
    group->rebuild_rate_ = start.rebuild_bytes_per_second_max;
    group->record_.clean = false;
    for (std::uint32_t index = 0; index < layout.members(); ++index) {
        const Slot slot(static_cast<std::uint8_t>(index));
        group->members_[index].status.missing_since_ns = environment.clock.monotonic_ns();
        if (start.drives[index] == nullptr) continue;
        const Status bound = group->bind(slot, std::move(start.drives[index]));
        if (bound.ok()) continue;
        if (!group->drop(slot, format::MemberState::kMissing, format::LeaveReason::kAbsent)) {
            return Error{ErrorCode::kDriveOpen, bound.error().message};
        }
    }
    if (!layout.survives(group->slots_not_in_sync())) {
        return Error{ErrorCode::kIncomplete,
                     fmt::format("group {} has too few members in sync for {}: bring missing "
                                 "drives back",
                                 group->record_.name, geometry::to_text(layout.level()))};
    }
    if (!group->commit()) {
        return Error{
            ErrorCode::kMetadataWrite,
            "its superblocks could not be written to the drives it needs: " + group->failure_};
    }
    group->build_engine(start);
    group->adopt();
    return group;
}

Status Group::bind(Slot slot, std::unique_ptr<io::BlockingDrive> drive) {
    Member& member = members_[slot.get()];
    WARPRAID_ASSERT(member.blocking == nullptr);
    Status status = success();
    environment_.shard.run([&] {
        auto bound = environment_.provider.bind(*drive, *environment_.shard.reactor,
                                                environment_.options.command_timeout_ns);
        if (bound.ok()) {
            member.drive = std::move(bound).value();
        } else {
            status = std::move(bound).error();
        }
    });
    WARPRAID_TRY(std::move(status));
    member.blocking = std::move(drive);
    member.status = MemberStatus{};
    member.status.present = true;
    rebound_.push_back(slot);
    return success();
}

std::uint32_t Group::region_count() const {
    return static_cast<std::uint32_t>(divide_up(layout_.stripes(), record_.region_stripes));
}

void Group::build_engine(const Start& start) {
    Shard& shard = environment_.shard;
    may_have_suspects_ = start.resync;
    was_unclean_ = start.unclean;
    shard.run([&] {
        intent::Options options;
        options.group = record_.uuid;
        options.regions = region_count();
        options.idle_ns_before_clear = environment_.options.bitmap_delay_ns;
        bitmap_ = std::make_unique<intent::Bitmap>(options, start.bitmap, *shard.reactor, faults_);
        array::EngineOptions engine_options{.layout = layout_};
        engine_options.region_stripes = record_.region_stripes;
        engine_ = std::make_unique<array::Engine>(
            engine_options, *shard.reactor, *shard.engine_arena, *shard.coder, *bitmap_, faults_);
        if (start.resync) engine_->set_suspect_regions(start.bitmap.dirty);
        recovery_ =
            std::make_unique<tasks::Recovery>(*engine_, *bitmap_, *shard.reactor, rebuild_rate_);
    });
    volumes_ = std::make_unique<Volumes>(
        layout_, DeviceIo(*engine_, shard, environment_.look_after_faults), environment_.random);
}

bool Group::is_live(Slot slot) const {
    const format::MemberState state = record_.members[slot.get()].state;
    return members_[slot.get()].drive != nullptr &&
           (state == format::MemberState::kInSync || state == format::MemberState::kRebuilding);
}

std::uint32_t Group::slots_not_in_sync() const {
    std::uint32_t mask = 0;
    for (std::uint32_t index = 0; index < layout_.members(); ++index) {
        const bool full = record_.members[index].state == format::MemberState::kInSync &&
                          members_[index].drive != nullptr;
        if (!full) mask |= 1u << index;
    }
    return mask;
}

bool Group::survives_without(Slot slot) const {
    return !failed() && layout_.survives(slots_not_in_sync() | 1u << slot.get());
}

bool Group::needs_all_members() {
    return was_unclean_ && layout_.has_parity() && sample().suspect;
}

bool Group::is_rebuilding() const {
    for (const format::Member& member : record_.members) {
        if (member.state == format::MemberState::kRebuilding) return true;
    }
    return false;
}

GroupSample Group::sample() {
    GroupSample now;
    environment_.shard.run([&] {
        now.counters = engine_->counters();
        now.progress = recovery_->progress();
        now.recovery_idle = recovery_->idle();
        now.dirty_regions = bitmap_->dirty_count();
        now.missed_regions = bitmap_->missed_count();
        for (std::uint32_t index = 0; index < layout_.members(); ++index) {
            const Slot slot(static_cast<std::uint8_t>(index));
            now.stale_regions[index] = engine_->stale_regions(slot);
            now.rebuilt_bytes[index] = engine_->rebuilt_bytes(slot);
        }
        if (!may_have_suspects_) return;
        const Region end(engine_->region_count());
        for (Region region(0); region < end && !now.suspect; region = region.next()) {
            now.suspect = engine_->is_region_suspect(region);
        }
    });
    may_have_suspects_ = now.suspect;
    return now;
}

// ---- the end ------------------------------------------------------------------------------------

void Group::quiesce() {
    verify_wanted_ = false;
    wait_on_shard(
        environment_.shard,
        [&] {
            recovery_->stop();
            return recovery_->idle() && engine_->idle();
        },
        environment_.look_after_faults);
}

bool Group::flush() {
    if (failed()) return false;
    DeviceIo io(*engine_, environment_.shard, environment_.look_after_faults);
    return io.flush().ok() && !failed();
}

void Group::stop() {
    quiesce();
    if (!failed()) {
        const bool flushed = flush();
        environment_.shard.run([&] { bitmap_->clear_idle_now(); });
        wait_on_shard(
            environment_.shard, [&] { return bitmap_->idle(); }, environment_.look_after_faults);
        const GroupSample now = sample();
        note_rebuilt(now);
        record_.clean = flushed && !now.suspect;
        if (!commit()) {
            report(Severity::kError, "group-stop-incomplete",
                   "the superblocks could not be written: " + failure_);
        }
    }
    tear_down();
}

Status Group::destroy(bool clear) {
    quiesce();
    // It may be brought back, and has to be resynced then if it was not in sync.
    record_.clean = flush() && !sample().suspect;
    // A fault that is looked after while waiting commits the record: no waiting behind this.
    come_to_rest();
    record_.destroyed = true;
    const meta::CommitOutcome outcome = store_.commit(record_, live_drives());
    Status status = success();
    for (const Slot slot : outcome.failed) {
        status = Error{ErrorCode::kMetadataWrite,
                       member_text(slot) +
                           " could not be written to, to mark its group as deleted: take its drive "
                           "away, or use it with --force"};
    }
    for (Member& member : members_) {
        if (!clear || member.blocking == nullptr) continue;
        Status cleared = store_.clear(*member.blocking);
        if (!cleared.ok()) status = std::move(cleared);
    }
    tear_down();
    return status;
}

// Nothing of the group reads or writes a drive afterwards, until somebody asks it to.
void Group::come_to_rest() {
    const auto is_at_rest = [&] {
        if (engine_ != nullptr) {
            recovery_->stop();
            if (!recovery_->idle() || !engine_->idle()) return false;
            // Nothing writes any more, so nothing needs the bitmap's members.
            bitmap_->set_members({});
            if (!bitmap_->idle()) return false;
        }
        for (const Retired& retired : retired_) {
            if (retired.drive != nullptr && retired.drive->in_flight() != 0) return false;
        }
        for (const Member& member : members_) {
            if (member.drive != nullptr && member.drive->in_flight() != 0) return false;
        }
        return true;
    };
    wait_on_shard(environment_.shard, is_at_rest, environment_.look_after_faults);
}

void Group::tear_down() {
    volumes_.reset();
    come_to_rest();
    environment_.shard.run([&] {
        recovery_.reset();
        engine_.reset();
        bitmap_.reset();
        for (Retired& retired : retired_) retired.drive.reset();
        for (Member& member : members_) member.drive.reset();
    });
    retired_.clear();
    for (Member& member : members_) member.blocking.reset();
}

void Group::release_retired() {
    if (retired_.empty()) return;
    environment_.shard.run([&] {
        for (Retired& retired : retired_) {
            if (retired.drive == nullptr || retired.drive->in_flight() != 0) continue;
            if (!engine_->refers_to(*retired.drive)) retired.drive.reset();
        }
    });
    std::erase_if(retired_, [](const Retired& retired) { return retired.drive == nullptr; });
}

void Group::report(Severity severity, const std::string& kind, const std::string& text,
                   const std::string& serial) {
    EventDraft draft;
    draft.severity = severity;
    draft.kind = kind;
    draft.group = record_.name;
    draft.drive_serial = serial;
    draft.text = text;
    environment_.events.add(std::move(draft));
}

std::string Group::member_text(Slot slot) const {
    const format::Member& member = record_.members[slot.get()];
    return fmt::format("member {} of group {}, drive {} ({})", slot.get(), record_.name,
                       member.serial, member.path);
}

}  // namespace warpraid::control
