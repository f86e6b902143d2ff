// What is refused, with which code, and that nothing was written before.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "control/control_test_support.h"
#include "format/bitmap_page.h"

namespace warpraid::control {
namespace {

using geometry::Level;

class Refusal : public testing::Test {
  protected:
    void SetUp() override {
        world.add_drives(9);
        world.make_group(Level::kRaid5, 4);
    }

    /// Tries to make a group of `drives`, expects `code`, and that no drive changed.
    void expect_refused(std::vector<std::string> drives, ErrorCode code, bool force = false) {
        CreateGroup command;
        command.name = "other";
        command.level = Level::kRaid5;
        command.drives = std::move(drives);
        command.force = force;
        expect_refused(command, code);
    }
    void expect_refused(const CreateGroup& command, ErrorCode code) {
        const std::vector<std::uint64_t> before = writes();
        const auto made = world.service().create_group(command);
        ASSERT_FALSE(made.ok());
        EXPECT_EQ(made.error().code, code) << made.error().message;
        EXPECT_EQ(made.error().message.find('\n'), std::string::npos);
        EXPECT_EQ(writes(), before);
        EXPECT_EQ(world.service().groups().size(), 1u);
    }
    std::vector<std::uint64_t> writes() {
        std::vector<std::uint64_t> counts;
        for (int i = 4; i < 9; ++i) {
            counts.push_back(world.provider.drive("d" + std::to_string(i)).writes);
        }
        return counts;
    }

    World world;
};

TEST_F(Refusal, MemberOfARunningGroupEvenByForce) {
    expect_refused({"d4", "d5", "d0"}, ErrorCode::kInUse, true);
}

TEST_F(Refusal, TheSameDriveTwice) {
    expect_refused({"d4", "d5", "/ram/d4"}, ErrorCode::kDuplicateMember);
}

TEST_F(Refusal, ARelativePathOfNoRegisteredDrive) {
    // The provider would find it: in the daemon's directory, not where the operator looked.
    ASSERT_TRUE(world.service().delete_drive("d6").ok());
    expect_refused({"d4", "d5", "ram/d6"}, ErrorCode::kDriveMissing, true);
}

TEST_F(Refusal, TooSmallToBeRegistered) {
    for (const std::uint64_t bytes : {std::uint64_t{512}, 63 * kMiB}) {
        world.provider.add("little", bytes);
        const auto made = world.service().create_drive({{"/ram/little"}, 0});
        ASSERT_FALSE(made.ok());
        EXPECT_EQ(made.error().code, ErrorCode::kMemberTooSmall);
        EXPECT_NE(made.error().message.find("/ram/little"), std::string::npos);
    }
    EXPECT_EQ(world.service().drives().size(), 9u);
}

TEST_F(Refusal, ADriveUnderASecondName) {
    world.provider.alias("d4", "/ram/link");
    const auto made = world.service().create_drive({{"/ram/link"}, 0});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::kAlreadyExists);
    EXPECT_NE(made.error().message.find("/ram/d4"), std::string::npos) << made.error().message;
    EXPECT_EQ(world.service().drives()[4].path, "/ram/d4");
    EXPECT_TRUE(world.service().create_drive({{"/ram/d4"}, 0}).ok());
}

TEST_F(Refusal, ResetOfADriveThatIsNoCopy) {
    EXPECT_EQ(world.service().reset_identity("d0").error().code, ErrorCode::kInUse);
    EXPECT_EQ(world.service().reset_identity("d4").error().code, ErrorCode::kNoSuperblock);
    EXPECT_EQ(world.service().reset_identity("none").error().code, ErrorCode::kNotFound);
    world.provider.drive("d1").gone = true;
    world.provider.drive("d2").gone = true;
    world.provider.drive("d3").gone = true;
    world.stop();
    world.start();
    // The group does not run, and this drive is all that there is of its slot.
    const std::vector<std::byte> before = world.provider.bytes_of("d0");
    EXPECT_EQ(world.service().reset_identity("d0").error().code, ErrorCode::kWrongState);
    EXPECT_EQ(world.provider.bytes_of("d0"), before);
}

TEST(BlockSizes, ThatDifferAreToldWithTheOneThatFits) {
    World world;
    world.provider.add("small", 80 * kMiB, 512);
    world.provider.add("large", 80 * kMiB, 4096);
    ASSERT_TRUE(world.service().create_drive({{"/ram/small", "/ram/large"}, 0}).ok());
    CreateGroup command;
    command.name = "g";
    command.level = Level::kRaid1;
    command.drives = {"small", "large"};
    for (const std::uint32_t asked : {0u, 512u}) {
        command.block_bytes = asked;
        const auto made = world.service().create_group(command);
        ASSERT_FALSE(made.ok());
        EXPECT_EQ(made.error().code, ErrorCode::kBlockSizeMismatch);
        for (const char* part : {"large (/ram/large)", "4096 bytes", "512", "--block-size 4096"}) {
            EXPECT_NE(made.error().message.find(part), std::string::npos) << made.error().message;
        }
        EXPECT_EQ(world.provider.drive("small").writes + world.provider.drive("large").writes, 0u);
    }
    command.block_bytes = 4096;
    EXPECT_TRUE(world.service().create_group(command).ok());
}

TEST(Copies, OfAMemberKeepTheGroupFromStartingUntilOneIsReset) {
    World world;
    world.add_drives(6);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.write_pattern(kMiB, 4 * kMiB, 1).ok());
    world.stop();
    const std::vector<std::byte> bytes = world.provider.bytes_of("d1");
    for (const char* copy : {"d4", "d5"}) {
        std::copy(bytes.begin(), bytes.end(), io::ram_bytes(*world.provider.drive(copy).store));
    }
    world.provider.drive("d1").gone = true;
    world.start();
    ASSERT_EQ(world.group().state, GroupState::kOffline);
    EXPECT_EQ(world.group().reason_code, "duplicate-member");
    for (const char* name : {"d4 (/ram/d4)", "d5 (/ram/d5)", "--reset-identity"}) {
        EXPECT_NE(world.group().reason.find(name), std::string::npos) << world.group().reason;
    }
    ASSERT_TRUE(world.service().reset_identity("d5").ok());
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    EXPECT_TRUE(world.holds_pattern(kMiB, 4 * kMiB, 1));
    EXPECT_EQ(world.service().drives()[5].use, DriveUse::kUnconfigured);
    EXPECT_TRUE(world.has_event("identity-reset"));
}

