// One running group: its record, its drives, and on the shard its engine, bitmap and recovery.
// Keeps the order that durability rests on: a change of members is committed to the superblocks of
// those that stay before the engine adopts it, so a write that was acknowledged is never undone by
// a stale member coming back.
//
// A loss that the group cannot survive is not recorded in the superblocks: the group answers EIO
// from then on, and can start again as it was last recorded when the drives are back.
//
// All calls under the service's lock, from any one thread but the shard's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "array/engine.h"
#include "control/device_io.h"
#include "control/event_log.h"
#include "control/fault_box.h"
#include "control/shard.h"
#include "control/volumes.h"
#include "format/record.h"
#include "intent/bitmap.h"
#include "io/drive.h"
#include "meta/assembly.h"
#include "meta/store.h"
#include "tasks/recovery.h"

namespace warpraid::control {

/// What every group of a service works with.
struct Environment {
    io::DriveProvider& provider;
    Shard& shard;
    const Clock& clock;
    Random& random;
    const ServiceOptions& options;
    EventLog& events;
    /// Any thread: something is to be looked after soon.
    std::function<void()> wake;
    /// Looks after the faults of all groups; for threads that wait with the lock held.
    Meanwhile look_after_faults;
};

/// What the shard knows, copied from it at one moment.
struct GroupSample {
    array::EngineCounters counters;
    tasks::Progress progress;
    bool recovery_idle = true;
    std::uint32_t dirty_regions = 0, missed_regions = 0;
    bool suspect = false;  // regions await resync
    std::array<std::uint32_t, limits::kMembersMax> stale_regions{};
    std::array<std::uint64_t, limits::kMembersMax> rebuilt_bytes{};
};

class Group {
  public:
    struct Start {
        format::GroupRecord record;
        /// By slot; null where there is none. Opened exclusively.
        std::vector<std::unique_ptr<io::BlockingDrive>> drives;
        format::BitmapContent bitmap;  // as read from the members
        bool resync = false;           // dirty regions may hold stripes that disagree
        bool unclean = false;          // and that is because of a crash
        std::uint64_t rebuild_bytes_per_second_max = 0;
    };
    /// What a member's slot holds besides its record.
    struct MemberStatus {
        bool present = false;
        std::uint64_t read_errors = 0, write_errors = 0;
        /// Set while the group is failed: a loss that is not in the record.
        std::optional<format::LeaveReason> lost;
        std::uint64_t missing_since_ns = 0;  // monotonic
        /// It stays, as the last copy of something, only until another copy has that data: some of
        /// its blocks could not be written.
        bool data_unwritable = false;
        /// Likewise, and it keeps no bitmap of its own.
        bool bitmap_unwritable = false;
        bool is_to_leave() const { return data_unwritable || bitmap_unwritable; }
    };

    /// Commits the record as it is now and starts the engine. kGroupFailed, kMetadataWrite.
    static Result<std::unique_ptr<Group>> start(Environment& environment, Start start);
    ~Group();

    // ---- what it is
    const format::GroupRecord& record() const { return record_; }
    const geometry::Layout& layout() const { return layout_; }
    bool failed() const { return view_.failed; }
    const std::string& failure() const { return failure_; }
    /// Its last commit that is on all members which were live then.
    meta::KnownState committed() const;
    /// Every loss behind the failure was a drive that vanished, so its return may cure it.
    bool failed_by_absence() const { return failed() && failed_by_absence_; }
    const MemberStatus& member_status(Slot slot) const { return members_[slot.get()].status; }
    io::BlockingDrive* drive(Slot slot) const { return members_[slot.get()].blocking.get(); }
    bool is_live(Slot slot) const;
    bool survives_without(Slot slot) const;
    /// Stripes that a crash left in doubt await their resync: what a member holds of them could not
    /// be computed without it.
    bool needs_all_members();
    /// No byte of the members' data areas is written until write_table(): what they held before may
    /// be wanted back.
    bool is_held() const { return record_.table == format::Table::kHeld; }
    bool has_table() const { return record_.table == format::Table::kWritten; }
    /// From here on nobody is promised what the members held before. Nothing is written to their
    /// data areas yet; a crash leaves a group that gets its table at the next start.
    /// kMetadataWrite.
    Status end_hold();
    /// Makes an empty table of volumes of a group that has none and is not held. When it fails it
    /// can be called again, also after a restart. kMetadataWrite, or the group's error.
    Status write_table();
    GroupSample sample();
    std::uint32_t region_count() const;
    block::Device& device() { return *engine_; }
    Volumes& volumes() { return *volumes_; }

    // ---- membership (group_membership.cpp)
    /// Takes a live member out and records it. The caller has checked that the group survives.
    void put_out(Slot slot, format::MemberState state, format::LeaveReason reason);
    /// Gives a slot a new drive in place of what it has; the rebuild starts by itself. The caller
    /// has checked that the group survives without the slot. kMetadataWrite when the new drive
    /// cannot be written.
    Status take_in(Slot slot, std::unique_ptr<io::BlockingDrive> drive);
    /// The slot's own drive is back: catches up what it missed, or everything.
    Status take_back(Slot slot, std::unique_ptr<io::BlockingDrive> drive, bool by_bitmap);
    Status rename(const std::string& name);
    /// Takes in what the shard reported. True when members left.
    bool look_after_faults();
    /// Asks every live member's path whether the drive is still there.
    void probe_members();

