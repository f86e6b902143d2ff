#include "format/md_protective.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "format/bytes.h"

namespace warpraid::format {
namespace {

ProtectiveMd member_sample() {
    SeededRandom random(8);
    ProtectiveMd superblock;
    superblock.set = Uuid::make(random);
    superblock.drive = Uuid::make(random);
    superblock.name = "data";
    superblock.created_seconds = 1'764'633'600;
    superblock.data_offset = 2 * kMiB;
    superblock.slot = Slot(3);
    superblock.shape = {geometry::Level::kRaid6, 6, 1, 64 * kKiB, 512, 29 * kMiB};
    return superblock;
}

std::vector<std::byte> encoded(const ProtectiveMd& superblock) {
    std::vector<std::byte> bytes(kProtectiveMdBytes, std::byte{0xee});
    encode(superblock, bytes);
    return bytes;
}

/// A drive image that has only this superblock, removed at the end of the test.
class Image {
  public:
    explicit Image(const std::vector<std::byte>& superblock)
        : path_(::testing::TempDir() + "warpraid-md-XXXXXX") {
        const int file = mkstemp(path_.data());
        EXPECT_GE(file, 0);
        EXPECT_EQ(ftruncate(file, 32 * kMiB), 0);
        EXPECT_EQ(pwrite(file, superblock.data(), superblock.size(), kProtectiveMdOffset),
                  static_cast<ssize_t>(superblock.size()));
        close(file);
    }
    ~Image() { unlink(path_.c_str()); }
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;

    /// What a program says about the image, with its exit status on a last line.
    std::string ask(const std::string& program) const {
        std::string said;
        FILE* pipe = popen((program + " " + path_ + " 2>&1; echo status $?").c_str(), "r");
        EXPECT_NE(pipe, nullptr);
        char line[256];
        while (std::fgets(line, sizeof line, pipe) != nullptr) said += line;
        pclose(pipe);
        return said;
    }

