// Examining single drives, preparing and clearing them, reading bitmaps, drives that fail a commit.
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "format/bitmap_page.h"
#include "format/md_protective.h"
#include "meta/meta_test_support.h"
#include "meta/superblock_io.h"

namespace warpraid::meta {
namespace {

using format::MemberState;
using geometry::Level;
using test::BrokenDrive;
using test::Shelf;

std::byte* bytes_of(Shelf& shelf, std::size_t drive) {
    return io::ram_bytes(*shelf.drives[drive].bytes);
}
const std::uint64_t kSecondCopy = format::superblock_copy_offset(test::kDriveBytes);

/// The reserves and a MiB of data behind and before them.
std::vector<std::byte> edges(Shelf& shelf, std::size_t drive) {
    const std::byte* start = bytes_of(shelf, drive);
    std::vector<std::byte> bytes(start, start + 2 * kMiB);
    const std::byte* end = start + test::kDriveBytes;
    bytes.insert(bytes.end(), end - 2 * kMiB, end);
    return bytes;
}

/// As docs/on-disk-format.md defines it: CRC-32C with the sum and the copy byte as zero.
void refresh_checksum(std::span<std::byte> superblock) {
    const std::byte copy = superblock[16];
    std::fill_n(superblock.begin() + 12, 5, std::byte{0});
    const std::uint32_t sum = crc32c(superblock);
    for (std::size_t i = 0; i < 4; ++i) superblock[12 + i] = static_cast<std::byte>(sum >> 8 * i);
    superblock[16] = copy;
}

TEST(Examine, takes_either_copy_and_changes_nothing) {
    for (const std::uint64_t damaged : {format::kSuperblockOffset, kSecondCopy}) {
        Shelf shelf;
        const auto record = shelf.create(Level::kRaid5, 3);
        bytes_of(shelf, 1)[damaged + 100] ^= std::byte{0x40};
        const auto before = edges(shelf, 1);
        const FoundDrive found = examine(*shelf.drives[1].face);
        EXPECT_EQ(edges(shelf, 1), before);
        ASSERT_TRUE(found.superblock.has_value());
        EXPECT_TRUE(found.damaged_copy);
        EXPECT_EQ(commit_id_of(*found.superblock), record.commit_id);
        EXPECT_EQ(found.superblock->slot, Slot(1));
        const Candidate candidate = shelf.find({0, 1, 2});
        EXPECT_EQ(candidate.assembly->damaged, std::vector<Slot>{Slot(1)});
        shelf.run({0, 1, 2});
        EXPECT_FALSE(examine(*shelf.drives[1].face).damaged_copy);
    }
}

TEST(Examine, prefers_the_newer_copy_when_a_write_was_lost) {
    Shelf shelf;
    shelf.create(Level::kRaid5, 3);
    const auto old = test::reserves_of(*shelf.drives[0].bytes);
    const auto record = shelf.run({0, 1, 2});
    std::copy_n(old.begin() + format::kSuperblockOffset, format::kSuperblockBytes,
                bytes_of(shelf, 0) + format::kSuperblockOffset);
    const FoundDrive found = examine(*shelf.drives[0].face);
    ASSERT_TRUE(found.superblock.has_value());
    EXPECT_EQ(commit_id_of(*found.superblock), record.commit_id);
    EXPECT_TRUE(found.damaged_copy);
}

TEST(Examine, does_not_take_a_copy_in_the_wrong_place) {
    Shelf shelf;
    shelf.create(Level::kRaid5, 3);
    std::copy_n(bytes_of(shelf, 0) + kSecondCopy, format::kSuperblockBytes,
                bytes_of(shelf, 0) + format::kSuperblockOffset);
    EXPECT_TRUE(examine(*shelf.drives[0].face).damaged_copy);
}

TEST(Examine, leaves_alone_what_was_put_over_a_former_member) {
    Shelf shelf;
    shelf.create(Level::kRaid5, 3);
    std::fill_n(bytes_of(shelf, 0), kMiB, std::byte{0});
    EXPECT_TRUE(examine(*shelf.drives[0].face).superblock.has_value()) << "zeroes are an accident";
    bytes_of(shelf, 0)[1024 + 56] = std::byte{0x53};
    bytes_of(shelf, 0)[1024 + 57] = std::byte{0xef};
    const FoundDrive found = examine(*shelf.drives[0].face);
    EXPECT_FALSE(found.superblock.has_value());
    ASSERT_TRUE(found.problem.has_value());
    EXPECT_EQ(found.problem->code, ErrorCode::kHasSignature);
    EXPECT_NE(found.problem->message.find("ext2 file system"), std::string::npos);
}

TEST(Examine, names_a_newer_format_and_does_not_fall_back_behind_it) {
    Shelf shelf;
    shelf.create(Level::kRaid1, 2);
    // Version 2 with a checksum that fits: of a future program.
    std::byte* first = bytes_of(shelf, 0) + format::kSuperblockOffset;
    first[8] = std::byte{2};
    refresh_checksum({first, format::kSuperblockBytes});
    const FoundDrive found = examine(*shelf.drives[0].face);
    EXPECT_FALSE(found.superblock.has_value());
    ASSERT_TRUE(found.problem.has_value());
    EXPECT_EQ(found.problem->code, ErrorCode::kUnsupportedVersion);
}

TEST(Examine, reports_a_drive_that_cannot_be_read) {
    Shelf shelf;
    shelf.create(Level::kRaid1, 2);
    BrokenDrive broken(*shelf.drives[0].face);
    broken.reads_fail = true;
    const FoundDrive found = examine(broken);
    ASSERT_TRUE(found.problem.has_value());
    EXPECT_EQ(found.problem->code, ErrorCode::kIo);
}

TEST(Examine, finds_nothing_on_drives_too_small_for_anything) {
    Shelf shelf;
    shelf.add_drive("tiny", 512);
    const FoundDrive found = examine(*shelf.drives[0].face);
    EXPECT_FALSE(found.superblock.has_value());
    EXPECT_FALSE(found.problem.has_value());
    EXPECT_TRUE(foreign_signatures(*shelf.drives[0].face)->empty());
}

TEST(Prepare, wipes_what_others_left_and_protects_the_drive) {
    Shelf shelf;
    auto record = shelf.create(Level::kRaid5, 3);
    std::memcpy(bytes_of(shelf, 0), "XFSB", 4);
    std::memcpy(bytes_of(shelf, 0) + test::kDriveBytes - 512, "EFI PART", 8);
    EXPECT_EQ(*foreign_signatures(*shelf.drives[0].face),
              (std::vector<std::string>{"XFS file system", "GPT partition table"}));
    bytes_of(shelf, 0)[kMiB] = std::byte{0x77};
    bytes_of(shelf, 0)[test::kDriveBytes - kMiB - 1] = std::byte{0x78};
    ASSERT_TRUE(shelf.store.prepare_member(*shelf.drives[0].face, record, Slot(0)).ok());
    EXPECT_TRUE(foreign_signatures(*shelf.drives[0].face)->empty());
    EXPECT_TRUE(format::is_protective_md({bytes_of(shelf, 0) + 4096, 256}));
    EXPECT_EQ(bytes_of(shelf, 0)[kMiB], std::byte{0x77}) << "data is not touched";
    EXPECT_EQ(bytes_of(shelf, 0)[test::kDriveBytes - kMiB - 1], std::byte{0x78});
    EXPECT_TRUE(examine(*shelf.drives[0].face).superblock.has_value());
}

TEST(Spare, is_written_found_and_cleared) {
    Shelf shelf;
    const std::size_t drive = shelf.add_drive("spare");
    const format::SpareRecord spare = {Uuid::make(shelf.random), Uuid::make(shelf.random), "spare",
                                       test::kDriveBytes};
    ASSERT_TRUE(shelf.store.write_spare(*shelf.drives[drive].face, spare).ok());
    const FoundDrive found = examine(*shelf.drives[drive].face);
    ASSERT_TRUE(found.superblock.has_value());
    EXPECT_FALSE(found.damaged_copy);
    const auto* record = std::get_if<format::SpareRecord>(&found.superblock->content);
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(record->group, spare.group);
    EXPECT_EQ(record->drive, spare.drive);
    EXPECT_TRUE(assemble(shelf.scan_all(), {}).empty());
    ASSERT_TRUE(shelf.store.clear(*shelf.drives[drive].face).ok());
    EXPECT_FALSE(examine(*shelf.drives[drive].face).superblock.has_value());
    const auto bytes = edges(shelf, drive);
    EXPECT_TRUE(
        std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; }));
}

