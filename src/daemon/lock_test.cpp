#include "daemon/lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/daemon_test_support.h"

namespace warpraid::daemon {

namespace {

using StateDirectory = InDirectory;

TEST_F(StateDirectory, is_locked_once_and_names_the_holder) {
    Result<UniqueFd> first = lock_directory(path);
    ASSERT_TRUE(first.ok()) << first.error().message;
    const Result<UniqueFd> second = lock_directory(path);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::kDaemonRunning);
    EXPECT_NE(second.error().message.find(std::to_string(getpid())), std::string::npos);
    first->reset();
    EXPECT_TRUE(lock_directory(path).ok());
}

TEST_F(StateDirectory, is_made_with_its_mode_whatever_the_umask) {
    for (const mode_t mask : {mode_t{0}, mode_t{0077}}) {
        const std::string deep = path + "/" + std::to_string(mask) + "/b";
        const mode_t old = umask(mask);
        const Status status = make_directory(deep, 0750);
        umask(old);
        ASSERT_TRUE(status.ok()) << status.error().message;
        struct stat found{};
        ASSERT_EQ(stat(deep.c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 07777, 0750u);
        EXPECT_TRUE(make_directory(deep, 0700).ok());
        ASSERT_EQ(stat(deep.c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 07777, 0750u) << "what exists stays as it is";
    }
}

TEST_F(StateDirectory, a_file_in_the_way_is_an_error) {
    Result<UniqueFd> lock = lock_directory(path);
    ASSERT_TRUE(lock.ok());
    EXPECT_FALSE(make_directory(path + "/lock", 0750).ok());
    EXPECT_FALSE(make_directory(path + "/lock/x", 0750).ok());
    EXPECT_FALSE(lock_directory(path + "/nothing").ok());
}

}  // namespace

}  // namespace warpraid::daemon
