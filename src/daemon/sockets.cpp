#include "daemon/sockets.h"

#include <grp.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "daemon/lock.h"
#include "export/nbd/server.h"

namespace warpraid::daemon {

namespace {

constexpr unsigned kSocketMode = 0660;
constexpr unsigned kDirectoryMode = 0755;  // the sockets themselves say who may use them

constexpr std::uint64_t kWindUpNsMax = 3 * kNanosecondsPerSecond;
constexpr std::chrono::milliseconds kWindUpNap(50);

}  // namespace

Result<ListeningSocket> ListeningSocket::make(const std::string& path, int group_id) {
    const std::size_t slash = path.rfind('/');
    if (slash != std::string::npos && slash != 0) {
        WARPRAID_TRY(make_directory(path.substr(0, slash), kDirectoryMode));
    }
    WARPRAID_TRY_ASSIGN(UniqueFd fd, listen_patiently([&] {
                            return nbd::listen_unix(path, kSocketMode, group_id);
                        }));
    return ListeningSocket(path, std::move(fd));
}

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : path_(std::exchange(other.path_, std::string())), fd_(std::move(other.fd_)) {}

ListeningSocket::~ListeningSocket() {
    if (!path_.empty()) ::unlink(path_.c_str());
}

Result<UniqueFd> listen_patiently(const std::function<Result<UniqueFd>()>& listen) {
    const SystemClock clock;
    const std::uint64_t end_ns = clock.monotonic_ns() + kWindUpNsMax;
    Result<UniqueFd> listener = listen();
    while (!listener.ok() && listener.error().code == ErrorCode::kDaemonRunning &&
           clock.monotonic_ns() < end_ns) {
        std::this_thread::sleep_for(kWindUpNap);
        listener = listen();
    }
    return listener;
}

Result<int> find_group_id(const std::string& name) {
    if (name.empty()) return -1;
    const group* found = ::getgrnam(name.c_str());
    if (found == nullptr) {
        return Error{ErrorCode::kBadConfig, "socket-group: there is no group '" + name +
                                                "': make it with groupadd, or name one that "
                                                "/etc/group has"};
    }
    return static_cast<int>(found->gr_gid);
}

}  // namespace warpraid::daemon