TEST(Copies, OfALiveMemberAreResetWhileItsGroupRuns) {
    World world;
    world.add_drives(5);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    const std::vector<std::byte> bytes = world.provider.bytes_of("d1");
    std::copy(bytes.begin(), bytes.end(), io::ram_bytes(*world.provider.drive("d4").store));
    EXPECT_EQ(world.service().reset_identity("d1").error().code, ErrorCode::kInUse);
    ASSERT_TRUE(world.service().reset_identity("d4").ok());
    EXPECT_EQ(world.group().state, GroupState::kOptimal);
    EXPECT_EQ(world.service().examine()[4].use, DriveUse::kUnconfigured);
}

TEST(FullRegistry, TakesNoGroupOfDrivesThatARestartWouldForget) {
    World world;
    CreateDrive registered;
    for (std::size_t i = 0; i + 1 < limits::kDrivesMax; ++i) {
        const std::string serial = "r" + std::to_string(i);
        world.provider.add(serial, limits::kDriveBytesMin);
        registered.paths.push_back("/ram/" + serial);
    }
    ASSERT_TRUE(world.service().create_drive(registered).ok());
    CreateGroup group;
    group.name = "g";
    group.level = Level::kRaid1;
    for (const char* serial : {"new0", "new1"}) {
        world.provider.add(serial, 80 * kMiB);
        group.drives.push_back("/ram/" + std::string(serial));
    }
    const auto made = world.service().create_group(group);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::kLimitReached) << made.error().message;
    EXPECT_TRUE(world.service().groups().empty());
    EXPECT_EQ(world.service().drives().size(), limits::kDrivesMax - 1);
    for (const char* serial : {"new0", "new1"}) {
        EXPECT_EQ(world.provider.drive(serial).writes, 0u);
    }
    // One that is known and the one that still fits.
    group.drives[0] = "/ram/r0";
    EXPECT_TRUE(world.service().create_group(group).ok());
}

