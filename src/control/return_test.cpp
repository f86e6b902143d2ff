// Drives that vanish and come back, groups that lose too much, and spares by state.
#include <gtest/gtest.h>

#include "control/control_test_support.h"

namespace warpraid::control {
namespace {

using format::MemberState;
using geometry::Level;

/// Somebody else's file system; both superblocks are as they were.
void put_ext4_magic(TestDrive& drive) {
    io::ram_bytes(*drive.store)[1024 + 56] = std::byte{0x53};
    io::ram_bytes(*drive.store)[1024 + 57] = std::byte{0xef};
}

TEST(Return, ADriveThatWasAwayCatchesUpOnlyWhatItMissed) {
    World world;
    world.add_drives(4);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 40 * kMiB, 1).ok());
    ASSERT_TRUE(world.wait_for([&] { return world.group().dirty_regions == 0; }));
    world.provider.drive("d1").gone = true;
    ASSERT_TRUE(world.write_pattern(16 * kMiB, 2 * kMiB, 2).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    EXPECT_EQ(world.group().members[1].state, MemberState::kMissing);
    EXPECT_EQ(world.group().members[1].serial, "d1");
    const std::uint64_t before = world.group().counters.member_bytes_written;
    world.provider.drive("d1").gone = false;
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_LE(world.group().counters.member_bytes_written - before, 16 * kMiB);
    EXPECT_TRUE(world.has_event("member-returned"));
    EXPECT_EQ(world.count_mismatches(), 0u);
    // The returned drive carries its part alone.
    world.provider.drive("d3").gone = true;
    EXPECT_TRUE(world.holds_pattern(kMiB, 15 * kMiB, 1));
    EXPECT_TRUE(world.holds_pattern(16 * kMiB, 2 * kMiB, 2));
}

TEST(Return, ADriveThatWasAwayOverRestartsCatchesUp) {
    World world;
    world.add_drives(3);
    world.make_group(Level::kRaid1, 3);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    world.provider.drive("d2").gone = true;
    ASSERT_TRUE(world.write_pattern(8 * kMiB, 2 * kMiB, 5).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    world.stop();
    world.start();
    ASSERT_TRUE(world.write_pattern(20 * kMiB, 2 * kMiB, 6).ok());
    world.crash_and_start();
    world.provider.drive("d2").gone = false;
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.count_mismatches(), 0u);
    world.provider.drive("d0").gone = true;
    world.provider.drive("d1").gone = true;
    EXPECT_TRUE(world.holds_pattern(8 * kMiB, 2 * kMiB, 5));
    EXPECT_TRUE(world.holds_pattern(20 * kMiB, 2 * kMiB, 6));
}

TEST(Return, ADriveThatSomebodyElseUsedMeanwhileIsLeftAlone) {
    World world;
    world.add_drives(3);
    world.make_group(Level::kRaid5, 3);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    TestDrive& drive = world.provider.drive("d1");
    drive.gone = true;
    ASSERT_TRUE(world.write_pattern(8 * kMiB, 2 * kMiB, 5).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    {
        const auto paused = ServiceTestAccess::pause(world.service());
        put_ext4_magic(drive);
        drive.gone = false;
    }
    const std::vector<std::byte> before = world.provider.bytes_of("d1");
    ASSERT_TRUE(world.wait_for([&] { return world.has_event("member-not-returned"); }));
    ASSERT_TRUE(world.service().assemble({}).ok());
    world.stop();
    world.start();
    ASSERT_TRUE(world.service().assemble({}).ok());
    EXPECT_EQ(world.group().state, GroupState::kDegraded);
    EXPECT_EQ(world.provider.bytes_of("d1"), before);
    EXPECT_EQ(world.service().replace_drive({"g:1", "d1", false}).error().code,
              ErrorCode::kHasSuperblock);
    ASSERT_TRUE(world.service().replace_drive({"g:1", "d1", true}).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.count_mismatches(), 0u);
}

TEST(Return, ADriveThatShrankAndGrewBackIsRebuiltAsAWhole) {
    World world;
    world.add_drives(2);
    world.make_group(Level::kRaid1, 2);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 40 * kMiB, 1).ok());
    ASSERT_TRUE(world.wait_for([&] { return world.group().dirty_regions == 0; }));
    TestDrive& drive = world.provider.drive("d1");
    drive.shrunk = true;
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    const std::uint64_t before = world.group().counters.member_bytes_written;
    drive.shrunk = false;
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_GE(world.group().counters.member_bytes_written - before, 40 * kMiB);
}

