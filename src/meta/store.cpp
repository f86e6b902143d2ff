#include "meta/store.h"

#include <algorithm>

#include "base/assert.h"
#include "format/bitmap_page.h"
#include "meta/superblock_io.h"

namespace warpraid::meta {
namespace {

/// A commit on its way: the drives, and which of them have failed so far.
class Round {
  public:
    explicit Round(std::span<const MemberDrive> drives)
        : drives_(drives), failed_(drives.size(), false) {}

    /// Runs `act` on each drive that has not failed.
    template <typename Act>
    void each(Act act) {
        for (std::size_t i = 0; i < drives_.size(); ++i) {
            if (!failed_[i]) failed_[i] = !act(drives_[i]).ok();
        }
    }
    void write(const format::GroupRecord& record, Copy copy) {
        each([&](const MemberDrive& member) {
            return write_copy(*member.drive, superblock_of(record, member.slot), copy);
        });
        each([](const MemberDrive& member) { return member.drive->flush(); });
    }
    CommitOutcome outcome() const {
        CommitOutcome outcome;
        for (std::size_t i = 0; i < drives_.size(); ++i) {
            if (failed_[i]) outcome.failed.push_back(drives_[i].slot);
        }
        return outcome;
    }

    static format::Superblock superblock_of(const format::GroupRecord& record, Slot slot) {
        format::Superblock superblock;
        superblock.drive = record.members[slot.get()].drive;
        superblock.slot = slot;
        superblock.content = record;
        return superblock;
    }

