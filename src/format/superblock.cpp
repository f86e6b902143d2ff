#include "format/superblock.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "format/bytes.h"

// The offsets below are docs/on-disk-format.md, section "Superblock".
namespace warpraid::format {
namespace {

constexpr std::string_view kMagic = "WARPRAID";
constexpr std::uint8_t kKindMember = 1;
constexpr std::uint8_t kKindSpare = 2;
constexpr std::uint8_t kLayoutMd = 0;  // RAID 5/6 left-symmetric, RAID 10 near

namespace at {
constexpr std::size_t kMagic = 0, kVersion = 8, kChecksum = 12, kCopy = 16, kKind = 17, kBytes = 20,
                      kFeatures = 24, kDrive = 32, kHeaderEnd = 48, kContent = 64;
// Members.
constexpr std::size_t kGroup = 64, kGeneration = 80, kCommitId = 88, kPreviousCommitId = 96,
                      kCreated = 104, kRegionStripes = 112, kMemberDataBytes = 120, kLevel = 128,
                      kMembers = 129, kCopies = 130, kSlot = 131, kChunkBytes = 132,
                      kBlockBytes = 136, kLayout = 140, kDestroyed = 141, kClean = 142,
                      kNameBytes = 143, kName = 144, kTable = 176, kGroupEnd = 177,
                      kMemberTable = 512;
// Spares.
constexpr std::size_t kSpareGroup = 64, kSpareDriveBytes = 80, kSpareSerialBytes = 88,
                      kSpareSerial = 96, kSpareEnd = 160;
}  // namespace at

/// Offsets within an entry of the member table.
namespace entry {
constexpr std::size_t kBytes = 384;
constexpr std::size_t kDrive = 0, kDriveBytes = 16, kDataOffset = 24, kSince = 32,
                      kRebuiltBytes = 40, kLastGeneration = 48, kLastCommitId = 56, kState = 64,
                      kReason = 65, kByBitmap = 66, kSerialBytes = 67, kModelBytes = 68,
                      kPathBytes = 69, kSerial = 72, kModel = 136, kPath = 200, kEnd = 328;
}  // namespace entry

static_assert(at::kName + limits::kGroupNameBytesMax == at::kTable);
static_assert(at::kMemberTable + limits::kMembersMax * entry::kBytes <= kSuperblockBytes);
static_assert(at::kSpareSerial + kSerialBytesMax == at::kSpareEnd);
static_assert(entry::kSerial + kSerialBytesMax == entry::kModel);
static_assert(entry::kModel + kModelBytesMax == entry::kPath);
static_assert(entry::kPath + kPathBytesMax == entry::kEnd && entry::kEnd <= entry::kBytes);
static_assert(kSuperblockOffset % limits::kBufferAlignment == 0);
static_assert(kSuperblockBytes % limits::kBufferAlignment == 0);

Error bad(std::string message) {
    return Error{ErrorCode::kBadSuperblock, "superblock: " + std::move(message)};
}

/// Over everything but the checksum itself and the copy byte, which count as zero.
std::uint32_t checksum(std::span<const std::byte> bytes) {
    constexpr std::byte kZeros[4]{};
    std::uint32_t sum = crc32c(bytes.first(at::kChecksum));
    sum = crc32c(kZeros, sum);
    sum = crc32c(std::span(kZeros).first(1), sum);
    return crc32c(bytes.subspan(at::kKind), sum);
}

void encode_member(const Member& member, std::span<std::byte> to) {
    put_uuid(to, entry::kDrive, member.drive);
    put(to, entry::kDriveBytes, member.drive_bytes);
    put(to, entry::kDataOffset, member.data_offset);
    put(to, entry::kSince, member.since_ns);
    put(to, entry::kRebuiltBytes, member.rebuilt_bytes);
    put(to, entry::kLastGeneration, member.last_generation.get());
    put(to, entry::kLastCommitId, member.last_commit_id);
    put(to, entry::kState, static_cast<std::uint8_t>(member.state));
    put(to, entry::kReason, static_cast<std::uint8_t>(member.reason));
    put(to, entry::kByBitmap, static_cast<std::uint8_t>(member.by_bitmap));
    put(to, entry::kSerialBytes, static_cast<std::uint8_t>(member.serial.size()));
    put(to, entry::kModelBytes, static_cast<std::uint8_t>(member.model.size()));
    put(to, entry::kPathBytes, static_cast<std::uint8_t>(member.path.size()));
    put_text(to, entry::kSerial, member.serial);
    put_text(to, entry::kModel, member.model);
    put_text(to, entry::kPath, member.path);
}

void encode_group(const GroupRecord& record, Slot slot, std::span<std::byte> to) {
    put_uuid(to, at::kGroup, record.uuid);
    put(to, at::kGeneration, record.generation.get());
    put(to, at::kCommitId, record.commit_id);
    put(to, at::kPreviousCommitId, record.previous_commit_id);
    put(to, at::kCreated, record.created_ns);
    put(to, at::kRegionStripes, record.region_stripes);
    put(to, at::kMemberDataBytes, record.shape.member_data_bytes);
    put(to, at::kLevel, static_cast<std::uint8_t>(record.shape.level));
    put(to, at::kMembers, static_cast<std::uint8_t>(record.shape.members));
    put(to, at::kCopies, static_cast<std::uint8_t>(record.shape.copies));
    put(to, at::kSlot, slot.get());
    put(to, at::kChunkBytes, record.shape.chunk_bytes);
    put(to, at::kBlockBytes, record.shape.block_bytes);
    put(to, at::kLayout, kLayoutMd);
    put(to, at::kDestroyed, static_cast<std::uint8_t>(record.destroyed));
    put(to, at::kClean, static_cast<std::uint8_t>(record.clean));
    put(to, at::kNameBytes, static_cast<std::uint8_t>(record.name.size()));
    put_text(to, at::kName, record.name);
    put(to, at::kTable, static_cast<std::uint8_t>(record.table));
    for (std::size_t i = 0; i < record.members.size(); ++i) {
        encode_member(record.members[i],
                      to.subspan(at::kMemberTable + i * entry::kBytes, entry::kBytes));
    }
}

void encode_spare(const SpareRecord& spare, std::span<std::byte> to) {
    put_uuid(to, at::kSpareGroup, spare.group);
    put(to, at::kSpareDriveBytes, spare.drive_bytes);
    put(to, at::kSpareSerialBytes, static_cast<std::uint8_t>(spare.serial.size()));
    put_text(to, at::kSpareSerial, spare.serial);
}

/// A text field of `capacity` bytes at `where` with its length in the byte at `length_at`. Nothing
/// when the length is too large or bytes behind the text are not zero.
std::optional<std::string> decode_text(std::span<const std::byte> from, std::size_t length_at,
                                       std::size_t where, std::size_t capacity) {
    const std::size_t length = get<std::uint8_t>(from, length_at);
    if (length > capacity) return std::nullopt;
    if (!all_zero(from.subspan(where + length, capacity - length))) return std::nullopt;
    return get_text(from, where, length);
}

Result<Member> decode_member(std::span<const std::byte> from, std::size_t slot) {
    const auto serial = decode_text(from, entry::kSerialBytes, entry::kSerial, kSerialBytesMax);
    const auto model = decode_text(from, entry::kModelBytes, entry::kModel, kModelBytesMax);
    const auto path = decode_text(from, entry::kPathBytes, entry::kPath, kPathBytesMax);
    if (!serial || !model || !path) {
        return bad(fmt::format("slot {}: serial, model or path is not a padded text", slot));
    }
    if (!all_zero(from.subspan(entry::kPathBytes + 1, entry::kSerial - entry::kPathBytes - 1)) ||
        !all_zero(from.subspan(entry::kEnd))) {
        return bad(fmt::format("slot {}: reserved bytes are not zero", slot));
    }
    if (get<std::uint8_t>(from, entry::kByBitmap) > 1) {
        return bad(fmt::format("slot {}: flag by_bitmap is {}", slot,
                               get<std::uint8_t>(from, entry::kByBitmap)));
    }
    Member member;
    member.drive = get_uuid(from, entry::kDrive);
    member.serial = *serial;
    member.model = *model;
    member.path = *path;
    member.drive_bytes = get<std::uint64_t>(from, entry::kDriveBytes);
    member.data_offset = get<std::uint64_t>(from, entry::kDataOffset);
    member.state = static_cast<MemberState>(get<std::uint8_t>(from, entry::kState));
    member.reason = static_cast<LeaveReason>(get<std::uint8_t>(from, entry::kReason));
    member.since_ns = get<std::uint64_t>(from, entry::kSince);
    member.rebuilt_bytes = get<std::uint64_t>(from, entry::kRebuiltBytes);
    member.by_bitmap = get<std::uint8_t>(from, entry::kByBitmap) != 0;
    member.last_generation = Generation(get<std::uint64_t>(from, entry::kLastGeneration));
    member.last_commit_id = get<std::uint64_t>(from, entry::kLastCommitId);
    return member;
}

Status check_group_bytes(std::span<const std::byte> from) {
    const std::uint8_t layout = get<std::uint8_t>(from, at::kLayout);
    if (layout != kLayoutMd) {
        return Error{ErrorCode::kUnsupportedLayout,
                     fmt::format("superblock: layout {} is unknown here, only 0 is known: use the "
                                 "program that made it",
                                 layout)};
    }
    if (get<std::uint8_t>(from, at::kDestroyed) > 1 || get<std::uint8_t>(from, at::kClean) > 1) {
        return bad(fmt::format("flags destroyed {} and clean {}: each must be 0 or 1",
                               get<std::uint8_t>(from, at::kDestroyed),
                               get<std::uint8_t>(from, at::kClean)));
    }
    const std::size_t members = get<std::uint8_t>(from, at::kMembers);
    if (members > limits::kMembersMax) {
        return bad(fmt::format("{} members: at most {}", members, limits::kMembersMax));
    }
    if (!all_zero(from.subspan(at::kGroupEnd, at::kMemberTable - at::kGroupEnd)) ||
        !all_zero(from.subspan(at::kMemberTable + members * entry::kBytes))) {
        return bad("reserved bytes are not zero");
    }
    return success();
}

Result<GroupRecord> decode_group(std::span<const std::byte> from) {
    WARPRAID_TRY(check_group_bytes(from));
    const auto name = decode_text(from, at::kNameBytes, at::kName, limits::kGroupNameBytesMax);
    if (!name) return bad("the group's name is not a padded text");
    GroupRecord record;
    record.uuid = get_uuid(from, at::kGroup);
    record.name = *name;
    record.shape.level = static_cast<geometry::Level>(get<std::uint8_t>(from, at::kLevel));
    record.shape.members = get<std::uint8_t>(from, at::kMembers);
    record.shape.copies = get<std::uint8_t>(from, at::kCopies);
    record.shape.chunk_bytes = get<std::uint32_t>(from, at::kChunkBytes);
    record.shape.block_bytes = get<std::uint32_t>(from, at::kBlockBytes);
    record.shape.member_data_bytes = get<std::uint64_t>(from, at::kMemberDataBytes);
    record.region_stripes = get<std::uint64_t>(from, at::kRegionStripes);
    record.created_ns = get<std::uint64_t>(from, at::kCreated);
    record.generation = Generation(get<std::uint64_t>(from, at::kGeneration));
    record.commit_id = get<std::uint64_t>(from, at::kCommitId);
    record.previous_commit_id = get<std::uint64_t>(from, at::kPreviousCommitId);
    record.destroyed = get<std::uint8_t>(from, at::kDestroyed) != 0;
    record.clean = get<std::uint8_t>(from, at::kClean) != 0;
    record.table = static_cast<Table>(get<std::uint8_t>(from, at::kTable));
    for (std::size_t slot = 0; slot < record.shape.members; ++slot) {
        WARPRAID_TRY_ASSIGN(
            Member member,
            decode_member(from.subspan(at::kMemberTable + slot * entry::kBytes, entry::kBytes),
                          slot));
        record.members.push_back(std::move(member));
    }
    if (auto status = check_record(record); !status.ok()) {
        return Error{status.error().code, "superblock: " + status.error().message};
    }
    return record;
}

Result<SpareRecord> decode_spare(std::span<const std::byte> from) {
    const auto serial = decode_text(from, at::kSpareSerialBytes, at::kSpareSerial, kSerialBytesMax);
    if (!serial) return bad("the spare's serial is not a padded text");
    if (!all_zero(from.subspan(at::kSpareSerialBytes + 1,
                               at::kSpareSerial - at::kSpareSerialBytes - 1)) ||
        !all_zero(from.subspan(at::kSpareEnd))) {
        return bad("reserved bytes are not zero");
    }
    SpareRecord spare;
    spare.drive = get_uuid(from, at::kDrive);
    spare.group = get_uuid(from, at::kSpareGroup);
    spare.serial = *serial;
    spare.drive_bytes = get<std::uint64_t>(from, at::kSpareDriveBytes);
    if (spare.drive_bytes > limits::kDriveBytesMax) {
        return bad(fmt::format("a spare of {} bytes: at most {}", spare.drive_bytes,
                               limits::kDriveBytesMax));
    }
    return spare;
}

Status check_header(std::span<const std::byte> from) {
    if (from.size() < kSuperblockBytes) {
        return bad(fmt::format("{} bytes: {} are needed", from.size(), kSuperblockBytes));
    }
    if (!has_text(from, at::kMagic, kMagic)) {
        return Error{ErrorCode::kNoSuperblock, "no Warpraid superblock"};
    }
    const std::uint32_t version = get<std::uint32_t>(from, at::kVersion);
    const std::uint32_t found = get<std::uint32_t>(from, at::kChecksum);
    const std::uint32_t computed = checksum(from.first(kSuperblockBytes));
    if (version != kFormatVersion) {
        // Later versions keep magic, version and checksum where they are: a sum that fits tells a
        // future version from a flipped bit.
        if (version > kFormatVersion && found == computed) {
            return Error{ErrorCode::kUnsupportedVersion,
                         fmt::format("superblock: format version {}, this program knows {} only: "
                                     "use the newer one that made it",
                                     version, kFormatVersion)};
        }
        return bad(fmt::format("version {} with a checksum that does not fit", version));
    }
    if (found != computed) {
        return bad(fmt::format("checksum {:08x} found, {:08x} computed", found, computed));
    }
    if (const auto features = get<std::uint64_t>(from, at::kFeatures); features != 0) {
        return Error{
            ErrorCode::kUnsupportedVersion,
            fmt::format("superblock: features {:#x} are unknown here, only 0 is known: use the "
                        "newer program that made it",
                        features)};
    }
    if (get<std::uint32_t>(from, at::kBytes) != kSuperblockBytes) {
        return bad(fmt::format("size {}: it must be {}", get<std::uint32_t>(from, at::kBytes),
                               kSuperblockBytes));
    }
    if (get<std::uint8_t>(from, at::kCopy) > 1) {
        return bad(fmt::format("copy {}: it must be 0 or 1", get<std::uint8_t>(from, at::kCopy)));
    }
    if (!all_zero(from.subspan(at::kKind + 1, at::kBytes - at::kKind - 1)) ||
        !all_zero(from.subspan(at::kHeaderEnd, at::kContent - at::kHeaderEnd))) {
        return bad("reserved bytes are not zero");
    }
    if (get_uuid(from, at::kDrive).is_nil()) return bad("a drive without an identity");
    return success();
}

}  // namespace

std::uint64_t superblock_copy_offset(std::uint64_t drive_bytes) {
    WARPRAID_ASSERT(drive_bytes >= limits::kDriveBytesMin);
    return round_up(drive_bytes - limits::kTailReserveBytes, limits::kBufferAlignment);
}

std::uint64_t default_data_offset(std::uint64_t smallest_drive_bytes) {
    // Room for a journal in proportion to the drive, within the limits.
    constexpr std::uint64_t kPartOfDrive = 128;
    return std::clamp(round_down(smallest_drive_bytes / kPartOfDrive, kMiB),
                      limits::kHeadReserveBytesMin, limits::kHeadReserveBytesMax);
}

void encode(const Superblock& superblock, std::span<std::byte> to) {
    WARPRAID_ASSERT(to.size() == kSuperblockBytes);
    WARPRAID_ASSERT(superblock.copy <= 1);
    WARPRAID_ASSERT(!superblock.drive.is_nil());
    std::fill(to.begin(), to.end(), std::byte{0});
    put_text(to, at::kMagic, kMagic);
    put(to, at::kVersion, kFormatVersion);
    put(to, at::kCopy, superblock.copy);
    put(to, at::kBytes, static_cast<std::uint32_t>(kSuperblockBytes));
    put_uuid(to, at::kDrive, superblock.drive);
    if (const auto* record = std::get_if<GroupRecord>(&superblock.content)) {
        WARPRAID_ASSERT(check_record(*record).ok());
        WARPRAID_ASSERT(superblock.slot.get() < record->members.size());
        WARPRAID_ASSERT(record->members[superblock.slot.get()].drive == superblock.drive);
        put(to, at::kKind, kKindMember);
        encode_group(*record, superblock.slot, to);
    } else {
        const SpareRecord& spare = std::get<SpareRecord>(superblock.content);
        WARPRAID_ASSERT(spare.drive == superblock.drive);
        WARPRAID_ASSERT(spare.serial.size() <= kSerialBytesMax);
        WARPRAID_ASSERT(spare.drive_bytes <= limits::kDriveBytesMax);
        put(to, at::kKind, kKindSpare);
        encode_spare(spare, to);
    }
    put(to, at::kChecksum, checksum(to));
}

Result<Superblock> decode_superblock(std::span<const std::byte> from) {
    WARPRAID_TRY(check_header(from));
    from = from.first(kSuperblockBytes);
    Superblock superblock;
    superblock.drive = get_uuid(from, at::kDrive);
    superblock.copy = get<std::uint8_t>(from, at::kCopy);
    const std::uint8_t kind = get<std::uint8_t>(from, at::kKind);
    if (kind == kKindSpare) {
        WARPRAID_TRY_ASSIGN(SpareRecord spare, decode_spare(from));
        superblock.content = std::move(spare);
        return superblock;
    }
    if (kind != kKindMember) return bad(fmt::format("kind {}: it must be 1 or 2", kind));
    WARPRAID_TRY_ASSIGN(GroupRecord record, decode_group(from));
    superblock.slot = Slot(get<std::uint8_t>(from, at::kSlot));
    if (superblock.slot.get() >= record.members.size() ||
        record.members[superblock.slot.get()].drive != superblock.drive) {
        return bad(fmt::format("slot {} does not name this drive", superblock.slot.get()));
    }
    superblock.content = std::move(record);
    return superblock;
}

}  // namespace warpraid::format
