// Undo and crashes, drives that fail, and its end with the first volume, here or elsewhere.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "control/durable_file.h"
#include "control/undo_file.h"
#include "control/undo_test_support.h"

namespace warpraid::control {
namespace {

// ---- crashes and failing drives -----------------------------------------------------------------

TEST_F(Undo, ACreateThatACrashCutsShortIsTakenBack) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    bool was_whole = false;
    for (int last = 0; !was_whole; last += 1 + last / 4) {
        SCOPED_TRACE("after write " + std::to_string(last));
        ASSERT_LT(last, 10'000);
        freeze_after(last);
        static_cast<void>(create().ok());
        was_whole = !world.provider.frozen;
        stop_counting();
        world.crash_and_start();
        if (was_whole) continue;
        // Either it is not there at all, or it was made before the crash.
        if (!world.service().groups().empty()) {
            ASSERT_EQ(world.service().groups()[0].state, GroupState::kHeld);
            ASSERT_TRUE(world.service().undo_group("new").ok());
        }
        ASSERT_TRUE(drives_hold(before));
        ASSERT_EQ(files_kept(), 0u);
    }
    EXPECT_EQ(world.group("new").state, GroupState::kHeld);
    ASSERT_TRUE(world.service().undo_group("new").ok());
    EXPECT_TRUE(drives_hold(before));
}

TEST_F(Undo, IsTakenUpAgainAfterACrash) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    bool was_whole = false;
    for (int last = 0; !was_whole; ++last) {
        SCOPED_TRACE("after write " + std::to_string(last));
        ASSERT_LT(last, 1000);
        ASSERT_TRUE(create().ok());
        freeze_after(last);
        static_cast<void>(world.service().undo_group("new").ok());
        was_whole = !world.provider.frozen;
        stop_counting();
        world.crash_and_start();
        ASSERT_TRUE(world.service().groups().empty());
        ASSERT_TRUE(drives_hold(before));
        ASSERT_EQ(files_kept(), 0u);
    }
}

TEST_F(Undo, WaitsForADriveThatTakesNoWrites) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    TestDrive& failing = world.provider.drive("d2");
    failing.before_write = [&failing, count = 0]() mutable {
        if (++count == 2) failing.fail_writes = true;
    };
    const auto made = create();
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(files_kept(), 1u);
    const Health health = world.service().health();
    EXPECT_EQ(health.level, 1);
    ASSERT_EQ(health.findings.size(), 1u);
    EXPECT_NE(health.findings[0].find("d2"), std::string::npos) << health.findings[0];
    // One that got its bytes back is used again meanwhile; its signature stays the same.
    constexpr std::size_t kUsed = 32 * kKiB;
    std::vector<Bytes> used = before;
    {
        const auto paused = ServiceTestAccess::pause(world.service());
        for (std::size_t at = kUsed; at < kUsed + 512; ++at) {
            used[0][at] = bytes_of(0)[at] = std::byte{0x77};
        }
    }
    failing.fail_writes = false;
    ASSERT_TRUE(world.wait_for([&] { return files_kept() == 0; }));
    EXPECT_TRUE(drives_hold(used));
    EXPECT_TRUE(world.has_event("undo-gave-up"));
    EXPECT_EQ(world.service().health().level, 0);
}

// A former group that started without the drive that waits would change what the others hold.
TEST_F(Undo, NothingUsesTheDrivesOfOneThatIsNotFinished) {
    add_members_of_another_machine();
    ASSERT_TRUE(create().ok());
    world.provider.drive("d2").fail_writes = true;
    EXPECT_FALSE(world.service().undo_group("new").ok());
    EXPECT_FALSE(world.service().undo_group("new").ok());
    const std::vector<Bytes> waiting = drives_now();
    ASSERT_TRUE(world.service().assemble({}).ok());
    EXPECT_EQ(world.service().delete_drive("d0").error().code, ErrorCode::kInUse);
    EXPECT_EQ(world.service().create_spare({{"d0"}, "", true}).error().code, ErrorCode::kInUse);
    EXPECT_EQ(create().error().code, ErrorCode::kInUse);
    world.stop();
    world.start();
    // Time for a scan.
    std::this_thread::sleep_for(std::chrono::seconds(3));
    EXPECT_TRUE(world.service().groups().empty());
    EXPECT_EQ(world.service().health().findings.size(), 1u);
    EXPECT_TRUE(drives_hold(waiting));
    world.provider.drive("d2").fail_writes = false;
    static_cast<void>(world.service().undo_group("new").ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal, "g"));
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_TRUE(world.holds_pattern(kMiB, 24 * kMiB, 7));
    EXPECT_EQ(world.count_mismatches(), 0u);
}

