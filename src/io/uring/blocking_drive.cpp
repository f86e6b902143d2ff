#include "io/uring/blocking_drive.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/limits.h"
#include "base/log.h"
#include "base/units.h"
#include "io/uring/drive.h"
#include "io/uring/identity.h"

namespace warpraid::io::uring {
namespace {

constexpr std::size_t kBounceBytesMax = 1 * kMiB;

struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
};

/// Memory fit for O_DIRECT. Taken per call: control-plane calls are rare, and hundreds of drives at
/// rest should hold nothing.
class BounceBuffer {
  public:
    explicit BounceBuffer(std::size_t wanted)
        : size_(std::min(round_up(wanted, limits::kBufferAlignment), kBounceBytesMax)),
          memory_(static_cast<std::byte*>(std::aligned_alloc(limits::kBufferAlignment, size_))) {
        WARPRAID_ASSERT(memory_ != nullptr);
    }
    std::byte* data() const { return memory_.get(); }
    std::size_t size() const { return size_; }

  private:
    std::size_t size_;
    std::unique_ptr<std::byte, FreeMemory> memory_;
};

Error advise(Error error, const std::string& what_to_do) {
    error.message += "; " + what_to_do;
    return error;
}

std::string kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISCHR(mode)) return "a character device";
    return S_ISFIFO(mode) ? "a pipe" : "a socket";
}

Error open_error(const std::string& path, const DriveIdentity& identity, int error) {
    const std::string drive =
        identity.serial.empty() ? "drive " + path : "drive " + identity.serial + " (" + path + ")";
    switch (error) {
        case ENOENT:
        case ENXIO:
        case ENODEV:
        case ENOMEDIUM:
            return advise(system_error(ErrorCode::kDriveMissing, "no drive at " + path, error),
                          "check the path and the cables");
        case EBUSY:
            return Error{ErrorCode::kDriveBusy,
                         drive + " is in use: unmount it, or end the program that holds it"};
        case EROFS:
            return advise(
                system_error(ErrorCode::kDriveReadOnly, drive + " cannot be written to", error),
                "unlock it, or use another drive that can be written to");
        case EACCES:
        case EPERM:
            return system_error(ErrorCode::kDriveOpen,
                                drive + " cannot be opened; check its permissions", error);
        default:
            return advise(system_error(ErrorCode::kDriveOpen, drive + " cannot be opened", error),
                          "put that right, or use another drive");
    }
}

int open_flags(OpenMode mode, const struct stat& status) {
    const int access = mode == OpenMode::kReadOnly ? O_RDONLY : O_RDWR;
    const bool claims = mode == OpenMode::kExclusive && S_ISBLK(status.st_mode);
    return access | O_CLOEXEC | (claims ? O_EXCL : 0);
}

void warn_about_page_cache(const std::string& path) {
    log_warning("the file system of " + path +
                " refuses O_DIRECT: this drive works through the page cache, which is fine for "
                "trying things out and slower than it should be");
}

}  // namespace

Result<std::unique_ptr<UringBlockingDrive>> UringBlockingDrive::open(const std::string& path,
                                                                     OpenMode mode) {
    std::unique_ptr<UringBlockingDrive> drive(new UringBlockingDrive);
    if (stat(path.c_str(), &drive->status_) != 0) {
        return open_error(path, DriveIdentity{}, errno);
    }
    const struct stat& status = drive->status_;
    const bool is_file = S_ISREG(status.st_mode);
    if (!is_file && !S_ISBLK(status.st_mode)) {
        return Error{ErrorCode::kDriveOpen,
                     path + " is " + kind_of(status.st_mode) +
                         ", and a drive is a block device or a plain file: name one of these"};
    }
    drive->identity_ = identify(path, status);
    const int flags = open_flags(mode, status);
    drive->fd_.reset(::open(path.c_str(), flags | O_DIRECT));
    if (!drive->fd_ && errno == EINVAL) {
        drive->fd_.reset(::open(path.c_str(), flags));
        drive->is_buffered_ = static_cast<bool>(drive->fd_);
        if (drive->is_buffered_) warn_about_page_cache(path);
    }
    if (!drive->fd_) {
        // A write-protected block device answers EACCES, as a lack of permission does.
        const int error = errno == EACCES && is_write_protected(path, status) ? EROFS : errno;
        return open_error(path, drive->identity_, error);
    }
    struct stat opened{};
    if (fstat(drive->fd_.get(), &opened) != 0 || opened.st_ino != status.st_ino ||
        opened.st_dev != status.st_dev || opened.st_rdev != status.st_rdev) {
        return Error{ErrorCode::kDriveOpen,
                     path + " was replaced while it was being opened: try again"};
    }
    // The lock belongs to this open file, so a second opener in this process is refused as well.
    if (is_file && mode == OpenMode::kExclusive &&
        flock(drive->fd_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            return Error{ErrorCode::kDriveBusy,
                         "drive " + drive->identity_.serial + " (" + path +
                             ") is in use by another opener: end that program"};
        }
        return open_error(path, drive->identity_, errno);
    }
    WARPRAID_TRY_ASSIGN(drive->limits_, read_limits(path, drive->fd_.get(), opened));
    drive->status_ = opened;
    drive->mode_ = mode;
    if (drive->limits_.read_only && mode == OpenMode::kExclusive) {
        return open_error(path, drive->identity_, EROFS);
    }
    return drive;
}

