// Listening sockets.
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "export/nbd/server.h"

namespace warpraid::nbd {

namespace {

constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

Status remove_stale(const std::string& path, const sockaddr_un& address) {
    struct stat found{};
    if (lstat(path.c_str(), &found) != 0) {
        if (errno == ENOENT) return success();
        return system_error(ErrorCode::kSystem, "cannot look at " + path, errno);
    }
    if (!S_ISSOCK(found.st_mode)) {
        return Error{ErrorCode::kAlreadyExists,
                     path + " exists and is not a socket; remove it or choose another path"};
    }
    const UniqueFd probe(socket(AF_UNIX, kSocketFlags, 0));
    if (!probe) return system_error(ErrorCode::kSystem, "cannot make a socket", errno);
    const bool answered =
        connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    // Anything but a clear refusal (a full queue, missing permission) may be a living server.
    if (answered || errno != ECONNREFUSED) {
        return Error{ErrorCode::kDaemonRunning,
                     "a server already answers on " + path + "; stop it or choose another path"};
    }
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
        return system_error(ErrorCode::kSystem, "cannot remove the stale socket " + path, errno);
    }
    return success();
}

Status open_to_clients(int fd, const std::string& what) {
    if (::listen(fd, SOMAXCONN) == 0) return success();
    if (errno == EADDRINUSE) {
        return Error{ErrorCode::kDaemonRunning,
                     what + " is in use by another program: end that, or choose another address"};
    }
    return system_error(ErrorCode::kSystem, "cannot listen on " + what, errno);
}

}  // namespace

Result<UniqueFd> listen_unix(const std::string& path, unsigned mode, int group_id) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path)) {
        return Error{ErrorCode::kInvalidArgument, "a Unix socket's path must have 1 to " +
                                                      std::to_string(sizeof(address.sun_path) - 1) +
                                                      " bytes: " + path};
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    WARPRAID_TRY(remove_stale(path, address));

    UniqueFd listener(socket(AF_UNIX, kSocketFlags, 0));
    if (!listener) return system_error(ErrorCode::kSystem, "cannot make a socket", errno);
    // The file is never wider than `mode`: bind() takes the mode of the socket less the umask, and
    // chmod() adds what the umask took. Nobody can connect before listen() in any case.
    if (fchmod(listener.get(), mode) != 0) {
        return system_error(ErrorCode::kSystem, "cannot set the mode of a socket", errno);
    }
    if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        const ErrorCode code = errno == EADDRINUSE ? ErrorCode::kDaemonRunning : ErrorCode::kSystem;
        return system_error(code, "cannot bind " + path, errno);
    }
    if (group_id >= 0 &&
        lchown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(group_id)) != 0) {
        return system_error(ErrorCode::kSystem, "cannot give " + path + " to its group", errno);
    }
    if (chmod(path.c_str(), mode) != 0) {
        return system_error(ErrorCode::kSystem, "cannot set the mode of " + path, errno);
    }
    WARPRAID_TRY(open_to_clients(listener.get(), path));
    return listener;
}

Result<UniqueFd> listen_tcp(const std::string& address, std::uint16_t port) {
    const std::string what = address + " port " + std::to_string(port);
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
    addrinfo* found = nullptr;
    const int failure = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (failure != 0) {
        return Error{ErrorCode::kInvalidArgument,
                     "not a numeric address: " + address + " (" + gai_strerror(failure) + ")"};
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
    UniqueFd listener(socket(found->ai_family, kSocketFlags, 0));
    if (!listener) return system_error(ErrorCode::kSystem, "cannot make a socket", errno);
    const int on = 1;
    // A restart must not wait for old connections to be forgotten.
    setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0) {
        const ErrorCode code = errno == EADDRINUSE ? ErrorCode::kDaemonRunning : ErrorCode::kSystem;
        return system_error(code, "cannot bind " + what, errno);
    }
    WARPRAID_TRY(open_to_clients(listener.get(), what));
    return listener;
}

}  // namespace warpraid::nbd
