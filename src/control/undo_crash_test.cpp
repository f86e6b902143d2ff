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

/// Whether the last write before the crash is lost as a whole, or block by block; how long a
/// logical block is; and whether the drives were members of another group before, with marks of
/// that.
struct Crash {
    const char* name;
    std::uint64_t tear_seed;
    std::uint32_t block_bytes;
    bool were_members = false;
};

class UndoCrash : public Undo, public testing::WithParamInterface<Crash> {
  protected:
    void SetUp() override { world.provider.tear_seed = GetParam().tear_seed; }
    void add_drives() {
        if (GetParam().were_members) return add_members_of_another_machine(kDrives + 2);
        add_foreign_drives(GetParam().block_bytes);
    }
};

TEST_P(UndoCrash, ACreateThatIsCutShortIsTakenBack) {
    add_drives();
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
        if (has_group_new()) {
            ASSERT_EQ(world.group("new").state, GroupState::kHeld);
            ASSERT_TRUE(world.service().undo_group("new").ok());
        }
        ASSERT_TRUE(drives_hold(before));
        ASSERT_EQ(files_kept(), 0u);
    }
    EXPECT_EQ(world.group("new").state, GroupState::kHeld);
    ASSERT_TRUE(world.service().undo_group("new").ok());
    EXPECT_TRUE(drives_hold(before));
}

TEST_P(UndoCrash, IsTakenUpAgain) {
    add_drives();
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
        ASSERT_FALSE(has_group_new());
        ASSERT_TRUE(drives_hold(before));
        ASSERT_EQ(files_kept(), 0u);
    }
}