    // ---- background work (group_recovery.cpp)
    /// Called several times a second: finishes, checkpoints and starts work.
    void advance();
    Status start_verify();
    Status stop_verify();
    void set_rebuild_rate(std::uint64_t bytes_per_second_max);
    std::uint64_t rebuild_rate() const { return rebuild_rate_; }
    std::uint64_t work_bytes_per_second() const { return work_rate_; }
    const std::optional<tasks::Progress>& last_verify() const { return last_verify_; }
    /// Since the start, what runs now included.
    std::uint64_t resynced_bytes(const GroupSample& now) const {
        return resynced_bytes_ + (work_ == tasks::Work::kResync ? now.progress.done_bytes : 0);
    }

    // ---- the end
    /// Everything durable, the bitmap cleared, the record marked clean. No exports may be left.
    void stop();
    /// Stops and marks the superblocks destroyed, or wipes them.
    Status destroy(bool clear);

  private:
    struct Member {
        std::unique_ptr<io::BlockingDrive> blocking;
        std::unique_ptr<io::Drive> drive;
        MemberStatus status;
    };
    /// A drive that left; kept until its last command came back.
    struct Retired {
        std::unique_ptr<io::BlockingDrive> blocking;
        std::unique_ptr<io::Drive> drive;
    };

    Group(Environment& environment, format::GroupRecord record, const geometry::Layout& layout);

    Status bind(Slot slot, std::unique_ptr<io::BlockingDrive> drive);
    void build_engine(const Start& start);
    bool commit();
    bool drop(Slot slot, format::MemberState state, format::LeaveReason reason);
    bool drop_vanished(Slot slot);
    void retire(Slot slot);
    void fail(Slot slot, format::LeaveReason reason);
    void build_view();
    void adopt();
    void commit_and_adopt();
    /// For changes that have to be recorded: kMetadataWrite when the group failed over it.
    Status record_change();
    std::vector<meta::MemberDrive> live_drives() const;
    std::uint32_t slots_not_in_sync() const;
    bool must_record_missed() const;
    bool has_member_to_leave() const;
    bool is_rebuilding() const;
    void release_retired();
    Status join(Slot slot, const format::Member& joined, std::unique_ptr<io::BlockingDrive> drive);
    bool drop_silent(Slot slot, const MemberFaults& faults);
    bool take_fault(Slot slot, const MemberFaults& faults);
    bool is_last_copy(Slot slot) const;
    bool go_on_with_unwritable(Slot slot);
    bool go_on_without_bitmap_of(Slot slot);
    void put_out_unwritable();

    void finish_work(const GroupSample& now);
    void finish_rebuild(const GroupSample& now);
    void choose_work(const GroupSample& now);
    void start_work(tasks::Work work);
    void finish_resync(const GroupSample& now);
    void finish_verify(const GroupSample& now);
    bool flush_rebuilding();
    void note_rebuilt(const GroupSample& now);
    void store_checkpoint(const GroupSample& now);
    void note_speed(const GroupSample& now);
    void quiesce();
    /// Whether all that was written is durable.
    bool flush();
    void come_to_rest();
    void tear_down();

    void report(Severity severity, const std::string& kind, const std::string& text,
                const std::string& serial = {});
    std::string member_text(Slot slot) const;

    Environment& environment_;
    meta::Store store_;
    format::GroupRecord record_;
    geometry::Layout layout_;
    std::array<Member, limits::kMembersMax> members_;
    std::vector<Retired> retired_;
    std::vector<Slot> rebound_;  // slots whose new drive the engine has not got yet
    array::View view_;
    std::string failure_;
    Generation committed_generation_;
    std::uint32_t committed_in_sync_ = 0;  // slots
    bool failed_by_absence_ = false;

    // Used on the shard only, but for construction and destruction.
    FaultBox faults_;
    std::unique_ptr<intent::Bitmap> bitmap_;
    std::unique_ptr<array::Engine> engine_;
    std::unique_ptr<tasks::Recovery> recovery_;
    std::unique_ptr<Volumes> volumes_;

    // Background work.
    tasks::Work work_ = tasks::Work::kNone;
    bool look_for_work_ = true;  // members changed: what runs is started over
    bool may_have_suspects_ = false;
    bool was_unclean_ = false;
    bool verify_wanted_ = false;
    std::uint64_t retry_resync_ns_ = 0, retry_rebuild_ns_ = 0;  // monotonic, after a failure
    std::uint64_t rebuild_rate_ = 0;
    std::uint64_t checkpoint_ns_ = 0;
    std::optional<tasks::Progress> last_verify_;
    std::uint64_t resynced_bytes_ = 0;
    std::uint64_t speed_sample_ns_ = 0, speed_sample_bytes_ = 0, work_rate_ = 0;
};

}  // namespace warpraid::control
