#include "control/undo_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "base/assert.h"
#include "control/scan.h"
#include "format/bitmap_page.h"
#include "format/md_protective.h"
#include "format/superblock.h"

namespace warpraid::control {

namespace {

using format::Superblock;

constexpr std::size_t kSectorBytes = 512;

Error naming(const io::BlockingDrive& drive, const Error& error) {
    return {error.code, drive_text(drive.identity()) + ": " + error.message};
}

Result<UndoImage> read_image(io::BlockingDrive& drive) {
    const std::uint64_t size = drive.limits().size_bytes;
    UndoImage image;
    image.head.resize(undo_head_bytes());
    image.tail.resize(undo_tail_bytes(size));
    WARPRAID_TRY(drive.read(0, image.head));
    WARPRAID_TRY(drive.read(undo_tail_offset(size), image.tail));
    return image;
}

/// Those of its two copies that are whole.
std::vector<Superblock> superblocks_in(const UndoImage& image) {
    const std::span<const std::byte> head = image.head;
    const std::span<const std::byte> tail = image.tail;
    std::vector<Superblock> found;
    for (const auto copy : {head.subspan(format::kSuperblockOffset), tail}) {
        auto superblock = format::decode_superblock(copy.first(format::kSuperblockBytes));
        if (superblock.ok()) found.push_back(std::move(superblock).value());
    }
    return found;
}

/// Whether a superblock of the group says that it is held no longer.
bool was_released(const UndoImage& image, const Uuid& group) {
    const std::vector<Superblock> superblocks = superblocks_in(image);
    return std::any_of(superblocks.begin(), superblocks.end(), [&](const Superblock& superblock) {
        const auto* record = std::get_if<format::GroupRecord>(&superblock.content);
        return record != nullptr && record->uuid == group && record->table != format::Table::kHeld;
    });
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

/// Whether `now`, read at `offset`, holds nothing but what was there before and what a create, or a
/// restore that was cut short, leaves. Sector by sector: a write may be cut short anywhere.
bool is_as_left(std::span<const std::byte> now, std::span<const std::byte> before,
                std::uint64_t offset, std::uint64_t drive_bytes) {
    static constexpr std::array<std::byte, kSectorBytes> kZeroes{};
    for (std::size_t at = 0; at < now.size(); at += kSectorBytes) {
        const std::size_t size = std::min(kSectorBytes, now.size() - at);
        const auto is = [&](const std::byte* bytes) {
            return std::memcmp(now.data() + at, bytes, size) == 0;
        };
        if (is(before.data() + at) || is(kZeroes.data())) continue;
        if (!is_written_by_create(offset + at, drive_bytes)) return false;
    }
    return true;
}

/// The part of the head that is the mark.
std::span<const std::byte> mark_of(const UndoImage& image, const io::BlockingDrive& drive) {
    return std::span(image.head)
        .subspan(format::kProtectiveMdOffset, drive.limits().logical_block_bytes);
}

Status write_all_but_mark(io::BlockingDrive& drive, const UndoImage& image) {
    const std::span<const std::byte> head = image.head;
    const std::size_t mark_end = format::kProtectiveMdOffset + drive.limits().logical_block_bytes;
    WARPRAID_TRY(drive.write(undo_tail_offset(drive.limits().size_bytes), image.tail));
    WARPRAID_TRY(drive.write(0, head.first(format::kProtectiveMdOffset)));
    WARPRAID_TRY(drive.write(mark_end, head.subspan(mark_end)));
    WARPRAID_TRY(drive.flush());
    WARPRAID_TRY_ASSIGN(UndoImage now, read_image(drive));
    const std::span<const std::byte> mark = mark_of(image, drive);
    std::copy(mark.begin(), mark.end(), now.head.begin() + format::kProtectiveMdOffset);
    if (now == image) return success();
    return naming(drive, {ErrorCode::kIo, "what was written is not what is read back"});
}

}  // namespace

Result<TakenImage> take_image(io::BlockingDrive& drive, const Uuid& member) {
    WARPRAID_TRY_ASSIGN(UndoImage image, read_image(drive));
    UndoDrive taken;
    taken.identity = drive.identity();
    taken.key = undo_key(drive.identity());
    taken.member = member;
    const std::vector<Superblock> superblocks = superblocks_in(image);
    if (!superblocks.empty()) taken.former = superblocks.front().drive;
    taken.size_bytes = drive.limits().size_bytes;
    taken.checksum = checksum_of(image);
    return TakenImage{std::move(taken), std::move(image)};
}

Status check_restorable(io::BlockingDrive& drive, const Uuid& group, const UndoDrive& before,
                        const UndoImage& image) {
    const auto used = [&](const std::string& how) {
        return naming(drive, {ErrorCode::kInUse, how});
    };
    const std::uint64_t size = drive.limits().size_bytes;
    if (size != before.size_bytes) {
        return used(fmt::format("it has {} bytes now and had {}", size, before.size_bytes));
    }
    WARPRAID_TRY_ASSIGN(const UndoImage now, read_image(drive));
    const auto block = std::span(now.head).subspan(format::kProtectiveMdOffset);
    if (format::decode_protective_mark(block) != format::ProtectiveMark{group, before.member}) {
        return used("it is no member of the group any more: somebody else wrote to it");
    }
    if (was_released(now, group)) {
        return used("its group is held no longer: its first volume was asked for");
    }
    if (is_as_left(now.head, image.head, 0, size) &&
        is_as_left(now.tail, image.tail, undo_tail_offset(size), size)) {
        return success();
    }
    return used(
        "somebody else wrote to it since: it holds neither what it held before nor what "
        "making the group left");
}

Status give_back(io::BlockingDrive& drive, const UndoImage& image) {
    WARPRAID_TRY(write_all_but_mark(drive, image));
    WARPRAID_TRY(drive.write(format::kProtectiveMdOffset, mark_of(image, drive)));
    return drive.flush();
}

Result<bool> holds(io::BlockingDrive& drive, const UndoImage& image) {
    WARPRAID_TRY_ASSIGN(const UndoImage now, read_image(drive));
    return now == image;
}

}  // namespace warpraid::control
