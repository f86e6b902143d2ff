// Volumes and exports.
#include <gtest/gtest.h>

#include "control/control_test_support.h"

namespace warpraid::control {
namespace {

using geometry::Level;

class VolumesTest : public testing::Test {
  protected:
    void SetUp() override {
        world.add_drives(4);
        world.make_group(Level::kRaid5, 4);
    }
    World world;
};

TEST_F(VolumesTest, AreMadeListedRenamedAndDeleted) {
    const std::uint64_t free = world.group().free_bytes;
    const auto made = world.service().create_volume({"g", "data", 32 * kMiB, 1});
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_EQ(made->size(), 1u);
    EXPECT_EQ(made->front().size_bytes, 32 * kMiB);
    EXPECT_EQ(made->front().start % world.group().stripe_bytes, 0u);
    EXPECT_LE(world.group().free_bytes, free - 32 * kMiB);
    ASSERT_TRUE(world.service().rename_volume("g", "data", "files").ok());
    world.stop();
    world.start();
    ASSERT_EQ(world.service().volumes().size(), 1u);
    EXPECT_EQ(world.service().volumes().front().name, "files");
    EXPECT_EQ(world.service().volumes().front().uuid, made->front().uuid);
    ASSERT_TRUE(world.service().delete_volume("g", "files").ok());
    EXPECT_TRUE(world.service().volumes().empty());
    EXPECT_EQ(world.group().free_bytes, free);
}

TEST_F(VolumesTest, SplitTheGroupEqually) {
    const auto made = world.service().create_volume({"g", "", 0, 3});
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_EQ(made->size(), 3u);
    EXPECT_EQ((*made)[0].size_bytes, (*made)[1].size_bytes);
    EXPECT_EQ((*made)[1].size_bytes, (*made)[2].size_bytes);
    EXPECT_EQ((*made)[2].name, "vd2");
    EXPECT_GT(3 * (*made)[0].size_bytes, world.group().capacity_bytes * 9 / 10);
}

TEST_F(VolumesTest, RefuseWhatDoesNotFit) {
    const auto code_of = [&](const CreateVolume& command) {
        const auto made = world.service().create_volume(command);
        return made.ok() ? std::string("made") : std::string(to_text(made.error().code));
    };
    EXPECT_EQ(code_of({"g", "data", 10 * kGiB, 1}), "no-space");
    EXPECT_EQ(code_of({"g", "a/b", kMiB, 1}), "bad-name");
    EXPECT_EQ(code_of({"g", "data", kMiB, 0}), "invalid-argument");
    EXPECT_EQ(code_of({"h", "data", kMiB, 1}), "not-found");
    EXPECT_EQ(code_of({"g", "data", 8 * kMiB, 2}), "made");
    EXPECT_EQ(code_of({"g", "data0", kMiB, 1}), "already-exists");
    EXPECT_EQ(code_of({"g", "all", 0, 1}), "made");
    EXPECT_EQ(code_of({"g", "more", 0, 1}), "no-space");
    EXPECT_EQ(world.service().volumes().size(), 3u);
}

TEST_F(VolumesTest, SurviveADamagedPrimaryTable) {
    ASSERT_TRUE(world.service().create_volume({"g", "data", 8 * kMiB, 1}).ok());
    std::vector<std::byte> junk(64 * kKiB, std::byte{0x5a});
    DeviceIo io(ServiceTestAccess::device(world.service(), "g"), world.shard, {});
    ASSERT_TRUE(io.write(0, junk).ok());
    world.stop();
    world.start();
    ASSERT_EQ(world.service().volumes().size(), 1u);
    EXPECT_EQ(world.service().volumes().front().name, "data");
    world.stop();
    world.start();
    ASSERT_EQ(world.service().volumes().size(), 1u);
}

TEST_F(VolumesTest, AGroupMadeOverAnOldOneHasNoVolumes) {
    ASSERT_TRUE(world.service().create_volume({"g", "data", 8 * kMiB, 1}).ok());
    ASSERT_TRUE(world.service().delete_group("g", false).ok());
    world.make_group(Level::kRaid5, 4);
    EXPECT_TRUE(world.service().volumes().empty());
    world.stop();
    world.start();
    EXPECT_TRUE(world.service().volumes().empty());
}

TEST_F(VolumesTest, ExportsSurviveRestartsAndProtectTheirVolumes) {
    ASSERT_TRUE(world.service().create_volume({"g", "data", 8 * kMiB, 1}).ok());
    const auto exported = world.service().export_volume("g", "data", true);
    ASSERT_TRUE(exported.ok()) << exported.error().message;
    EXPECT_EQ(exported->uri, "nbd+unix:///data?socket=" + world.options.nbd_socket_path);
    EXPECT_FALSE(world.service().export_volume("g", "data", true).ok());
    world.stop();
    world.start();
    ASSERT_EQ(world.service().exports().size(), 1u);
    EXPECT_TRUE(world.service().exports().front().read_only);
    EXPECT_TRUE(world.service().volumes().front().exported);
    const Status deleted = world.service().delete_volume("g", "data");
    ASSERT_FALSE(deleted.ok());
    EXPECT_EQ(deleted.error().code, ErrorCode::kInUse);
    const Status group = world.service().delete_group("g", false);
    ASSERT_FALSE(group.ok());
    EXPECT_EQ(group.error().code, ErrorCode::kInUse);
    ASSERT_TRUE(world.service().unexport_volume("g", "data").ok());
    EXPECT_TRUE(world.service().exports().empty());
    EXPECT_TRUE(world.service().delete_volume("g", "data").ok());
}

TEST_F(VolumesTest, OfOneNameInTwoGroupsGetDifferentExportNames) {
    world.provider.add("e0", 80 * kMiB);
    world.provider.add("e1", 80 * kMiB);
    CreateGroup mirror;
    mirror.name = "m";
    mirror.level = Level::kRaid1;
    mirror.drives = {"/ram/e0", "/ram/e1"};
    ASSERT_TRUE(world.service().create_group(mirror).ok());
    ASSERT_TRUE(world.service().create_volume({"g", "data", 8 * kMiB, 1}).ok());
    ASSERT_TRUE(world.service().create_volume({"m", "data", 8 * kMiB, 1}).ok());
    const auto first = world.service().export_volume("g", "data", false);
    const auto second = world.service().export_volume("m", "data", false);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_NE(first->name, second->name);
}

}  // namespace
}  // namespace warpraid::control
