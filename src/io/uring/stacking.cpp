#include "io/uring/stacking.h"

#include <sys/sysmacros.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "base/number_text.h"
#include "io/uring/sysfs.h"

namespace warpraid::io::uring {
namespace {

/// A block device, or a plain file with the device that it lies on.
struct Node {
    bool is_file = false;
    dev_t device = 0;
    ino_t inode = 0;

    bool operator<(const Node& other) const {
        return std::tie(is_file, device, inode) <
               std::tie(other.is_file, other.device, other.inode);
    }
};

/// As in "8:16".
std::optional<dev_t> parse_numbers(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto major_number = parse_whole_number<unsigned>(text.substr(0, colon));
    const auto minor_number = parse_whole_number<unsigned>(text.substr(colon + 1));
    if (!major_number || !minor_number) return std::nullopt;
    return makedev(*major_number, *minor_number);
}

Node node_of(const struct stat& status) {
    if (S_ISBLK(status.st_mode)) return {false, status.st_rdev, 0};
    return {true, status.st_dev, status.st_ino};
}

/// What stands behind a loop device, which is another name for it.
Node behind_loops(Node node) {
    // Loop devices over loop devices; the kernel makes no circles of them.
    for (;;) {
        if (node.is_file) return node;
        const SysfsPlace place = find_in_sysfs(node.device);
        if (!place.partition.empty()) return node;
        const std::string backing = read_attribute(place.folder + "loop/backing_file");
        struct stat status{};
        if (backing.empty() || stat(backing.c_str(), &status) != 0) return node;
        node = node_of(status);
    }
}

/// Adds the device or file and all that it stands on.
void add_stack(std::set<Node>& stack, Node node) {
    node = behind_loops(node);
    if (!stack.insert(node).second || node.is_file) return;
    const SysfsPlace place = find_in_sysfs(node.device);
    const auto add = [&](const std::string& attribute) {
        const std::optional<dev_t> below = parse_numbers(read_attribute(attribute));
        if (below) add_stack(stack, {false, *below, 0});
    };
    if (!place.partition.empty()) return add(place.folder + "dev");
    std::error_code error;
    for (std::filesystem::directory_iterator entry(place.folder + "slaves", error), end;
         !error && entry != end; entry.increment(error)) {
        add(entry->path().string() + "/dev");
    }
}

bool stands_on(const struct stat& upper, const struct stat& lower) {
    std::set<Node> stack;
    add_stack(stack, node_of(upper));
    return stack.contains(behind_loops(node_of(lower)));
}

}  // namespace

bool share_storage(const struct stat& first, const struct stat& second) {
    return stands_on(first, second) || stands_on(second, first);
}

}  // namespace warpraid::io::uring
