// What an opened path is: its identity and its limits, from the file system, sysfs and the block
// layer. Reads only.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/result.h"
#include "io/drive.h"

namespace warpraid::io::uring {

/// `status` is that of `path`. The serial survives a rename, a reboot and a renumbering of devices.
DriveIdentity identify(const std::string& path, const struct stat& status);

/// Whether the device, or the file system that the file is on, takes no writes from anybody.
bool is_write_protected(const std::string& path, const struct stat& status);

/// `fd` is open as the drive will be used.
Result<DriveLimits> read_limits(const std::string& path, int fd, const struct stat& status);

}  // namespace warpraid::io::uring
