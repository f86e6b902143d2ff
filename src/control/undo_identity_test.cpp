// Undo never writes what one drive held to another, whatever their names are; and what it keeps it
// keeps for as long as the drive may come back.
#include <gtest/gtest.h>

#include <filesystem>

#include "control/undo_test_support.h"

namespace warpraid::control {
namespace {

// So many writes into a create it is at work on the last of the drives.
constexpr int kWritesToD2 = 32;

class UndoIdentity : public Undo {
  protected:
    /// As on a machine that knows none of them: registered by their paths, if at all.
    void forget_drives() {
        world.stop();
        std::filesystem::remove_all(world.options.state_directory);
        world.start();
    }
    void make_anonymous() {
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            world.provider.drive(name_of(i)).anonymous = true;
        }
        forget_drives();
    }
    Result<GroupInfo> create_by_paths() {
        CreateGroup command;
        command.name = "new";
        command.level = Level::kRaid5;
        command.force = true;
        for (std::uint32_t i = 0; i < kDrives; ++i) command.drives.push_back("/ram/" + name_of(i));
        return world.service().create_group(command);
    }
    /// A create that a crash cuts short when d2 waits for some of its bytes.
    void create_cut_short() {
        freeze_after(kWritesToD2);
        static_cast<void>(create().ok());
        ASSERT_TRUE(world.provider.frozen);
        stop_counting();
        world.crash();
    }
};

TEST_F(UndoIdentity, NamesThatChangedPlacesWhileTheGroupIsHeld) {
    add_foreign_drives();
    std::vector<Bytes> before = drives_now();
    ASSERT_TRUE(create().ok());
    world.stop();
    swap_device_names("d0", "d1");
    std::swap(before[0], before[1]);
    world.start();
    ASSERT_TRUE(world.group("new").held);
    EXPECT_TRUE(undo_gives_back(before));
}

TEST_F(UndoIdentity, PathsOfDrivesWithoutAnyIdentityThatChangedPlaces) {
    add_foreign_drives();
    make_anonymous();
    std::vector<Bytes> before = drives_now();
    const auto made = create_by_paths();
    ASSERT_TRUE(made.ok()) << made.error().message;
    world.stop();
    world.provider.swap_paths("d0", "d1");
    std::swap(before[0], before[1]);
    world.start();
    EXPECT_TRUE(undo_gives_back(before));
}

TEST_F(UndoIdentity, ADriveWithoutAnyIdentityThatMoved) {
    add_foreign_drives();
    world.options.drive_patterns = {"/ram/*"};
    make_anonymous();
    const std::vector<Bytes> before = drives_now();
    ASSERT_TRUE(create_by_paths().ok());
    world.stop();
    world.provider.move("d0", "/ram/x");
    world.start();
    ASSERT_EQ(world.group("new").state, GroupState::kHeld);
    const Status undone = world.service().undo_group("new");
    ASSERT_TRUE(undone.ok()) << undone.error().message;
    world.provider.alias("x", "/ram/d0");
    EXPECT_TRUE(drives_hold(before));
}

TEST_F(UndoIdentity, AnotherDriveUnderTheNameOfOneThatWaits) {
    add_foreign_drives();
    world.provider.add("other", kDriveBytes);
    const std::vector<Bytes> before = drives_now();
    ASSERT_NO_FATAL_FAILURE(create_cut_short());
    swap_device_names("d2", "other");
    const Bytes blank = world.provider.bytes_of("d2");
    world.start();
    EXPECT_EQ(files_kept(".image"), 1u);
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kInUse);
    EXPECT_EQ(world.provider.bytes_of("d2"), blank);
    world.stop();
    swap_device_names("d2", "other");
    world.start();
    EXPECT_TRUE(drives_hold(before));
    EXPECT_EQ(files_kept(), 0u);
}

