#include "control/undo_images.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/assert.h"
#include "control/scan.h"
#include "format/bitmap_page.h"
#include "format/md_protective.h"
#include "format/superblock.h"
#include "meta/superblock_io.h"

namespace warpraid::control {

namespace {

using format::Superblock;

Error naming(const io::BlockingDrive& drive, const Error& error) {
    return {error.code, drive_text(drive.identity()) + ": " + error.message};
}

const format::GroupRecord& record_of(const Superblock& superblock) {
    return std::get<format::GroupRecord>(superblock.content);
}

/// Whether a superblock that lies on the drive was put there by somebody else since.
bool has_other_superblock(io::BlockingDrive& drive, const UndoDrive& before) {
    const std::span<const std::byte> head = before.head;
    const std::span<const std::byte> tail = before.tail;
    for (const meta::Copy copy : {meta::Copy::kFirst, meta::Copy::kSecond}) {
        const Result<Superblock> now = meta::read_copy(drive, copy);
        if (!now.ok()) continue;
        const auto kept =
            copy == meta::Copy::kFirst ? head.subspan(format::kSuperblockOffset) : tail;
        const Result<Superblock> then =
            format::decode_superblock(kept.first(format::kSuperblockBytes));
        const bool is_same = then.ok() && now->drive == then->drive &&
                             meta::commit_id_of(*now) == meta::commit_id_of(*then);
        if (!is_same) return true;
    }
    return false;
}

/// Bytes that making a group writes with something else than zeroes.
bool is_written_by_create(std::uint64_t offset, std::uint64_t drive_bytes) {
    constexpr std::uint64_t kBitmapBytes = format::kBitmapPagesMax * format::kBitmapPageBytes;
    const std::uint64_t second = format::superblock_copy_offset(drive_bytes);
    const auto is_in = [&](std::uint64_t start, std::uint64_t size) {
        return offset >= start && offset < start + size;
    };
    return is_in(format::kProtectiveMdOffset, format::kProtectiveMdBytes) ||
           is_in(format::kSuperblockOffset, format::kSuperblockBytes) ||
           is_in(format::kBitmapOffset, kBitmapBytes) || is_in(second, format::kSuperblockBytes);
}

/// Whether the drive holds nothing at `offset` but what it held before and what a create, or a
/// restore that was cut short, leaves there. Sector by sector: a write may be cut short anywhere.
Result<bool> is_as_left(io::BlockingDrive& drive, std::uint64_t offset,
                        const std::vector<std::byte>& before) {
    constexpr std::size_t kSectorBytes = 512;
    static const std::array<std::byte, kSectorBytes> kZeroes{};
    std::vector<std::byte> now(before.size());
    WARPRAID_TRY(drive.read(offset, now));
    for (std::size_t at = 0; at < now.size(); at += kSectorBytes) {
        const auto is = [&](const std::byte* bytes) {
            return std::memcmp(now.data() + at, bytes, kSectorBytes) == 0;
        };
        if (is(before.data() + at) || is(kZeroes.data())) continue;
        if (!is_written_by_create(offset + at, drive.limits().size_bytes)) return false;
    }
    return true;
}

Status write_and_compare(io::BlockingDrive& drive, std::uint64_t offset,
                         const std::vector<std::byte>& bytes) {
    std::vector<std::byte> now(bytes.size());
    WARPRAID_TRY(drive.read(offset, now));
    // One that got them back already may be in use again.
    if (now == bytes) return success();
    WARPRAID_TRY(drive.write(offset, bytes));
    WARPRAID_TRY(drive.flush());
    WARPRAID_TRY(drive.read(offset, now));
    if (now == bytes) return success();
    return Error{ErrorCode::kIo,
                 fmt::format("what was written at byte {} is not what is read back", offset)};
}

}  // namespace

Result<UndoDrive> take_image(io::BlockingDrive& drive, const Uuid& member) {
    UndoDrive image;
    image.identity = drive.identity();
    image.member = member;
    image.size_bytes = drive.limits().size_bytes;
    image.head.resize(undo_head_bytes());
    image.tail.resize(undo_tail_bytes(image.size_bytes));
    Status status = drive.read(0, image.head);
    if (status.ok()) status = drive.read(undo_tail_offset(image.size_bytes), image.tail);
    if (!status.ok()) return naming(drive, status.error());
    return image;
}

std::optional<Superblock> superblock_of(io::BlockingDrive& drive, const Uuid& group) {
    std::optional<Superblock> newest;
    for (const meta::Copy copy : {meta::Copy::kFirst, meta::Copy::kSecond}) {
        Result<Superblock> found = meta::read_copy(drive, copy);
        if (!found.ok()) continue;
        const auto* record = std::get_if<format::GroupRecord>(&found->content);
        if (record == nullptr || record->uuid != group) continue;
        if (newest && record_of(*newest).generation >= record->generation) continue;
        newest = std::move(found).value();
    }
    return newest;
}

Status check_restorable(io::BlockingDrive& drive, const UndoDrive& before, const Uuid& group) {
    if (drive.limits().size_bytes != before.size_bytes) {
        return naming(drive, {ErrorCode::kInUse,
                              fmt::format("it has {} bytes now and had {}: it was used otherwise "
                                          "since",
                                          drive.limits().size_bytes, before.size_bytes)});
    }
    if (const std::optional<Superblock> superblock = superblock_of(drive, group)) {
        if (record_of(*superblock).table == format::Table::kHeld) return success();
        return naming(drive, {ErrorCode::kInUse,
                              fmt::format("group {} was given volumes by another machine since",
                                          record_of(*superblock).name)});
    }
    Result<bool> is_left = is_as_left(drive, 0, before.head);
    if (is_left.ok() && has_other_superblock(drive, before)) is_left = false;
    if (is_left.ok() && *is_left) {
        is_left = is_as_left(drive, undo_tail_offset(before.size_bytes), before.tail);
    }
    if (!is_left.ok()) return naming(drive, is_left.error());
    if (*is_left) return success();
    return naming(drive, {ErrorCode::kInUse,
                          "it was used otherwise since: it holds neither what it held before nor "
                          "what making the group left"});
}

Status give_back(io::BlockingDrive& drive, const UndoDrive& before) {
    WARPRAID_ASSERT(drive.limits().size_bytes == before.size_bytes);
    // The superblock in the tail goes last: until then the drive says what it is.
    Status status = write_and_compare(drive, 0, before.head);
    if (status.ok()) {
        status = write_and_compare(drive, undo_tail_offset(before.size_bytes), before.tail);
    }
    if (status.ok()) return success();
    return naming(drive, status.error());
}

}  // namespace warpraid::control
