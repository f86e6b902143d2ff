#include "daemon/sockets.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "daemon/daemon_test_support.h"
#include "export/nbd/server.h"

namespace warpraid::daemon {
namespace {

using SocketDirectory = InDirectory;

TEST_F(SocketDirectory, a_socket_that_is_about_to_go_is_waited_for) {
    auto first = nbd::listen_unix(path + "/socket", 0600, -1);
    ASSERT_TRUE(first.ok());
    // As when the kernel still holds the sockets of a server that was killed.
    std::thread dying([held = std::move(first).value()]() mutable {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        held.reset();
    });
    EXPECT_TRUE(ListeningSocket::make(path + "/socket", -1).ok());
    dying.join();
}

TEST_F(SocketDirectory, a_living_server_stays_and_other_errors_are_told_at_once) {
    const auto first = ListeningSocket::make(path + "/socket", -1);
    ASSERT_TRUE(first.ok());
    const auto second = ListeningSocket::make(path + "/socket", -1);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::kDaemonRunning);
    int attempts = 0;
    const auto broken = listen_patiently([&]() -> Result<UniqueFd> {
        ++attempts;
        return Error{ErrorCode::kSystem, "broken"};
    });
    EXPECT_FALSE(broken.ok());
    EXPECT_EQ(attempts, 1);
}

}  // namespace
}  // namespace warpraid::daemon