TEST(Deleted, StaysClearedWhenAMemberFailsMeanwhile) {
    World world;
    world.add_drives(4);
    TestDrive& failing = world.provider.drive("d1");
    TestDrive& slow = world.provider.drive("d2");
    std::atomic<bool> is_deleting = false;
    // As soon as superblocks are written for the end, a member fails.
    world.provider.drive("d0").before_write = [&] {
        if (!is_deleting.exchange(false)) return;
        failing.hold_bitmap = false;
        EXPECT_TRUE(world.wait_for([&] { return failing.bitmap_writes_held == 0; }));
    };
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.wait_for([&] { return world.group().dirty_regions == 0; }));
    // Clearings of the bitmap are under way when the group ends.
    ASSERT_TRUE(world.write_pattern(kMiB, kMiB, 1).ok());
    failing.hold_bitmap = true;
    slow.hold_bitmap = true;
    ASSERT_TRUE(world.wait_for(
        [&] { return failing.bitmap_writes_held != 0 && slow.bitmap_writes_held != 0; }));
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        failing.hold_bitmap = false;
        slow.hold_bitmap = false;
    });
    is_deleting = true;
    const Status deleted = world.service().delete_group("g", true);
    later.join();
    EXPECT_TRUE(deleted.ok()) << deleted.error().message;
    for (const char* serial : {"d0", "d1", "d2", "d3"}) {
        const auto drive =
            world.provider.open("/ram/" + std::string(serial), io::OpenMode::kReadOnly);
        EXPECT_FALSE(meta::examine(**drive).superblock) << serial << " has one again";
    }
}

/// What looks like a copy of a member and is the member.
class FalseCopy : public testing::Test {
  protected:
    void SetUp() override {
        world.add_drives(4);
        world.make_group(Level::kRaid5, 4);
        ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
        ASSERT_TRUE(world.write_pattern(kMiB, 4 * kMiB, 1).ok());
        world.provider.add_over("d1", "upper");
    }
    /// All but the bitmap, which changes by itself: superblocks and the zeroes around them.
    std::vector<std::byte> superblocks() {
        std::vector<std::byte> bytes;
        // On the shard, which writes the bitmap meanwhile.
        world.shard.run([&] { bytes = world.provider.bytes_of("d1"); });
        bytes.erase(bytes.begin() + format::kBitmapOffset, bytes.end() - kMiB);
        return bytes;
    }
    void expect_refused(const std::string& part) {
        const std::vector<std::byte> before = superblocks();
        const Status reset = world.service().reset_identity("/ram/upper");
        ASSERT_FALSE(reset.ok());
        EXPECT_EQ(reset.error().code, ErrorCode::kWrongState);
        for (const std::string& text : {std::string("drive upper (/ram/upper)"), part}) {
            EXPECT_NE(reset.error().message.find(text), std::string::npos) << reset.error().message;
        }
        EXPECT_FALSE(world.has_event("identity-reset"));
        EXPECT_TRUE(superblocks() == before);
    }

    World world;
};

TEST_F(FalseCopy, IsRefusedWhereTheStackingIsKnown) {
    world.provider.knows_stacking = true;
    expect_refused("drive d1 (/ram/d1)");
}

TEST_F(FalseCopy, IsRefusedWhereOnlyTheBytesTell) {
    expect_refused("appears on the other");
    world.stop();
    world.start();
    EXPECT_EQ(world.group().state, GroupState::kOptimal);
    EXPECT_TRUE(world.holds_pattern(kMiB, 4 * kMiB, 1));
}

TEST_F(FalseCopy, IsRefusedWhereNoMemberRuns) {
    world.stop();
    world.provider.drive("d0").gone = true;
    world.provider.drive("d2").gone = true;
    world.provider.drive("d3").gone = true;
    world.start();
    expect_refused("drive d1 (/ram/d1)");
}

TEST_F(FalseCopy, ThatIsTheMemberUnderAnotherNameAfterAReplug) {
    world.provider.drive("d1").gone = true;
    // Before the group has noticed, and ever after.
    EXPECT_FALSE(world.service().reset_identity("/ram/upper").ok());
    EXPECT_FALSE(world.has_event("identity-reset"));
    ASSERT_TRUE(world.service().create_drive({{"/ram/upper"}, 0}).ok());
    ASSERT_TRUE(world.wait_for([&] {
        const GroupInfo group = world.group();
        return group.state == GroupState::kOptimal && group.members[1].path == "/ram/upper";
    }));
    EXPECT_TRUE(world.holds_pattern(kMiB, 4 * kMiB, 1));
}

TEST_F(FalseCopy, AMemberThatCannotBeReadProvesNothing) {
    world.provider.drive("d1").fail_reads = true;
    expect_refused("does not answer");
}

TEST_F(Refusal, ADriveThatIsNotThere) {
    expect_refused({"d4", "d5", "nowhere"}, ErrorCode::kDriveMissing);
    world.provider.drive("d6").gone = true;
    expect_refused({"d4", "d5", "d6"}, ErrorCode::kDriveMissing);
}

