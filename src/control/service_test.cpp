// The life of groups: made, written, broken, rebuilt, stopped and started.
#include <gtest/gtest.h>

#include "control/control_test_support.h"

namespace warpraid::control {
namespace {

using geometry::Level;

struct LevelCase {
    Level level;
    std::uint32_t members;
};

class EveryLevel : public testing::TestWithParam<LevelCase> {};

TEST_P(EveryLevel, IsMadeWrittenAndFoundAgainAfterARestart) {
    World world;
    world.add_drives(GetParam().members);
    const GroupInfo made = world.make_group(GetParam().level, GetParam().members);
    ASSERT_GT(made.capacity_bytes, 40 * kMiB);
    ASSERT_TRUE(world.write_pattern(5 * kMiB, 9 * kMiB, 1).ok());
    EXPECT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.count_mismatches(), 0u);
    world.stop();
    world.start();
    const GroupInfo again = world.group();
    EXPECT_EQ(again.uuid, made.uuid);
    EXPECT_EQ(again.id, made.id);
    EXPECT_EQ(again.state, GroupState::kOptimal);
    EXPECT_EQ(again.resynced_bytes, 0u);
    EXPECT_TRUE(world.holds_pattern(5 * kMiB, 9 * kMiB, 1));
}

TEST_P(EveryLevel, DrivesOfUnequalSizesAreCappedAtTheSmallest) {
    World world;
    world.add_drives(GetParam().members, 96 * kMiB);
    const std::uint64_t wanted =
        world.make_group(GetParam().level, GetParam().members, "equal").capacity_bytes;
    ASSERT_TRUE(world.service().delete_group("equal", true).ok());
    CreateGroup command;
    command.name = "g";
    command.level = GetParam().level;
    for (std::uint32_t i = 0; i + 1 < GetParam().members; ++i) {
        const std::string serial = "big" + std::to_string(i);
        world.provider.add(serial, (104 + std::uint64_t{24} * i) * kMiB);
        ASSERT_TRUE(world.service().create_drive({{"/ram/" + serial}, 0}).ok());
        command.drives.push_back(serial);
    }
    command.drives.push_back("d0");
    const auto made = world.service().create_group(command);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->capacity_bytes, wanted);
    const std::uint64_t smallest_tail = made->members.back().unused_tail_bytes;
    for (const MemberInfo& member : made->members) {
        EXPECT_EQ(member.unused_tail_bytes - smallest_tail, member.drive_bytes - 96 * kMiB);
    }
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    const std::uint64_t end = made->capacity_bytes - kMiB;
    ASSERT_TRUE(world.write_pattern(kMiB, end - kMiB, 3).ok());
    world.stop();
    world.start();
    EXPECT_TRUE(world.holds_pattern(kMiB, end - kMiB, 3));
    if (GetParam().level == Level::kRaid0) return;
    EXPECT_EQ(world.count_mismatches(), 0u);
    // The last block of the data area is rebuilt from bigger drives onto one as small as the
    // smallest.
    ASSERT_TRUE(world.service().replace_drive({"big0", "d1", false}).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_TRUE(world.holds_pattern(kMiB, end - kMiB, 3));
    EXPECT_EQ(world.count_mismatches(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Levels, EveryLevel,
                         testing::Values(LevelCase{Level::kRaid0, 3}, LevelCase{Level::kRaid1, 2},
                                         LevelCase{Level::kRaid5, 4}, LevelCase{Level::kRaid6, 5},
                                         LevelCase{Level::kRaid10, 4}),
                         [](const auto& test) {
                             return std::string(geometry::to_text(test.param.level));
                         });

class EveryRedundantLevel : public testing::TestWithParam<LevelCase> {};

TEST_P(EveryRedundantLevel, LosesADriveAndIsRebuiltOnASpare) {
    World world;
    const std::uint32_t members = GetParam().members;
    world.add_drives(members + 1);
    world.make_group(GetParam().level, members);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 12 * kMiB, 7).ok());
    world.provider.drive("d1").fail_writes = true;
    ASSERT_TRUE(world.write_pattern(kMiB, 12 * kMiB, 8).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    EXPECT_EQ(world.group().members[1].state, format::MemberState::kFailed);
    EXPECT_EQ(world.group().members[1].reason, format::LeaveReason::kWriteError);
    EXPECT_EQ(world.service().health().level, 1);
    EXPECT_TRUE(world.holds_pattern(kMiB, 12 * kMiB, 8));

    CreateSpare spare;
    spare.drives = {"d" + std::to_string(members)};
    ASSERT_TRUE(world.service().create_spare(spare).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_TRUE(world.service().spares().empty());
    EXPECT_EQ(world.group().members[1].serial, "d" + std::to_string(members));
    EXPECT_TRUE(world.has_event("rebuild-finished"));
    EXPECT_EQ(world.count_mismatches(), 0u);
    EXPECT_TRUE(world.holds_pattern(kMiB, 12 * kMiB, 8));

    // What was rebuilt carries the data alone.
    world.provider.drive("d0").gone = true;
    EXPECT_TRUE(world.holds_pattern(kMiB, 12 * kMiB, 8));
    world.stop();
    world.start();
    ASSERT_EQ(world.group().state, GroupState::kDegraded);
    EXPECT_TRUE(world.holds_pattern(kMiB, 12 * kMiB, 8));
}

INSTANTIATE_TEST_SUITE_P(Levels, EveryRedundantLevel,
                         testing::Values(LevelCase{Level::kRaid1, 3}, LevelCase{Level::kRaid5, 4},
                                         LevelCase{Level::kRaid6, 5}, LevelCase{Level::kRaid10, 4}),
                         [](const auto& test) {
                             return std::string(geometry::to_text(test.param.level));
                         });

TEST(Service, ResynchronisesOnlyWhatWasDirtyAfterACrash) {
    World world;
    world.add_drives(5);
    world.make_group(Level::kRaid6, 5);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.wait_for([&] { return world.group().dirty_regions == 0; }));
    // So that the bits are still set at the crash, however long it takes until then.
    world.stop();
    world.options.bitmap_delay_ns = 3600 * kNanosecondsPerSecond;
    world.start();
    ASSERT_TRUE(world.write_pattern(30 * kMiB, kMiB, 3).ok());
    world.crash_and_start();
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_TRUE(world.holds_pattern(30 * kMiB, kMiB, 3));
    EXPECT_EQ(world.count_mismatches(), 0u);
    EXPECT_GT(world.group().resynced_bytes, 0u);
    EXPECT_LE(world.group().resynced_bytes, 8 * kMiB);
}

TEST(Service, GoesOnWithTheInitialResyncAfterACrash) {
    World world;
    // So slow that it is under way whenever it is looked at.
    world.options.rebuild_bytes_per_second_max = 64 * kKiB;
    world.stop();
    world.start();
    world.add_drives(4);
    world.make_group(Level::kRaid5, 4);
    ASSERT_EQ(world.group().state, GroupState::kResyncing);
    world.crash_and_start();
    EXPECT_EQ(world.group().state, GroupState::kResyncing);
    // Parity may be wrong where it would be needed.
    const auto failed = world.service().fail_drive({"d0", std::nullopt});
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, ErrorCode::kWrongState);
    world.set_rebuild_rate(0);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.count_mismatches(), 0u);
}

