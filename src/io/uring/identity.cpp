#include "io/uring/identity.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "base/unique_fd.h"
#include "io/uring/compat.h"
#include "io/uring/sysfs.h"

namespace warpraid::io::uring {
namespace {

std::string first_attribute(const std::string& folder, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        std::string value = read_attribute(folder + name);
        if (!value.empty()) return value;
    }
    return {};
}

/// SCSI's unit serial number page: four bytes of header, then text.
std::string scsi_serial(const std::string& folder) {
    const UniqueFd fd(open((folder + "device/vpd_pg80").c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return {};
    std::array<char, 260> page;
    const ssize_t size = read(fd.get(), page.data(), page.size());
    std::string serial;
    for (ssize_t i = 4; i < size; ++i) {
        const char letter = page[static_cast<std::size_t>(i)];
        if (letter > ' ' && letter <= '~') serial += letter;
    }
    return serial;
}

std::string hex16(std::uint64_t value) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text(16, '0');
    for (std::size_t i = 16; i-- > 0; value >>= 4) text[i] = kDigits[value & 15];
    return text;
}

/// FNV-1a, 64 bits: enough to tell files apart, and the same on every machine and in every version.
std::uint64_t hash_bytes(std::string_view bytes) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char byte : bytes) {
        hash ^= static_cast<unsigned char>(byte);
        hash *= 0x100000001b3;
    }
    return hash;
}

/// The file system's own id; 0 when it has none. XFS makes the one in statfs from the device's
/// number, which a reboot may change, so it is asked for the one on its disk.
std::uint64_t filesystem_id(const std::string& path) {
    struct statfs filesystem{};
    if (statfs(path.c_str(), &filesystem) != 0) return 0;
    constexpr auto kXfsMagic = 0x58465342;
    if (filesystem.f_type == kXfsMagic) {
        const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        FilesystemUuid uuid{};
        if (fd && ioctl(fd.get(), kIoctlFilesystemUuid, &uuid) == 0) {
            return hash_bytes({reinterpret_cast<const char*>(uuid.bytes), sizeof uuid.bytes});
        }
    }
    std::uint64_t id = 0;
    static_assert(sizeof filesystem.f_fsid == sizeof id);
    std::memcpy(&id, &filesystem.f_fsid, sizeof id);
    return id;
}

/// A name for the file that depends neither on its path nor, as far as its file system has an id,
/// on the numbers of devices.
std::string file_hash(const std::string& path, const struct stat& status) {
    std::uint64_t id = filesystem_id(path);
    if (id == 0) id = status.st_dev;
    const std::uint64_t inode = status.st_ino;
    std::string bytes(sizeof id + sizeof inode, '\0');
    std::memcpy(bytes.data(), &id, sizeof id);
    std::memcpy(bytes.data() + sizeof id, &inode, sizeof inode);
    return hex16(hash_bytes(bytes));
}

std::string loop_serial(const SysfsPlace& place) {
    // The number of a loop device changes with every boot; what it stands for does not.
    const std::string backing = read_attribute(place.folder + "loop/backing_file");
    struct stat status{};
    if (backing.empty() || stat(backing.c_str(), &status) != 0) return "LOOP-" + place.name;
    return "LOOP-" + file_hash(backing, status);
}

DriveIdentity identify_device(const std::string& path, dev_t device) {
    const SysfsPlace place = find_in_sysfs(device);
    DriveIdentity identity;
    identity.path = path;
    identity.wwid = first_attribute(place.folder, {"wwid", "device/wwid"});
    if (place.name.starts_with("loop")) {
        identity.serial = loop_serial(place);
        identity.model = "loop";
    } else if (place.name.starts_with("dm-")) {
        identity.serial = first_attribute(place.folder, {"dm/uuid", "dm/name"});
        identity.model = "device-mapper";
    } else {
        identity.serial = first_attribute(place.folder, {"device/serial", "serial"});
        if (identity.serial.empty()) identity.serial = scsi_serial(place.folder);
        identity.model = first_attribute(place.folder, {"device/model"});
    }
    // All namespaces of one NVMe controller share its serial.
    const std::string nsid = read_attribute(place.folder + "nsid");
    if (!identity.serial.empty() && !nsid.empty() && nsid != "1") identity.serial += "-n" + nsid;
    if (identity.serial.empty()) identity.serial = identity.wwid;
    if (identity.serial.empty()) identity.serial = "DEV-" + place.name;
    if (!place.partition.empty()) identity.serial += "-part" + place.partition;
    if (identity.model.empty()) identity.model = "block device";
    return identity;
}

bool has_write_cache(dev_t device) {
    // Anything but a clear "write through" is taken as a cache: a needless flush harms nobody.
    return read_attribute(find_in_sysfs(device).folder + "queue/write_cache") != "write through";
}

Result<DriveLimits> device_limits(const std::string& path, int fd, dev_t device) {
    DriveLimits limits;
    int logical = 0;
    unsigned physical = 0;
    int read_only = 0;
    if (ioctl(fd, BLKGETSIZE64, &limits.size_bytes) != 0 || ioctl(fd, BLKSSZGET, &logical) != 0 ||
        ioctl(fd, BLKPBSZGET, &physical) != 0 || ioctl(fd, BLKROGET, &read_only) != 0) {
        return system_error(ErrorCode::kDriveOpen, "cannot read the size of drive " + path, errno);
    }
    limits.logical_block_bytes = static_cast<std::uint32_t>(logical);
    limits.physical_block_bytes = physical;
    limits.read_only = read_only != 0;
    limits.rotational_cache = has_write_cache(device);
    return limits;
}

/// Whether a direct read at a multiple of 512 works. Asked of the file itself, because the file
/// system's own answer (statx) is missing on older kernels.
bool takes_512(int fd, std::uint64_t size) {
    if (size < 1024) return true;
    alignas(4096) std::array<std::byte, 512> block;
    return pread(fd, block.data(), block.size(), 512) == static_cast<ssize_t>(block.size());
}

DriveLimits file_limits(int fd, const struct stat& status) {
    DriveLimits limits;
    const auto size = static_cast<std::uint64_t>(status.st_size);
    limits.logical_block_bytes = takes_512(fd, size) ? 512 : 4096;
    limits.physical_block_bytes = 4096;
    limits.size_bytes = size / limits.logical_block_bytes * limits.logical_block_bytes;
    return limits;
}

}  // namespace

DriveIdentity identify(const std::string& path, const struct stat& status) {
    if (S_ISBLK(status.st_mode)) return identify_device(path, status.st_rdev);
    DriveIdentity identity;
    identity.path = path;
    identity.serial = "FILE-" + file_hash(path, status);
    identity.model = "file";
    return identity;
}

bool is_write_protected(const std::string& path, const struct stat& status) {
    if (S_ISBLK(status.st_mode)) {
        return read_attribute(find_in_sysfs(status.st_rdev).folder + "ro") == "1";
    }
    return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0 && errno == EROFS;
}

Result<DriveLimits> read_limits(const std::string& path, int fd, const struct stat& status) {
    if (S_ISBLK(status.st_mode)) return device_limits(path, fd, status.st_rdev);
    DriveLimits limits = file_limits(fd, status);
    limits.read_only = is_write_protected(path, status);
    return limits;
}

}  // namespace warpraid::io::uring