TEST(Return, ARebuildTargetThatVanishedIsRebuiltAsAWhole) {
    World world;
    world.options.absent_grace_ns = 3600 * kNanosecondsPerSecond;
    world.stop();
    world.start();
    world.add_drives(5);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 60 * kMiB, 1).ok());
    world.set_rebuild_rate(4 * kMiB);
    ASSERT_TRUE(world.service().replace_drive({"d2", "d4", false}).ok());
    ASSERT_TRUE(world.wait_for([&] { return world.group().task.has_value(); }));
    world.provider.drive("d4").gone = true;
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    world.provider.drive("d4").gone = false;
    world.set_rebuild_rate(0);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.group().members[2].serial, "d4");
    EXPECT_EQ(world.count_mismatches(), 0u);
    world.provider.drive("d0").gone = true;
    EXPECT_TRUE(world.holds_pattern(kMiB, 60 * kMiB, 1));
}

TEST(Return, AGroupThatLostTooMuchFailsAndStartsWhenTheLastLostDriveIsBack) {
    World world;
    world.add_drives(5);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 8 * kMiB, 1).ok());
    world.provider.drive("d0").gone = true;
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    ASSERT_TRUE(world.write_pattern(kMiB, 8 * kMiB, 2).ok());
    world.provider.drive("d1").gone = true;
    EXPECT_FALSE(world.write_pattern(kMiB, 8 * kMiB, 3).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kFailed));
    EXPECT_FALSE(world.group().reason.empty());
    EXPECT_EQ(world.service().health().level, 2);

    // Neither a blank drive nor the one that was lost first can help.
    const auto replaced = world.service().replace_drive({"d1", "d4", true});
    ASSERT_FALSE(replaced.ok());
    EXPECT_EQ(replaced.error().code, ErrorCode::kGroupFailed);
    world.provider.drive("d0").gone = false;
    ASSERT_TRUE(world.service().assemble({}).ok());
    EXPECT_EQ(world.group().state, GroupState::kFailed);
    EXPECT_FALSE(world.holds_pattern(kMiB, kMiB, 2));

    world.provider.drive("d1").gone = false;
    AssembleOptions force;  // stripes were being written when the redundancy was gone
    force.force = true;
    ASSERT_TRUE(world.service().assemble(force).ok());
    ASSERT_TRUE(world.wait_for([&] { return world.group().state != GroupState::kFailed; }));
    EXPECT_TRUE(world.holds_pattern(2 * kMiB, 7 * kMiB, 2));
}

/// A mirror that held pattern 1 when all members but the last left at once; that one went on alone
/// with pattern 2, and then was gone too.
void lose_one_that_went_on_alone(World& world, std::uint32_t members) {
    world.add_drives(members);
    world.make_group(Level::kRaid1, members);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 8 * kMiB, 1).ok());
    const auto lose = [&](std::uint32_t index) {
        world.provider.drive("d" + std::to_string(index)).gone = true;
    };
    {
        const auto paused = ServiceTestAccess::pause(world.service());
        for (std::uint32_t index = 0; index + 1 < members; ++index) lose(index);
    }
    ASSERT_TRUE(world.write_pattern(kMiB, 8 * kMiB, 2).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    lose(members - 1);
    EXPECT_FALSE(world.write_pattern(kMiB, 8 * kMiB, 3).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kFailed));
}

// They agree with each other, and are the majority of all that they know of.
TEST(Return, AFailedGroupDoesNotStartFromDrivesThatLeftBefore) {
    World world;
    ASSERT_NO_FATAL_FAILURE(lose_one_that_went_on_alone(world, 3));
    world.provider.drive("d0").gone = false;
    world.provider.drive("d1").gone = false;
    for (int i = 0; i < 2; ++i) {
        const auto outcomes = world.service().assemble({});
        ASSERT_TRUE(outcomes.ok());
        EXPECT_EQ(outcomes->at(0).outcome, "incomplete");
    }
    EXPECT_EQ(world.group().state, GroupState::kFailed);

    world.provider.drive("d2").gone = false;
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_TRUE(world.holds_pattern(kMiB, 8 * kMiB, 2));
    EXPECT_EQ(world.count_mismatches(), 0u);
}

