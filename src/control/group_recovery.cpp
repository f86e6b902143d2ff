// Background work of a group: what is due first, what came of it, and what is remembered on disk.
#include <fmt/format.h>

#include <utility>

#include "base/size_text.h"
#include "control/group.h"

namespace warpraid::control {

using format::MemberState;
using tasks::Work;

namespace {
constexpr std::uint64_t kCheckpointNs = 5 * kNanosecondsPerSecond;
constexpr std::uint64_t kRetryNs = 60 * kNanosecondsPerSecond;
constexpr std::uint64_t kSpeedNs = kNanosecondsPerSecond;
}  // namespace

void Group::advance() {
    release_retired();
    if (failed()) return;
    const GroupSample now = sample();
    note_speed(now);
    if (!look_for_work_ && work_ != Work::kNone) {
        if (!now.recovery_idle) {
            store_checkpoint(now);
            return;
        }
        finish_work(now);
        if (failed()) return;
    }
    choose_work(now);
}

void Group::choose_work(const GroupSample& now) {
    const std::uint64_t time_ns = environment_.clock.monotonic_ns();
    Work next = Work::kNone;
    if (is_held()) {
        // All of it would write to the members, or compare what was never made equal.
    } else if (now.suspect && time_ns >= retry_resync_ns_) {
        next = Work::kResync;
    } else if (is_rebuilding() && time_ns >= retry_rebuild_ns_) {
        next = Work::kRebuild;
    } else if (verify_wanted_) {
        next = Work::kVerify;
    }
    if (!look_for_work_ && next == work_) return;
    look_for_work_ = false;
    // What was begun is begun again from the engine's state; what it did so far is done.
    if (work_ == Work::kResync) resynced_bytes_ += now.progress.done_bytes;
    start_work(next);
}

void Group::start_work(Work work) {
    work_ = work;
    work_rate_ = 0;
    speed_sample_ns_ = 0;
    checkpoint_ns_ = environment_.clock.monotonic_ns();
    environment_.shard.run([&] {
        switch (work) {
            case Work::kNone:
                recovery_->stop();
                return;
            case Work::kResync:
                recovery_->start_resync();
                return;
            case Work::kRebuild:
                recovery_->start_rebuild();
                return;
            case Work::kVerify:
                recovery_->start_verify();
                return;
        }
    });
}

void Group::finish_work(const GroupSample& now) {
    const Work ended = std::exchange(work_, Work::kNone);
    switch (ended) {
        case Work::kNone:
            return;
        case Work::kResync:
            finish_resync(now);
            return;
        case Work::kRebuild:
            finish_rebuild(now);
            return;
        case Work::kVerify:
            finish_verify(now);
            return;
    }
}

void Group::finish_resync(const GroupSample& now) {
    resynced_bytes_ += now.progress.done_bytes;
    if (now.progress.finished) {
        report(Severity::kInfo, "resync-finished",
               fmt::format("group {}: {} of each member were brought into agreement", record_.name,
                           format_size(now.progress.done_bytes)));
        return;
    }
    retry_resync_ns_ = environment_.clock.monotonic_ns() + kRetryNs;
    report(Severity::kWarning, "resync-incomplete",
           fmt::format("group {}: {} regions could not be read and stay unsynchronised; they are "
                       "tried again in {} s",
                       record_.name, now.progress.unreadable, kRetryNs / kNanosecondsPerSecond));
}

void Group::finish_rebuild(const GroupSample& now) {
    if (!now.progress.finished && !(now.progress.flush_failed && flush_rebuilding())) {
        retry_rebuild_ns_ = environment_.clock.monotonic_ns() + kRetryNs;
        const std::string reason =
            now.progress.flush_failed
                ? "the drives could not be flushed"
                : fmt::format(
                      "{} regions could not be rebuilt because what is left of them cannot "
                      "be read",
                      now.progress.unreadable);
        report(Severity::kError, "rebuild-incomplete",
               fmt::format("group {}: {}; they are tried again in {} s", record_.name, reason,
                           kRetryNs / kNanosecondsPerSecond));
        return;
    }
    std::vector<Slot> done;
    for (std::uint32_t index = 0; index < layout_.members(); ++index) {
        const Slot slot(static_cast<std::uint8_t>(index));
        format::Member& member = record_.members[index];
        if (member.state != MemberState::kRebuilding || now.stale_regions[index] != 0) continue;
        member.state = MemberState::kInSync;
        member.reason = format::LeaveReason::kNone;
        member.since_ns = environment_.clock.wall_ns();
        member.rebuilt_bytes = 0;
        member.by_bitmap = false;
        done.push_back(slot);
    }
    commit_and_adopt();
    if (failed()) return;
    for (const Slot slot : done) {
        if (!is_live(slot)) continue;
        report(Severity::kInfo, "rebuild-finished", member_text(slot) + " is in sync",
               record_.members[slot.get()].serial);
    }
    put_out_unwritable();
}

// A mirror's last copy that cannot be flushed ends every flush of the group with an error. Those
// that are to take its place need no more than their own.
bool Group::flush_rebuilding() {
    for (std::uint32_t index = 0; index < layout_.members(); ++index) {
        if (record_.members[index].state != MemberState::kRebuilding) continue;
        io::BlockingDrive* drive = members_[index].blocking.get();
        if (drive != nullptr && !drive->flush().ok()) return false;
    }
    return true;
}

void Group::finish_verify(const GroupSample& now) {
    verify_wanted_ = false;
    last_verify_ = now.progress;
    const bool fine = now.progress.mismatches == 0 && now.progress.unreadable == 0;
    report(fine ? Severity::kInfo : Severity::kError, "verify-finished",
           fmt::format("group {}: {} stripes disagree, {} could not be read", record_.name,
                       now.progress.mismatches, now.progress.unreadable));
}

// Only what a flush has made durable may be remembered as rebuilt.
void Group::note_rebuilt(const GroupSample& now) {
    if (has_member_to_leave()) return;
    for (std::uint32_t index = 0; index < layout_.members(); ++index) {
        format::Member& member = record_.members[index];
        if (member.state != MemberState::kRebuilding || member.by_bitmap) continue;
        io::BlockingDrive* drive = members_[index].blocking.get();
        if (drive == nullptr || !drive->flush().ok()) continue;
        member.rebuilt_bytes = std::max(member.rebuilt_bytes, now.rebuilt_bytes[index]);
    }
}

void Group::store_checkpoint(const GroupSample& now) {
    const std::uint64_t time_ns = environment_.clock.monotonic_ns();
    if (work_ != Work::kRebuild || time_ns < checkpoint_ns_ + kCheckpointNs) return;
    checkpoint_ns_ = time_ns;
    note_rebuilt(now);
    commit_and_adopt();
}

void Group::note_speed(const GroupSample& now) {
    const std::uint64_t time_ns = environment_.clock.monotonic_ns();
    if (work_ == Work::kNone || now.progress.done_bytes < speed_sample_bytes_) speed_sample_ns_ = 0;
    if (speed_sample_ns_ != 0 && time_ns < speed_sample_ns_ + kSpeedNs) return;
    if (speed_sample_ns_ != 0) {
        const std::uint64_t bytes = now.progress.done_bytes - speed_sample_bytes_;
        const std::uint64_t milliseconds =
            (time_ns - speed_sample_ns_) / kNanosecondsPerMillisecond;
        const std::uint64_t rate = bytes * 1000 / milliseconds;
        work_rate_ = work_rate_ == 0 ? rate : (work_rate_ * 3 + rate) / 4;
    }
    speed_sample_ns_ = time_ns;
    speed_sample_bytes_ = now.progress.done_bytes;
}

Status Group::start_verify() {
    WARPRAID_ASSERT(!is_held());
    if (failed()) return Error{ErrorCode::kGroupFailed, failure_};
    if (verify_wanted_) {
        return Error{ErrorCode::kWrongState,
                     fmt::format("group {} is being verified already: wait for that, or end it "
                                 "with 'verify group {} --stop'",
                                 record_.name, record_.name)};
    }
    verify_wanted_ = true;
    last_verify_.reset();
    report(Severity::kInfo, "verify-started", "group " + record_.name + " is verified");
    return success();
}

Status Group::stop_verify() {
    if (!verify_wanted_) {
        return Error{ErrorCode::kWrongState,
                     fmt::format("group {} is not being verified: 'verify group {}' begins that",
                                 record_.name, record_.name)};
    }
    verify_wanted_ = false;
    const GroupSample now = sample();
    if (work_ == Work::kVerify) {
        last_verify_ = now.progress;
        start_work(Work::kNone);
    }
    report(Severity::kInfo, "verify-stopped",
           "the verify pass of group " + record_.name + " was stopped");
    return success();
}

void Group::set_rebuild_rate(std::uint64_t bytes_per_second_max) {
    rebuild_rate_ = bytes_per_second_max;
    environment_.shard.run([&] { recovery_->set_rate(bytes_per_second_max); });
}

}  // namespace warpraid::control