TEST(Clear, leaves_no_group_behind) {
    Shelf shelf;
    shelf.create(Level::kRaid5, 3);
    for (auto& drive : shelf.drives) ASSERT_TRUE(shelf.store.clear(*drive.face).ok());
    EXPECT_TRUE(assemble(shelf.scan_all(), {}).empty());
}

TEST(Commit, names_the_drives_that_failed_and_goes_on_without_them) {
    for (const std::uint64_t writes : {0u, 1u}) {
        Shelf shelf;
        auto record = shelf.create(Level::kRaid5, 3);
        BrokenDrive broken(*shelf.drives[1].face);
        broken.writes_left = writes;
        const CommitOutcome outcome = shelf.store.commit(
            record, std::vector<MemberDrive>{{Slot(0), shelf.drives[0].face.get()},
                                             {Slot(1), &broken},
                                             {Slot(2), shelf.drives[2].face.get()}});
        EXPECT_EQ(outcome.failed, std::vector<Slot>{Slot(1)});
        format::leave(record.members[1], MemberState::kFailed, format::LeaveReason::kWriteError, 1);
        ASSERT_TRUE(shelf.store.commit(record, shelf.faces(record, {0, 1, 2})).ok());
        const Candidate candidate = shelf.find({0, 1, 2});
        ASSERT_TRUE(candidate.assembly.has_value()) << Shelf::problem_text(candidate);
        EXPECT_EQ(candidate.assembly->record.commit_id, record.commit_id);
        EXPECT_FALSE(candidate.assembly->drives[1].has_value());
    }
}

