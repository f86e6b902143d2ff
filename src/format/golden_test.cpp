// The format as files in tests/golden/, one set per format version, which no later change may
// break: today's code must read them to these values and write these values to the same bytes.
// tests/golden/README.md says how to make them anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "format/bitmap_page.h"
#include "format/format_test_support.h"
#include "format/md_protective.h"
#include "format/signatures.h"

namespace warpraid::format {
namespace {

using Bytes = std::vector<std::byte>;
const std::filesystem::path kSources = WARPRAID_SOURCE_DIRECTORY;

bool is_writing() {
    return std::getenv("WARPRAID_WRITE_GOLDEN") != nullptr;
}

void write_file(const std::filesystem::path& path, const Bytes& bytes) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(file.good()) << path;
}

Bytes read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto* start = reinterpret_cast<const std::byte*>(text.data());
    return {start, start + text.size()};
}

/// Compares `bytes` with the golden file, or makes the file.
Bytes golden(const std::string& name, const Bytes& bytes) {
    const auto path = kSources / "tests" / "golden" / name;
    if (is_writing()) write_file(path, bytes);
    Bytes kept = read_file(path);
    EXPECT_TRUE(kept == bytes) << name << " is not what is written today";
    return kept;
}

/// The same bytes as a first input of a fuzz target; `prefix` is what the target reads first.
void seed_corpus(const std::string& target, const std::string& name, const Bytes& bytes,
                 const Bytes& prefix = {}) {
    if (!is_writing()) return;
    Bytes input = prefix;
    input.insert(input.end(), bytes.begin(), bytes.end());
    while (!input.empty() && input.back() == std::byte{0}) input.pop_back();
    write_file(kSources / "fuzz" / "corpus" / target / name, input);
}

Uuid uuid(const char* text) {
    return Uuid::parse(text).value();
}

/// RAID 6 of four: one in sync, one rebuilding, one failed, one slot never filled again.
GroupRecord sample_group() {
    GroupRecord record;
    record.uuid = uuid("6d0c8f0e-5b7a-4c55-9d52-0f6f3a1b2c3d");
    record.name = "data";
    record.shape = {geometry::Level::kRaid6, 4, 1, 64 * kKiB, 4096, 253 * kMiB};
    record.region_stripes = 16;
    record.created_ns = 1'764'633'600'000'000'000;
    record.generation = Generation(42);
    record.commit_id = 0x1122334455667788;
    record.previous_commit_id = 0x8877665544332211;
    record.clean = true;
    record.members.resize(4);
    for (std::size_t slot = 0; slot < 3; ++slot) {
        Member& member = record.members[slot];
        member.drive = uuid("00000000-0000-4000-8000-000000000001");
        member.drive.bytes[15] = static_cast<std::uint8_t>(slot + 1);
        member.serial = "S6XENE0T10000" + std::to_string(slot);
        member.model = "Example NVMe 256";
        member.path = "/dev/nvme" + std::to_string(slot) + "n1";
        member.drive_bytes = 256 * kMiB;
        member.data_offset = 2 * kMiB;
        member.since_ns = 1'764'633'600'000'000'000 + slot;
        member.last_generation = Generation(42);
        member.last_commit_id = 0x1122334455667788;
    }
    record.members[1].state = MemberState::kRebuilding;
    record.members[1].rebuilt_bytes = 10 * kMiB;
    leave(record.members[2], MemberState::kFailed, LeaveReason::kWriteError,
          1'764'633'601'000'000'000);
    record.members[2].last_generation = Generation(40);
    record.members[2].last_commit_id = 0x0102030405060708;
    record.members[3].state = MemberState::kMissing;
    return record;
}

Superblock sample_member() {
    const GroupRecord record = sample_group();
    return {record.members[1].drive, 1, record, Slot(1)};
}

Superblock sample_spare() {
    const SpareRecord spare = {uuid("00000000-0000-4000-8000-000000000009"), sample_group().uuid,
                               "S6XENE0T100009", 512 * kMiB};
    return {spare.drive, 0, spare, {}};
}

