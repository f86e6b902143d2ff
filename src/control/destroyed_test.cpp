// Groups that are deleted before they were ever in sync, and brought back.
#include <gtest/gtest.h>

#include "control/undo_test_support.h"

namespace warpraid::control {
namespace {

constexpr std::uint32_t kMembers = 4;
constexpr std::uint64_t kWrittenBytes = 16 * kKiB;

/// The member that is out in the end.
class Destroyed : public testing::TestWithParam<std::uint32_t> {
  protected:
    /// Drives whose data does not agree, and that look blank.
    void add_drives_of_noise() {
        world.add_drives(kMembers);
        const auto paused = ServiceTestAccess::pause(world.service());
        SeededRandom random(3);
        for (std::uint32_t i = 0; i < kMembers; ++i) {
            std::byte* drive = io::ram_bytes(*world.provider.drive(name_of(i)).store);
            fill_random({drive + kMiB, drive + 40 * kMiB}, random);
        }
    }
    void bring_back() {
        AssembleOptions how;
        how.destroyed = true;
        ASSERT_TRUE(world.service().assemble(how).ok());
        ASSERT_NE(world.group().state, GroupState::kOffline);
    }
    /// Writes a little of many stripes, which reads the rest of what their parity is made of.
    void write_here_and_there() {
        for (std::uint64_t at = 20 * kMiB; at < 24 * kMiB; at += 256 * kKiB) {
            ASSERT_TRUE(world.write_pattern(at, kWrittenBytes, 1).ok());
        }
    }
    testing::AssertionResult holds_what_was_written() {
        for (std::uint64_t at = 20 * kMiB; at < 24 * kMiB; at += 256 * kKiB) {
            const auto held = world.holds_pattern(at, kWrittenBytes, 1);
            if (!held) return held;
        }
        return testing::AssertionSuccess();
    }

    World world;
};

TEST_P(Destroyed, InItsFirstResync) {
    world.options.rebuild_bytes_per_second_max = 1;
    world.stop();
    world.start();
    add_drives_of_noise();
    world.make_group(Level::kRaid5, kMembers);
    ASSERT_TRUE(world.service().delete_group("g", false).ok());
    ASSERT_NO_FATAL_FAILURE(bring_back());
    ASSERT_NE(world.group().state, GroupState::kOptimal);
    ASSERT_NO_FATAL_FAILURE(write_here_and_there());
    ASSERT_NO_FATAL_FAILURE(world.set_rebuild_rate(1'000'000'000));
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_EQ(world.count_mismatches(), 0u);
    world.provider.drive(name_of(GetParam())).gone = true;
    ASSERT_TRUE(world.wait_for_state(GroupState::kDegraded));
    EXPECT_TRUE(holds_what_was_written());
}

INSTANTIATE_TEST_SUITE_P(Out, Destroyed, testing::Range(0u, kMembers));

class DestroyedUndo : public Undo {};

// At any write of the deletion of a group that is held; what is left of it is brought back.
TEST_F(DestroyedUndo, WhileItWasHeld) {
    add_foreign_drives();
    bool was_whole = false;
    int whole = 0;
    for (int last = 0; !was_whole; ++last) {
        SCOPED_TRACE("after write " + std::to_string(last));
        ASSERT_LT(last, 1000);
        fill_foreign_drives();
        ASSERT_TRUE(create().ok());
        freeze_after(last);
        static_cast<void>(world.service().delete_group("new", true).ok());
        was_whole = !world.provider.frozen;
        stop_counting();
        world.crash_and_start();
        AssembleOptions how;
        how.destroyed = true;
        static_cast<void>(world.service().assemble(how).ok());
        const bool is_there =
            !world.service().groups().empty() && world.group("new").state != GroupState::kOffline;
        if (is_there) {
            const auto made = world.service().create_volume({"new", "v", 8 * kMiB, 1});
            ASSERT_TRUE(made.ok()) << made.error().message;
            const auto is_at = [&](GroupState state) { return world.group("new").state == state; };
            ASSERT_TRUE(world.wait_for(
                [&] { return is_at(GroupState::kOptimal) || is_at(GroupState::kDegraded); }));
            // With a member out, because it was cleared already, there is nothing to compare.
            const bool is_whole = is_at(GroupState::kOptimal);
            whole += is_whole ? 1 : 0;
            if (is_whole) {
                EXPECT_EQ(world.count_mismatches("new"), 0u);
            }
            ASSERT_TRUE(world.service().delete_group("new", true).ok());
        }
        const auto paused = ServiceTestAccess::pause(world.service());
        for (std::uint32_t i = 0; i < kDrives; ++i) {
            std::fill_n(bytes_of(i), kMiB, std::byte{0});
            std::fill_n(bytes_of(i) + kDriveBytes - kMiB, kMiB, std::byte{0});
        }
    }
    EXPECT_GT(whole, 1);
}

}  // namespace
}  // namespace warpraid::control