TEST_F(Undo, OneThatCannotBeFinishedCanBeAbandoned) {
    add_members_of_another_machine();
    ASSERT_TRUE(create().ok());
    EXPECT_EQ(world.service().abandon_undo("new").error().code, ErrorCode::kWrongState);
    world.provider.drive("d2").fail_writes = true;
    EXPECT_FALSE(world.service().undo_group("new").ok());
    world.provider.drive("d2").gone = true;
    EXPECT_EQ(world.service().abandon_undo("none").error().code, ErrorCode::kNotFound);
    const Status abandoned = world.service().abandon_undo("new");
    ASSERT_TRUE(abandoned.ok()) << abandoned.error().message;
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_TRUE(world.has_event("undo-abandoned"));
    EXPECT_EQ(world.group("g").state, GroupState::kDegraded);
    EXPECT_TRUE(world.holds_pattern(kMiB, 24 * kMiB, 7));
}

TEST_F(Undo, OfAGroupThatCannotStartCanBeAbandoned) {
    add_foreign_drives();
    ASSERT_TRUE(create(Level::kRaid0).ok());
    world.stop();
    world.provider.drive("d1").gone = true;
    world.start();
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kDriveMissing);
    EXPECT_EQ(files_kept(), 1u);
    ASSERT_TRUE(world.service().abandon_undo("new").ok());
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kWrongState);
}

TEST_F(Undo, TellsDrivesWithoutSerialNumbersByTheirSuperblocks) {
    add_foreign_drives();
    for (std::uint32_t i = 0; i < kDrives; ++i) world.provider.drive(name_of(i)).anonymous = true;
    world.stop();
    std::filesystem::remove_all(world.options.state_directory);
    world.start();
    CreateGroup command;
    command.name = "new";
    command.level = Level::kRaid5;
    command.force = true;
    for (std::uint32_t i = 0; i < kDrives; ++i) command.drives.push_back("/ram/" + name_of(i));
    std::vector<Bytes> before = drives_now();
    const auto made = world.service().create_group(command);
    ASSERT_TRUE(made.ok()) << made.error().message;
    world.stop();
    world.provider.swap_paths("d0", "d1");
    std::swap(before[0], before[1]);
    world.start();
    const Status undone = world.service().undo_group("new");
    ASSERT_TRUE(undone.ok()) << undone.error().message;
    EXPECT_TRUE(drives_hold(before));
}

// ---- its end ------------------------------------------------------------------------------------

TEST_F(Undo, ACrashLeavesItPossibleOrOver) {
    bool was_whole = false;
    bool was_held = false;
    bool was_over = false;
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    for (int last = 0; !was_whole; ++last) {
        SCOPED_TRACE("after write " + std::to_string(last));
        ASSERT_LT(last, 1000);
        ASSERT_TRUE(create().ok());
        freeze_after(last);
        static_cast<void>(world.service().create_volume({"new", "v", 8 * kMiB, 1}).ok());
        was_whole = !world.provider.frozen;
        stop_counting();
        world.crash_and_start();
        if (world.group("new").held) {
            was_held = true;
            ASSERT_TRUE(world.service().undo_group("new").ok());
            ASSERT_TRUE(drives_hold(before));
            continue;
        }
        was_over = true;
        ASSERT_EQ(files_kept(), 0u);
        // What lies where the table belongs is not taken for one.
        ASSERT_LE(world.service().volumes().size(), 1u);
        if (world.service().volumes().empty()) {
            const auto made = world.service().create_volume({"new", "v", 8 * kMiB, 1});
            ASSERT_TRUE(made.ok()) << made.error().message;
        }
        ASSERT_TRUE(world.service().delete_group("new", true).ok());
        fill_foreign_drives();
    }
    EXPECT_TRUE(was_held);
    EXPECT_TRUE(was_over);
}

