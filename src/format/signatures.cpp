#include "format/signatures.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>

#include "base/limits.h"
#include "format/bytes.h"
#include "format/md_protective.h"
#include "format/superblock.h"

namespace warpraid::format {
namespace {

using std::string_view_literals::operator""sv;

/// A format that is known by a text at a fixed place from the start.
struct FixedMagic {
    std::size_t offset;
    std::string_view magic;
    std::string_view text;
};

constexpr FixedMagic kFixedMagics[] = {
    {0, "XFSB", "XFS file system"},
    {64 * kKiB + 64, "_BHRfS_M", "btrfs file system"},
    {0, "LUKS\xba\xbe"sv, "LUKS encrypted volume"},
    {0x4000, "SKUL\xba\xbe"sv, "LUKS encrypted volume"},
    {0x8000, "SKUL\xba\xbe"sv, "LUKS encrypted volume"},
    {0x10000, "SKUL\xba\xbe"sv, "LUKS encrypted volume"},
    {0x20000, "SKUL\xba\xbe"sv, "LUKS encrypted volume"},
    {0x40000, "SKUL\xba\xbe"sv, "LUKS encrypted volume"},
    {0x80000, "SKUL\xba\xbe"sv, "LUKS encrypted volume"},
    {3, "NTFS    ", "NTFS file system"},
    {3, "EXFAT   ", "exFAT file system"},
    {3, "-FVE-FS-", "BitLocker volume"},
    {54, "FAT12   ", "FAT file system"},
    {54, "FAT16   ", "FAT file system"},
    {82, "FAT32   ", "FAT file system"},
    {4096 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"sv,
     "bcache device"},
    {4096 + 24, "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"sv,
     "bcachefs file system"},
    {1024, "\x10\x20\xf5\xf2"sv, "F2FS file system"},
    {32769, "CD001", "ISO 9660 file system"},
    {0, "bluestore block device\n", "Ceph BlueStore device"},
    {0, "dmvdo001", "VDO volume"},
    {0, "SPDKBLOB", "SPDK blobstore"},
    {0, "SPDKRAID", "SPDK RAID member"},
};

/// Reads at any offset of the drive, as far as the edges hold it.
class Reader {
  public:
    explicit Reader(const DriveEdges& edges) : edges_(edges) {}

    std::uint64_t size() const { return edges_.drive_bytes; }
    const DriveEdges& edges() const { return edges_; }

    /// `length` bytes at `offset`; empty when neither edge holds them all.
    std::span<const std::byte> at(std::uint64_t offset, std::size_t length) const {
        if (offset <= edges_.head.size() && length <= edges_.head.size() - offset) {
            return edges_.head.subspan(offset, length);
        }
        if (edges_.tail.size() > size()) return {};
        const std::uint64_t tail_start = size() - edges_.tail.size();
        if (offset >= tail_start && offset <= size() && length <= size() - offset) {
            return edges_.tail.subspan(offset - tail_start, length);
        }
        return {};
    }
    bool has(std::uint64_t offset, std::string_view text) const {
        const auto bytes = at(offset, text.size());
        return !bytes.empty() && has_text(bytes, 0, text);
    }
    template <std::unsigned_integral T>
    T number(std::uint64_t offset) const {
        const auto bytes = at(offset, sizeof(T));
        return bytes.empty() ? T{0} : get<T>(bytes, 0);
    }

