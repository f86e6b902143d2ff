#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "format/bytes.h"
#include "format/crc32.h"
#include "format/format_test_support.h"
#include "format/utf16.h"

namespace warpraid::format {
namespace {

using Bytes = std::vector<std::byte>;

struct Tables {
    Bytes primary, backup;
};

Tables encoded(const PartitionTable& table, const GptDisk& disk) {
    Tables tables = {Bytes(gpt_primary_bytes(disk.block_bytes), std::byte{0xee}),
                     Bytes(gpt_backup_bytes(disk.block_bytes), std::byte{0xee})};
    encode_gpt(table, disk, tables.primary, tables.backup);
    return tables;
}

Result<DecodedTable> decoded(const Tables& tables, const GptDisk& disk) {
    return decode_gpt(disk, tables.primary, tables.backup);
}

PartitionTable two_volumes() {
    SeededRandom random(6);
    PartitionTable table;
    table.disk = Uuid::make(random);
    table.first_usable = kMiB;
    table.partitions = {
        {0, linux_data_type(), Uuid::make(random), "one", kMiB, 10 * kMiB, 0},
        {4, linux_data_type(), Uuid::make(random), "zwölf 😀", 20 * kMiB, 5 * kMiB, 0}};
    return table;
}

TEST(Crc32, matches_the_published_check_value) {
    EXPECT_EQ(crc32(std::as_bytes(std::span("123456789", 9))), 0xcbf43926u);
}

TEST(Utf16, converts_both_ways_and_refuses_what_is_no_utf8) {
    for (const char* text : {"", "a", "ü", "漢字", "😀", "a😀b"}) {
        EXPECT_EQ(utf16_to_utf8(utf8_to_utf16(text).value()), text);
    }
    EXPECT_EQ(utf8_to_utf16("😀").value().size(), 2u);
    for (const char* text : {"\xff", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                             "\xc3", "a\xe2\x82", "\x80"}) {
        EXPECT_FALSE(utf8_to_utf16(text).has_value());
    }
    EXPECT_EQ(utf16_to_utf8(u"\xd800"), "\xef\xbf\xbd");
    EXPECT_EQ(utf16_to_utf8(u"\xdc00x"), "\xef\xbf\xbdx");
    EXPECT_EQ(utf16_to_utf8(u"\xd83dx"), "\xef\xbf\xbdx");
}

RC_GTEST_PROP(Gpt, round_trips, (std::uint64_t seed)) {
    SeededRandom random(seed);
    const GptDisk disk = test::random_disk(random);
    const PartitionTable table = test::random_table(random, disk);
    RC_ASSERT(check_table(table, disk).ok());
    const Tables tables = encoded(table, disk);
    const auto result = decoded(tables, disk);
    RC_ASSERT(result.ok());
    RC_ASSERT(!result->needs_repair);
    RC_ASSERT(test::same(result->table, table));
}

RC_GTEST_PROP(Gpt, takes_the_backup_for_any_damage_of_the_primary, (std::uint64_t seed)) {
    SeededRandom random(seed);
    const GptDisk disk = test::random_disk(random);
    const PartitionTable table = test::random_table(random, disk);
    const Tables good = encoded(table, disk);
    for (int i = 0; i < 40; ++i) {
        Tables tables = good;
        // Behind the MBR, of which we read nothing.
        const std::size_t where =
            disk.block_bytes + random.below(tables.primary.size() - disk.block_bytes);
        tables.primary[where] ^= static_cast<std::byte>(1 + random.below(255));
        auto result = decoded(tables, disk);
        RC_ASSERT(result.ok());
        RC_ASSERT(result->needs_repair);
        RC_ASSERT(test::same(result->table, table));
        tables.backup[random.below(tables.backup.size())] ^=
            static_cast<std::byte>(1 + random.below(255));
        RC_ASSERT(!decoded(tables, disk).ok());
        tables.primary = good.primary;
        result = decoded(tables, disk);
        RC_ASSERT(result.ok() && result->needs_repair);
        RC_ASSERT(test::same(result->table, table));
    }
}

TEST(Gpt, prefers_the_primary_after_a_crash_between_the_two) {
    const GptDisk disk = {100 * kMiB, 4096};
    PartitionTable table = two_volumes();
    const Tables old = encoded(table, disk);
    table.partitions.pop_back();
    Tables tables = encoded(table, disk);
    tables.backup = old.backup;
    const auto result = decoded(tables, disk);
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result->needs_repair);
    EXPECT_EQ(result->table.partitions.size(), 1u);
}

/// Whatever stands in a table with right checksums is refused, or makes a table within its bounds.
RC_GTEST_PROP(Gpt, keeps_bounds_even_when_forged, (std::uint64_t seed)) {
    SeededRandom random(seed);
    const GptDisk disk = test::random_disk(random);
    const std::size_t block = disk.block_bytes;
    const Tables good = encoded(test::random_table(random, disk), disk);
    for (int i = 0; i < 30; ++i) {
        Tables tables = good;
        tables.backup.assign(tables.backup.size(), std::byte{0});
        const std::span<std::byte> header = std::span(tables.primary).subspan(block, block);
        const std::span<std::byte> entries = std::span(tables.primary).subspan(2 * block);
        if (random.below(2) == 0) {
            header[random.below(92)] = static_cast<std::byte>(random.next());
        } else {
            const std::size_t entry = random.below(kGptEntries) * kGptEntryBytes;
            entries[entry + random.below(56)] = static_cast<std::byte>(random.next());
        }
        put(header, 88, crc32(entries));
        put(header, 16, std::uint32_t{0});
        put(header, 16, crc32(header.first(92)));
        const auto result = decoded(tables, disk);
        if (!result.ok()) continue;
        for (const Partition& partition : result->table.partitions) {
            RC_ASSERT(partition.start >= gpt_primary_bytes(disk.block_bytes));
            RC_ASSERT(partition.start + partition.size_bytes <= gpt_usable_end(disk));
        }
    }
}

TEST(Gpt, says_that_there_is_no_table) {
    const GptDisk disk = {100 * kMiB, 512};
    const Tables none = {Bytes(gpt_primary_bytes(512)), Bytes(gpt_backup_bytes(512))};
    const auto result = decoded(none, disk);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kBadPartitionTable);
    EXPECT_FALSE(decode_gpt({100 * kMiB, 1024}, none.primary, none.backup).ok());
    EXPECT_FALSE(decode_gpt({512, 512}, none.primary, none.backup).ok());
    EXPECT_FALSE(decode_gpt(disk, {}, {}).ok());
}