TEST_F(Refusal, ReadOnlyBusyAndTooSmallDrives) {
    world.provider.drive("d6").read_only = true;
    expect_refused({"d4", "d5", "d6"}, ErrorCode::kDriveReadOnly);
    world.provider.drive("d7").held = true;
    expect_refused({"d4", "d5", "d7"}, ErrorCode::kDriveBusy);
    world.provider.drive("d7").held = false;
    world.provider.add("little", 63 * kMiB);
    expect_refused({"d4", "d5", "/ram/little"}, ErrorCode::kMemberTooSmall);
}

TEST_F(Refusal, MixedBlockSizesUnlessTheGroupCoversThem) {
    world.provider.add("native", 80 * kMiB, 4096);
    expect_refused({"d4", "d5", "/ram/native"}, ErrorCode::kBlockSizeMismatch);
    CreateGroup command;
    command.name = "other";
    command.drives = {"d4", "d5", "/ram/native"};
    command.block_bytes = 512;
    expect_refused(command, ErrorCode::kBlockSizeMismatch);
    command.block_bytes = 4096;
    const auto made = world.service().create_group(command);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->shape.block_bytes, 4096u);
}

TEST_F(Refusal, ForeignContentUnlessForced) {
    // The magic number of ext4's superblock.
    io::ram_bytes(*world.provider.drive("d6").store)[1024 + 56] = std::byte{0x53};
    io::ram_bytes(*world.provider.drive("d6").store)[1024 + 57] = std::byte{0xef};
    expect_refused({"d4", "d5", "d6"}, ErrorCode::kHasSignature);
}

TEST_F(Refusal, SuperblocksOfGroupsThatDoNotRun) {
    CreateGroup command;
    command.name = "old";
    command.level = Level::kRaid1;
    command.drives = {"d4", "d5", "d6"};
    ASSERT_TRUE(world.service().create_group(command).ok());
    world.stop();
    world.provider.drive("d4").gone = true;
    world.provider.drive("d5").gone = true;
    world.start();
    ASSERT_EQ(world.group("old").state, GroupState::kOffline);
    CreateGroup other;
    other.name = "other";
    other.drives = {"d6", "d7", "d8"};
    const std::vector<std::byte> before = world.provider.bytes_of("d6");
    const auto refused = world.service().create_group(other);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kHasSuperblock);
    EXPECT_EQ(world.provider.bytes_of("d6"), before);
    other.force = true;
    const auto forced = world.service().create_group(other);
    EXPECT_TRUE(forced.ok()) << forced.error().message;
}

TEST_F(Refusal, ShapesThatMakeNoSense) {
    CreateGroup command;
    command.name = "other";
    command.level = Level::kRaid6;
    command.drives = {"d4", "d5", "d6"};
    expect_refused(command, ErrorCode::kMemberCount);
    command.drives.push_back("d7");
    command.chunk_bytes = 3 * kKiB;
    expect_refused(command, ErrorCode::kBadChunk);
    command.chunk_bytes = 2 * kGiB;
    expect_refused(command, ErrorCode::kBadChunk);
    command.chunk_bytes = 0;
    for (const char* name : {"a b", "a\tb", "a/b", "..", "-x", "a\"b", "$(id)", "12", "a\nb"}) {
        command.name = name;
        expect_refused(command, ErrorCode::kBadName);
    }
    command.name = std::string(33, 'x');
    expect_refused(command, ErrorCode::kBadName);
    command.name = "g";
    expect_refused(command, ErrorCode::kAlreadyExists);
}

TEST_F(Refusal, ReplacementsThatCannotServe) {
    world.provider.add("little", 70 * kMiB);
    world.provider.add("native", 80 * kMiB, 4096);
    world.provider.drive("d5").read_only = true;
    const auto refuse = [&](const std::string& drive, ErrorCode code) {
        const std::vector<std::byte> before = world.provider.bytes_of(drive);
        const auto replaced = world.service().replace_drive({"d1", "/ram/" + drive, true});
        ASSERT_FALSE(replaced.ok());
        EXPECT_EQ(replaced.error().code, code) << replaced.error().message;
        EXPECT_EQ(world.provider.bytes_of(drive), before);
    };
    refuse("little", ErrorCode::kMemberTooSmall);
    refuse("native", ErrorCode::kBlockSizeMismatch);
    refuse("d5", ErrorCode::kDriveReadOnly);
    const auto member = world.service().replace_drive({"d1", "d2", true});
    ASSERT_FALSE(member.ok());
    EXPECT_EQ(member.error().code, ErrorCode::kInUse);
    EXPECT_EQ(world.group().members[1].serial, "d1");
}