TEST(Return, AFailedGroupStartsFromDrivesThatLeftBeforeWithForce) {
    World world;
    ASSERT_NO_FATAL_FAILURE(lose_one_that_went_on_alone(world, 2));
    world.provider.drive("d0").gone = false;
    AssembleOptions force;
    force.force = true;
    ASSERT_TRUE(world.service().assemble(force).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    EXPECT_TRUE(world.holds_pattern(kMiB, 8 * kMiB, 1)) << "what was given up";
}

TEST(Return, HalfAMirrorAloneNeedsForce) {
    World world;
    world.add_drives(2);
    world.make_group(Level::kRaid1, 2);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 8 * kMiB, 1).ok());
    world.stop();
    world.provider.drive("d0").gone = true;
    world.start();
    EXPECT_EQ(world.group().state, GroupState::kOffline);
    EXPECT_EQ(world.group().reason_code, "quorum-lost");
    // It starts by itself when the other half turns up.
    world.provider.drive("d0").gone = false;
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_TRUE(world.holds_pattern(kMiB, 8 * kMiB, 1));
    // Its members are no copies of what the scan had found of them just before.
    EXPECT_FALSE(world.has_event("member-not-returned"));
}

TEST(Return, TwoHistoriesAreNeverMerged) {
    World world;
    world.add_drives(2);
    world.make_group(Level::kRaid1, 2);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    AssembleOptions force;
    force.force = true;
    world.provider.drive("d0").gone = true;
    ASSERT_TRUE(world.write_pattern(kMiB, kMiB, 1).ok());
    world.stop();
    world.provider.drive("d0").gone = false;
    world.provider.drive("d1").gone = true;
    world.start();
    EXPECT_EQ(world.group().state, GroupState::kOffline);
    ASSERT_TRUE(world.service().assemble(force).ok());
    ASSERT_TRUE(world.write_pattern(kMiB, kMiB, 2).ok());
    world.stop();
    world.provider.drive("d1").gone = false;
    world.start();
    EXPECT_EQ(world.group().state, GroupState::kOffline);
    EXPECT_EQ(world.group().reason_code, "split-brain");
    force.preferred_drive = "d7";
    const auto unknown = world.service().assemble(force);
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
    // By the number that list drive shows.
    for (const DriveInfo& drive : world.service().drives()) {
        if (drive.serial == "d0") force.preferred_drive = std::to_string(drive.id);
    }
    ASSERT_TRUE(world.service().assemble(force).ok());
    EXPECT_TRUE(world.holds_pattern(kMiB, kMiB, 2));
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.count_mismatches(), 0u);
}

class MemberCopy : public testing::Test {
  protected:
    MemberCopy() {
        world.options.drive_patterns = {"/ram/*"};
        world.stop();
        world.start();
        world.add_drives(4);
        world.make_group(Level::kRaid5, 4);
        EXPECT_TRUE(world.wait_for_state(GroupState::kOptimal));
        EXPECT_TRUE(world.write_pattern(kMiB, 4 * kMiB, 1).ok());
        EXPECT_TRUE(world.wait_for([&] { return world.group().dirty_regions == 0; }));
        world.provider.add("copy", 80 * kMiB);
        {
            const auto paused = ServiceTestAccess::pause(world.service());
            const std::vector<std::byte> bytes = world.provider.bytes_of("d1");
            std::copy(bytes.begin(), bytes.end(),
                      io::ram_bytes(*world.provider.drive("copy").store));
        }
        copied = world.provider.bytes_of("copy");
    }
    /// No bit tells of it any more.
    void write_what_it_lacks() {
        ASSERT_TRUE(world.write_pattern(kMiB, 4 * kMiB, 2).ok());
        ASSERT_TRUE(world.wait_for([&] { return world.group().dirty_regions == 0; }));
    }
    void expect_rebuilt_as_a_whole() {
        ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
        EXPECT_EQ(world.group().members[1].serial, "copy");
        EXPECT_EQ(world.count_mismatches(), 0u);
        world.provider.drive("d3").gone = true;
        EXPECT_TRUE(world.holds_pattern(kMiB, 4 * kMiB, 2));
    }
    bool is_in_health() {
        const Health health = world.service().health();
        return health.level == 1 && health.findings.size() == 1 && tells_all(health.findings[0]);
    }
    static bool tells_all(const std::string& text) {
        for (const char* part : {"drive copy (/ram/copy)", "member 1, drive d1 (/ram/d1)",
                                 "group g", "edit drive DRIVE --reset-identity"}) {
            if (text.find(part) == std::string::npos) return false;
        }
        return true;
    }