Status UringBlockingDrive::check_range(std::uint64_t offset, std::uint64_t length) const {
    const std::uint64_t block = limits_.logical_block_bytes;
    if (offset % block == 0 && length % block == 0 && offset <= limits_.size_bytes &&
        length <= limits_.size_bytes - offset) {
        return success();
    }
    return Error{ErrorCode::kInvalidArgument, "drive " + identity_.serial + " of " +
                                                  std::to_string(limits_.size_bytes) +
                                                  " bytes cannot access " + std::to_string(length) +
                                                  " bytes at " + std::to_string(offset)};
}

Error UringBlockingDrive::io_failure(const char* what, std::uint64_t offset, int error) const {
    const bool is_gone = command_error(error) == ENODEV;
    return advise(system_error(is_gone ? ErrorCode::kDriveMissing : ErrorCode::kIo,
                               "drive " + identity_.serial + " (" + identity_.path + "): " + what +
                                   " at byte " + std::to_string(offset),
                               error),
                  is_gone ? "bring it back" : "see the kernel's log, or use another drive");
}

Status UringBlockingDrive::read(std::uint64_t offset, std::span<std::byte> to) {
    WARPRAID_TRY(check_range(offset, to.size()));
    if (to.empty()) return success();
    const BounceBuffer bounce(to.size());
    while (!to.empty()) {
        const std::size_t wanted = std::min(to.size(), bounce.size());
        const ssize_t size = pread(fd_.get(), bounce.data(), wanted, static_cast<off_t>(offset));
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return io_failure("cannot read", offset, size == 0 ? EIO : errno);
        const auto moved = static_cast<std::size_t>(size);
        std::memcpy(to.data(), bounce.data(), moved);
        to = to.subspan(moved);
        offset += moved;
    }
    return success();
}

Status UringBlockingDrive::write(std::uint64_t offset, std::span<const std::byte> from) {
    WARPRAID_TRY(check_range(offset, from.size()));
    if (mode_ == OpenMode::kReadOnly) return open_error(identity_.path, identity_, EROFS);
    if (from.empty()) return success();
    const BounceBuffer bounce(from.size());
    while (!from.empty()) {
        const std::size_t wanted = std::min(from.size(), bounce.size());
        std::memcpy(bounce.data(), from.data(), wanted);
        const ssize_t size = pwrite(fd_.get(), bounce.data(), wanted, static_cast<off_t>(offset));
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return io_failure("cannot write", offset, size == 0 ? EIO : errno);
        const auto moved = static_cast<std::size_t>(size);
        from = from.subspan(moved);
        offset += moved;
    }
    return success();
}

Status UringBlockingDrive::flush() {
    while (fdatasync(fd_.get()) != 0) {
        if (errno != EINTR) return io_failure("cannot flush", 0, errno);
    }
    return success();
}

Status UringBlockingDrive::probe() {
    struct stat now{};
    const Error missing{ErrorCode::kDriveMissing,
                        "drive " + identity_.serial + " is no longer at " + identity_.path};
    if (stat(identity_.path.c_str(), &now) != 0) return missing;
    const bool is_device = S_ISBLK(status_.st_mode);
    const bool is_same = is_device ? S_ISBLK(now.st_mode) && now.st_rdev == status_.st_rdev
                                   : now.st_dev == status_.st_dev && now.st_ino == status_.st_ino;
    if (!is_same) return missing;
    auto found = read_limits(identity_.path, fd_.get(), now);
    if (!found.ok()) return missing;
    if (found.value().size_bytes < limits_.size_bytes) {
        return Error{ErrorCode::kMemberTooSmall,
                     "drive " + identity_.serial + " (" + identity_.path + ") shrank from " +
                         std::to_string(limits_.size_bytes) + " to " +
                         std::to_string(found.value().size_bytes) + " bytes"};
    }
    return success();
}

}  // namespace warpraid::io::uring