TEST(Commit, does_not_write_to_a_drive_that_cannot_be_read) {
    Shelf shelf;
    auto record = shelf.create(Level::kRaid5, 3);
    const auto before = edges(shelf, 1);
    BrokenDrive broken(*shelf.drives[1].face);
    broken.reads_fail = true;
    broken.writes_left = 100;
    const CommitOutcome outcome =
        shelf.store.commit(record, std::vector<MemberDrive>{{Slot(0), shelf.drives[0].face.get()},
                                                            {Slot(1), &broken},
                                                            {Slot(2), shelf.drives[2].face.get()}});
    EXPECT_EQ(outcome.failed, std::vector<Slot>{Slot(1)});
    EXPECT_EQ(edges(shelf, 1), before);
}

// ---- bitmaps ------------------------------------------------------------------------------------

class ReadBitmap : public ::testing::Test {
  protected:
    static constexpr std::uint32_t kRegions = format::kBitsPerPage + 100;
    ReadBitmap() : record_(shelf_.create(Level::kRaid5, 3)) {}

    using Regions = std::vector<std::uint32_t>;
    static std::vector<std::byte> map_of(const Regions& set) {
        std::vector<std::byte> bits(format::kBitmapMapBytes);
        for (const std::uint32_t bit : set) bits[bit / 8] |= std::byte{1} << bit % 8;
        return bits;
    }
    void write_page(std::size_t drive, std::uint32_t page, const Regions& dirty,
                    const Regions& missed = {}) {
        format::encode({record_.uuid, page, 7}, {map_of(dirty), map_of(missed)},
                       {at(drive, page), format::kBitmapPageBytes});
    }
    std::byte* at(std::size_t drive, std::uint32_t page) {
        return bytes_of(shelf_, drive) + format::kBitmapOffset + page * format::kBitmapPageBytes;
    }
    format::BitmapContent read_both() {
        const auto found = shelf_.store.read_bitmap(record_, kRegions, drives());
        EXPECT_TRUE(found.ok());
        return found.ok() ? *found : format::BitmapContent{};
    }
    static Regions set_of(const std::vector<std::uint64_t>& words) {
        EXPECT_EQ(words.size(), (kRegions + 63) / 64);
        Regions set;
        for (std::uint32_t i = 0; i < words.size() * 64; ++i) {
            if ((words[i / 64] >> i % 64 & 1) != 0) set.push_back(i);
        }
        return set;
    }
    Regions read() { return set_of(read_both().dirty); }
    std::vector<MemberDrive> drives() { return shelf_.faces(record_, {0, 1, 2}); }