TEST(Service, RefusesADirtyDegradedParityGroupUnlessForced) {
    World world;
    // So that the bits are still set at the crash, however long it takes until then.
    world.stop();
    world.options.bitmap_delay_ns = 3600 * kNanosecondsPerSecond;
    world.start();
    world.add_drives(4);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(2 * kMiB, 2 * kMiB, 4).ok());
    world.provider.frozen = true;
    world.stop();
    world.provider.frozen = false;
    world.provider.drive("d2").gone = true;
    world.start();
    const GroupInfo found = world.group();
    EXPECT_EQ(found.state, GroupState::kOffline);
    EXPECT_EQ(found.reason_code, "dirty-degraded");
    EXPECT_EQ(world.service().health().level, 2);
    AssembleOptions force;
    force.force = true;
    const auto outcomes = world.service().assemble(force);
    ASSERT_TRUE(outcomes.ok());
    ASSERT_EQ(outcomes->size(), 1u);
    EXPECT_EQ(outcomes->front().outcome, "started");
    EXPECT_EQ(world.group().state, GroupState::kDegraded);
}

TEST(Service, StartsADegradedGroupThatWasStoppedInOrder) {
    World world;
    world.add_drives(4);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    world.provider.drive("d3").gone = true;
    ASSERT_TRUE(world.write_pattern(2 * kMiB, 8 * kMiB, 4).ok());
    world.stop();
    world.start();
    EXPECT_EQ(world.group().state, GroupState::kDegraded);
    EXPECT_TRUE(world.holds_pattern(2 * kMiB, 8 * kMiB, 4));
}

TEST(Service, FindsMembersWhereverTheirPathsPoint) {
    World world;
    world.add_drives(4);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.write_pattern(2 * kMiB, 4 * kMiB, 4).ok());
    world.stop();
    world.provider.swap_paths("d0", "d3");
    world.provider.swap_paths("d1", "d2");
    world.start();
    EXPECT_NE(world.group().state, GroupState::kDegraded);
    EXPECT_EQ(world.group().members[0].path, "/ram/d3");
    EXPECT_TRUE(world.holds_pattern(2 * kMiB, 4 * kMiB, 4));
}