  private:
    const DriveEdges& edges_;
};

using Found = std::optional<Signature>;

Found foreign(std::string_view text) {
    return Signature{std::string(text), false};
}

Found find_ours(const Reader& reader) {
    constexpr std::string_view kMagic = "WARPRAID";
    const bool first = reader.has(kSuperblockOffset, kMagic);
    const bool last = reader.size() >= limits::kDriveBytesMin &&
                      reader.has(superblock_copy_offset(reader.size()), kMagic);
    if (!first && !last) return std::nullopt;
    return Signature{"Warpraid superblock", true};
}

Found find_protective(const Reader& reader) {
    if (!is_protective_md(reader.at(kProtectiveMdOffset, 256))) return std::nullopt;
    return Signature{"protective MD superblock of Warpraid", true};
}

Found find_md(const Reader& reader) {
    constexpr std::uint32_t kMagic = 0xa92b4efc;
    const std::uint64_t size = reader.size();
    struct Place {
        std::uint64_t offset;
        std::uint32_t major;
        std::string_view text;
    };
    const std::uint64_t at_10 = size >= 8 * kKiB ? round_down(size - 8 * kKiB, 4 * kKiB) : 0;
    const std::uint64_t at_090 = size >= 128 * kKiB ? round_down(size, 64 * kKiB) - 64 * kKiB : 0;
    const Place places[] = {{4096, 1, "Linux MD member (1.2)"},
                            {0, 1, "Linux MD member (1.1)"},
                            {at_10, 1, "Linux MD member (1.0)"},
                            {at_090, 0, "Linux MD member (0.90)"}};
    for (const Place& place : places) {
        const auto bytes = reader.at(place.offset, 256);
        if (bytes.empty()) continue;
        // Version 0.90 is in the byte order of the machine that wrote it.
        const bool little =
            get<std::uint32_t>(bytes, 0) == kMagic && get<std::uint32_t>(bytes, 4) == place.major;
        const bool big = place.major == 0 && get_big_endian<std::uint32_t>(bytes, 0) == kMagic &&
                         get_big_endian<std::uint32_t>(bytes, 4) == 0;
        if ((little || big) && !is_protective_md(bytes)) return foreign(place.text);
    }
    return std::nullopt;
}

Found find_gpt(const Reader& reader) {
    constexpr std::string_view kMagic = "EFI PART";
    for (const std::uint64_t block : {512u, 4096u}) {
        const bool backup = reader.size() >= block && reader.has(reader.size() - block, kMagic);
        if (reader.has(block, kMagic) || backup) return foreign("GPT partition table");
    }
    return std::nullopt;
}

Found find_mbr(const Reader& reader) {
    constexpr std::size_t kEntries = 446, kEntryBytes = 16, kTypeOffset = 4, kCountOffset = 12;
    if (reader.number<std::uint16_t>(510) != 0xaa55) return std::nullopt;
    bool any = false;
    for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t at = kEntries + i * kEntryBytes;
        // A boot sector of a file system has code here: other flags than these two.
        if ((reader.number<std::uint8_t>(at) & 0x7f) != 0) return std::nullopt;
        any = any || (reader.number<std::uint8_t>(at + kTypeOffset) != 0 &&
                      reader.number<std::uint32_t>(at + kCountOffset) != 0);
    }
    if (!any) return std::nullopt;
    return foreign("MBR partition table");
}

Found find_lvm(const Reader& reader) {
    for (std::uint64_t at = 0; at < 4 * 512; at += 512) {
        if (reader.has(at, "LABELONE") && reader.has(at + 24, "LVM2 001")) {
            return foreign("LVM2 physical volume");
        }
    }
    return std::nullopt;
}

Found find_ext(const Reader& reader) {
    constexpr std::uint64_t kSuper = 1024;
    if (reader.number<std::uint16_t>(kSuper + 56) != 0xef53) return std::nullopt;
    constexpr std::uint32_t kHasJournal = 0x4, kJournalDevice = 0x8;
    // Features that ext3 drivers know: file types, recovery, meta block groups; sparse superblocks,
    // large files, B-tree directories.
    constexpr std::uint32_t kOldIncompatible = 0x2 | 0x4 | 0x10, kOldReadOnly = 0x7;
    const auto compatible = reader.number<std::uint32_t>(kSuper + 92);
    const auto incompatible = reader.number<std::uint32_t>(kSuper + 96);
    const auto read_only = reader.number<std::uint32_t>(kSuper + 100);
    if ((incompatible & kJournalDevice) != 0) return foreign("ext journal device");
    if ((incompatible & ~kOldIncompatible) != 0 || (read_only & ~kOldReadOnly) != 0) {
        return foreign("ext4 file system");
    }
    return foreign((compatible & kHasJournal) != 0 ? "ext3 file system" : "ext2 file system");
}

Found find_zfs(const Reader& reader) {
    constexpr std::uint64_t kMagic = 0x00bab10c;
    constexpr std::uint64_t kLabel = 256 * kKiB, kRing = 128 * kKiB, kSlot = kKiB;
    const std::uint64_t end = round_down(reader.size(), kLabel);
    std::array<std::uint64_t, 4> labels = {0, kLabel, 0, kLabel};
    if (end >= 4 * kLabel) {
        labels[2] = end - 2 * kLabel;
        labels[3] = end - kLabel;
    }
    for (const std::uint64_t label : labels) {
        for (std::uint64_t at = label + kRing; at < label + kLabel; at += kSlot) {
            const auto bytes = reader.at(at, sizeof kMagic);
            if (bytes.empty()) continue;
            if (get<std::uint64_t>(bytes, 0) == kMagic ||
                get_big_endian<std::uint64_t>(bytes, 0) == kMagic) {
                return foreign("ZFS pool member");
            }
        }
    }
    return std::nullopt;
}

Found find_swap(const Reader& reader) {
    for (std::uint64_t page = 4 * kKiB; page <= 64 * kKiB; page *= 2) {
        for (const std::string_view magic : {"SWAPSPACE2", "SWAP-SPACE", "LINHIB0001"}) {
            if (reader.has(page - 10, magic)) return foreign("swap area");
        }
        for (const std::string_view magic : {"S1SUSPEND", "S2SUSPEND", "ULSUSPEND"}) {
            if (reader.has(page - 10, magic)) return foreign("suspended swap area");
        }
    }
    return std::nullopt;
}

Found find_firmware_raid(const Reader& reader) {
    for (const std::uint64_t block : {512u, 4096u}) {
        if (reader.size() < 257 * block) continue;
        for (const std::uint64_t from_end : {std::uint64_t{1}, std::uint64_t{257}}) {
            if (reader.has(reader.size() - from_end * block, "\xde\x11\xde\x11")) {
                return foreign("DDF RAID member");
            }
        }
        if (reader.has(reader.size() - 2 * block, "Intel Raid ISM Cfg Sig. ")) {
            return foreign("Intel RAID (IMSM) member");
        }
    }
    return std::nullopt;
}

Found find_old_fat(const Reader& reader) {
    // FAT made without the optional text: a jump, sane sector and cluster sizes, and a media byte.
    const auto jump = reader.number<std::uint8_t>(0);
    const auto sector = reader.number<std::uint16_t>(11);
    const auto cluster = reader.number<std::uint8_t>(13);
    const auto fats = reader.number<std::uint8_t>(16);
    const auto media = reader.number<std::uint8_t>(21);
    if (reader.number<std::uint16_t>(510) == 0xaa55 && (jump == 0xeb || jump == 0xe9) &&
        std::has_single_bit(sector) && sector >= 512 && sector <= 4096 &&
        std::has_single_bit(cluster) && (fats == 1 || fats == 2) &&
        (media == 0xf0 || media >= 0xf8)) {
        return foreign("FAT file system");
    }
    return std::nullopt;
}

}  // namespace

std::vector<Signature> find_signatures(const DriveEdges& edges) {
    const Reader reader(edges);
    std::vector<Signature> found;
    const auto add = [&found](Found signature) {
        if (!signature) return;
        for (const Signature& known : found) {
            if (known.text == signature->text) return;
        }
        found.push_back(std::move(*signature));
    };
    for (const auto find : {find_ours, find_protective, find_md, find_lvm, find_zfs, find_ext}) {
        add(find(reader));
    }
    for (const FixedMagic& fixed : kFixedMagics) {
        if (reader.has(fixed.offset, fixed.magic)) add(foreign(fixed.text));
    }
    for (const auto find : {find_swap, find_old_fat, find_firmware_raid, find_gpt}) {
        add(find(reader));
    }
    // The protective entry of a GPT is no second table.
    const bool has_gpt = std::any_of(found.begin(), found.end(), [](const Signature& signature) {
        return signature.text == "GPT partition table";
    });
    if (!has_gpt) add(find_mbr(reader));
    return found;
}

}  // namespace warpraid::format
