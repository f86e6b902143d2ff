#include "daemon/notify.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace warpraid::daemon {

void notify(const std::string& socket, std::string_view state) {
    if (socket.empty()) return;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket.size() >= sizeof(address.sun_path) || (socket[0] != '/' && socket[0] != '@')) {
        log_warning("NOTIFY_SOCKET makes no sense: " + socket);
        return;
    }
    std::memcpy(address.sun_path, socket.data(), socket.size());
    if (socket[0] == '@') address.sun_path[0] = '\0';
    // An abstract name is as long as it is said to be; a path may carry its final zero.
    const std::size_t length = offsetof(sockaddr_un, sun_path) + socket.size();
    const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const ssize_t sent =
        ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length));
    if (sent != static_cast<ssize_t>(state.size())) {
        log_warning(system_error(ErrorCode::kSystem, "cannot notify " + socket, errno).message);
    }
}

}  // namespace warpraid::daemon