TEST_F(Refusal, AReplacementOneMebibyteSmallerFitsUnlessTheGroupIsExact) {
    world.provider.add("less", 79 * kMiB);
    EXPECT_TRUE(world.service().replace_drive({"d1", "/ram/less", false}).ok());
    CreateGroup exact;
    exact.name = "exact";
    exact.drives = {"d4", "d5", "d6"};
    exact.exact_size = true;
    ASSERT_TRUE(world.service().create_group(exact).ok());
    world.provider.add("less too", 79 * kMiB);
    const auto refused = world.service().replace_drive({"d4", "/ram/less too", false});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kMemberTooSmall);
    EXPECT_TRUE(world.service().replace_drive({"d4", "d7", false}).ok());
}

TEST_F(Refusal, DeletedGroupsAreGone) {
    ASSERT_TRUE(world.service().delete_group("g", false).ok());
    EXPECT_TRUE(world.service().groups().empty());
    world.stop();
    world.start();
    EXPECT_TRUE(world.service().groups().empty());
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.service().delete_group("g", true).ok());
    for (const DriveInfo& drive : world.service().examine()) {
        EXPECT_EQ(drive.use, DriveUse::kUnconfigured) << drive.serial << ": " << drive.detail;
    }
    world.make_group(Level::kRaid5, 4);
}

/// A drive that had been put out of a group remembers it after the group was deleted.
class Leftover : public testing::TestWithParam<bool> {
  protected:
    void expect_shown() {
        std::vector<GroupInfo> groups = world.service().groups();
        std::erase_if(groups,
                      [](const GroupInfo& group) { return group.state != GroupState::kOffline; });
        ASSERT_EQ(groups.size(), 1u);
        EXPECT_EQ(groups[0].name, "g");
        EXPECT_EQ(groups[0].reason_code, "destroyed");
        for (const char* part : {"drive d0 (/ram/d0)", "--force"}) {
            EXPECT_NE(groups[0].reason.find(part), std::string::npos) << groups[0].reason;
        }
        EXPECT_EQ(world.service().health().level, 1);
    }

    World world;
};

TEST_P(Leftover, IsShownFromTheDeletionUntilTheDriveIsTakenElsewhere) {
    world.add_drives(6);
    world.make_group(Level::kRaid5, 4);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    ASSERT_TRUE(world.service().fail_drive({"d0", std::nullopt}).ok());
    ASSERT_TRUE(world.service().delete_group("g", GetParam()).ok());
    expect_shown();
    world.stop();
    world.start();
    expect_shown();
    CreateGroup again;
    again.name = "g";
    again.level = Level::kRaid1;
    again.drives = {"d4", "d5"};
    ASSERT_TRUE(world.service().create_group(again).ok());
    ASSERT_TRUE(world.wait_for([&] {
        const std::vector<GroupInfo> groups = world.service().groups();
        return std::any_of(groups.begin(), groups.end(), [](const GroupInfo& group) {
            return group.state == GroupState::kOptimal;
        });
    }));
    ASSERT_TRUE(world.service().assemble({}).ok());
    expect_shown();
    ASSERT_TRUE(world.service().create_spare({{"d0"}, "", true}).ok());
    EXPECT_TRUE(world.wait_for([&] { return world.service().groups().size() == 1; }));
    EXPECT_EQ(world.service().health().level, 0);
}

INSTANTIATE_TEST_SUITE_P(Clear, Leftover, testing::Bool());

TEST_F(Refusal, LookingChangesNothing) {
    world.stop();
    std::vector<std::vector<std::byte>> before;
    for (int i = 0; i < 4; ++i) before.push_back(world.provider.bytes_of("d" + std::to_string(i)));
    world.provider.drive("d0").gone = true;
    world.provider.drive("d1").gone = true;
    world.start();
    ASSERT_EQ(world.group().state, GroupState::kOffline);
    world.service().examine();
    ASSERT_TRUE(world.service().assemble({}).ok());
    world.stop();
    for (int i = 2; i < 4; ++i) {
        EXPECT_EQ(world.provider.bytes_of("d" + std::to_string(i)),
                  before[static_cast<std::size_t>(i)]);
    }
    world.provider.drive("d0").gone = false;
    world.provider.drive("d1").gone = false;
    world.start();
    EXPECT_NE(world.group().state, GroupState::kOffline);
}

}  // namespace
}  // namespace warpraid::control
