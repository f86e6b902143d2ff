#include "format/signatures.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "format/bytes.h"
#include "format/format_test_support.h"
#include "format/md_protective.h"

namespace warpraid::format {
namespace {

constexpr std::uint64_t kDriveBytes = 64 * kMiB + 3 * 512;

/// The edges of a drive that is empty but for what a test puts there.
class Drive {
  public:
    explicit Drive(std::uint64_t size_bytes = kDriveBytes)
        : size_(size_bytes),
          head_(std::min<std::uint64_t>(size_, kEdgeBytes)),
          tail_(head_.size()) {}

    void put_at(std::uint64_t offset, std::string_view text) {
        if (offset + text.size() <= head_.size()) {
            put_text(head_, offset, text);
        } else {
            put_text(tail_, offset - (size_ - tail_.size()), text);
        }
    }
    template <typename T>
    void number_at(std::uint64_t offset, T value) {
        std::byte bytes[sizeof(T)];
        put(std::span(bytes), 0, value);
        put_at(offset, {reinterpret_cast<const char*>(bytes), sizeof(T)});
    }
    std::vector<std::string> found() const {
        std::vector<std::string> texts;
        for (const Signature& signature : find_signatures({head_, tail_, size_})) {
            texts.push_back((signature.ours ? "ours: " : "") + signature.text);
        }
        return texts;
    }
    std::span<std::byte> head() { return head_; }

  private:
    std::uint64_t size_;
    std::vector<std::byte> head_;
    std::vector<std::byte> tail_;
};

using Texts = std::vector<std::string>;

TEST(Signatures, of_an_empty_drive_are_none) {
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{512}, std::uint64_t{4096},
                                     64 * kKiB, kMiB, kDriveBytes}) {
        EXPECT_EQ(Drive(size).found(), Texts{}) << size;
    }
}

struct Case {
    std::string text;
    std::function<void(Drive&)> make;
};

class SignatureTable : public ::testing::TestWithParam<Case> {};

TEST_P(SignatureTable, is_found_and_nothing_besides) {
    Drive drive;
    GetParam().make(drive);
    EXPECT_EQ(drive.found(), Texts{GetParam().text});
}

void put_md(Drive& drive, std::uint64_t offset, std::uint32_t major) {
    drive.number_at(offset, std::uint32_t{0xa92b4efc});
    drive.number_at(offset + 4, major);
}

void put_ext(Drive& drive, std::uint32_t compatible, std::uint32_t incompatible,
             std::uint32_t read_only) {
    drive.number_at(1024 + 56, std::uint16_t{0xef53});
    drive.number_at(1024 + 92, compatible);
    drive.number_at(1024 + 96, incompatible);
    drive.number_at(1024 + 100, read_only);
}

INSTANTIATE_TEST_SUITE_P(
    All, SignatureTable,
    ::testing::Values(
        Case{"Linux MD member (1.2)", [](Drive& d) { put_md(d, 4096, 1); }},
        Case{"Linux MD member (1.1)", [](Drive& d) { put_md(d, 0, 1); }},
        Case{"Linux MD member (1.0)", [](Drive& d) { put_md(d, 64 * kMiB - 8 * kKiB, 1); }},
        Case{"Linux MD member (0.90)", [](Drive& d) { put_md(d, 64 * kMiB - 64 * kKiB, 0); }},
        Case{"Linux MD member (0.90)",
             [](Drive& d) { d.put_at(64 * kMiB - 64 * kKiB, "\xa9\x2b\x4e\xfc"); }},
        Case{"GPT partition table", [](Drive& d) { d.put_at(512, "EFI PART"); }},
        Case{"GPT partition table", [](Drive& d) { d.put_at(4096, "EFI PART"); }},
        Case{"GPT partition table", [](Drive& d) { d.put_at(kDriveBytes - 512, "EFI PART"); }},
        Case{"GPT partition table",
             [](Drive& d) {
                 d.put_at(512, "EFI PART");
                 d.number_at(450, std::uint8_t{0xee});
                 d.number_at(458, std::uint32_t{100});
                 d.number_at(510, std::uint16_t{0xaa55});
             }},
        Case{"MBR partition table",
             [](Drive& d) {
                 d.number_at(446 + 16, std::uint8_t{0x80});
                 d.number_at(450 + 16, std::uint8_t{0x83});
                 d.number_at(458 + 16, std::uint32_t{100});
                 d.number_at(510, std::uint16_t{0xaa55});
             }},
        Case{"LVM2 physical volume",
             [](Drive& d) {
                 d.put_at(512, "LABELONE");
                 d.put_at(512 + 24, "LVM2 001");
             }},
        Case{"ext2 file system", [](Drive& d) { put_ext(d, 0x38, 0x2, 0x3); }},
        Case{"ext3 file system", [](Drive& d) { put_ext(d, 0x3c, 0x6, 0x3); }},
        Case{"ext4 file system", [](Drive& d) { put_ext(d, 0x3c, 0x2c2, 0x46b); }},
        Case{"ext4 file system", [](Drive& d) { put_ext(d, 0x4, 0x2, 0x8); }},
        Case{"ext journal device", [](Drive& d) { put_ext(d, 0, 0x8, 0); }},
        Case{"XFS file system", [](Drive& d) { d.put_at(0, "XFSB"); }},
        Case{"btrfs file system", [](Drive& d) { d.put_at(0x10040, "_BHRfS_M"); }},
        Case{"ZFS pool member",
             [](Drive& d) { d.number_at(128 * kKiB + 5 * kKiB, std::uint64_t{0xbab10c}); }},
        Case{"ZFS pool member",
             [](Drive& d) {
                 d.put_at(64 * kMiB - 128 * kKiB, std::string_view("\0\0\0\0\0\xba\xb1\x0c", 8));
             }},
        Case{"swap area", [](Drive& d) { d.put_at(4086, "SWAPSPACE2"); }},
        Case{"swap area", [](Drive& d) { d.put_at(65526, "SWAPSPACE2"); }},
        Case{"suspended swap area", [](Drive& d) { d.put_at(4086, "S1SUSPEND"); }},
        Case{"LUKS encrypted volume",
             [](Drive& d) { d.put_at(0, std::string_view("LUKS\xba\xbe\0\2", 8)); }},
        Case{"LUKS encrypted volume",
             [](Drive& d) { d.put_at(0x4000, std::string_view("SKUL\xba\xbe\0\2", 8)); }},
        Case{"NTFS file system", [](Drive& d) { d.put_at(3, "NTFS    "); }},
        Case{"FAT file system", [](Drive& d) { d.put_at(82, "FAT32   "); }},
        Case{"FAT file system", [](Drive& d) { d.put_at(54, "FAT16   "); }},
        Case{"bcache device",
             [](Drive& d) {
                 d.put_at(4096 + 24,
                          "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81");
             }},
        Case{"DDF RAID member", [](Drive& d) { d.put_at(kDriveBytes - 512, "\xde\x11\xde\x11"); }},
        Case{"Intel RAID (IMSM) member",
             [](Drive& d) { d.put_at(kDriveBytes - 1024, "Intel Raid ISM Cfg Sig. 1.3.00"); }},
        Case{"ours: Warpraid superblock", [](Drive& d) { d.put_at(64 * kKiB, "WARPRAID"); }},
        Case{"ours: Warpraid superblock",
             [](Drive& d) { d.put_at(superblock_copy_offset(kDriveBytes), "WARPRAID"); }},
        Case{"ours: protective MD superblock of Warpraid", [](Drive& d) {
                 put_md(d, 4096, 1);
                 d.number_at(4096 + 8, kProtectiveFeatureBit);
             }}));

