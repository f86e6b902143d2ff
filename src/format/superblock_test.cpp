#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/crc32c.h"
#include "format/bitmap_page.h"
#include "format/bytes.h"
#include "format/format_test_support.h"

namespace warpraid::format {
namespace {

using Bytes = std::vector<std::byte>;

Bytes encoded(const Superblock& superblock) {
    Bytes bytes(kSuperblockBytes, std::byte{0xee});
    encode(superblock, bytes);
    return bytes;
}

/// As docs/on-disk-format.md defines it: CRC-32C with the sum and the copy byte as zero.
Bytes with_right_checksum(Bytes bytes) {
    const std::byte copy = bytes[16];
    std::fill_n(bytes.begin() + 12, 5, std::byte{0});
    put(std::span(bytes), 12, crc32c(bytes));
    bytes[16] = copy;
    return bytes;
}

ErrorCode code_of(const Bytes& bytes) {
    const auto result = decode_superblock(bytes);
    return result.ok() ? ErrorCode::kInternal : result.error().code;
}

Superblock member_sample() {
    SeededRandom random(4);
    Superblock superblock = test::random_superblock(random);
    while (!std::holds_alternative<GroupRecord>(superblock.content)) {
        superblock = test::random_superblock(random);
    }
    return superblock;
}

RC_GTEST_PROP(Superblock, round_trips, (std::uint64_t seed)) {
    SeededRandom random(seed);
    const Superblock superblock = test::random_superblock(random);
    const Bytes bytes = encoded(superblock);
    RC_ASSERT(with_right_checksum(bytes) == bytes);
    const auto decoded = decode_superblock(bytes);
    RC_ASSERT(decoded.ok());
    RC_ASSERT(test::same(*decoded, superblock));
    RC_ASSERT(encoded(*decoded) == bytes);
}

RC_GTEST_PROP(Superblock, refuses_any_changed_byte, (std::uint64_t seed)) {
    SeededRandom random(seed);
    const Bytes good = encoded(test::random_superblock(random));
    for (int i = 0; i < 100; ++i) {
        Bytes bytes = good;
        const std::size_t where = random.below(bytes.size());
        bytes[where] ^= static_cast<std::byte>(1 + random.below(255));
        const auto decoded = decode_superblock(bytes);
        if (where != 16) RC_ASSERT(!decoded.ok());
    }
}

TEST(Superblock, refuses_each_flipped_bit_and_each_truncation) {
    const Bytes good = encoded(member_sample());
    for (std::size_t bit = 0; bit < good.size() * 8; bit += 5) {
        if (bit / 8 == 16) continue;
        Bytes bytes = good;
        bytes[bit / 8] ^= std::byte{1} << bit % 8;
        ASSERT_FALSE(decode_superblock(bytes).ok()) << bit;
    }
    for (std::size_t size = 0; size < good.size(); size += 97) {
        ASSERT_FALSE(decode_superblock(std::span(good).first(size)).ok()) << size;
    }
}

/// Whatever stands in a superblock with a right checksum: it is refused, or it encodes back to the
/// same bytes.
RC_GTEST_PROP(Superblock, is_canonical_even_when_forged, (std::uint64_t seed)) {
    SeededRandom random(seed);
    const Bytes good = encoded(test::random_superblock(random));
    for (int i = 0; i < 50; ++i) {
        Bytes bytes = good;
        for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
            const std::size_t where =
                random.below(2) == 0 ? random.below(600) : random.below(bytes.size());
            bytes[where] = static_cast<std::byte>(random.next());
        }
        bytes = with_right_checksum(bytes);
        const auto decoded = decode_superblock(bytes);
        if (decoded.ok()) RC_ASSERT(encoded(*decoded) == bytes);
    }
}

TEST(Superblock, holds_the_largest_group) {
    SeededRandom random(9);
    GroupRecord record = test::random_record(random);
    record.shape = {geometry::Level::kRaid6, 32, 1, 1u << 20, 4096, 120 * kTiB};
    record.region_stripes = default_region_stripes(geometry::Layout::make(record.shape).value());
    record.name = std::string(limits::kGroupNameBytesMax, 'n');
    record.members.assign(32, {});
    for (Member& member : record.members) {
        member = test::random_member(random, record.shape);
        member.drive = Uuid::make(random);
        member.data_offset = 64 * kMiB;
        member.drive_bytes = limits::kDriveBytesMax;
        member.serial = std::string(kSerialBytesMax, 's');
        member.model = std::string(kModelBytesMax, 'm');
        member.path = std::string(kPathBytesMax, 'p');
    }
    const Superblock superblock = {record.members[31].drive, 1, record, Slot(31)};
    const auto decoded = decode_superblock(encoded(superblock));
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_TRUE(test::same(*decoded, superblock));
}

TEST(Superblock, names_what_is_wrong) {
    const Bytes good = encoded(member_sample());
    EXPECT_EQ(code_of(Bytes(kSuperblockBytes)), ErrorCode::kNoSuperblock);
    EXPECT_EQ(code_of(Bytes(100)), ErrorCode::kBadSuperblock);
    struct Forgery {
        std::size_t offset;
        std::uint8_t value;
        ErrorCode code;
    };
    for (const Forgery& forgery : {Forgery{8, 2, ErrorCode::kUnsupportedVersion},
                                   Forgery{8, 0, ErrorCode::kBadSuperblock},
                                   Forgery{24, 1, ErrorCode::kUnsupportedVersion},
                                   Forgery{31, 0x80, ErrorCode::kUnsupportedVersion},
                                   Forgery{140, 1, ErrorCode::kUnsupportedLayout},
                                   Forgery{128, 4, ErrorCode::kUnsupportedLayout},
                                   Forgery{16, 2, ErrorCode::kBadSuperblock},
                                   Forgery{17, 3, ErrorCode::kBadSuperblock},
                                   Forgery{18, 1, ErrorCode::kBadSuperblock},
                                   Forgery{22, 1, ErrorCode::kBadSuperblock},
                                   Forgery{50, 1, ErrorCode::kBadSuperblock},
                                   Forgery{129, 33, ErrorCode::kBadSuperblock},
                                   Forgery{129, 255, ErrorCode::kBadSuperblock},
                                   Forgery{131, 32, ErrorCode::kBadSuperblock},
                                   Forgery{132, 1, ErrorCode::kBadSuperblock},
                                   Forgery{141, 2, ErrorCode::kBadSuperblock},
                                   Forgery{142, 2, ErrorCode::kBadSuperblock},
                                   Forgery{143, 33, ErrorCode::kBadSuperblock},
                                   Forgery{176, 3, ErrorCode::kBadSuperblock},
                                   Forgery{300, 1, ErrorCode::kBadSuperblock},
                                   Forgery{512 + 64, 4, ErrorCode::kBadSuperblock},
                                   Forgery{512 + 65, 8, ErrorCode::kBadSuperblock},
                                   Forgery{512 + 66, 2, ErrorCode::kBadSuperblock},
                                   Forgery{512 + 67, 65, ErrorCode::kBadSuperblock},
                                   Forgery{512 + 330, 1, ErrorCode::kBadSuperblock},
                                   Forgery{16383, 1, ErrorCode::kBadSuperblock}}) {
        Bytes bytes = good;
        bytes[forgery.offset] = static_cast<std::byte>(forgery.value);
        EXPECT_EQ(code_of(with_right_checksum(bytes)), forgery.code) << forgery.offset;
        // Without a right checksum it is damage, not a message from the future.
        EXPECT_EQ(code_of(bytes), ErrorCode::kBadSuperblock) << forgery.offset;
    }
}

TEST(Superblock, lies_in_the_first_and_the_last_mib) {
    for (const std::uint64_t size : {limits::kDriveBytesMin, limits::kDriveBytesMin + 512,
                                     1000 * kMiB + 3584, limits::kDriveBytesMax}) {
        const std::uint64_t second = superblock_copy_offset(size);
        EXPECT_EQ(second % 4096, 0u);
        EXPECT_GE(second, size - kMiB);
        EXPECT_LE(second + kSuperblockBytes, size);
    }
    EXPECT_EQ(default_data_offset(limits::kDriveBytesMin), kMiB);
    EXPECT_EQ(default_data_offset(256 * kMiB), 2 * kMiB);
    EXPECT_EQ(default_data_offset(limits::kDriveBytesMax), 64 * kMiB);
}

TEST(Record, remembers_whether_a_member_left_in_sync) {
    Member member;
    leave(member, MemberState::kMissing, LeaveReason::kTimeout, 9);
    EXPECT_TRUE(member.by_bitmap);
    EXPECT_EQ(member.since_ns, 9u);
    leave(member, MemberState::kFailed, LeaveReason::kOperator, 10);
    EXPECT_TRUE(member.by_bitmap);
    Member rebuilding;
    rebuilding.state = MemberState::kRebuilding;
    leave(rebuilding, MemberState::kMissing, LeaveReason::kAbsent, 9);
    EXPECT_FALSE(rebuilding.by_bitmap);
}

TEST(Record, refuses_what_makes_no_sense) {
    SeededRandom random(3);
    GroupRecord good = test::random_record(random);
    good.members[0] = test::random_member(random, good.shape);
    good.members[0].drive = Uuid::make(random);
    good.members[0].data_offset = kMiB;
    good.members[0].drive_bytes = good.shape.member_data_bytes + 2 * kMiB;
    ASSERT_TRUE(check_record(good).ok());
    const auto refused = [&](auto change) {
        GroupRecord record = good;
        change(record);
        return !check_record(record).ok();
    };
    EXPECT_TRUE(refused([](GroupRecord& r) { r.uuid = {}; }));
    EXPECT_TRUE(refused([](GroupRecord& r) { r.name = std::string(33, 'x'); }));
    EXPECT_TRUE(refused([](GroupRecord& r) { r.members.pop_back(); }));
    EXPECT_TRUE(refused([](GroupRecord& r) { r.region_stripes = 0; }));
    EXPECT_TRUE(refused([](GroupRecord& r) {
        r.shape.member_data_bytes = 128 * kTiB;
        r.region_stripes = 1;
    }));
    EXPECT_TRUE(refused([](GroupRecord& r) { r.members[1].drive = r.members[0].drive; }));
    EXPECT_TRUE(refused([](GroupRecord& r) { r.members[0].drive_bytes -= 1; }));
    EXPECT_TRUE(refused([](GroupRecord& r) { r.members[0].data_offset = kMiB - 512; }));
    EXPECT_TRUE(refused([](GroupRecord& r) { r.members[0].data_offset += 511; }));
    EXPECT_TRUE(refused([](GroupRecord& r) { r.members[0].data_offset = ~511ull; }));
    EXPECT_TRUE(refused(
        [](GroupRecord& r) { r.members[0].rebuilt_bytes = r.shape.member_data_bytes + 1; }));
    EXPECT_TRUE(refused([](GroupRecord& r) {
        r.members[0].drive = {};
        r.members[0].state = MemberState::kInSync;
    }));
    EXPECT_TRUE(refused([](GroupRecord& r) { r.members[0].serial = std::string(65, 'x'); }));
}

TEST(Record, divides_groups_of_any_size_into_regions_that_the_bitmap_holds) {
    SeededRandom random(12);
    for (int i = 0; i < 500; ++i) {
        const auto layout = geometry::Layout::make(test::random_shape(random)).value();
        const std::uint64_t stripes = default_region_stripes(layout);
        EXPECT_GE(stripes * layout.stripe_depth_bytes(), limits::kRegionBytesMin);
        EXPECT_LE(divide_up(layout.stripes(), stripes), limits::kRegionsMax);
    }
}

// ---- bitmap pages -------------------------------------------------------------------------------

Bytes random_bits(SeededRandom& random) {
    Bytes bits(kBitmapMapBytes);
    for (std::byte& byte : bits) byte = static_cast<std::byte>(random.next());
    return bits;
}

RC_GTEST_PROP(BitmapPage, round_trips_and_refuses_any_changed_byte, (std::uint64_t seed)) {
    SeededRandom random(seed);
    const BitmapPageHeader header = {Uuid::make(random),
                                     static_cast<std::uint32_t>(random.below(kBitmapPagesMax)),
                                     random.next()};
    const Bytes dirty = random_bits(random);
    const Bytes missed = random_bits(random);
    Bytes bytes(kBitmapPageBytes, std::byte{0xee});
    encode(header, {dirty, missed}, bytes);
    const auto decoded = decode_bitmap_page(bytes, header.group, header.page);
    RC_ASSERT(decoded.ok());
    RC_ASSERT(decoded->sequence == header.sequence);
    RC_ASSERT(std::ranges::equal(dirty, bitmap_maps(bytes).dirty));
    RC_ASSERT(std::ranges::equal(missed, bitmap_maps(bytes).missed));
    RC_ASSERT(!decode_bitmap_page(bytes, Uuid::make(random), header.page).ok());
    RC_ASSERT(!decode_bitmap_page(bytes, header.group, header.page + 1).ok());
    RC_ASSERT(
        !decode_bitmap_page(std::span(bytes).first(random.below(4096)), header.group, header.page)
             .ok());
    for (int i = 0; i < 100; ++i) {
        Bytes changed = bytes;
        changed[random.below(changed.size())] ^= static_cast<std::byte>(1 + random.below(255));
        RC_ASSERT(!decode_bitmap_page(changed, header.group, header.page).ok());
    }
}

TEST(BitmapPage, refuses_forged_versions_and_reserved_bytes) {
    SeededRandom random(1);
    const Uuid group = Uuid::make(random);
    for (const std::size_t where : {8u, 36u, 39u, 48u, 63u}) {
        Bytes bytes(kBitmapPageBytes);
        encode({group, 3, 1}, {random_bits(random), random_bits(random)}, bytes);
        bytes[where] ^= where == 8 ? std::byte{3} : std::byte{2};  // version 1, for one
        put(std::span(bytes), 12, std::uint32_t{0});
        put(std::span(bytes), 12, crc32c(bytes));
        EXPECT_FALSE(decode_bitmap_page(bytes, group, 3).ok()) << where;
    }
}

}  // namespace
}  // namespace warpraid::format