    World world;
    std::vector<std::byte> copied;
};

TEST_F(MemberCopy, IsToldOnceWhileItIsThereAndAgainWhenItComesBack) {
    for (int look = 0; look < 3; ++look) static_cast<void>(world.service().examine());
    EXPECT_EQ(world.count_events("member-copy-found"), 1u);
    for (const Event& event : world.service().events(0, 1000)) {
        if (event.kind != "member-copy-found") continue;
        EXPECT_EQ(event.severity, Severity::kWarning);
        EXPECT_EQ(event.group, "g");
        EXPECT_EQ(event.drive_serial, "copy");
        EXPECT_TRUE(tells_all(event.text)) << event.text;
    }
    EXPECT_TRUE(is_in_health());
    ASSERT_TRUE(world.service().create_drive({{"/ram/copy"}, 0}).ok());
    ASSERT_TRUE(world.service().assemble({}).ok());
    EXPECT_EQ(world.count_events("member-copy-found"), 1u);
    world.provider.drive("copy").gone = true;
    ASSERT_TRUE(world.wait_for([&] { return world.service().health().level == 0; }));
    world.provider.drive("copy").gone = false;
    static_cast<void>(world.service().examine());
    EXPECT_EQ(world.count_events("member-copy-found"), 2u);
    EXPECT_TRUE(is_in_health());
    EXPECT_EQ(world.provider.bytes_of("copy"), copied);
    EXPECT_FALSE(world.has_event("member-not-returned"));
}

TEST_F(MemberCopy, IsToldWhenItIsRegisteredAndNoMoreOnceItIsBlank) {
    ASSERT_TRUE(world.service().create_drive({{"/ram/copy"}, 0}).ok());
    EXPECT_EQ(world.count_events("member-copy-found"), 1u);
    EXPECT_TRUE(is_in_health());
    ASSERT_TRUE(world.service().reset_identity("copy").ok());
    EXPECT_EQ(world.service().health().level, 0);
    ASSERT_TRUE(world.service().assemble({}).ok());
    EXPECT_EQ(world.service().health().level, 0);
    EXPECT_EQ(world.count_events("member-copy-found"), 1u);
    EXPECT_TRUE(world.service().create_spare({{"copy"}, "", false}).ok());
    EXPECT_EQ(world.group().state, GroupState::kOptimal);
}

TEST_F(MemberCopy, IsToldAfterAStartWithBoth) {
    world.stop();
    world.start();
    EXPECT_EQ(world.group().state, GroupState::kOptimal);
    EXPECT_TRUE(world.has_event("assembly-warning"));
    EXPECT_EQ(world.count_events("member-copy-found"), 1u);
    EXPECT_TRUE(is_in_health());
    EXPECT_EQ(world.group().members[1].serial, "d1");
    EXPECT_EQ(world.provider.bytes_of("copy"), copied);
}

TEST_F(MemberCopy, IsRefusedForEverythingElse) {
    for (const bool force : {false, true}) {
        const auto spare = world.service().create_spare({{"/ram/copy"}, "", force});
        ASSERT_FALSE(spare.ok());
        EXPECT_EQ(spare.error().code, ErrorCode::kDuplicateMember);
        EXPECT_TRUE(tells_all(spare.error().message)) << spare.error().message;
        world.provider.add("blank", 80 * kMiB);
        CreateGroup command;
        command.name = "other";
        command.level = Level::kRaid1;
        command.drives = {"/ram/blank", "/ram/copy"};
        command.force = force;
        const auto group = world.service().create_group(command);
        ASSERT_FALSE(group.ok());
        EXPECT_EQ(group.error().code, ErrorCode::kDuplicateMember);
    }
    EXPECT_EQ(world.provider.bytes_of("copy"), copied);
}