TEST(Signatures, lists_several) {
    Drive drive;
    put_ext(drive, 0x3c, 0x2c2, 0x46b);
    drive.put_at(kDriveBytes - 512, "EFI PART");
    EXPECT_EQ(drive.found(), (Texts{"ext4 file system", "GPT partition table"}));
}

TEST(Signatures, of_random_bytes_never_crash) {
    constexpr std::uint64_t kSeed = 5;
    std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
    SeededRandom random(kSeed);
    std::vector<std::byte> bytes(kMiB);
    for (int round = 0; round < 50; ++round) {
        for (std::size_t at = 0; at < bytes.size(); at += 8)
            put(std::span(bytes), at, random.next());
        const std::size_t head = random.below(kMiB + 1);
        const std::size_t tail = random.below(kMiB + 1);
        const std::uint64_t size = std::max(head, tail) + random.below(10 * kMiB);
        find_signatures({std::span(bytes).first(head), std::span(bytes).first(tail), size});
    }
}

/// What the real makers write, where they are installed.
struct Maker {
    std::string program, command, text;
};
class SignatureMakers : public ::testing::TestWithParam<Maker> {};

TEST_P(SignatureMakers, are_recognised) {
    const Maker& maker = GetParam();
    if (std::system(("command -v " + maker.program + " >/dev/null 2>&1").c_str()) != 0) {
        GTEST_SKIP() << "no " << maker.program << " here";
    }
    std::string path = ::testing::TempDir() + "warpraid-signature-XXXXXX";
    const int file = mkstemp(path.data());
    ASSERT_GE(file, 0);
    constexpr std::uint64_t kImageBytes = 512 * kMiB;
    ASSERT_EQ(ftruncate(file, kImageBytes), 0);
    close(file);
    const int status = std::system((maker.command + " " + path + " >/dev/null 2>&1").c_str());
    std::vector<std::byte> head(kEdgeBytes);
    std::vector<std::byte> tail(kEdgeBytes);
    std::ifstream image(path, std::ios::binary);
    image.read(reinterpret_cast<char*>(head.data()), kEdgeBytes);
    image.seekg(kImageBytes - kEdgeBytes);
    image.read(reinterpret_cast<char*>(tail.data()), kEdgeBytes);
    unlink(path.c_str());
    ASSERT_EQ(status, 0) << maker.command;
    const auto found = find_signatures({head, tail, kImageBytes});
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].text, maker.text);
}

INSTANTIATE_TEST_SUITE_P(
    Installed, SignatureMakers,
    ::testing::Values(Maker{"mkfs.ext4", "mkfs.ext4 -q", "ext4 file system"},
                      Maker{"mkfs.ext3", "mkfs.ext3 -q", "ext3 file system"},
                      Maker{"mkfs.ext2", "mkfs.ext2 -q", "ext2 file system"},
                      Maker{"mkfs.xfs", "mkfs.xfs -q -f", "XFS file system"},
                      Maker{"mkfs.btrfs", "mkfs.btrfs -q", "btrfs file system"},
                      Maker{"mkswap", "mkswap", "swap area"},
                      Maker{"sgdisk", "sgdisk -o", "GPT partition table"},
                      Maker{"mkfs.vfat", "mkfs.vfat", "FAT file system"},
                      Maker{"mkfs.ntfs", "mkfs.ntfs -q -F -f", "NTFS file system"}));

}  // namespace
}  // namespace warpraid::format