    Shelf shelf_;
    format::GroupRecord record_;
};

TEST_F(ReadBitmap, unites_the_members) {
    for (std::size_t drive = 0; drive < 3; ++drive) {
        write_page(drive, 0, {static_cast<std::uint32_t>(drive), 9, format::kBitsPerPage - 1});
        write_page(drive, 1, {99});
    }
    EXPECT_EQ(read(), (Regions{0, 1, 2, 9, format::kBitsPerPage - 1, format::kBitsPerPage + 99}));
}

TEST_F(ReadBitmap, keeps_apart_what_is_dirty_and_what_was_missed) {
    write_page(0, 0, {3}, {4, format::kBitsPerPage - 1});
    write_page(1, 0, {}, {5});
    write_page(2, 1, {7}, {99});
    const format::BitmapContent found = read_both();
    EXPECT_EQ(set_of(found.dirty), (Regions{3, format::kBitsPerPage + 7}));
    EXPECT_EQ(set_of(found.missed),
              (Regions{4, 5, format::kBitsPerPage - 1, format::kBitsPerPage + 99}));
}

TEST_F(ReadBitmap, believes_any_member_in_sync_when_another_page_is_torn) {
    for (std::size_t drive = 0; drive < 3; ++drive) {
        write_page(drive, 0, {5});
        write_page(drive, 1, {});
    }
    at(0, 0)[2000] ^= std::byte{1};
    EXPECT_EQ(read(), std::vector<std::uint32_t>{5});
    at(1, 0)[2000] ^= std::byte{1};
    at(2, 0)[2000] ^= std::byte{1};
    EXPECT_EQ(read().size(), format::kBitsPerPage) << "nobody knows: all dirty";
    // A member that is being rebuilt adds what it has but vouches for nothing.
    write_page(2, 0, {6});
    record_.members[2].state = MemberState::kRebuilding;
    EXPECT_EQ(read().size(), format::kBitsPerPage);
}

TEST_F(ReadBitmap, is_all_dirty_up_to_the_last_region_where_there_is_none) {
    EXPECT_EQ(read().size(), 100u) << "page 0 was made when the group was created, page 1 never";
    for (std::size_t drive = 0; drive < 3; ++drive) {
        at(drive, 0)[0] = std::byte{0};
    }
    EXPECT_EQ(read().size(), kRegions);
}

TEST_F(ReadBitmap, of_another_group_does_not_count) {
    for (std::size_t drive = 0; drive < 3; ++drive) write_page(drive, 1, {});
    record_.uuid = Uuid::make(shelf_.random);
    EXPECT_EQ(read().size(), kRegions);
}

}  // namespace
}  // namespace warpraid::meta
