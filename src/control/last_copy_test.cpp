// A mirror's last copy that cannot be written any more, in whole or in part: it stays as long as it
// is the last one, and no longer.
#include <gtest/gtest.h>

#include <future>

#include "control/control_test_support.h"
#include "control/fault_box.h"

namespace warpraid::control {
namespace {

using format::MemberState;
using geometry::Level;

/// A group "g" of the first `members` drives, all in sync and clean, with member 1 gone.
void make_mirror_without_d1(World& world, Level level, std::uint32_t members) {
    world.add_drives(members);
    world.make_group(level, members);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 40 * kMiB, 1).ok());
    ASSERT_TRUE(world.wait_for([&] { return world.group().dirty_regions == 0; }));
    world.provider.drive("d1").gone = true;
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
}

TEST(MirrorLastCopy, StaysThoughItsBitmapCannotBeWritten) {
    World world;
    world.add_drives(4);
    world.make_group(Level::kRaid10, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 40 * kMiB, 1).ok());
    ASSERT_TRUE(world.wait_for([&] { return world.group().dirty_regions == 0; }));
    // Members 0 and 1 are copies of each other. What member 1 holds is untouched, only the
    // superblocks' neighbourhood of the last copy cannot be written any more.
    world.provider.drive("d1").gone = true;
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    world.provider.drive("d0").fail_writes_below = limits::kHeadReserveBytesMin;
    ASSERT_TRUE(world.write_pattern(8 * kMiB, 20 * kMiB, 2).ok());
    EXPECT_EQ(world.group().state, GroupState::kDegraded);
    EXPECT_EQ(world.group().members[0].state, MemberState::kInSync);
    EXPECT_TRUE(world.has_event("member-bitmap-unwritable"));
    // It could not be told what it missed: everything is copied to it, then it replaces the other.
    const std::uint64_t before = world.group().counters.member_bytes_written;
    world.provider.drive("d1").gone = false;
    ASSERT_TRUE(
        world.wait_for([&] { return world.group().members[0].state == MemberState::kFailed; }));
    EXPECT_EQ(world.group().members[1].state, MemberState::kInSync);
    EXPECT_GE(world.group().counters.member_bytes_written - before, 70 * kMiB);
    EXPECT_TRUE(world.holds_pattern(kMiB, 7 * kMiB, 1));
    EXPECT_TRUE(world.holds_pattern(8 * kMiB, 20 * kMiB, 2));
}

TEST(MirrorLastCopy, FailsTheRequestThatItCannotWriteAndNotTheGroup) {
    World world;
    world.add_drives(2);
    world.make_group(Level::kRaid1, 2);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 8 * kMiB, 1).ok());
    world.provider.drive("d1").gone = true;
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    world.provider.drive("d0").fail_writes = true;
    EXPECT_FALSE(world.write_pattern(2 * kMiB, kMiB, 2).ok());
    world.provider.drive("d0").fail_writes = false;
    EXPECT_EQ(world.group().state, GroupState::kDegraded);
    EXPECT_TRUE(world.holds_pattern(4 * kMiB, 5 * kMiB, 1));
    EXPECT_TRUE(world.write_pattern(2 * kMiB, kMiB, 3).ok());
    EXPECT_TRUE(world.holds_pattern(2 * kMiB, kMiB, 3));
}

