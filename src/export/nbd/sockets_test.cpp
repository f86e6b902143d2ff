// Listening sockets: what may be replaced, what may not, and who may connect.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "export/nbd/nbd_test_support.h"

namespace warpraid::nbd {
namespace {

mode_t mode_of(const std::string& path) {
    struct stat found{};
    EXPECT_EQ(lstat(path.c_str(), &found), 0);
    return found.st_mode & 07777;
}

TEST(ListenUnix, the_mode_is_what_was_asked_for_whatever_the_umask) {
    const TestDirectory directory;
    for (const mode_t mask : {0000U, 0022U, 0777U}) {
        const mode_t before = umask(mask);
        const auto listener = listen_unix(directory.path("s" + std::to_string(mask)), 0660, -1);
        umask(before);
        ASSERT_TRUE(listener.ok());
        EXPECT_EQ(mode_of(directory.path("s" + std::to_string(mask))), 0660U);
    }
}

TEST(ListenUnix, a_stale_socket_is_replaced_and_a_living_one_is_not) {
    const TestDirectory directory;
    const std::string path = directory.path("socket");
    {
        const auto first = listen_unix(path, 0600, -1);
        ASSERT_TRUE(first.ok());
        const auto second = listen_unix(path, 0600, -1);
        ASSERT_FALSE(second.ok());
        EXPECT_EQ(second.error().code, ErrorCode::kDaemonRunning);
        EXPECT_NE(second.error().message.find(path), std::string::npos);
    }
    EXPECT_TRUE(listen_unix(path, 0600, -1).ok());
}

TEST(ListenUnix, what_is_not_a_socket_stays) {
    const TestDirectory directory;
    const std::string path = directory.path("file");
    std::ofstream(path) << "precious";
    const auto listener = listen_unix(path, 0600, -1);
    ASSERT_FALSE(listener.ok());
    EXPECT_EQ(listener.error().code, ErrorCode::kAlreadyExists);
    std::string text;
    std::ifstream(path) >> text;
    EXPECT_EQ(text, "precious");
    const std::string link = directory.path("link");
    ASSERT_EQ(symlink("nowhere", link.c_str()), 0);
    EXPECT_FALSE(listen_unix(link, 0600, -1).ok());
}

TEST(ListenUnix, paths_at_their_bounds) {
    const TestDirectory directory;
    const std::size_t longest = sizeof(sockaddr_un{}.sun_path) - 1;
    const std::size_t used = directory.path("").size();
    EXPECT_TRUE(listen_unix(directory.path(std::string(longest - used, 'a')), 0600, -1).ok());
    const auto longer = listen_unix(directory.path(std::string(longest - used + 1, 'a')), 0600, -1);
    ASSERT_FALSE(longer.ok());
    EXPECT_EQ(longer.error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(listen_unix("", 0600, -1).ok());
    EXPECT_FALSE(listen_unix(directory.path("no/such/folder"), 0600, -1).ok());
}

TEST(ListenTcp, takes_numeric_addresses_of_both_families_and_names_what_is_taken) {
    const auto listener = listen_tcp("127.0.0.1", 0);
    ASSERT_TRUE(listener.ok());
    sockaddr_in address{};
    socklen_t length = sizeof(address);
    ASSERT_EQ(getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    const auto taken = listen_tcp("127.0.0.1", ntohs(address.sin_port));
    ASSERT_FALSE(taken.ok());
    EXPECT_EQ(taken.error().code, ErrorCode::kDaemonRunning);
    const auto named = listen_tcp("localhost", 0);
    ASSERT_FALSE(named.ok());
    EXPECT_EQ(named.error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(listen_tcp("", 0).ok()) << "nobody serves all addresses by an oversight";
    const UniqueFd probe(socket(AF_INET6, SOCK_STREAM, 0));
    if (!probe) return;
    EXPECT_TRUE(listen_tcp("::1", 0).ok());
}

}  // namespace
}  // namespace warpraid::nbd
