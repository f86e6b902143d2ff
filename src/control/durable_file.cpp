#include "control/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "base/unique_fd.h"

namespace warpraid::control {

namespace {

constexpr int kAsideMax = 100;

std::string directory_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

Status write_all(int fd, const std::string& path, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return system_error(ErrorCode::kSystem, "cannot write " + path, errno);
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return success();
}

constexpr std::string_view kNewEnding = ".new";
constexpr std::string_view kOldEnding = ".old";

std::string beside(const std::string& path) {
    return path + std::string(kNewEnding);
}

std::string before(const std::string& path) {
    return path + std::string(kOldEnding);
}

/// A second name for what is at `path` now. A file system without hard links gives none, and then
/// there is nothing to put back.
void keep_old(const std::string& path) {
    ::unlink(before(path).c_str());
    [[maybe_unused]] const int linked = ::link(path.c_str(), before(path).c_str());
}

/// After a rename to `path`. What was not there before is taken away again.
void put_back(const std::string& path, bool was_there) {
    if (was_there) {
        ::rename(before(path).c_str(), path.c_str());
    } else {
        ::unlink(path.c_str());
    }
}

bool is_there(const std::string& path) {
    struct stat status{};
    return ::lstat(path.c_str(), &status) == 0;
}

Status write_new_file(const std::string& path, std::string_view text) {
    // Whatever a crash left there; a pipe would block.
    ::unlink(path.c_str());
    const UniqueFd file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t{0640}));
    if (!file) return system_error(ErrorCode::kSystem, "cannot create " + path, errno);
    WARPRAID_TRY(write_all(file.get(), path, text));
    if (::fsync(file.get()) == 0) return success();
    return system_error(ErrorCode::kSystem, "cannot sync " + path, errno);
}

Status sync_directory(const std::string& path) {
    const UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory || ::fsync(directory.get()) != 0) {
        return system_error(ErrorCode::kSystem, "cannot sync the directory " + path, errno);
    }
    return success();
}

}  // namespace

Status replace_file(const std::string& path, std::string_view text) {
    return replace_files(std::span(&path, 1), text);
}

Status replace_files(std::span<const std::string> paths, std::string_view text) {
    Status status = success();
    for (const std::string& path : paths) {
        if (status.ok()) status = write_new_file(beside(path), text);
    }
    struct Renamed {
        const std::string& path;
        bool was_there;
    };
    std::vector<Renamed> renamed;
    for (const std::string& path : paths) {
        if (!status.ok()) break;
        const bool was_there = is_there(path);
        keep_old(path);
        if (::rename(beside(path).c_str(), path.c_str()) == 0) {
            renamed.push_back({path, was_there});
            continue;
        }
        status = system_error(ErrorCode::kSystem, "cannot rename " + beside(path) + " to " + path,
                              errno);
    }
    const std::string directory = directory_of(paths.front());
    if (status.ok()) status = sync_directory(directory);
    if (!status.ok() && !renamed.empty()) {
        for (const Renamed& file : renamed) put_back(file.path, file.was_there);
        static_cast<void>(sync_directory(directory));
    }
    for (const std::string& path : paths) {
        ::unlink(before(path).c_str());
        // Half a file would only keep the room that the next attempt needs.
        if (!status.ok()) ::unlink(beside(path).c_str());
    }
    return status;
}

bool is_leftover(std::string_view name) {
    return name.ends_with(kNewEnding) || name.ends_with(kOldEnding);
}

Status remove_file(const std::string& path) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
        return system_error(ErrorCode::kSystem, "cannot take " + path + " away", errno);
    }
    return sync_directory(directory_of(path));
}

Result<std::string> read_file(const std::string& path, std::uint64_t bytes_max) {
    // Not to wait for ever where a pipe has taken the file's place.
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) {
        const ErrorCode code = errno == ENOENT   ? ErrorCode::kNotFound
                               : errno == EACCES ? ErrorCode::kPermissionDenied
                                                 : ErrorCode::kSystem;
        return system_error(code, "cannot open " + path, errno);
    }
    struct stat found{};
    if (::fstat(file.get(), &found) != 0) {
        return system_error(ErrorCode::kSystem, "cannot look at " + path, errno);
    }
    if (!S_ISREG(found.st_mode)) {
        return Error{ErrorCode::kInvalidArgument, path + " is no plain file"};
    }
    if (static_cast<std::uint64_t>(found.st_size) > bytes_max) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} has {} bytes, more than the {} that it can have", path,
                                 found.st_size, bytes_max)};
    }
    std::string text;
    std::array<char, 64 * 1024> piece{};
    for (;;) {
        const ssize_t size = ::read(file.get(), piece.data(), piece.size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return system_error(ErrorCode::kIo, "cannot read " + path, errno);
        if (size == 0) return text;
        text.append(piece.data(), static_cast<std::size_t>(size));
    }
}

Result<std::string> move_aside(const std::string& path) {
    for (int number = 1; number <= kAsideMax; ++number) {
        const std::string aside = path + std::string(kAsideEnding) +
                                  (number == 1 ? std::string() : "." + std::to_string(number));
        const long done = ::syscall(SYS_renameat2, AT_FDCWD, path.c_str(), AT_FDCWD, aside.c_str(),
                                    RENAME_NOREPLACE);
        if (done == 0) return aside;
        if (errno != EEXIST) {
            return system_error(ErrorCode::kSystem, "cannot move " + path + " aside", errno);
        }
    }
    return Error{ErrorCode::kSystem,
                 fmt::format("cannot move {} aside: there are {} files that were, take them away",
                             path, kAsideMax)};
}

Status make_directories(const std::string& path) {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        if (::mkdir(part.c_str(), 0750) == 0) {
            WARPRAID_TRY(sync_directory(directory_of(part)));
        } else if (errno != EEXIST) {
            return system_error(ErrorCode::kSystem, "cannot make the directory " + part, errno);
        }
        if (end == std::string::npos) return success();
    }
}

}  // namespace warpraid::control