// Drives without serial numbers are called by the names that the kernel gave them, and at the start
// after the crash two have changed theirs.
TEST_P(UndoCrash, NamesChangePlaces) {
    add_drives();
    bool was_whole = false;
    std::vector<Bytes> before = drives_now();
    for (int last = 0; !was_whole; last += 1 + last / 8) {
        SCOPED_TRACE("after write " + std::to_string(last));
        ASSERT_LT(last, 1000);
        freeze_after(last);
        bool made = create().ok();
        if (made) made = world.service().undo_group("new").ok();
        was_whole = !world.provider.frozen;
        stop_counting();
        world.crash();
        swap_device_names("d0", "d1");
        std::swap(before[0], before[1]);
        world.start();
        if (has_group_new()) {
            ASSERT_TRUE(world.service().undo_group("new").ok());
        }
        ASSERT_TRUE(drives_hold(before));
        ASSERT_EQ(files_kept(), 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(Crashes, UndoCrash,
                         testing::Values(Crash{"Whole", 0, 512}, Crash{"Torn", 1, 512},
                                         Crash{"TornOtherwise", 2, 512}, Crash{"Torn4k", 3, 4096},
                                         Crash{"Members", 0, 512, true},
                                         Crash{"MembersTorn", 4, 512, true}),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_F(Undo, WaitsForADriveThatTakesNoWrites) {
    add_foreign_drives();
    std::vector<Bytes> wanted = drives_now();
    TestDrive& failing = world.provider.drive("d2");
    failing.before_write = [&failing, count = 0]() mutable {
        if (++count == 2) failing.fail_writes = true;
    };
    const auto made = create();
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(files_kept(".undo"), 1u);
    EXPECT_EQ(files_kept(".image"), 1u);
    const Health health = world.service().health();
    EXPECT_EQ(health.level, 1);
    ASSERT_EQ(health.findings.size(), 1u);
    EXPECT_NE(health.findings[0].find("d2"), std::string::npos) << health.findings[0];
    // One that got all of its bytes back is used again meanwhile, and blanked in places.
    {
        const auto paused = ServiceTestAccess::pause(world.service());
        for (const std::size_t at : {32 * kKiB, 66 * kKiB, 512 * kKiB}) {
            const std::byte value{static_cast<unsigned char>(at == 512 * kKiB ? 0 : 0x77)};
            std::fill_n(bytes_of(0) + at, 4 * kKiB, value);
            std::fill_n(wanted[0].begin() + static_cast<std::ptrdiff_t>(at), 4 * kKiB, value);
        }
    }
    // Time for more than one look.
    std::this_thread::sleep_for(std::chrono::seconds(5));
    EXPECT_EQ(world.count_events("undo-incomplete"), 1u);
    failing.before_write = nullptr;
    failing.fail_writes = false;
    ASSERT_TRUE(world.wait_for([&] { return files_kept() == 0; }));
    EXPECT_TRUE(drives_hold(wanted));
    EXPECT_TRUE(world.service().health().findings.empty());
}

// What was given back of it is its own again, and what somebody writes there is not lost.
TEST_F(Undo, LeavesADriveThatIsUsedWhileAPartOfItWaits) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    for (int last = 1; last <= 3; ++last) {
        SCOPED_TRACE("after write " + std::to_string(last));
        ASSERT_TRUE(create().ok());
        TestDrive& failing = world.provider.drive("d0");
        failing.before_write = [&failing, last, count = 0]() mutable {
            if (++count > last) failing.fail_writes = true;
        };
        EXPECT_FALSE(world.service().undo_group("new").ok());
        {
            const auto paused = ServiceTestAccess::pause(world.service());
            failing.before_write = nullptr;
            std::fill_n(bytes_of(0) + 32 * kKiB, kKiB, std::byte{0x77});
        }
        const std::vector<Bytes> used = drives_now();
        failing.fail_writes = false;
        const Status waits = world.service().undo_group("new");
        EXPECT_EQ(waits.error().code, ErrorCode::kInUse);
        EXPECT_EQ(files_kept(".image"), 1u);
        EXPECT_TRUE(drives_hold(used));
        // Somebody takes back what he wrote: nothing was lost.
        {
            const auto paused = ServiceTestAccess::pause(world.service());
            const auto from = before[0].begin() + 32 * kKiB;
            std::copy(from, from + kKiB, bytes_of(0) + 32 * kKiB);
        }
        static_cast<void>(world.service().undo_group("new").ok());
        ASSERT_EQ(files_kept(), 0u);
        ASSERT_TRUE(drives_hold(before));
    }
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
    EXPECT_EQ(create(Level::kRaid5, true, "third").error().code, ErrorCode::kInUse);
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
    EXPECT_EQ(files_kept(".undo"), 1u);
    ASSERT_TRUE(world.service().abandon_undo("new").ok());
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kWrongState);
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
    const std::filesystem::path directory = undo_directory();
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
    const std::filesystem::path directory = undo_directory();
    const std::filesystem::path away = world.options.state_directory + "/away";
    std::filesystem::rename(directory, away);
    world.start();
    ASSERT_TRUE(world.service().create_volume({"new", "v", 8 * kMiB, 1}).ok());
    world.stop();
    std::filesystem::remove_all(directory);
    std::filesystem::rename(away, directory);
    // As if the operator's undo was under way when the drives were taken away.
    set_state(UndoState::kRestoring);
    const std::vector<Bytes> used = drives_now();
    world.start();
    EXPECT_TRUE(world.service().volumes().empty());
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kInUse);
    EXPECT_TRUE(drives_hold(used));
    ASSERT_TRUE(world.service().abandon_undo("new").ok());
    ASSERT_EQ(world.service().volumes().size(), 1u);
    EXPECT_EQ(files_kept(), 0u);
}

TEST_F(Undo, ADamagedFileIsNotWrittenToTheDrives) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    ASSERT_TRUE(create().ok());
    std::vector<Bytes> held;
    for (const std::filesystem::path& file : undo_files()) {
        if (file.extension() == ".copy") continue;
        SCOPED_TRACE(file);
        const std::string text = read_file(file, 4 * kMiB).value();
        std::string changed = text;
        changed[changed.size() / 2] ^= 1;
        ASSERT_TRUE(replace_file(file, changed).ok());
        // A record is there twice.
        const std::string copy = file.string() + ".copy";
        const bool is_record = std::filesystem::exists(copy);
        if (is_record) {
            ASSERT_TRUE(replace_file(copy, changed).ok());
        }
        world.stop();
        world.start();
        EXPECT_NE(world.group("new").undoable, is_record);
        held = drives_now();
        const Status refused = world.service().undo_group("new");
        EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
        EXPECT_NE(refused.error().message.find(file), std::string::npos);
        EXPECT_TRUE(drives_hold(held));
        EXPECT_EQ(world.group("new").state, GroupState::kHeld);
        ASSERT_TRUE(replace_file(file, text).ok());
        if (is_record) std::filesystem::remove(copy);
    }
    world.stop();
    const std::filesystem::path image = undo_files().front();
    std::filesystem::rename(image, world.options.state_directory + "/away");
    world.start();
    held = drives_now();
    EXPECT_FALSE(world.service().undo_group("new").ok());
    EXPECT_TRUE(drives_hold(held));
    std::filesystem::rename(world.options.state_directory + "/away", image);
    world.stop();
    world.start();
    EXPECT_TRUE(undo_gives_back(before));
}