  private:
    std::span<const MemberDrive> drives_;
    std::vector<bool> failed_;
};

/// What a drive holds before a commit.
struct Held {
    std::optional<format::Superblock> first;
    std::optional<format::Superblock> second;
};

Result<Held> read_held(io::BlockingDrive& drive) {
    Held held;
    for (const auto& [copy, into] :
         {std::pair{Copy::kFirst, &held.first}, std::pair{Copy::kSecond, &held.second}}) {
        auto read = read_copy(drive, copy);
        if (read.ok()) {
            *into = std::move(read).value();
        } else if (read.error().code == ErrorCode::kIo ||
                   read.error().code == ErrorCode::kDriveMissing) {
            // It cannot be read at all: a failing drive, unlike one that holds nonsense.
            return read.error();
        }
    }
    return held;
}

bool holds(const std::optional<format::Superblock>& copy, const format::GroupRecord& record) {
    return copy && commit_id_of(*copy) == record.commit_id &&
           std::get<format::GroupRecord>(copy->content).uuid == record.uuid;
}

/// Makes both copies of a drive hold `last`, whichever it has already.
Status catch_up(const MemberDrive& member, const Held& held, const format::GroupRecord& last) {
    const format::Superblock superblock = Round::superblock_of(last, member.slot);
    for (const Copy copy : {Copy::kFirst, Copy::kSecond}) {
        if (holds(copy == Copy::kFirst ? held.first : held.second, last)) continue;
        WARPRAID_TRY(write_copy(*member.drive, superblock, copy));
        WARPRAID_TRY(member.drive->flush());
    }
    return success();
}

/// Whether the drive that `next` puts into this slot took part in `last` already.
bool took_part(const format::GroupRecord& last, const format::GroupRecord& next, Slot slot) {
    const format::Member& before = last.members[slot.get()];
    return format::is_live(before) && before.drive == next.members[slot.get()].drive;
}

/// The rule of store.h: before a new generation is begun, every drive that took part in the last
/// one (the one `record` still names) holds it in both copies.
void finish_last_commit(Round& round, const format::GroupRecord& record) {
    std::vector<Held> held(limits::kMembersMax);
    round.each([&](const MemberDrive& member) -> Status {
        WARPRAID_TRY_ASSIGN(held[member.slot.get()], read_held(*member.drive));
        return success();
    });
    std::optional<format::GroupRecord> last;
    for (const Held& drive : held) {
        for (const auto* copy : {&drive.first, &drive.second}) {
            if (!last && holds(*copy, record))
                last = std::get<format::GroupRecord>((*copy)->content);
        }
    }
    if (!last) return;  // the first commit of a group
    WARPRAID_ASSERT(last->members.size() == record.members.size());
    round.each([&](const MemberDrive& member) -> Status {
        if (!took_part(*last, record, member.slot)) return success();
        return catch_up(member, held[member.slot.get()], *last);
    });
}

void check_drives(const format::GroupRecord& record, std::span<const MemberDrive> drives) {
    std::vector<bool> given(record.members.size(), false);
    for (const MemberDrive& member : drives) {
        WARPRAID_ASSERT(member.drive != nullptr && member.slot.get() < given.size());
        WARPRAID_ASSERT(!given[member.slot.get()]);
        given[member.slot.get()] = true;
    }
    for (std::size_t slot = 0; slot < given.size(); ++slot) {
        WARPRAID_ASSERT(given[slot] == format::is_live(record.members[slot]));
    }
}

/// The reserved areas without the superblock copies and the protective MD superblock, where nothing
/// of others may stay. The first copy's place is left alone too, so a crash finds what the drive
/// was before.
Status clear_reserves(io::BlockingDrive& drive) {
    const std::uint64_t size = drive.limits().size_bytes;
    const std::uint64_t first_end = format::kSuperblockOffset + format::kSuperblockBytes;
    const std::uint64_t second = format::superblock_copy_offset(size);
    const std::uint64_t second_end = second + format::kSuperblockBytes;
    constexpr std::uint64_t kProtectiveEnd =
        format::kProtectiveMdOffset + format::kProtectiveMdBytes;
    WARPRAID_TRY(write_zeroes(drive, 0, format::kProtectiveMdOffset));
    WARPRAID_TRY(write_zeroes(drive, kProtectiveEnd, format::kSuperblockOffset - kProtectiveEnd));
    WARPRAID_TRY(write_zeroes(drive, first_end, limits::kHeadReserveBytesMin - first_end));
    return write_zeroes(drive, second_end, size - second_end);
}

std::vector<std::byte> encode_protection(const format::ProtectiveMd& protection) {
    std::vector<std::byte> bytes(format::kProtectiveMdBytes);
    format::encode(protection, bytes);
    return bytes;
}

std::vector<std::byte> encode_protection(const format::GroupRecord& record, Slot slot) {
    WARPRAID_ASSERT(slot.get() < record.members.size());
    const format::Member& member = record.members[slot.get()];
    format::ProtectiveMd protection;
    protection.set = record.uuid;
    protection.drive = member.drive;
    protection.name = record.name;
    protection.created_seconds = record.created_ns / kNanosecondsPerSecond;
    protection.data_offset = member.data_offset;
    protection.slot = slot;
    protection.shape = record.shape;
    return encode_protection(protection);
}

/// The superblocks, the second first: until the last write the drive says what it was, not less.
/// Then the bitmap.
Status clear_records(io::BlockingDrive& drive) {
    const std::uint64_t second = format::superblock_copy_offset(drive.limits().size_bytes);
    WARPRAID_TRY(write_zeroes(drive, second, format::kSuperblockBytes));
    WARPRAID_TRY(drive.flush());
    WARPRAID_TRY(write_zeroes(drive, format::kSuperblockOffset, format::kSuperblockBytes));
    return write_zeroes(drive, format::kBitmapOffset,
                        format::kBitmapPagesMax * format::kBitmapPageBytes);
}

std::uint32_t pages_for(std::uint32_t regions) {
    return static_cast<std::uint32_t>(divide_up(regions, format::kBitsPerPage));
}

std::span<std::uint64_t> words_of_page(std::vector<std::uint64_t>& words, std::uint32_t page) {
    constexpr std::size_t kWordsPerPage = format::kBitsPerPage / 64;
    const std::span<std::uint64_t> rest = std::span(words).subspan(page * kWordsPerPage);
    return rest.first(std::min(rest.size(), kWordsPerPage));
}

/// `to` may be shorter: the group ends there.
void add_bits(std::span<std::uint64_t> to, std::span<const std::byte> from) {
    for (std::size_t i = 0; i < to.size() * 8; ++i) {
        to[i / 8] |= std::to_integer<std::uint64_t>(from[i]) << (8 * (i % 8));
    }
}

/// The pages as they must be on disk before a superblock first names the group: `dirty` (none when
/// empty), and nothing missed.
Status write_bitmap(io::BlockingDrive& drive, const format::GroupRecord& record,
                    std::span<const std::uint64_t> dirty) {
    const std::vector<std::byte> none(format::kBitmapMapBytes);
    std::vector<std::byte> map(format::kBitmapMapBytes);
    std::vector<std::byte> bytes(format::kBitmapPageBytes);
    const auto layout = geometry::Layout::make(record.shape);
    WARPRAID_ASSERT(layout.ok());
    const std::uint64_t regions = divide_up(layout->stripes(), record.region_stripes);
    WARPRAID_ASSERT(regions <= limits::kRegionsMax);
    std::span<const std::byte> rest = std::as_bytes(dirty);
    for (std::uint32_t page = 0; page < pages_for(static_cast<std::uint32_t>(regions)); ++page) {
        const std::span<const std::byte> part = rest.first(std::min(rest.size(), map.size()));
        rest = rest.subspan(part.size());
        std::ranges::fill(map, std::byte{0});
        std::ranges::copy(part, map.begin());
        format::encode({.group = record.uuid, .page = page, .sequence = 0}, {map, none}, bytes);
        WARPRAID_TRY(drive.write(format::kBitmapOffset + page * format::kBitmapPageBytes, bytes));
    }
    return success();
}

}  // namespace

CommitOutcome Store::commit(format::GroupRecord& record, std::span<const MemberDrive> drives) {
    check_drives(record, drives);
    Round round(drives);
    finish_last_commit(round, record);
    record.previous_commit_id = record.commit_id;
    record.generation = record.generation.next();
    do {
        record.commit_id = random_.next();
    } while (record.commit_id == 0 || record.commit_id == record.previous_commit_id);
    for (const MemberDrive& member : drives) {
        record.members[member.slot.get()].last_generation = record.generation;
        record.members[member.slot.get()].last_commit_id = record.commit_id;
    }
    round.write(record, Copy::kFirst);
    round.write(record, Copy::kSecond);
    return round.outcome();
}

Status Store::claim(io::BlockingDrive& drive, const format::GroupRecord& record, Slot slot) {
    const std::vector<std::byte> protection = encode_protection(record, slot);
    WARPRAID_TRY(drive.write(format::kProtectiveMdOffset,
                             std::span(protection).first(drive.limits().logical_block_bytes)));
    WARPRAID_TRY(drive.flush());
    WARPRAID_TRY(clear_records(drive));
    return drive.flush();
}

Status Store::prepare_member(io::BlockingDrive& drive, const format::GroupRecord& record, Slot slot,
                             std::span<const std::uint64_t> dirty) {
    WARPRAID_TRY(clear_reserves(drive));
    WARPRAID_TRY(drive.write(format::kProtectiveMdOffset, encode_protection(record, slot)));
    WARPRAID_TRY(write_bitmap(drive, record, dirty));
    return drive.flush();
}

Status Store::write_spare(io::BlockingDrive& drive, const format::SpareRecord& spare) {
    WARPRAID_TRY(clear_reserves(drive));
    format::ProtectiveMd protection;
    protection.set = spare.group.is_nil() ? spare.drive : spare.group;
    protection.drive = spare.drive;
    protection.name = "spare";
    protection.data_offset = format::default_data_offset(spare.drive_bytes);
    protection.spare = true;
    WARPRAID_TRY(drive.write(format::kProtectiveMdOffset, encode_protection(protection)));
    format::Superblock superblock;
    superblock.drive = spare.drive;
    superblock.content = spare;
    for (const Copy copy : {Copy::kFirst, Copy::kSecond}) {
        WARPRAID_TRY(write_copy(drive, superblock, copy));
        WARPRAID_TRY(drive.flush());
    }
    return success();
}

Status Store::clear(io::BlockingDrive& drive) {
    WARPRAID_TRY(clear_records(drive));
    WARPRAID_TRY(write_zeroes(drive, format::kProtectiveMdOffset, format::kProtectiveMdBytes));
    return drive.flush();
}

Result<format::BitmapContent> Store::read_bitmap(const format::GroupRecord& record,
                                                 std::uint32_t regions,
                                                 std::span<const MemberDrive> drives) {
    if (regions == 0 || regions > limits::kRegionsMax) {
        return Error{ErrorCode::kInvalidArgument,
                     "a bitmap of " + std::to_string(regions) + " regions"};
    }
    format::BitmapContent bitmap;
    bitmap.dirty.resize(divide_up(regions, 64));
    bitmap.missed.resize(bitmap.dirty.size());
    std::vector<std::byte> bytes(format::kBitmapPageBytes);
    for (std::uint32_t page = 0; page < pages_for(regions); ++page) {
        const std::span<std::uint64_t> dirty = words_of_page(bitmap.dirty, page);
        bool known = false;
        for (const MemberDrive& member : drives) {
            WARPRAID_ASSERT(member.slot.get() < record.members.size());
            const std::uint64_t offset = format::kBitmapOffset + page * format::kBitmapPageBytes;
            if (!member.drive->read(offset, bytes).ok() ||
                !format::decode_bitmap_page(bytes, record.uuid, page).ok()) {
                continue;
            }
            known =
                known || record.members[member.slot.get()].state == format::MemberState::kInSync;
            const format::BitmapMaps maps = format::bitmap_maps(bytes);
            add_bits(dirty, maps.dirty);
            add_bits(words_of_page(bitmap.missed, page), maps.missed);
        }
        if (!known) std::ranges::fill(dirty, ~std::uint64_t{0});
    }
    for (std::vector<std::uint64_t>* words : {&bitmap.dirty, &bitmap.missed}) {
        if (regions % 64 != 0) words->back() &= (std::uint64_t{1} << regions % 64) - 1;
    }
    return bitmap;
}

Result<std::optional<format::ProtectiveMark>> read_mark(io::BlockingDrive& drive) {
    std::vector<std::byte> bytes(format::kProtectiveMdBytes);
    WARPRAID_TRY(drive.read(format::kProtectiveMdOffset, bytes));
    return format::decode_protective_mark(bytes);
}

}  // namespace warpraid::meta
