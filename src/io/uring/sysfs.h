// What the kernel tells of block devices under /sys. Reads only; any thread.
#pragma once

#include <sys/types.h>

#include <string>

namespace warpraid::io::uring {

/// The first line of a small file without surrounding blanks; empty when there is none.
std::string read_attribute(const std::string& path);

/// The sysfs folder of the whole device, with a slash at its end, and the partition's number if it
/// is one.
struct SysfsPlace {
    std::string folder;
    std::string name;
    std::string partition;
};

/// An empty folder when the kernel knows no such device.
SysfsPlace find_in_sysfs(dev_t device);

}  // namespace warpraid::io::uring
