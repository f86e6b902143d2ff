#include "daemon/notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/unique_fd.h"

namespace warpraid::daemon {

namespace {

/// What arrives at a datagram socket of this name when we are ready.
std::string received_at(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
    notify(name, "READY=1");
    char text[64];
    const ssize_t count = recv(fd.get(), text, sizeof(text), 0);
    return std::string(text, count > 0 ? static_cast<std::size_t>(count) : 0);
}

TEST(Notify, reaches_paths_and_abstract_names) {
    const std::string path = testing::TempDir() + "warpraid-notify-" + std::to_string(getpid());
    EXPECT_EQ(received_at(path), "READY=1");
    unlink(path.c_str());
    EXPECT_EQ(received_at("@warpraid-notify-" + std::to_string(getpid())), "READY=1");
}

TEST(Notify, nobody_there_is_no_reason_to_stop) {
    std::vector<std::string> lines;
    set_log_sink([&](LogLevel, std::string_view text) { lines.emplace_back(text); });
    notify("", "READY=1");
    EXPECT_TRUE(lines.empty());
    notify("/no/such/socket", "READY=1");
    notify("relative", "READY=1");
    notify("/" + std::string(200, 'a'), "READY=1");
    set_log_sink({});
    EXPECT_EQ(lines.size(), 3u);
}

}  // namespace

}  // namespace warpraid::daemon