void check_superblock(const std::string& name, const Superblock& superblock) {
    Bytes bytes(kSuperblockBytes);
    encode(superblock, bytes);
    const Bytes kept = golden(name, bytes);
    const auto decoded = decode_superblock(kept);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_TRUE(test::same(*decoded, superblock));
    encode(*decoded, bytes);
    EXPECT_TRUE(bytes == kept);
    seed_corpus("superblock", name, bytes);
}

TEST(Golden, member) {
    check_superblock("superblock_v1_member.bin", sample_member());
}
TEST(Golden, spare) {
    check_superblock("superblock_v1_spare.bin", sample_spare());
}

TEST(Golden, bitmap_page) {
    const BitmapPageHeader header = {sample_group().uuid, 2, 77};
    Bytes dirty(kBitmapMapBytes);
    dirty[0] = std::byte{0x81};
    dirty[2015] = std::byte{0x80};
    Bytes missed(kBitmapMapBytes);
    missed[0] = std::byte{0x02};
    missed[2015] = std::byte{0x40};
    Bytes bytes(kBitmapPageBytes);
    encode(header, {dirty, missed}, bytes);
    const Bytes kept = golden("bitmap_page_v2.bin", bytes);
    const auto decoded = decode_bitmap_page(kept, header.group, header.page);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(decoded->sequence, 77u);
    EXPECT_TRUE(std::ranges::equal(dirty, bitmap_maps(kept).dirty));
    EXPECT_TRUE(std::ranges::equal(missed, bitmap_maps(kept).missed));
    seed_corpus("bitmap_page", "page", bytes);
}

TEST(Golden, partition_tables) {
    for (const std::uint32_t block : {512u, 4096u}) {
        const GptDisk disk = {64 * kMiB, block};
        PartitionTable table;
        table.disk = uuid("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee");
        table.first_usable = kMiB;
        table.partitions = {{0, linux_data_type(), uuid("11111111-2222-4333-8444-555555555555"),
                             "vd0", kMiB, 16 * kMiB, 0},
                            {2, linux_data_type(), uuid("11111111-2222-4333-8444-666666666666"),
                             "größe 😀", 20 * kMiB, 40 * kMiB, 0}};
        Bytes primary(gpt_primary_bytes(block));
        Bytes backup(gpt_backup_bytes(block));
        encode_gpt(table, disk, primary, backup);
        const std::string suffix = "_" + std::to_string(block) + ".bin";
        const Bytes kept_primary = golden("gpt_primary" + suffix, primary);
        const Bytes kept_backup = golden("gpt_backup" + suffix, backup);
        const auto decoded = decode_gpt(disk, kept_primary, kept_backup);
        ASSERT_TRUE(decoded.ok()) << decoded.error().message;
        EXPECT_FALSE(decoded->needs_repair);
        EXPECT_TRUE(test::same(decoded->table, table));
        Bytes both = primary;
        both.insert(both.end(), backup.begin(), backup.end());
        seed_corpus("partition_table", std::to_string(block), both,
                    {static_cast<std::byte>(block == 4096)});
    }
}

TEST(Golden, protective_md) {
    const GroupRecord record = sample_group();
    ProtectiveMd member;
    member.set = record.uuid;
    member.drive = record.members[1].drive;
    member.name = record.name;
    member.created_seconds = record.created_ns / 1'000'000'000;
    member.data_offset = 2 * kMiB;
    member.slot = Slot(1);
    member.shape = record.shape;
    Bytes bytes(kProtectiveMdBytes);
    encode(member, bytes);
    EXPECT_TRUE(is_protective_md(golden("protective_md.bin", bytes)));
    Bytes head(kProtectiveMdOffset);
    head.insert(head.end(), bytes.begin(), bytes.end());
    seed_corpus("signatures", "protective_md", head, {std::byte{1}, std::byte{0}});
}

}  // namespace
}  // namespace warpraid::format
