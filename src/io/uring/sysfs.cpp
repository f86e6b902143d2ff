#include "io/uring/sysfs.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "base/unique_fd.h"

namespace warpraid::io::uring {

std::string read_attribute(const std::string& path) {
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return {};
    std::array<char, 4096> text;
    const ssize_t size = read(fd.get(), text.data(), text.size());
    if (size <= 0) return {};
    std::string_view line(text.data(), static_cast<std::size_t>(size));
    line = line.substr(0, line.find('\n'));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\0')) line.remove_suffix(1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    return std::string(line);
}

SysfsPlace find_in_sysfs(dev_t device) {
    const std::string link =
        "/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device));
    std::array<char, PATH_MAX> resolved;
    SysfsPlace place;
    if (realpath(link.c_str(), resolved.data()) == nullptr) return place;
    place.folder = resolved.data();
    place.partition = read_attribute(place.folder + "/partition");
    if (!place.partition.empty()) place.folder.resize(place.folder.rfind('/'));
    place.name = place.folder.substr(place.folder.rfind('/') + 1);
    place.folder += '/';
    return place;
}

}  // namespace warpraid::io::uring