// The other copy vanishes in the moment in which it is recorded as in sync. Nothing on the drives
// says what it misses from then on.
TEST(MirrorLastCopy, WithoutABitmapLeavesNoneToTrustToTheCopyThatVanishesAgain) {
    World world;
    make_mirror_without_d1(world, Level::kRaid1, 2);
    world.provider.drive("d0").fail_writes_below = limits::kHeadReserveBytesMin;
    ASSERT_TRUE(world.write_pattern(8 * kMiB, kMiB, 2).ok());
    ASSERT_TRUE(world.has_event("member-bitmap-unwritable"));
    world.set_rebuild_rate(64 * kKiB);
    world.provider.drive("d1").gone = false;
    ASSERT_TRUE(world.wait_for_state(GroupState::kRebuilding));
    world.provider.drive("d1").superblock_writes_left = 1;  // of its two copies
    world.set_rebuild_rate(0);
    ASSERT_TRUE(world.wait_for([&] { return world.provider.drive("d1").gone.load(); }));
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    ASSERT_EQ(world.group().members[0].state, MemberState::kInSync);
    ASSERT_TRUE(world.write_pattern(30 * kMiB, kMiB, 3).ok());
    world.stop();
    world.provider.drive("d0").fail_writes_below = 0;
    world.provider.drive("d1").gone = false;
    world.start();
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.count_mismatches(), 0u);
    world.provider.drive("d0").gone = true;
    EXPECT_TRUE(world.holds_pattern(30 * kMiB, kMiB, 3));
}

// A write to what the other copy has been given already: that one takes it, the last copy does not.
TEST(MirrorLastCopy, ThatDiffersFromTheCopyThatReplacesItLeaves) {
    World world;
    make_mirror_without_d1(world, Level::kRaid1, 2);
    ASSERT_TRUE(world.write_pattern(0, 64 * kMiB, 2).ok());
    world.set_rebuild_rate(16 * kMiB);
    world.provider.drive("d1").gone = false;
    ASSERT_TRUE(world.wait_for([&] {
        const auto task = world.group().task;
        return task && task->progress.done_bytes >= 16 * kMiB;
    }));
    world.set_rebuild_rate(64 * kKiB);  // else it might have ended before the write
    TestDrive& last = world.provider.drive("d0");
    last.fail_writes_from = limits::kHeadReserveBytesMin;
    last.fail_writes_below = last.size_bytes;
    EXPECT_FALSE(world.write_pattern(kMiB, kMiB, 3).ok());
    last.fail_writes_below = 0;
    ASSERT_TRUE(world.wait_for([&] { return world.has_event("member-unwritable"); }));
    EXPECT_EQ(world.group().members[0].state, MemberState::kInSync);
    world.set_rebuild_rate(0);
    ASSERT_TRUE(
        world.wait_for([&] { return world.group().members[0].state == MemberState::kFailed; }));
    EXPECT_EQ(world.group().members[1].state, MemberState::kInSync);
    EXPECT_TRUE(world.holds_pattern(2 * kMiB, 62 * kMiB, 2));
}

// Likewise, but the daemon goes before the rebuild is through, and with it all memory of the fault.
TEST(MirrorLastCopy, ThatDiffersIsCopiedAsAWholeAfterARestart) {
    World world;
    make_mirror_without_d1(world, Level::kRaid1, 2);
    world.provider.add("d2", 80 * kMiB);
    ASSERT_TRUE(world.service().create_drive({{"/ram/d2"}}).ok());
    world.set_rebuild_rate(4 * kMiB);
    ASSERT_TRUE(world.service().replace_drive({"d1", "d2", true}).ok());
    // Long enough for a checkpoint, behind which the write lies.
    ASSERT_TRUE(world.wait_for([&] {
        const auto task = world.group().task;
        return task && task->progress.done_bytes >= 32 * kMiB;
    }));
    world.set_rebuild_rate(64 * kKiB);  // else it might have ended before the write
    TestDrive& last = world.provider.drive("d0");
    last.fail_writes_from = limits::kHeadReserveBytesMin;
    last.fail_writes_below = last.size_bytes;
    EXPECT_FALSE(world.write_pattern(kMiB, kMiB, 3).ok());
    last.fail_writes_below = 0;
    ASSERT_TRUE(world.wait_for([&] { return world.has_event("member-unwritable"); }));
    world.stop();
    world.start();
    world.set_rebuild_rate(0);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.count_mismatches(), 0u);
}

