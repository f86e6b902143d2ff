// Undoing `create group --force`: what it overwrites comes back, after a crash at any write as
// well.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "control/control_test_support.h"
#include "control/durable_file.h"
#include "control/undo_file.h"

namespace warpraid::control {
namespace {

using geometry::Level;
using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kDrives = 3;
constexpr std::uint64_t kDriveBytes = limits::kDriveBytesMin;

constexpr std::size_t kExt4Magic = 1024 + 0x38;

/// Bytes of a drive.
struct Extent {
    std::uint64_t start = 0, end = 0;
};

/// What is looked at: both ends wholly, and a little of every MiB between, which a resync, a
/// rebuild or a partition table would not leave alone.
std::vector<Extent> samples() {
    std::vector<Extent> extents{{0, 4 * kMiB}};
    for (std::uint64_t at = 4 * kMiB; at < kDriveBytes - 4 * kMiB; at += kMiB) {
        extents.push_back({at, at + 16 * kKiB});
    }
    extents.push_back({kDriveBytes - 4 * kMiB, kDriveBytes});
    return extents;
}

std::string name_of(std::uint32_t index) {
    return "d" + std::to_string(index);
}

class Undo : public testing::Test {
  protected:
    /// Drives with the magic of an ext4 file system and something in every sample.
    void add_foreign_drives() {
        world.add_drives(kDrives, kDriveBytes);
        SeededRandom random(1);
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            std::byte* drive = bytes_of(i);
            for (const Extent& sample : samples()) {
                for (std::uint64_t at = sample.start; at < sample.end; at += 8) {
                    const std::uint64_t value = random.next();
                    std::memcpy(drive + at, &value, sizeof value);
                }
            }
            drive[kExt4Magic] = std::byte{0x53};
            drive[kExt4Magic + 1] = std::byte{0xef};
        }
    }
    std::byte* bytes_of(std::uint32_t index) {
        return io::ram_bytes(*world.provider.drive(name_of(index)).store);
    }
    /// Drives with the members of a group "g" of another machine, which is not started here.
    void add_members_of_another_machine() {
        std::vector<Bytes> drives;
        {
            World other;
            other.add_drives(kDrives, kDriveBytes);
            other.make_group(Level::kRaid5, kDrives);
            ASSERT_TRUE(other.wait_for_state(GroupState::kOptimal));
            ASSERT_TRUE(other.write_pattern(kMiB, 24 * kMiB, 7).ok());
            other.stop();
            for (std::uint32_t i = 0; i < kDrives; ++i) {
                drives.push_back(other.provider.bytes_of(name_of(i)));
            }
        }
        world.add_drives(kDrives, kDriveBytes);
        for (std::uint32_t i = 0; i < kDrives; ++i)
            std::copy(drives[i].begin(), drives[i].end(), bytes_of(i));
    }
    /// The samples of every drive.
    std::vector<Bytes> drives_now() {
        std::vector<Bytes> drives(kDrives);
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            for (const Extent& sample : samples()) {
                drives[i].insert(drives[i].end(), bytes_of(i) + sample.start,
                                 bytes_of(i) + sample.end);
            }
        }
        return drives;
    }
    testing::AssertionResult drives_hold(const std::vector<Bytes>& wanted) {
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            const std::byte* expected = wanted[i].data();
            for (const Extent& sample : samples()) {
                const std::size_t size = sample.end - sample.start;
                if (std::memcmp(bytes_of(i) + sample.start, expected, size) != 0) {
                    return testing::AssertionFailure() << name_of(i) << " differs in bytes "
                                                       << sample.start << " to " << sample.end;
                }
                expected += size;
            }
        }
        return testing::AssertionSuccess();
    }
    Result<GroupInfo> create(const std::string& name = "new", bool force = true) {
        CreateGroup command;
        command.name = name;
        command.level = Level::kRaid5;
        command.force = force;
        for (std::uint32_t i = 0; i < kDrives; ++i) command.drives.push_back(name_of(i));
        return world.service().create_group(command);
    }
    std::size_t files_kept() {
        std::size_t count = 0;
        std::error_code error;
        for (const auto& entry :
             std::filesystem::directory_iterator(world.options.state_directory + "/undo", error)) {
            static_cast<void>(entry);
            ++count;
        }
        return count;
    }
    /// Counts the writes that the control plane makes from now on, and from write `last` on none
    /// arrives any more.
    void freeze_after(int last) {
        writes = 0;
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            world.provider.drive(name_of(i)).before_write = [this, last] {
                if (++writes > last) world.provider.frozen = true;
            };
        }
    }
    void stop_counting() {
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            world.provider.drive(name_of(i)).before_write = nullptr;
        }
    }

    World world;
    std::atomic<int> writes = 0;
};

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
    ASSERT_EQ(create("new", false).error().code, ErrorCode::kHasSignature);
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
    EXPECT_EQ(files_kept(), 1u);
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
    std::ofstream(world.options.state_directory + "/undo") << "in the way";
    const auto made = create();
    ASSERT_EQ(made.error().code, ErrorCode::kStateNotSaved);
    EXPECT_TRUE(drives_hold(before));
    EXPECT_TRUE(world.service().groups().empty());
    std::filesystem::remove(world.options.state_directory + "/undo");
    ASSERT_TRUE(create().ok());
    EXPECT_TRUE(world.service().undo_group("new").ok());
    EXPECT_TRUE(drives_hold(before));
}

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
    for (std::size_t at = kUsed; at < kUsed + 512; ++at) {
        used[0][at] = bytes_of(0)[at] = std::byte{0x77};
    }
    failing.fail_writes = false;
    ASSERT_TRUE(world.wait_for([&] { return files_kept() == 0; }));
    EXPECT_TRUE(drives_hold(used));
    EXPECT_TRUE(world.has_event("undo-gave-up"));
    EXPECT_EQ(world.service().health().level, 0);
}

TEST_F(Undo, TheEndOfItIsFinishedAfterACrash) {
    add_members_of_another_machine();
    ASSERT_TRUE(create().ok());
    world.stop();
    const std::filesystem::path directory = world.options.state_directory + "/undo";
    const std::filesystem::path kept = std::filesystem::directory_iterator(directory)->path();
    std::filesystem::path ending = kept;
    std::filesystem::rename(kept, ending.replace_extension(".ending"));
    world.start();
    EXPECT_EQ(files_kept(), 0u);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal, "new"));
    EXPECT_EQ(world.count_mismatches("new"), 0u);
    EXPECT_TRUE(world.service().volumes().empty());
}

TEST_F(Undo, IsOverForAGroupThatWasUsedElsewhere) {
    add_foreign_drives();
    ASSERT_TRUE(create().ok());
    world.stop();
    // Another machine has its own state directory, and nothing is held there.
    const std::filesystem::path directory = world.options.state_directory + "/undo";
    const std::filesystem::path away = world.options.state_directory + "/away";
    std::filesystem::rename(directory, away);
    world.start();
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