  private:
    std::string path_;
};

bool is_installed(const std::string& program) {
    return std::system((program + " --version >/dev/null 2>&1").c_str()) == 0;
}

TEST(ProtectiveMd, is_recognised_and_nothing_else_is) {
    std::vector<std::byte> bytes = encoded(member_sample());
    EXPECT_TRUE(is_protective_md(bytes));
    EXPECT_FALSE(is_protective_md(std::span(bytes).first(255)));
    for (const std::size_t where : {0u, 4u, 11u}) {
        auto changed = bytes;
        changed[where] ^= std::byte{0x80};
        EXPECT_FALSE(is_protective_md(changed)) << where;
    }
}

TEST(ProtectiveMd, is_a_valid_superblock_to_mdadm) {
    if (!is_installed("mdadm")) GTEST_SKIP() << "no mdadm here";
    const Image image(encoded(member_sample()));
    const std::string said = image.ask("mdadm --examine");
    for (const char* text :
         {"Magic : a92b4efc", "Version : 1.2", "Feature Map : 0x80000000", "Name : warpraid:data",
          "Raid Level : raid6", "Raid Devices : 6", "Data Offset : 4096 sectors",
          "Super Offset : 8 sectors", "Chunk Size : 64K", "Layout : left-symmetric",
          "Device Role : Active device 3", " - correct\n", "status 0"}) {
        EXPECT_NE(said.find(text), std::string::npos) << text << " is not in\n" << said;
    }
}

TEST(ProtectiveMd, of_every_level_and_of_a_spare_is_valid_to_mdadm) {
    if (!is_installed("mdadm")) GTEST_SKIP() << "no mdadm here";
    for (const auto level : {geometry::Level::kRaid0, geometry::Level::kRaid1,
                             geometry::Level::kRaid5, geometry::Level::kRaid10}) {
        ProtectiveMd superblock = member_sample();
        superblock.shape.level = level;
        superblock.shape.copies = 2;
        superblock.shape.members = 32;
        const std::string said = Image(encoded(superblock)).ask("mdadm --examine");
        EXPECT_NE(said.find("Raid Level : " + std::string(to_text(level))), std::string::npos)
            << said;
        EXPECT_NE(said.find(" - correct\n"), std::string::npos) << said;
    }
    ProtectiveMd spare = member_sample();
    spare.spare = true;
    spare.shape = {};
    const std::string said = Image(encoded(spare)).ask("mdadm --examine");
    EXPECT_NE(said.find(" - correct\n"), std::string::npos) << said;
    EXPECT_NE(said.find("Device Role : spare"), std::string::npos) << said;
}

TEST(ProtectiveMd, is_a_raid_member_to_blkid) {
    if (!is_installed("blkid")) GTEST_SKIP() << "no blkid here";
    const std::string said = Image(encoded(member_sample())).ask("blkid -p");
    EXPECT_NE(said.find("TYPE=\"linux_raid_member\""), std::string::npos) << said;
    EXPECT_NE(said.find("status 0"), std::string::npos) << said;
}

/// The kernel refuses features it does not know. mdadm has none to spare in bit 31 either; what
/// both know today ends at bit 10.
TEST(ProtectiveMd, carries_a_feature_that_no_md_knows) {
    const auto features = get<std::uint32_t>(encoded(member_sample()), 8);
    EXPECT_EQ(features & ~std::uint32_t{0x7ff}, kProtectiveFeatureBit);
}

TEST(ProtectiveMd, cuts_long_names) {
    ProtectiveMd superblock = member_sample();
    superblock.name = std::string(32, 'x');
    const auto bytes = encoded(superblock);
    EXPECT_EQ(get_text(bytes, 32, 32), "warpraid:" + std::string(23, 'x'));
    EXPECT_EQ(get<std::uint64_t>(bytes, 64), superblock.created_seconds);
}

// ---- the mark -----------------------------------------------------------------------------------

constexpr std::size_t kMarkBytes = 512;

/// Both counts of devices there can be: a group of the most members, and a spare behind all slots.
std::vector<ProtectiveMd> mark_samples() {
    ProtectiveMd smallest = member_sample();
    smallest.shape.level = geometry::Level::kRaid1;
    smallest.shape.members = 2;
    smallest.slot = Slot(1);
    ProtectiveMd largest = member_sample();
    largest.shape.level = geometry::Level::kRaid0;
    largest.shape.members = limits::kMembersMax;
    largest.slot = Slot(limits::kMembersMax - 1);
    ProtectiveMd spare = member_sample();
    spare.spare = true;
    spare.shape = {};
    return {member_sample(), smallest, largest, spare};
}

/// How many bytes the checksum is of.
std::size_t summed_bytes(std::span<const std::byte> bytes) {
    return 256 + 2 * std::size_t{get<std::uint32_t>(bytes, 220)};
}

TEST(ProtectiveMark, is_read_from_what_was_written) {
    for (const ProtectiveMd& superblock : mark_samples()) {
        const auto bytes = encoded(superblock);
        const ProtectiveMark wanted{superblock.set, superblock.drive};
        EXPECT_EQ(decode_protective_mark(bytes), wanted);
        // The first block is enough, and nothing behind it counts.
        EXPECT_EQ(decode_protective_mark(std::span(bytes).first(kMarkBytes)), wanted);
        auto torn = bytes;
        std::fill(torn.begin() + kMarkBytes, torn.end(), std::byte{0x5a});
        EXPECT_EQ(decode_protective_mark(torn), wanted);
    }
}

TEST(ProtectiveMark, tells_drives_and_groups_apart) {
    const ProtectiveMd superblock = member_sample();
    const auto mark = decode_protective_mark(encoded(superblock));
    ASSERT_TRUE(mark);
    EXPECT_EQ(mark->set, superblock.set);
    EXPECT_EQ(mark->drive, superblock.drive);
    EXPECT_NE(*mark, (ProtectiveMark{superblock.drive, superblock.set}));
    ProtectiveMd other = superblock;
    SeededRandom random(9);
    other.drive = Uuid::make(random);
    EXPECT_NE(decode_protective_mark(encoded(other)), mark);
    other = superblock;
    other.set = Uuid::make(random);
    EXPECT_NE(decode_protective_mark(encoded(other)), mark);
}

/// Of anything that encode() did not write there is none, whichever byte of what it wrote is
/// another.
TEST(ProtectiveMark, is_not_there_when_any_byte_is_another) {
    for (const ProtectiveMd& superblock : mark_samples()) {
        const auto bytes = encoded(superblock);
        for (std::size_t where = 0; where < summed_bytes(bytes); ++where) {
            for (const unsigned change : {0x01u, 0x80u, 0xffu}) {
                auto changed = bytes;
                changed[where] ^= static_cast<std::byte>(change);
                EXPECT_FALSE(decode_protective_mark(changed)) << where << " by " << change;
            }
        }
    }
}

TEST(ProtectiveMark, is_not_there_without_the_magic_even_if_the_sum_is_right) {
    for (const std::size_t where : {std::size_t{0}, std::size_t{4}, std::size_t{11}}) {
        auto bytes = encoded(member_sample());
        bytes[where] ^= std::byte{0x80};
        put(bytes, 216, md_checksum(std::span(bytes).first(summed_bytes(bytes))));
        EXPECT_FALSE(decode_protective_mark(bytes)) << where;
    }
}

TEST(ProtectiveMark, is_not_there_in_less_than_a_sector) {
    const auto bytes = encoded(member_sample());
    for (std::size_t size = 0; size < kMarkBytes; ++size) {
        EXPECT_FALSE(decode_protective_mark(std::span(bytes).first(size))) << size;
    }
}

/// However many devices it says there are, nothing behind the sector is read: the span is no longer
/// than that, for the sanitizers to see.
TEST(ProtectiveMark, is_not_there_with_more_devices_than_a_group_has) {
    for (const std::uint32_t devices :
         {std::uint32_t{limits::kMembersMax + 2}, 128u, 129u, 0x7fff'ff80u, ~std::uint32_t{0}}) {
        auto bytes = encoded(member_sample());
        bytes.resize(kMarkBytes);
        put(bytes, 220, devices);
        EXPECT_FALSE(decode_protective_mark(bytes)) << devices;
        const std::size_t summed =
            std::min<std::size_t>(kMarkBytes, 256 + 2 * std::size_t{devices});
        put(bytes, 216, md_checksum(std::span(bytes).first(summed)));
        EXPECT_FALSE(decode_protective_mark(bytes)) << devices << " with its sum";
    }
}

TEST(ProtectiveMark, is_not_there_in_garbage) {
    EXPECT_FALSE(decode_protective_mark(std::vector<std::byte>(kMarkBytes)));
    EXPECT_FALSE(decode_protective_mark(std::vector<std::byte>(kMarkBytes, std::byte{0xff})));
    SeededRandom random(10);
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::byte> bytes(kMarkBytes);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
        // As garbage, and behind a head that looks right.
        EXPECT_FALSE(decode_protective_mark(bytes)) << round;
        const auto valid = encoded(member_sample());
        std::copy_n(valid.begin(), 12, bytes.begin());
        EXPECT_FALSE(decode_protective_mark(bytes)) << round;
        put(bytes, 220, static_cast<std::uint32_t>(random.next() % (limits::kMembersMax + 2)));
        EXPECT_FALSE(decode_protective_mark(bytes)) << round;
    }
}

}  // namespace
}  // namespace warpraid::format