TEST_F(UndoIdentity, ADriveThatTellsAnotherSizeForAWhile) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    ASSERT_NO_FATAL_FAILURE(create_cut_short());
    const auto whole = world.provider.drive("d2").store;
    const auto larger = io::make_ram_store("d2", kDriveBytes + kMiB, 512);
    std::copy_n(io::ram_bytes(*whole), kDriveBytes, io::ram_bytes(*larger));
    world.provider.drive("d2").store = larger;
    world.start();
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kInUse);
    world.stop();
    world.provider.drive("d2").store = whole;
    world.start();
    EXPECT_TRUE(drives_hold(before));
    EXPECT_EQ(files_kept(), 0u);
}

TEST_F(UndoIdentity, ACopyOfADriveLeavesItOpenWhichIsMeant) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    world.options.drive_patterns = {"/ram/*"};
    ASSERT_NO_FATAL_FAILURE(create_cut_short());
    world.provider.add("copy", kDriveBytes);
    std::copy_n(bytes_of(2), kDriveBytes, io::ram_bytes(*world.provider.drive("copy").store));
    const Bytes copied = world.provider.bytes_of("copy");
    world.start();
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kDuplicateMember);
    EXPECT_EQ(files_kept(".image"), 1u);
    EXPECT_EQ(world.provider.bytes_of("copy"), copied);
    world.provider.drive("copy").gone = true;
    static_cast<void>(world.service().undo_group("new").ok());
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_TRUE(drives_hold(before));
    EXPECT_EQ(world.provider.bytes_of("copy"), copied);
}

TEST_F(UndoIdentity, SerialNumbersThatAreNoText) {
    add_foreign_drives();
    world.provider.drive("d0").serial = "d\xff";
    world.provider.drive("d1").serial = "d\xfe";
    forget_drives();
    const std::vector<Bytes> before = drives_now();
    for (const bool is_cut_short : {false, true}) {
        SCOPED_TRACE(is_cut_short);
        if (is_cut_short) freeze_after(kWritesToD2);
        EXPECT_EQ(create_by_paths().ok(), !is_cut_short);
        stop_counting();
        world.crash_and_start();
        if (!is_cut_short) {
            ASSERT_TRUE(undo_gives_back(before));
        }
        EXPECT_TRUE(drives_hold(before));
        EXPECT_EQ(files_kept(), 0u);
    }
}

// The drives of a former group of the same name are still about.
TEST_F(UndoIdentity, AFormerGroupHasTheName) {
    add_members_of_another_machine();
    world.provider.drive("d2").gone = true;
    world.provider.drive("d0").gone = world.provider.drive("d1").gone = true;
    ASSERT_TRUE(world.service().assemble({}).ok());
    world.provider.drive("d0").gone = world.provider.drive("d1").gone = false;
    CreateGroup command;
    command.name = "g";
    command.level = Level::kRaid1;
    command.force = true;
    command.drives = {"d0", "d1"};
    const auto made = world.service().create_group(command);
    ASSERT_TRUE(made.ok()) << made.error().message;
    world.provider.drive("d1").fail_writes = true;
    EXPECT_FALSE(world.service().undo_group("g").ok());
    world.provider.drive("d2").gone = false;
    ASSERT_TRUE(world.service().assemble({}).ok());
    EXPECT_NE(world.service().undo_group("g").error().message.find("d1"), std::string::npos);
    const Status abandoned = world.service().abandon_undo("g");
    EXPECT_TRUE(abandoned.ok()) << abandoned.error().message;
    EXPECT_EQ(files_kept(), 0u);
}

TEST_F(UndoIdentity, AGroupThatWasRenamed) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    ASSERT_TRUE(create().ok());
    EditGroup rename;
    rename.group = "new";
    rename.name = "other";
    ASSERT_TRUE(world.service().edit_group(rename).ok());
    world.provider.drive("d1").fail_writes = true;
    EXPECT_FALSE(world.service().undo_group("other").ok());
    world.provider.drive("d1").fail_writes = false;
    static_cast<void>(world.service().undo_group("other").ok());
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_TRUE(drives_hold(before));
}

