#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/units.h"
#include "io/uring/loop_test_support.h"
#include "io/uring/provider.h"
#include "io/uring/uring_test_support.h"

namespace warpraid::io::uring {
namespace {

constexpr std::uint64_t kSize = 8 * kMiB;

class Stacking : public testing::Test {
  protected:
    /// In both orders.
    testing::AssertionResult shared(const std::string& first, const std::string& second) {
        const auto one = provider_->open(first, OpenMode::kReadOnly);
        const auto other = provider_->open(second, OpenMode::kReadOnly);
        if (!one.ok()) return testing::AssertionFailure() << one.error().message;
        if (!other.ok()) return testing::AssertionFailure() << other.error().message;
        const bool found = provider_->share_storage(**one, **other);
        if (provider_->share_storage(**other, **one) != found) {
            return testing::AssertionFailure() << "another answer the other way round";
        }
        return found ? testing::AssertionSuccess() : testing::AssertionFailure();
    }

    std::unique_ptr<DriveProvider> provider_ = make_drive_provider();
};

TEST_F(Stacking, names_of_a_file_are_one_and_other_files_are_not) {
    const TemporaryFile file(kSize);
    const TemporaryFile other(kSize);
    const std::string name = file.path() + "-link";
    ASSERT_EQ(::link(file.path().c_str(), name.c_str()), 0);
    EXPECT_TRUE(shared(file.path(), file.path()));
    EXPECT_TRUE(shared(file.path(), name));
    EXPECT_FALSE(shared(file.path(), other.path()));
    ::unlink(name.c_str());
}

TEST_F(Stacking, a_loop_device_is_what_is_behind_it) {
    const TemporaryFile file(kSize);
    const TemporaryFile other(kSize);
    const LoopDevice loop(file.path(), 512);
    const LoopDevice second(other.path(), 512);
    if (loop.path().empty() || second.path().empty()) GTEST_SKIP() << "no loop devices here";
    const LoopDevice upper(loop.path(), 512);
    const LoopDevice beside(file.path(), 512);
    EXPECT_TRUE(shared(loop.path(), file.path()));
    EXPECT_TRUE(shared(beside.path(), loop.path()));
    EXPECT_TRUE(shared(upper.path(), file.path()));
    EXPECT_FALSE(shared(loop.path(), second.path()));
    EXPECT_FALSE(shared(loop.path(), other.path()));
}

TEST_F(Stacking, mapped_devices_and_partitions_stand_on_theirs) {
    const TemporaryFile file(kSize);
    const LoopDevice loop(file.path(), 512);
    if (loop.path().empty()) GTEST_SKIP() << "no loop devices here";
    const std::string name = "warpraid-stacking-" + std::to_string(::getpid());
    const auto map = [&](const std::string& which, const std::string& table) {
        return !output_of("dmsetup create " + name + which + " --table '" + table +
                          "' && echo done")
                    .empty();
    };
    if (!map("-a", "0 8192 linear " + loop.path() + " 0")) GTEST_SKIP() << "no device mapper here";
    EXPECT_TRUE(map("-b", "0 8192 linear " + loop.path() + " 8192"));
    const std::string first = "/dev/mapper/" + name + "-a";
    const std::string second = "/dev/mapper/" + name + "-b";
    EXPECT_TRUE(shared(first, loop.path()));
    EXPECT_TRUE(shared(second, file.path()));
    EXPECT_FALSE(shared(first, second)) << "other parts of one device";
    output_of("dmsetup remove " + name + "-a " + name + "-b && echo done");
}

}  // namespace
}  // namespace warpraid::io::uring