// As above, over drives where no undo is needed but an old table might be found.
TEST_F(Undo, ACreateThatIsCutShortLeavesNoTableOfEarlierTimes) {
    world.add_drives(kDrives, kDriveBytes);
    bool was_whole = false;
    int starts = 0;
    for (int last = 0; !was_whole; ++last) {
        SCOPED_TRACE("after write " + std::to_string(last));
        ASSERT_LT(last, 1000);
        ASSERT_TRUE(create(Level::kRaid0, false).ok());
        ASSERT_TRUE(world.service().create_volume({"new", "old", 8 * kMiB, 1}).ok());
        ASSERT_TRUE(world.service().delete_group("new", true).ok());
        freeze_after(last);
        static_cast<void>(create(Level::kRaid0, false).ok());
        was_whole = !world.provider.frozen;
        stop_counting();
        world.crash_and_start();
        EXPECT_TRUE(world.service().volumes().empty());
        for (const GroupInfo& group : world.service().groups()) {
            starts += group.state == GroupState::kOptimal ? 1 : 0;
        }
        if (!world.service().groups().empty()) {
            static_cast<void>(world.service().delete_group("new", true).ok());
        }
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            const auto paused = ServiceTestAccess::pause(world.service());
            std::fill_n(bytes_of(i), limits::kHeadReserveBytesMin, std::byte{0});
            std::fill_n(bytes_of(i) + kDriveBytes - kMiB, kMiB, std::byte{0});
        }
        ASSERT_TRUE(world.service().assemble({}).ok());
    }
    EXPECT_GT(starts, 1);
}

class UndoElsewhere : public Undo, public testing::WithParamInterface<Level> {};

TEST_P(UndoElsewhere, TheGroupIsHeldAndItsFirstVolumeEndsThatEverywhere) {
    add_foreign_drives();
    ASSERT_TRUE(create(GetParam()).ok());
    EXPECT_TRUE(world.group("new").undoable);
    world.stop();
    // Another machine has its own state directory.
    const std::filesystem::path directory = world.options.state_directory + "/undo";
    const std::filesystem::path away = world.options.state_directory + "/away";
    std::filesystem::rename(directory, away);
    world.start();
    EXPECT_EQ(world.group("new").state, GroupState::kHeld);
    EXPECT_FALSE(world.group("new").undoable);
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kWrongState);
    EXPECT_EQ(world.service().delete_group("new", false).error().code, ErrorCode::kWrongState);
    ASSERT_TRUE(world.service().create_volume({"new", "v", 8 * kMiB, 1}).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal, "new"));
    world.stop();
    std::filesystem::remove_all(directory);
    std::filesystem::rename(away, directory);
    world.start();
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_EQ(world.group("new").state, GroupState::kOptimal);
    ASSERT_EQ(world.service().volumes().size(), 1u);
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kWrongState);
}

INSTANTIATE_TEST_SUITE_P(Levels, UndoElsewhere,
                         testing::Values(Level::kRaid0, Level::kRaid1, Level::kRaid5),
                         [](const auto& instance) {
                             return std::string(geometry::to_text(instance.param));
                         });

// The group got a volume on another machine, and only some of its drives came back.
TEST_F(Undo, DoesNotTakeBackWhatWasUsedElsewhere) {
    add_foreign_drives();
    ASSERT_TRUE(create(Level::kRaid0).ok());
    world.stop();
    const std::filesystem::path directory = world.options.state_directory + "/undo";
    const std::filesystem::path away = world.options.state_directory + "/away";
    std::filesystem::rename(directory, away);
    world.start();
    ASSERT_TRUE(world.service().create_volume({"new", "v", 8 * kMiB, 1}).ok());
    world.stop();
    std::filesystem::remove_all(directory);
    std::filesystem::rename(away, directory);
    // As if the operator's undo was under way when the drives were taken away.
    const std::filesystem::path kept = std::filesystem::directory_iterator(directory)->path();
    std::filesystem::path restoring = kept;
    std::filesystem::rename(kept, restoring.replace_extension(".restoring"));
    world.start();
    ASSERT_EQ(world.service().volumes().size(), 1u);
    EXPECT_TRUE(world.has_event("undo-gave-up"));
    EXPECT_EQ(files_kept(), 0u);
}

TEST_F(Undo, ADamagedFileIsNotWrittenToTheDrives) {
    add_foreign_drives();
    ASSERT_TRUE(create().ok());
    const std::filesystem::path directory = world.options.state_directory + "/undo";
    const std::string path = std::filesystem::directory_iterator(directory)->path();
    std::string text = read_file(path, kUndoBytesMax).value();
    text[text.size() / 2] ^= 1;
    ASSERT_TRUE(replace_file(path, text).ok());
    const std::vector<Bytes> held = drives_now();
    const Status refused = world.service().undo_group("new");
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(refused.error().message.find(path), std::string::npos);
    EXPECT_TRUE(drives_hold(held));
    EXPECT_EQ(world.group("new").state, GroupState::kHeld);
}

}  // namespace
}  // namespace warpraid::control
