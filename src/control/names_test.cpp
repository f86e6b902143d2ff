// Drives that are named by their paths, after drives have changed places.
#include <gtest/gtest.h>

#include "control/control_test_support.h"

namespace warpraid::control {
namespace {

using format::MemberState;
using geometry::Level;

class Names : public testing::Test {
  protected:
    void SetUp() override {
        world.options.absent_grace_ns = 3600 * kNanosecondsPerSecond;
        world.stop();
        world.start();
        world.add_drives(7);
        world.make_group(Level::kRaid6, 5);
        ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    }

    /// `answer` is a refusal that names both serials, and no member has left.
    template <typename Answer>
    void expect_doubt(const Answer& answer, const std::string& one, const std::string& other) {
        ASSERT_FALSE(answer.ok());
        const Error& error = answer.error();
        EXPECT_EQ(error.code, ErrorCode::kStaleToken) << error.message;
        for (const std::string& part : {" " + one, " " + other, std::string("serial number")}) {
            EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
        }
        EXPECT_EQ(error.message.find('\n'), std::string::npos);
        for (const MemberInfo& member : world.group().members) {
            EXPECT_NE(member.state, MemberState::kFailed) << member.serial;
        }
    }
    void swap_while_running(const std::string& first, const std::string& second) {
        const auto pause = ServiceTestAccess::pause(world.service());
        world.provider.swap_paths(first, second);
    }
    void restart_with_swapped(const std::string& first, const std::string& second) {
        world.stop();
        world.provider.swap_paths(first, second);
        world.start();
        ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    }

    World world;
};

TEST_F(Names, APathThatNeverChangedIsEnough) {
    const auto failed = world.service().fail_drive({"/ram/d1", std::nullopt});
    ASSERT_TRUE(failed.ok()) << failed.error().message;
    EXPECT_EQ(failed->serial, "d1");
    EXPECT_EQ(failed->slot, 1u);
}

TEST_F(Names, APathThatTwoMembersHadNeedsASerialOrAGeneration) {
    restart_with_swapped("d0", "d1");
    expect_doubt(world.service().fail_drive({"/ram/d1", std::nullopt}), "d0", "d1");
    expect_doubt(world.service().replace_drive({"/ram/d1", "d5", false}), "d0", "d1");
    AssembleOptions how;
    how.preferred_drive = "/ram/d1";
    expect_doubt(world.service().assemble(how), "d0", "d1");
    // What was seen is not forgotten by another restart.
    world.stop();
    world.start();
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    expect_doubt(world.service().fail_drive({"/ram/d1", std::nullopt}), "d0", "d1");
    const auto by_token = world.service().fail_drive({"/ram/d1", world.group().generation});
    ASSERT_TRUE(by_token.ok()) << by_token.error().message;
    EXPECT_EQ(by_token->serial, "d0");
    const auto replaced =
        world.service().replace_drive({"/ram/d1", "d5", false, world.group().generation});
    ASSERT_TRUE(replaced.ok()) << replaced.error().message;
    EXPECT_EQ(replaced->slot, 0u);
    const auto by_serial = world.service().fail_drive({"d1", std::nullopt});
    ASSERT_TRUE(by_serial.ok()) << by_serial.error().message;
    EXPECT_EQ(by_serial->serial, "d1");
}

TEST_F(Names, ASwapIsKnownFromTheSuperblocksWhenTheStateIsLost) {
    world.stop();
    world.provider.swap_paths("d0", "d1");
    std::filesystem::remove_all(world.options.state_directory);
    world.options.drive_patterns = {"/ram/*"};
    world.start();
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    expect_doubt(world.service().fail_drive({"/ram/d1", std::nullopt}), "d0", "d1");
}

TEST_F(Names, WhatIsAtThePathNowCountsAlsoBeforeAnyScan) {
    swap_while_running("d0", "d1");
    swap_while_running("d2", "d6");
    const std::optional<std::uint64_t> seen = world.group().generation;
    expect_doubt(world.service().fail_drive({"/ram/d1", std::nullopt}), "d0", "d1");
    expect_doubt(world.service().fail_drive({"/ram/d1", seen}), "d0", "d1");
    // A member's path has a drive that is none, and a free drive's path has a member.
    expect_doubt(world.service().fail_drive({"/ram/d2", seen}), "d2", "d6");
    expect_doubt(world.service().fail_drive({"/ram/d6", std::nullopt}), "d2", "d6");
    expect_doubt(world.service().replace_drive({"/ram/d2", "d5", false}), "d2", "d6");
}

TEST_F(Names, AMemberThatMovedToAPathOfItsOwnIsNotWhereItWasSeen) {
    const std::string moved = "/ram/elsewhere";
    {
        const auto pause = ServiceTestAccess::pause(world.service());
        world.provider.move("d1", moved);
    }
    expect_doubt(world.service().fail_drive({moved, world.group().generation}), "d1", "/ram/d1");
    EXPECT_TRUE(world.service().fail_drive({"d1", std::nullopt}).ok());
}

TEST_F(Names, ALinkToThePathIsAsGood) {
    {
        const auto pause = ServiceTestAccess::pause(world.service());
        world.provider.alias("d1", "/ram/by-id/one");
    }
    const auto failed = world.service().fail_drive({"/ram/by-id/one", std::nullopt});
    ASSERT_TRUE(failed.ok()) << failed.error().message;
    EXPECT_EQ(failed->serial, "d1");
}

TEST_F(Names, ADriveThatIsGoneIsReplacedByItsPathUnlessAnotherIsThere) {
    world.provider.drive("d1").gone = true;
    world.provider.drive("d2").gone = true;
    ASSERT_TRUE(world.wait_for([&] {
        return world.group().members[1].state == MemberState::kMissing &&
               world.group().members[2].state == MemberState::kMissing;
    }));
    swap_while_running("d2", "d6");
    expect_doubt(world.service().replace_drive({"/ram/d2", "d5", false}), "d6", "d2");
    const auto replaced = world.service().replace_drive({"/ram/d1", "d5", false});
    ASSERT_TRUE(replaced.ok()) << replaced.error().message;
    EXPECT_EQ(replaced->slot, 1u);
    EXPECT_EQ(replaced->serial, "d5");
}

TEST_F(Names, NoDriveIsOverwrittenByAPathThatAnotherHad) {
    restart_with_swapped("d5", "d6");
    const std::vector<std::byte> before = world.provider.bytes_of("d5");
    expect_doubt(world.service().replace_drive({"d1", "/ram/d5", true}), "d5", "d6");
    expect_doubt(world.service().create_spare({{"/ram/d5"}, "", true}), "d5", "d6");
    EXPECT_EQ(world.provider.bytes_of("d5"), before);
    // Without force only a blank drive is taken, so nothing can be lost.
    EXPECT_TRUE(world.service().create_spare({{"/ram/d5"}, "", false}).ok());
}

TEST_F(Names, NoSpareIsWipedByAPathThatAnotherHas) {
    ASSERT_TRUE(world.service().create_spare({{"d5"}, "", false}).ok());
    swap_while_running("d5", "d6");
    expect_doubt(world.service().delete_spare("/ram/d5"), "d5", "d6");
    EXPECT_EQ(world.service().spares().size(), 1u);
    EXPECT_TRUE(world.service().delete_spare("d5").ok());
}

}  // namespace
}  // namespace warpraid::control
