// Undoing `create group --force`: what it overwrites comes back.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "control/undo_test_support.h"

namespace warpraid::control {
namespace {

/// How the group is made again by mistake.
struct Mistake {
    const char* name;
    Level level;
    std::uint64_t chunk_bytes;
    std::vector<std::string> drives;
};

class UndoMistake : public Undo, public testing::WithParamInterface<Mistake> {};

TEST_P(UndoMistake, GivesTheGroupBackWithItsData) {
    add_members_of_another_machine();
    CreateGroup command;
    command.name = "again";
    command.level = GetParam().level;
    command.drives = GetParam().drives;
    command.chunk_bytes = GetParam().chunk_bytes;
    const std::vector<Bytes> before = drives_now();
    const auto refused = world.service().create_group(command);
    ASSERT_EQ(refused.error().code, ErrorCode::kHasSuperblock);
    EXPECT_TRUE(drives_hold(before));
    command.force = true;
    const auto made = world.service().create_group(command);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->state, GroupState::kHeld);
    // A restart, and time for anything that would be started by itself.
    world.stop();
    world.start();
    ASSERT_EQ(world.group("again").state, GroupState::kHeld);
    EXPECT_TRUE(world.service().volumes().empty());
    EXPECT_EQ(world.service().verify_group("again").error().code, ErrorCode::kWrongState);
    std::this_thread::sleep_for(std::chrono::seconds(1));
    EXPECT_GE(world.service().health().level, 1);
    const Status undone = world.service().undo_group("again");
    ASSERT_TRUE(undone.ok()) << undone.error().message;
    EXPECT_EQ(files_kept(), 0u);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal, "g"));
    EXPECT_TRUE(world.holds_pattern(kMiB, 24 * kMiB, 7));
    EXPECT_EQ(world.count_mismatches(), 0u);
    EXPECT_EQ(world.service().groups().size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, UndoMistake,
    testing::Values(Mistake{"TheSame", Level::kRaid5, 0, {"d0", "d1", "d2"}},
                    Mistake{"Order", Level::kRaid5, 0, {"d2", "d0", "d1"}},
                    Mistake{"Chunk", Level::kRaid5, 512 * kKiB, {"d0", "d1", "d2"}},
                    Mistake{"Level", Level::kRaid0, 0, {"d0", "d1", "d2"}},
                    Mistake{"Fewer", Level::kRaid1, 0, {"d0", "d1"}}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST_F(Undo, LeavesEveryByteAsItWas) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    ASSERT_EQ(create(Level::kRaid5, false).error().code, ErrorCode::kHasSignature);
    ASSERT_TRUE(create().ok());
    // Time for anything that would be started by itself.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    // A member that is put out, and another name, change nothing of that.
    ASSERT_TRUE(world.service().fail_drive({"d2", {}}).ok());
    EXPECT_EQ(world.group("new").state, GroupState::kDegraded);
    EditGroup rename;
    rename.group = "new";
    rename.name = "other";
    ASSERT_TRUE(world.service().edit_group(rename).ok());
    // Nothing was written that a crash could leave in doubt.
    world.crash_and_start();
    ASSERT_EQ(world.group("other").state, GroupState::kDegraded);
    ASSERT_TRUE(world.group("other").held);
    ASSERT_TRUE(world.service().undo_group("other").ok());
    EXPECT_TRUE(drives_hold(before));
    EXPECT_TRUE(world.service().groups().empty());
    EXPECT_TRUE(world.has_event("group-undone"));
    world.stop();
    world.start();
    EXPECT_TRUE(drives_hold(before));
}

TEST_F(Undo, IsOverWithTheFirstVolume) {
    add_foreign_drives();
    ASSERT_TRUE(create().ok());
    EXPECT_EQ(world.service().create_volume({"new", "v", 900 * kMiB, 1}).error().code,
              ErrorCode::kNoSpace);
    EXPECT_EQ(world.group("new").state, GroupState::kHeld);
    ASSERT_TRUE(world.service().create_volume({"new", "v", 8 * kMiB, 1}).ok());
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kWrongState);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal, "new"));
    EXPECT_EQ(world.count_mismatches("new"), 0u);
    world.stop();
    world.start();
    ASSERT_EQ(world.service().volumes().size(), 1u);
    EXPECT_EQ(world.service().volumes()[0].name, "v");
}