// A copy is seen before anything is ended: half a group given back would be neither.
TEST_F(UndoIdentity, ACopyOfADriveIsFoundBeforeAnythingIsWritten) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    ASSERT_TRUE(create().ok());
    world.provider.add("copy", kDriveBytes);
    {
        const auto paused = ServiceTestAccess::pause(world.service());
        std::copy_n(bytes_of(2), kDriveBytes, io::ram_bytes(*world.provider.drive("copy").store));
    }
    ASSERT_TRUE(world.service().create_drive({{"/ram/copy"}, 0}).ok());
    const std::vector<Bytes> held = drives_now();
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kDuplicateMember);
    EXPECT_TRUE(drives_hold(held));
    EXPECT_EQ(world.group("new").state, GroupState::kHeld);
    ASSERT_TRUE(world.service().delete_drive("copy").ok());
    EXPECT_TRUE(undo_gives_back(before));
}

// Its name is taken until all is given back: `undo group NAME` must mean one of them.
TEST_F(UndoIdentity, AnotherGroupOfTheNameIsRefusedWhileDrivesWait) {
    add_foreign_drives();
    ASSERT_TRUE(create().ok());
    world.provider.drive("d2").fail_writes = true;
    EXPECT_FALSE(world.service().undo_group("new").ok());
    world.provider.add("e0", kDriveBytes);
    world.provider.add("e1", kDriveBytes);
    ASSERT_TRUE(world.service().create_drive({{"/ram/e0", "/ram/e1"}, 0}).ok());
    CreateGroup command;
    command.name = "new";
    command.level = Level::kRaid1;
    command.drives = {"e0", "e1"};
    EXPECT_EQ(world.service().create_group(command).error().code, ErrorCode::kAlreadyExists);
    command.name = "another";
    ASSERT_TRUE(world.service().create_group(command).ok());
    EXPECT_EQ(world.service().edit_group({"another", "new", std::nullopt}).error().code,
              ErrorCode::kAlreadyExists);
    world.provider.drive("d2").fail_writes = false;
    static_cast<void>(world.service().undo_group("new").ok());
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_TRUE(world.service().edit_group({"another", "new", std::nullopt}).ok());
}

/// Every level, and where the first volume stops: in the commits before, or in its table.
struct FirstVolume {
    Level level;
    bool stops_in_commit;
};

class UndoFirstVolume : public Undo, public testing::WithParamInterface<FirstVolume> {};

// From the commit on nobody is promised anything: what is written next is not kept.
TEST_P(UndoFirstVolume, ThatFailsEndsIt) {
    add_foreign_drives();
    ASSERT_TRUE(create(GetParam().level).ok());
    // The table lies at both ends of the data, so no level has it on one drive alone.
    for (std::uint32_t i = 0; i < kDrives; ++i) {
        TestDrive& drive = world.provider.drive(name_of(i));
        if (GetParam().stops_in_commit) {
            drive.fail_writes = i == 1;
        } else {
            drive.fail_writes_from = undo_head_bytes();
            drive.fail_writes_below = kDriveBytes;
        }
    }
    const bool was_made = world.service().create_volume({"new", "v", 8 * kMiB, 1}).ok();
    for (std::uint32_t i = 0; i < kDrives; ++i) {
        world.provider.drive(name_of(i)).fail_writes = false;
        world.provider.drive(name_of(i)).fail_writes_below = 0;
    }
    ASSERT_TRUE(GetParam().stops_in_commit || !was_made);
    const std::vector<Bytes> after = drives_now();
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kWrongState);
    EXPECT_FALSE(world.group("new").undoable);
    if (!GetParam().stops_in_commit) {
        EXPECT_EQ(files_kept(), 0u);
        EXPECT_TRUE(drives_hold(after) || GetParam().level != Level::kRaid0) << "nothing to resync";
    }
    world.stop();
    world.start();
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_FALSE(world.service().undo_group("new").ok());
}

INSTANTIATE_TEST_SUITE_P(
    Levels, UndoFirstVolume,
    testing::Values(FirstVolume{Level::kRaid0, false}, FirstVolume{Level::kRaid1, false},
                    FirstVolume{Level::kRaid5, false}, FirstVolume{Level::kRaid10, false},
                    FirstVolume{Level::kRaid0, true}, FirstVolume{Level::kRaid5, true}));

}  // namespace
}  // namespace warpraid::control
