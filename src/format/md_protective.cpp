#include "format/md_protective.h"

#include <algorithm>

#include "base/assert.h"
#include "format/bytes.h"

// Field offsets are those of Linux MD's version 1 superblock (md(4)); docs/on-disk-format.md,
// section "Protective MD superblock".
namespace warpraid::format {
namespace {

constexpr std::uint32_t kMagic = 0xa92b4efc;
constexpr std::uint64_t kSectorBytes = 512;
constexpr std::uint16_t kRoleSpare = 0xffff;
constexpr std::size_t kFixedBytes = 256;
constexpr std::size_t kNameBytesMax = 32;
constexpr std::size_t kDevicesMax = limits::kMembersMax + 1;

namespace at {
constexpr std::size_t kMagic = 0, kMajor = 4, kFeatures = 8, kSet = 16, kName = 32, kCreated = 64,
                      kLevel = 72, kLayout = 76, kSize = 80, kChunk = 88, kDisks = 92,
                      kDataOffset = 128, kDataSize = 136, kSuperOffset = 144, kDevice = 160,
                      kDrive = 168, kUpdated = 192, kEvents = 200, kResync = 208, kChecksum = 216,
                      kMaxDevices = 220, kRoles = 256;
}  // namespace at

static_assert(kFixedBytes + 2 * kDevicesMax <= kSectorBytes);
static_assert(kProtectiveMdOffset + kProtectiveMdBytes <= 64 * kKiB);

/// What MD calls our layouts: left-symmetric is 2; RAID 10 has near copies in the low byte and one
/// far copy in the next.
std::uint32_t md_layout(const geometry::Shape& shape) {
    switch (shape.level) {
        case geometry::Level::kRaid5:
        case geometry::Level::kRaid6:
            return 2;
        case geometry::Level::kRaid10:
            return 0x100 | shape.copies;
        case geometry::Level::kRaid0:
        case geometry::Level::kRaid1:
            break;
    }
    return 0;
}

void encode_roles(const ProtectiveMd& superblock, std::span<std::byte> to) {
    const std::uint32_t members = superblock.spare ? 0 : superblock.shape.members;
    // Device numbers are slots; a spare comes behind all slots there can be.
    const std::uint32_t device = superblock.spare ? limits::kMembersMax : superblock.slot.get();
    const std::uint32_t devices = std::max(members, device + 1);
    put(to, at::kDevice, device);
    put(to, at::kMaxDevices, devices);
    for (std::uint32_t i = 0; i < devices; ++i) {
        put(to, at::kRoles + 2 * i, i < members ? static_cast<std::uint16_t>(i) : kRoleSpare);
    }
}

}  // namespace

std::uint32_t md_checksum(std::span<const std::byte> bytes) {
    WARPRAID_ASSERT(bytes.size() >= kFixedBytes && bytes.size() % 2 == 0);
    std::uint64_t sum = 0;
    std::size_t where = 0;
    for (; where + 4 <= bytes.size(); where += 4) {
        if (where != at::kChecksum) sum += get<std::uint32_t>(bytes, where);
    }
    if (where < bytes.size()) sum += get<std::uint16_t>(bytes, where);
    return static_cast<std::uint32_t>((sum & 0xffffffff) + (sum >> 32));
}

void encode(const ProtectiveMd& superblock, std::span<std::byte> to) {
    WARPRAID_ASSERT(to.size() == kProtectiveMdBytes);
    WARPRAID_ASSERT(superblock.spare || superblock.slot.get() < superblock.shape.members);
    std::fill(to.begin(), to.end(), std::byte{0});
    const geometry::Shape& shape = superblock.shape;
    put(to, at::kMagic, kMagic);
    put(to, at::kMajor, std::uint32_t{1});
    put(to, at::kFeatures, kProtectiveFeatureBit);
    put_uuid(to, at::kSet, superblock.set);
    const std::string name = "warpraid:" + superblock.name;
    put_text(to, at::kName, std::string_view(name).substr(0, kNameBytesMax));
    put(to, at::kCreated, superblock.created_seconds);
    put(to, at::kLevel, static_cast<std::uint32_t>(shape.level));
    put(to, at::kLayout, md_layout(shape));
    put(to, at::kSize, shape.member_data_bytes / kSectorBytes);
    put(to, at::kChunk, static_cast<std::uint32_t>(shape.chunk_bytes / kSectorBytes));
    put(to, at::kDisks, shape.members);
    put(to, at::kDataOffset, superblock.data_offset / kSectorBytes);
    put(to, at::kDataSize, shape.member_data_bytes / kSectorBytes);
    put(to, at::kSuperOffset, kProtectiveMdOffset / kSectorBytes);
    put_uuid(to, at::kDrive, superblock.drive);
    put(to, at::kUpdated, superblock.created_seconds);
    put(to, at::kEvents, std::uint64_t{1});
    put(to, at::kResync, ~std::uint64_t{0});
    encode_roles(superblock, to);
    const std::size_t summed = kFixedBytes + 2 * get<std::uint32_t>(to, at::kMaxDevices);
    put(to, at::kChecksum, md_checksum(to.first(summed)));
}

bool is_protective_md(std::span<const std::byte> bytes) {
    return bytes.size() >= kFixedBytes && get<std::uint32_t>(bytes, at::kMagic) == kMagic &&
           get<std::uint32_t>(bytes, at::kMajor) == 1 &&
           (get<std::uint32_t>(bytes, at::kFeatures) & kProtectiveFeatureBit) != 0;
}

std::optional<ProtectiveMark> decode_protective_mark(std::span<const std::byte> bytes) {
    if (bytes.size() < kSectorBytes || !is_protective_md(bytes)) return std::nullopt;
    const auto devices = get<std::uint32_t>(bytes, at::kMaxDevices);
    if (devices > kDevicesMax) return std::nullopt;
    const std::size_t summed = kFixedBytes + 2 * devices;
    if (get<std::uint32_t>(bytes, at::kChecksum) != md_checksum(bytes.first(summed))) {
        return std::nullopt;
    }
    return ProtectiveMark{get_uuid(bytes, at::kSet), get_uuid(bytes, at::kDrive)};
}

}  // namespace warpraid::format