TEST(Service, ReplacesAMemberThatIsInSync) {
    World world;
    world.add_drives(5);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(2 * kMiB, 4 * kMiB, 4).ok());
    world.set_rebuild_rate(64 * kKiB);  // it lasts while it is looked at
    const auto replaced = world.service().replace_drive({"d2", "d4", false});
    ASSERT_TRUE(replaced.ok()) << replaced.error().message;
    EXPECT_EQ(replaced->slot, 2u);
    EXPECT_EQ(replaced->serial, "d4");
    // While it is rebuilt no other member can go.
    const auto refused = world.service().fail_drive({"d0", std::nullopt});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kWrongState);
    world.set_rebuild_rate(0);
    ASSERT_TRUE(world.wait_for(
        [&] { return world.group().members[2].state == format::MemberState::kInSync; }));
    EXPECT_EQ(world.count_mismatches(), 0u);
    EXPECT_TRUE(world.holds_pattern(2 * kMiB, 4 * kMiB, 4));
}

TEST(Service, FailsADriveOnCommandAndKeepsItOut) {
    World world;
    world.add_drives(5);
    world.make_group(Level::kRaid6, 5);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    const std::uint64_t generation = world.group().generation;
    const auto stale = world.service().fail_drive({"d1", generation - 1});
    ASSERT_FALSE(stale.ok());
    EXPECT_EQ(stale.error().code, ErrorCode::kStaleToken);
    const auto unseen = world.service().replace_drive({"d1", "nothing", false, generation - 1});
    ASSERT_FALSE(unseen.ok());
    EXPECT_EQ(unseen.error().code, ErrorCode::kStaleToken);
    const auto failed = world.service().fail_drive({"d1", generation});
    ASSERT_TRUE(failed.ok()) << failed.error().message;
    EXPECT_EQ(failed->state, format::MemberState::kFailed);
    EXPECT_EQ(failed->reason, format::LeaveReason::kOperator);
    ASSERT_TRUE(world.service().fail_drive({"g:2", std::nullopt}).ok());
    const auto last = world.service().fail_drive({"d3", std::nullopt});
    ASSERT_FALSE(last.ok());
    EXPECT_EQ(last.error().code, ErrorCode::kWrongState);
    ASSERT_TRUE(world.service().assemble({}).ok());
    EXPECT_EQ(world.group().members[1].state, format::MemberState::kFailed);
}

TEST(Service, ContinuesARebuildFromItsCheckpoint) {
    World world;
    world.add_drives(5);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(2 * kMiB, 40 * kMiB, 4).ok());
    world.set_rebuild_rate(16 * kMiB);
    ASSERT_TRUE(world.service().replace_drive({"d2", "d4", false}).ok());
    ASSERT_TRUE(world.wait_for([&] {
        const auto task = world.group().task;
        return task && task->progress.done_bytes >= 24 * kMiB;
    }));
    // Else it might have ended before it is looked at.
    world.set_rebuild_rate(64 * kKiB);
    world.stop();
    world.start();
    const GroupInfo again = world.group();
    ASSERT_EQ(again.state, GroupState::kRebuilding);
    ASSERT_TRUE(world.wait_for([&] { return world.group().task.has_value(); }));
    EXPECT_LT(world.group().task->progress.total_bytes, 60 * kMiB);
    EXPECT_EQ(world.group().rebuild_bytes_per_second_max, 64 * kKiB);
    world.set_rebuild_rate(0);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.count_mismatches(), 0u);
    EXPECT_TRUE(world.holds_pattern(2 * kMiB, 40 * kMiB, 4));
}

TEST(Service, PutsOutADriveThatReadsBadly) {
    World world;
    world.options.read_errors_max = 3;
    world.stop();
    world.start();
    world.add_drives(4);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(2 * kMiB, 8 * kMiB, 4).ok());
    world.provider.drive("d2").fail_reads = true;
    EXPECT_TRUE(world.holds_pattern(2 * kMiB, 8 * kMiB, 4));
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    EXPECT_EQ(world.group().members[2].reason, format::LeaveReason::kReadErrors);
    EXPECT_GT(world.group().members[2].read_errors, 3u);
}

// After kill -9 the kernel ends the rings that hold the drives some time after the process.
TEST(Start, WaitsForDrivesThatAreStillHeld) {
    World world;
    world.add_drives(3);
    world.make_group(geometry::Level::kRaid5, 3);
    world.stop();
    world.provider.drive("d1").held = true;
    std::thread release([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        world.provider.drive("d1").held = false;
    });
    world.start();
    release.join();
    EXPECT_NE(world.group().state, GroupState::kOffline);
    EXPECT_FALSE(world.has_event("group-not-started"));
}

}  // namespace
}  // namespace warpraid::control