TEST_F(MemberCopy, IsRebuiltAsAWholeWhenTheGroupStartsWithItInsteadOfTheMember) {
    ASSERT_NO_FATAL_FAILURE(write_what_it_lacks());
    world.stop();
    world.provider.drive("d1").gone = true;
    world.start();
    EXPECT_NE(world.group().members[1].state, format::MemberState::kInSync);
    expect_rebuilt_as_a_whole();
}

TEST_F(MemberCopy, IsRebuiltAsAWholeWhenItReturnsInsteadOfTheMember) {
    ASSERT_NO_FATAL_FAILURE(write_what_it_lacks());
    world.provider.drive("d1").gone = true;
    ASSERT_TRUE(world.wait_for([&] { return world.has_event("member-returned"); }));
    expect_rebuilt_as_a_whole();
}

TEST(Spares, DedicatedBeforeGlobalAndTheSmallestThatFits) {
    World world;
    world.add_drives(4);
    world.provider.add("big", 120 * kMiB);
    world.provider.add("small", 90 * kMiB);
    world.provider.add("own", 130 * kMiB);
    world.provider.add("tiny", 66 * kMiB);
    world.make_group(Level::kRaid6, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(
        world.service().create_spare({{"/ram/big", "/ram/small", "/ram/tiny"}, "", false}).ok());
    ASSERT_TRUE(world.service().create_spare({{"/ram/own"}, "g", false}).ok());
    const auto refused = world.service().create_spare({{"/ram/own"}, "", true});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kInUse);
    world.stop();
    world.start();
    ASSERT_EQ(world.service().spares().size(), 4u);

    ASSERT_TRUE(world.service().fail_drive({"d0", std::nullopt}).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.group().members[0].serial, "own");
    world.provider.drive("d1").gone = true;
    ASSERT_TRUE(world.wait_for([&] { return world.group().members[1].serial == "small"; }));
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.service().spares().size(), 2u);
    EXPECT_EQ(world.count_mismatches(), 0u);
}

TEST(Spares, ActWhenTheGroupIsFoundDegraded) {
    World world;
    world.add_drives(5);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 8 * kMiB, 1).ok());
    ASSERT_TRUE(world.service().create_spare({{"d4"}, "", false}).ok());
    world.stop();
    world.provider.drive("d2").gone = true;
    world.start();
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.group().members[2].serial, "d4");
    EXPECT_TRUE(world.holds_pattern(kMiB, 8 * kMiB, 1));
}

TEST(Spares, OneThatSomebodyElseUsedMeanwhileIsLeftAlone) {
    World world;
    world.add_drives(5);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.service().create_spare({{"d4"}, "", false}).ok());
    world.stop();
    put_ext4_magic(world.provider.drive("d4"));
    const std::vector<std::byte> before = world.provider.bytes_of("d4");
    world.provider.drive("d2").gone = true;
    world.start();
    ASSERT_TRUE(world.wait_for([&] { return world.has_event("spare-unusable"); }));
    ASSERT_TRUE(world.service().assemble({}).ok());
    EXPECT_EQ(world.group().state, GroupState::kDegraded);
    EXPECT_EQ(world.provider.bytes_of("d4"), before);
    EXPECT_EQ(world.service().create_spare({{"d4"}, "", false}).error().code,
              ErrorCode::kHasSuperblock);
    ASSERT_TRUE(world.service().create_spare({{"d4"}, "", true}).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
}

TEST(Spares, OneThatFailsAsTargetIsNotTriedAgain) {
    World world;
    world.add_drives(6);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 8 * kMiB, 1).ok());
    ASSERT_TRUE(world.service().create_spare({{"d4"}, "g", false}).ok());
    ASSERT_TRUE(world.service().create_spare({{"d5"}, "", false}).ok());
    world.provider.drive("d4").fail_writes = true;
    ASSERT_TRUE(world.service().fail_drive({"d2", std::nullopt}).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.group().members[2].serial, "d5");
    EXPECT_EQ(world.count_mismatches(), 0u);
    EXPECT_TRUE(world.holds_pattern(kMiB, 8 * kMiB, 1));
}

}  // namespace
}  // namespace warpraid::control