// Bits tell a resync where the copies may differ: they stay while a copy is to leave.
TEST(MirrorLastCopy, ThatIsToLeaveKeepsBitsFromBeingCleared) {
    World world;
    make_mirror_without_d1(world, Level::kRaid10, 4);
    world.provider.drive("d0").fail_writes_below = limits::kHeadReserveBytesMin;
    ASSERT_TRUE(world.write_pattern(8 * kMiB, 8 * kMiB, 2).ok());
    ASSERT_TRUE(world.has_event("member-bitmap-unwritable"));
    const std::uint32_t dirty = world.group().dirty_regions;
    ASSERT_GT(dirty, 0u);
    std::this_thread::sleep_for(std::chrono::nanoseconds(5 * world.options.bitmap_delay_ns));
    EXPECT_EQ(world.group().dirty_regions, dirty);
}

TEST(MirrorLastCopy, ThatCannotBeFlushedIsReplacedByTheRebuiltCopy) {
    World world;
    make_mirror_without_d1(world, Level::kRaid1, 2);
    ASSERT_TRUE(world.write_pattern(kMiB, 8 * kMiB, 2).ok());
    world.provider.drive("d0").fail_flushes = true;
    world.provider.drive("d1").gone = false;
    ASSERT_TRUE(
        world.wait_for([&] { return world.group().members[0].state == MemberState::kFailed; }));
    EXPECT_EQ(world.group().members[1].state, MemberState::kInSync);
    EXPECT_FALSE(world.has_event("rebuild-incomplete"));
    EXPECT_TRUE(world.holds_pattern(kMiB, 8 * kMiB, 2));
}

// Both become known at once. Whoever is gone is gone: the other is the last copy then.
TEST(MirrorLastCopy, IsKnownOnlyOnceThoseThatAreGoneAreOut) {
    World world;
    world.stop();
    world.options.bitmap_delay_ns = 3600 * kNanosecondsPerSecond;
    world.start();
    world.add_drives(2);
    world.make_group(Level::kRaid1, 2);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    // The bits are set and stay, so that nothing but data has to be written below.
    ASSERT_TRUE(world.write_pattern(kMiB, 8 * kMiB, 1).ok());
    TestDrive& failing = world.provider.drive("d0");
    TestDrive& gone = world.provider.drive("d1");
    block::Device& device = ServiceTestAccess::device(world.service(), "g");
    std::future<Status> written;
    {
        const auto paused = ServiceTestAccess::pause(world.service());
        failing.fail_writes_from = limits::kHeadReserveBytesMin;
        failing.fail_writes_below = failing.size_bytes;
        gone.gone = true;
        written = std::async(std::launch::async, [&] {
            const std::vector<std::byte> bytes(64 * kKiB);
            return DeviceIo(device, world.shard, {}).write(2 * kMiB, bytes);
        });
        while (failing.failed_commands == 0 || gone.failed_commands == 0) {
            std::this_thread::yield();
        }
    }
    EXPECT_FALSE(written.get().ok());
    EXPECT_TRUE(world.wait_for_state(GroupState::kDegraded));
    EXPECT_EQ(world.group().members[0].state, MemberState::kInSync);
    EXPECT_TRUE(world.holds_pattern(4 * kMiB, 5 * kMiB, 1));
}

TEST(FaultBox, KeepsTheGravestFaultInWhateverOrderTheyCome) {
    using array::FaultKind;
    const std::vector<FaultKind> kinds = {FaultKind::kWriteError, FaultKind::kTimeout,
                                          FaultKind::kGone};
    for (std::size_t first = 0; first < kinds.size(); ++first) {
        for (std::size_t second = 0; second < kinds.size(); ++second) {
            FaultBox box([] {});
            box.member_fault(Slot(3), kinds[first], EIO, 0);
            box.member_fault(Slot(3), kinds[second], EIO, 0);
            EXPECT_EQ(box.take()[3].fatal, kinds[std::max(first, second)]);
        }
    }
}

}  // namespace
}  // namespace warpraid::control
