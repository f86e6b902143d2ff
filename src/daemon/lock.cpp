#include "daemon/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace warpraid::daemon {

namespace {

constexpr mode_t kLockMode = 0640;

std::string holder_of(int fd) {
    char text[32];
    const ssize_t count = ::pread(fd, text, sizeof(text), 0);
    std::string pid;
    for (ssize_t i = 0; i < count && text[i] >= '0' && text[i] <= '9'; ++i) pid += text[i];
    return pid.empty() ? "another daemon" : "the daemon with process id " + pid;
}

}  // namespace

Status make_directory(const std::string& path, unsigned mode) {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        if (::mkdir(part.c_str(), mode) == 0) {
            // The umask may have taken bits away.
            if (::chmod(part.c_str(), mode) != 0) {
                return system_error(ErrorCode::kSystem, "cannot set the mode of " + part, errno);
            }
        } else if (errno != EEXIST) {
            return system_error(ErrorCode::kSystem, "cannot make the directory " + part, errno);
        }
        if (end == std::string::npos) break;
    }
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) {
        return system_error(ErrorCode::kSystem, "cannot look at " + path, errno);
    }
    if (!S_ISDIR(found.st_mode)) {
        return Error{ErrorCode::kSystem, path +
                                             " is not a directory, and one is needed there: move "
                                             "it away, or choose another path"};
    }
    return success();
}

Result<UniqueFd> lock_directory(const std::string& directory) {
    const std::string path = directory + "/lock";
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kLockMode));
    if (!fd) return system_error(ErrorCode::kSystem, "cannot open " + path, errno);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) {
            return system_error(ErrorCode::kSystem, "cannot lock " + path, errno);
        }
        return Error{ErrorCode::kDaemonRunning,
                     holder_of(fd.get()) + " uses the state directory " + directory +
                         " already; stop it, or choose another --state-dir"};
    }
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(fd.get(), 0) != 0 ||
        ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
        return system_error(ErrorCode::kSystem, "cannot write " + path, errno);
    }
    return fd;
}

}  // namespace warpraid::daemon
