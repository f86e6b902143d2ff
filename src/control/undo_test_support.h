// For tests of undo: drives that hold something, looked at byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "control/control_test_support.h"
#include "control/undo_store.h"

namespace warpraid::control {

using geometry::Level;
using Bytes = std::vector<std::byte>;

inline constexpr std::uint32_t kDrives = 3;
inline constexpr std::uint64_t kDriveBytes = limits::kDriveBytesMin;

inline constexpr std::size_t kExt4Magic = 1024 + 0x38;

/// Bytes of a drive.
struct Extent {
    std::uint64_t start = 0, end = 0;
};

/// What is looked at: both ends wholly, and a little of every MiB between, which a resync, a
/// rebuild or a partition table would not leave alone.
inline std::vector<Extent> samples() {
    std::vector<Extent> extents{{0, 4 * kMiB}};
    for (std::uint64_t at = 4 * kMiB; at < kDriveBytes - 4 * kMiB; at += kMiB) {
        extents.push_back({at, at + 16 * kKiB});
    }
    extents.push_back({kDriveBytes - 4 * kMiB, kDriveBytes});
    return extents;
}

inline std::string name_of(std::uint32_t index) {
    return "d" + std::to_string(index);
}

inline void fill_random(std::span<std::byte> bytes, SeededRandom& random) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t value = random.next();
        std::memcpy(bytes.data() + at, &value, sizeof value);
    }
}

class Undo : public testing::Test {
  protected:
    /// Drives with the magic of an ext4 file system and something in every sample.
    void add_foreign_drives(std::uint32_t block_bytes = 512) {
        CreateDrive command;
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            world.provider.add(name_of(i), kDriveBytes, block_bytes);
            command.paths.push_back("/ram/" + name_of(i));
        }
        ASSERT_TRUE(world.service().create_drive(command).ok());
        fill_foreign_drives();
    }
    void fill_foreign_drives() {
        const auto paused = ServiceTestAccess::pause(world.service());
        SeededRandom random(1);
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            std::byte* drive = bytes_of(i);
            for (const Extent& sample : samples()) {
                fill_random({drive + sample.start, drive + sample.end}, random);
            }
            drive[kExt4Magic] = std::byte{0x53};
            drive[kExt4Magic + 1] = std::byte{0xef};
        }
    }
    std::byte* bytes_of(std::uint32_t index) {
        return io::ram_bytes(*world.provider.drive(name_of(index)).store);
    }
    /// Drives with members of a group "g" of another machine. It is not started here while nothing
    /// looks for drives, nor ever when that has more `members` than those.
    void add_members_of_another_machine(std::uint32_t members = kDrives) {
        std::vector<Bytes> drives;
        {
            World other;
            other.add_drives(members, kDriveBytes);
            other.make_group(Level::kRaid5, members);
            ASSERT_TRUE(other.wait_for_state(GroupState::kOptimal));
            ASSERT_TRUE(other.write_pattern(kMiB, 24 * kMiB, 7).ok());
            other.stop();
            for (std::uint32_t i = 0; i < kDrives; ++i) {
                drives.push_back(other.provider.bytes_of(name_of(i)));
            }
        }
        world.add_drives(kDrives, kDriveBytes);
        const auto paused = ServiceTestAccess::pause(world.service());
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
    Result<GroupInfo> create(Level level = Level::kRaid5, bool force = true,
                             const std::string& name = "new") {
        CreateGroup command;
        command.name = name;
        command.level = level;
        command.force = force;
        for (std::uint32_t i = 0; i < kDrives; ++i) command.drives.push_back(name_of(i));
        return world.service().create_group(command);
    }
    bool has_group_new() {
        const std::vector<GroupInfo> groups = world.service().groups();
        return std::any_of(groups.begin(), groups.end(),
                           [](const GroupInfo& group) { return group.name == "new"; });
    }
    /// Undo of "new" succeeds, the drives hold `wanted` then, and nothing is kept any more.
    testing::AssertionResult undo_gives_back(const std::vector<Bytes>& wanted) {
        const Status undone = world.service().undo_group("new");
        if (!undone.ok()) return testing::AssertionFailure() << undone.error().message;
        if (files_kept() != 0) return testing::AssertionFailure() << "files are left";
        return drives_hold(wanted);
    }
    /// How many files of undo have this ending, or any.
    std::size_t files_kept(const std::string& ending = "") {
        std::size_t count = 0;
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(undo_directory(), error)) {
            count += ending.empty() || entry.path().extension() == ending ? 1u : 0u;
        }
        return count;
    }
    /// Images first.
    std::vector<std::filesystem::path> undo_files() {
        std::vector<std::filesystem::path> files;
        for (const auto& entry : std::filesystem::directory_iterator(undo_directory())) {
            files.push_back(entry.path());
        }
        std::partition(files.begin(), files.end(),
                       [](const auto& file) { return file.extension() == ".image"; });
        return files;
    }
    /// While the service is stopped, the only record.
    void set_state(UndoState state) {
        UndoStore store(world.options.state_directory);
        ASSERT_TRUE(store.load().ok());
        ASSERT_EQ(store.groups().size(), 1u);
        const Uuid group = store.groups()[0];
        ASSERT_TRUE(store.change(group, state, store.record(group)->name).ok());
    }
    /// As after a boot that gave two drives each other's names: those without a serial number are
    /// called by them.
    void swap_device_names(const std::string& first, const std::string& second) {
        std::swap(world.provider.drive(first).store, world.provider.drive(second).store);
    }
    std::string undo_directory() { return world.options.state_directory + "/undo"; }
    /// Counts the writes that the control plane makes from now on, and from write `last` on none
    /// arrives any more.
    void freeze_after(int last) {
        const auto paused = ServiceTestAccess::pause(world.service());
        writes = 0;
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            world.provider.drive(name_of(i)).before_write = [this, last] {
                if (++writes > last) world.provider.frozen = true;
            };
        }
    }
    void stop_counting() {
        const auto paused = ServiceTestAccess::pause(world.service());
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            world.provider.drive(name_of(i)).before_write = nullptr;
        }
    }

    World world;
    std::atomic<int> writes = 0;
};

}  // namespace warpraid::control