TEST_F(Undo, IsNotNeededForBlankDrives) {
    world.add_drives(kDrives, kDriveBytes);
    ASSERT_TRUE(create().ok());
    EXPECT_NE(world.group("new").state, GroupState::kHeld);
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kWrongState);
    EXPECT_EQ(world.service().undo_group("none").error().code, ErrorCode::kNotFound);
    EXPECT_EQ(files_kept(), 0u);
}

TEST_F(Undo, WritesNothingWithoutEveryDrive) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    ASSERT_TRUE(create().ok());
    world.provider.drive("d1").gone = true;
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded, "new"));
    const std::vector<Bytes> held = drives_now();
    const Status refused = world.service().undo_group("new");
    ASSERT_EQ(refused.error().code, ErrorCode::kDriveMissing);
    EXPECT_NE(refused.error().message.find("drive d1 (/ram/d1)"), std::string::npos);
    EXPECT_TRUE(drives_hold(held));
    EXPECT_EQ(world.group("new").state, GroupState::kDegraded);
    world.provider.drive("d1").gone = false;
    ASSERT_TRUE(world.service().undo_group("new").ok());
    EXPECT_TRUE(drives_hold(before));
}

TEST_F(Undo, LeavesADriveThatSomebodyElseTook) {
    add_foreign_drives();
    ASSERT_TRUE(create().ok());
    world.stop();
    std::fill_n(bytes_of(1), kDriveBytes, std::byte{0});
    bytes_of(1)[kExt4Magic] = std::byte{0x53};
    bytes_of(1)[kExt4Magic + 1] = std::byte{0xef};
    world.start();
    const std::vector<Bytes> held = drives_now();
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kInUse);
    EXPECT_TRUE(drives_hold(held));
}

TEST_F(Undo, KeepsTheGroupFromBeingDeletedUnawares) {
    add_foreign_drives();
    ASSERT_TRUE(create().ok());
    EXPECT_EQ(world.service().delete_group("new", false).error().code, ErrorCode::kWrongState);
    EXPECT_EQ(world.service().replace_drive({"d0", "d1", false}).error().code,
              ErrorCode::kWrongState);
    EXPECT_EQ(files_kept(".undo"), 1u);
    ASSERT_TRUE(world.service().delete_group("new", true).ok());
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_TRUE(world.service().groups().empty());
}

TEST_F(Undo, SparesWaitForTheFirstVolume) {
    add_foreign_drives();
    ASSERT_TRUE(create().ok());
    world.provider.add("spare", kDriveBytes);
    ASSERT_TRUE(world.service().create_drive({{"/ram/spare"}, 0}).ok());
    ASSERT_TRUE(world.service().create_spare({{"spare"}, "", false}).ok());
    ASSERT_TRUE(world.service().fail_drive({"d1", {}}).ok());
    std::this_thread::sleep_for(std::chrono::seconds(1));
    EXPECT_EQ(world.service().spares().size(), 1u);
    ASSERT_TRUE(world.service().create_volume({"new", "v", 8 * kMiB, 1}).ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal, "new"));
    EXPECT_TRUE(world.service().spares().empty());
    EXPECT_EQ(world.count_mismatches("new"), 0u);
}

TEST_F(Undo, WithoutRoomForItNothingIsWritten) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    std::ofstream(undo_directory()) << "in the way";
    const auto made = create();
    ASSERT_EQ(made.error().code, ErrorCode::kStateNotSaved);
    EXPECT_TRUE(drives_hold(before));
    EXPECT_TRUE(world.service().groups().empty());
    std::filesystem::remove(undo_directory());
    const auto again = create();
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_TRUE(world.service().undo_group("new").ok());
    EXPECT_TRUE(drives_hold(before));
}

}  // namespace
}  // namespace warpraid::control