// No image is believed that no record names: nothing was written to a drive yet, or all is over.
TEST_F(Undo, ImagesWithoutARecordAreRemoved) {
    add_foreign_drives();
    ASSERT_TRUE(create().ok());
    world.stop();
    for (const std::filesystem::path& file : undo_files()) {
        if (file.extension() != ".image") std::filesystem::remove(file);
    }
    EXPECT_EQ(files_kept(), kDrives);
    world.start();
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_FALSE(world.group("new").undoable);
}

// What a crash leaves of files that were being written.
TEST_F(Undo, FilesHalfWrittenAreRemoved) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    ASSERT_TRUE(create().ok());
    world.stop();
    const std::string record = undo_files().front().string();
    for (const char* ending : {".new", ".old"}) {
        std::filesystem::copy_file(record, record + ending);
    }
    world.start();
    EXPECT_EQ(files_kept(".new") + files_kept(".old"), 0u);
    EXPECT_TRUE(undo_gives_back(before));
}

// A crash came when the drives had got all of it and the files were not gone yet. They carry the
// marks of the group that they belonged to.
TEST_F(Undo, FilesOfOneThatWasFinishedAreRemoved) {
    add_members_of_another_machine(kDrives + 2);
    const std::vector<Bytes> before = drives_now();
    ASSERT_TRUE(create().ok());
    world.stop();
    set_state(UndoState::kRestoring);
    const std::string kept = world.options.state_directory + "/kept";
    std::filesystem::copy(undo_directory(), kept);
    world.start();
    ASSERT_EQ(files_kept(), 0u);
    world.stop();
    std::filesystem::remove(undo_directory());
    std::filesystem::rename(kept, undo_directory());
    world.start();
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_TRUE(drives_hold(before));
}

TEST_F(Undo, OneDamagedCopyOfTheRecordIsEnough) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    for (const char* ending : {".undo", ".copy"}) {
        ASSERT_TRUE(create().ok());
        world.stop();
        for (const std::filesystem::path& file : undo_files()) {
            if (file.extension() != ending) continue;
            ASSERT_TRUE(replace_file(file, "damaged").ok());
        }
        world.start();
        ASSERT_TRUE(undo_gives_back(before));
    }
}

// An image that is gone does not mean that the drive has got its bytes.
TEST_F(Undo, WithAnImageTakenAwayItIsNotFinished) {
    add_foreign_drives();
    ASSERT_TRUE(create().ok());
    world.stop();
    set_state(UndoState::kRestoring);
    std::filesystem::remove(undo_files().front());
    world.start();
    EXPECT_FALSE(world.has_event("group-undone"));
    EXPECT_EQ(world.service().undo_group("new").error().code, ErrorCode::kNotFound);
    EXPECT_EQ(world.service().health().findings.size(), 1u);
    ASSERT_TRUE(world.service().abandon_undo("new").ok());
    EXPECT_EQ(files_kept(), 0u);
}

// Who gives up must know whose bytes are lost.
TEST_F(Undo, EveryDriveThatWaitsIsNamed) {
    add_foreign_drives();
    const std::vector<Bytes> before = drives_now();
    ASSERT_TRUE(create().ok());
    world.stop();
    set_state(UndoState::kRestoring);
    world.provider.drive("d0").gone = world.provider.drive("d2").gone = true;
    world.start();
    const Health health = world.service().health();
    ASSERT_EQ(health.findings.size(), 1u);
    for (const char* name : {"drive d0 ", "drive d2 "}) {
        EXPECT_NE(health.findings[0].find(name), std::string::npos) << health.findings[0];
    }
    EXPECT_EQ(health.findings[0].find("drive d1 "), std::string::npos) << health.findings[0];
    world.provider.drive("d0").gone = world.provider.drive("d2").gone = false;
    static_cast<void>(world.service().undo_group("new").ok());
    EXPECT_EQ(files_kept(), 0u);
    EXPECT_TRUE(drives_hold(before));
}

}  // namespace
}  // namespace warpraid::control