TEST(Gpt, refuses_tables_that_cannot_be_stored) {
    const GptDisk disk = {100 * kMiB, 512};
    ASSERT_TRUE(check_table(two_volumes(), disk).ok());
    const auto code = [&](auto change) {
        PartitionTable table = two_volumes();
        change(table);
        const Status status = check_table(table, disk);
        return status.ok() ? ErrorCode::kInternal : status.error().code;
    };
    constexpr ErrorCode kTable = ErrorCode::kBadPartitionTable;
    EXPECT_EQ(code([](auto& t) { t.partitions[1].start = 10 * kMiB; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.partitions[1].start = 99 * kMiB; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.partitions[1].start += 1; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.partitions[1].size_bytes = 0; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.partitions[1].size_bytes = ~511ull; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.partitions[0].start = 0; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.partitions[1].index = 128; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.partitions[1].index = 0; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.partitions[1].uuid = t.partitions[0].uuid; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.partitions[1].type = {}; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.disk = {}; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.first_usable = 512; }), kTable);
    EXPECT_EQ(code([](auto& t) { t.partitions[0].name = std::string(37, 'x'); }),
              ErrorCode::kBadName);
    EXPECT_EQ(code([](auto& t) { t.partitions[0].name = "\xff"; }), ErrorCode::kBadName);
    EXPECT_EQ(code([](auto& t) { t.partitions[0].name = std::string("a\0b", 3); }),
              ErrorCode::kBadName);
    EXPECT_EQ(code([](auto& t) { t.partitions[0].name = std::string(36, 'x'); }),
              ErrorCode::kInternal);
}

TEST(Gpt, finds_free_room_between_volumes) {
    const GptDisk disk = {100 * kMiB, 512};
    const auto extents = free_extents(two_volumes(), disk, 3 * kMiB);
    ASSERT_EQ(extents.size(), 2u);
    EXPECT_EQ(extents[0].start, 12 * kMiB);
    EXPECT_EQ(extents[0].size_bytes, 8 * kMiB);
    EXPECT_EQ(extents[1].start, 27 * kMiB);
    EXPECT_EQ(extents[1].start + extents[1].size_bytes, gpt_usable_end(disk));
    PartitionTable empty = two_volumes();
    empty.partitions.clear();
    EXPECT_EQ(free_extents(empty, disk, kMiB).size(), 1u);
    EXPECT_EQ(free_extents(empty, disk, 99 * kMiB).size(), 1u);
    EXPECT_TRUE(free_extents(empty, disk, 200 * kMiB).empty());
}

TEST(Gpt, aligns_volumes_to_whole_stripes_of_at_least_a_mib) {
    const auto alignment = [](std::uint32_t members, std::uint32_t chunk) {
        const auto layout =
            geometry::Layout::make({geometry::Level::kRaid6, members, 1, chunk, 512, 100 * kMiB});
        return volume_alignment(layout.value());
    };
    EXPECT_EQ(alignment(6, 64 * kKiB), kMiB);
    EXPECT_EQ(alignment(7, 64 * kKiB), 4 * 5 * 64 * kKiB);
    EXPECT_EQ(alignment(10, kMiB), 8 * kMiB);
}

/// The judgement of sgdisk(8), where it is installed.
TEST(Gpt, is_a_valid_table_to_sgdisk) {
    if (std::system("sgdisk --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no sgdisk here";
    const GptDisk disk = {100 * kMiB, 512};
    const Tables tables = encoded(two_volumes(), disk);
    std::string path = ::testing::TempDir() + "warpraid-gpt-XXXXXX";
    const int file = mkstemp(path.data());
    ASSERT_GE(file, 0);
    const auto write_at = [&](const Bytes& bytes, std::uint64_t offset) {
        return pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
               static_cast<ssize_t>(bytes.size());
    };
    const bool written = write_at(tables.primary, 0) &&
                         write_at(tables.backup, disk.size_bytes - tables.backup.size());
    close(file);
    std::string said;
    FILE* pipe = popen(("sgdisk -v -p " + path + " 2>&1").c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    char line[256];
    while (std::fgets(line, sizeof line, pipe) != nullptr) said += line;
    const int status = pclose(pipe);
    unlink(path.c_str());
    EXPECT_TRUE(written);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_NE(said.find("No problems found"), std::string::npos) << said;
    EXPECT_NE(said.find("one"), std::string::npos) << said;
    EXPECT_NE(said.find("8300"), std::string::npos) << said;
}

}  // namespace
}  // namespace warpraid::format
