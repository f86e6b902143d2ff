#include "format/gpt.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/bytes.h"
#include "format/crc32.h"
#include "format/utf16.h"

// Field offsets are those of the UEFI specification; docs/on-disk-format.md, section "Volumes".
namespace warpraid::format {
namespace {

constexpr std::string_view kMagic = "EFI PART";
constexpr std::uint32_t kRevision = 0x00010000;
constexpr std::uint32_t kHeaderBytes = 92;
constexpr std::size_t kEntriesBytes = kGptEntries * kGptEntryBytes;

namespace mbr {
constexpr std::size_t kEntry = 446, kType = 450, kFirst = 454, kCount = 458, kSignature = 510;
constexpr std::uint8_t kProtective = 0xee;
}  // namespace mbr

namespace at {
constexpr std::size_t kMagic = 0, kRevision = 8, kHeaderBytes = 12, kHeaderCrc = 16, kReserved = 20,
                      kMyBlock = 24, kOtherBlock = 32, kFirstUsable = 40, kLastUsable = 48,
                      kDisk = 56, kEntriesBlock = 72, kEntryCount = 80, kEntryBytes = 84,
                      kEntriesCrc = 88;
}  // namespace at

namespace entry {
constexpr std::size_t kType = 0, kUuid = 16, kFirst = 32, kLast = 40, kAttributes = 48, kName = 56;
}  // namespace entry

static_assert(entry::kName + 2 * limits::kVolumeNameCharsMax == kGptEntryBytes);

/// The blocks of a table on a disk of this size.
struct Blocks {
    std::uint64_t bytes;  // of one block
    std::uint64_t entries;
    std::uint64_t disk;
    explicit Blocks(const GptDisk& d)
        : bytes(d.block_bytes),
          entries(kEntriesBytes / d.block_bytes),
          disk(d.size_bytes / d.block_bytes) {}
    std::uint64_t last() const { return disk - 1; }
    std::uint64_t primary_entries() const { return 2; }
    std::uint64_t first_possible() const { return 2 + entries; }
    std::uint64_t backup_entries() const { return disk - 1 - entries; }
    std::uint64_t last_possible() const { return backup_entries() - 1; }
};

enum class Copy { kPrimary, kBackup };

Error bad(std::string message) {
    return Error{ErrorCode::kBadPartitionTable, std::move(message)};
}

/// The table's own byte order of an identity: the first three parts little-endian.
Uuid swapped(const Uuid& uuid) {
    constexpr std::size_t kOrder[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    Uuid result;
    for (std::size_t i = 0; i < 16; ++i) result.bytes[i] = uuid.bytes[kOrder[i]];
    return result;
}

Status check_disk(const GptDisk& disk) {
    if (disk.block_bytes != 512 && disk.block_bytes != 4096) {
        return bad(fmt::format("blocks of {} bytes: they must be 512 or 4096", disk.block_bytes));
    }
    const std::uint64_t least =
        gpt_primary_bytes(disk.block_bytes) + gpt_backup_bytes(disk.block_bytes) + disk.block_bytes;
    if (disk.size_bytes % disk.block_bytes != 0 || disk.size_bytes < least) {
        return bad(
            fmt::format("{} bytes cannot hold a partition table: whole blocks of {} and at "
                        "least {} bytes are needed",
                        disk.size_bytes, disk.block_bytes, least));
    }
    return success();
}

Status check_partition(const Partition& partition, const PartitionTable& table,
                       const GptDisk& disk) {
    const std::uint64_t end = gpt_usable_end(disk);
    if (partition.index >= kGptEntries) {
        return bad(fmt::format("partition {}: at most {}", partition.index, kGptEntries));
    }
    if (partition.type.is_nil() || partition.uuid.is_nil()) {
        return bad(fmt::format("partition {}: no type or no identity", partition.index));
    }
    if (partition.start % disk.block_bytes != 0 || partition.size_bytes % disk.block_bytes != 0 ||
        partition.size_bytes == 0 || partition.start < table.first_usable ||
        partition.start >= end || partition.size_bytes > end - partition.start) {
        return bad(fmt::format(
            "partition {}: {} bytes from {} do not lie in whole blocks between "
            "{} and {}",
            partition.index, partition.size_bytes, partition.start, table.first_usable, end));
    }
    return success();
}

Status check_overlap(const PartitionTable& table) {
    std::vector<const Partition*> by_start;
    for (const Partition& partition : table.partitions) by_start.push_back(&partition);
    std::sort(by_start.begin(), by_start.end(),
              [](const Partition* a, const Partition* b) { return a->start < b->start; });
    for (std::size_t i = 1; i < by_start.size(); ++i) {
        if (by_start[i - 1]->start + by_start[i - 1]->size_bytes > by_start[i]->start) {
            return bad(fmt::format("partitions {} and {} overlap", by_start[i - 1]->index,
                                   by_start[i]->index));
        }
    }
    std::vector<Uuid> uuids;
    for (const Partition& partition : table.partitions) uuids.push_back(partition.uuid);
    std::sort(uuids.begin(), uuids.end());
    if (std::adjacent_find(uuids.begin(), uuids.end()) != uuids.end()) {
        return bad("two partitions have the same identity");
    }
    return success();
}

/// Everything but the names, which only an encoder has to refuse.
Status check_places(const PartitionTable& table, const GptDisk& disk) {
    WARPRAID_TRY(check_disk(disk));
    if (table.disk.is_nil()) return bad("a table without an identity");
    if (table.first_usable % disk.block_bytes != 0 ||
        table.first_usable < gpt_primary_bytes(disk.block_bytes) ||
        table.first_usable > gpt_usable_end(disk)) {
        return bad(fmt::format("first usable byte {}: it must be a block between {} and {}",
                               table.first_usable, gpt_primary_bytes(disk.block_bytes),
                               gpt_usable_end(disk)));
    }
    for (std::size_t i = 0; i < table.partitions.size(); ++i) {
        WARPRAID_TRY(check_partition(table.partitions[i], table, disk));
        if (i > 0 && table.partitions[i - 1].index >= table.partitions[i].index) {
            return bad("partitions are not in ascending order");
        }
    }
    return check_overlap(table);
}

void encode_mbr(const GptDisk& disk, std::span<std::byte> to) {
    const std::uint64_t blocks = Blocks(disk).disk - 1;
    put(to, mbr::kEntry + 2, std::uint8_t{2});  // first sector in the notation of cylinders
    put(to, mbr::kType, mbr::kProtective);
    for (std::size_t i = 5; i < 8; ++i) put(to, mbr::kEntry + i, std::uint8_t{0xff});
    put(to, mbr::kFirst, std::uint32_t{1});
    put(to, mbr::kCount, static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, 0xffffffff)));
    put(to, mbr::kSignature, std::uint16_t{0xaa55});
}

void encode_entries(const PartitionTable& table, const GptDisk& disk, std::span<std::byte> to) {
    for (const Partition& partition : table.partitions) {
        const std::span<std::byte> slot =
            to.subspan(partition.index * kGptEntryBytes, kGptEntryBytes);
        put_uuid(slot, entry::kType, swapped(partition.type));
        put_uuid(slot, entry::kUuid, swapped(partition.uuid));
        put(slot, entry::kFirst, partition.start / disk.block_bytes);
        put(slot, entry::kLast, (partition.start + partition.size_bytes) / disk.block_bytes - 1);
        put(slot, entry::kAttributes, partition.attributes);
        const std::u16string name = utf8_to_utf16(partition.name).value();
        for (std::size_t i = 0; i < name.size(); ++i) {
            put(slot, entry::kName + 2 * i, static_cast<std::uint16_t>(name[i]));
        }
    }
}

void encode_header(const PartitionTable& table, const GptDisk& disk, Copy copy,
                   std::uint32_t entries_crc, std::span<std::byte> to) {
    const Blocks blocks(disk);
    const bool primary = copy == Copy::kPrimary;
    put_text(to, at::kMagic, kMagic);
    put(to, at::kRevision, kRevision);
    put(to, at::kHeaderBytes, kHeaderBytes);
    put(to, at::kMyBlock, primary ? std::uint64_t{1} : blocks.last());
    put(to, at::kOtherBlock, primary ? blocks.last() : std::uint64_t{1});
    put(to, at::kFirstUsable, table.first_usable / disk.block_bytes);
    put(to, at::kLastUsable, blocks.last_possible());
    put_uuid(to, at::kDisk, swapped(table.disk));
    put(to, at::kEntriesBlock, primary ? blocks.primary_entries() : blocks.backup_entries());
    put(to, at::kEntryCount, static_cast<std::uint32_t>(kGptEntries));
    put(to, at::kEntryBytes, static_cast<std::uint32_t>(kGptEntryBytes));
    put(to, at::kEntriesCrc, entries_crc);
    put(to, at::kHeaderCrc, crc32(to.first(kHeaderBytes)));
}

Status check_header(const GptDisk& disk, Copy copy, std::span<const std::byte> header,
                    std::span<const std::byte> entries) {
    if (!has_text(header, at::kMagic, kMagic)) return bad("no table");
    if (get<std::uint32_t>(header, at::kRevision) != kRevision ||
        get<std::uint32_t>(header, at::kHeaderBytes) != kHeaderBytes ||
        get<std::uint32_t>(header, at::kReserved) != 0) {
        return bad("unknown revision of the header");
    }
    std::vector<std::byte> bytes(header.begin(), header.begin() + kHeaderBytes);
    put(std::span(bytes), at::kHeaderCrc, std::uint32_t{0});
    if (crc32(bytes) != get<std::uint32_t>(header, at::kHeaderCrc)) {
        return bad(fmt::format("the header's checksum is {:08x}, {:08x} was computed",
                               get<std::uint32_t>(header, at::kHeaderCrc), crc32(bytes)));
    }
    const Blocks blocks(disk);
    const bool primary = copy == Copy::kPrimary;
    const std::uint64_t mine = primary ? 1 : blocks.last();
    const std::uint64_t other = primary ? blocks.last() : 1;
    const std::uint64_t where = primary ? blocks.primary_entries() : blocks.backup_entries();
    if (get<std::uint64_t>(header, at::kMyBlock) != mine ||
        get<std::uint64_t>(header, at::kOtherBlock) != other ||
        get<std::uint64_t>(header, at::kEntriesBlock) != where ||
        get<std::uint64_t>(header, at::kLastUsable) != blocks.last_possible()) {
        return bad("made for a disk of another size");
    }
    if (get<std::uint32_t>(header, at::kEntryCount) != kGptEntries ||
        get<std::uint32_t>(header, at::kEntryBytes) != kGptEntryBytes) {
        return bad(fmt::format("not {} entries of {} bytes", kGptEntries, kGptEntryBytes));
    }
    if (crc32(entries) != get<std::uint32_t>(header, at::kEntriesCrc)) {
        return bad(fmt::format("the entries' checksum is {:08x}, {:08x} was computed",
                               get<std::uint32_t>(header, at::kEntriesCrc), crc32(entries)));
    }
    if (!all_zero(header.subspan(kHeaderBytes))) return bad("reserved bytes are not zero");
    return success();
}

/// Nothing for an unused entry.
Result<std::optional<Partition>> decode_entry(std::span<const std::byte> from, std::uint32_t index,
                                              const GptDisk& disk) {
    const Uuid type = swapped(get_uuid(from, entry::kType));
    if (type.is_nil()) return std::optional<Partition>();
    const std::uint64_t first = get<std::uint64_t>(from, entry::kFirst);
    const std::uint64_t last = get<std::uint64_t>(from, entry::kLast);
    if (last < first || last >= Blocks(disk).disk) {
        return bad(fmt::format("partition {}: blocks {} to {}", index, first, last));
    }
    Partition partition;
    partition.index = index;
    partition.type = type;
    partition.uuid = swapped(get_uuid(from, entry::kUuid));
    partition.start = first * disk.block_bytes;
    partition.size_bytes = (last - first + 1) * disk.block_bytes;
    partition.attributes = get<std::uint64_t>(from, entry::kAttributes);
    std::u16string name;
    for (std::size_t i = 0; i < limits::kVolumeNameCharsMax; ++i) {
        const auto unit = get<std::uint16_t>(from, entry::kName + 2 * i);
        if (unit == 0) break;
        name += static_cast<char16_t>(unit);
    }
    partition.name = utf16_to_utf8(name);
    return std::optional<Partition>(std::move(partition));
}

Result<PartitionTable> decode_copy(const GptDisk& disk, Copy copy,
                                   std::span<const std::byte> header,
                                   std::span<const std::byte> entries) {
    WARPRAID_TRY(check_header(disk, copy, header, entries));
    PartitionTable table;
    table.disk = swapped(get_uuid(header, at::kDisk));
    const std::uint64_t first_usable = get<std::uint64_t>(header, at::kFirstUsable);
    if (first_usable > Blocks(disk).disk) {
        return bad(fmt::format("first usable block {}", first_usable));
    }
    table.first_usable = first_usable * disk.block_bytes;
    for (std::uint32_t index = 0; index < kGptEntries; ++index) {
        WARPRAID_TRY_ASSIGN(
            std::optional<Partition> partition,
            decode_entry(entries.subspan(index * kGptEntryBytes, kGptEntryBytes), index, disk));
        if (partition) table.partitions.push_back(std::move(*partition));
    }
    WARPRAID_TRY(check_places(table, disk));
    return table;
}

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

Uuid linux_data_type() {
    return Uuid::parse("0fc63daf-8483-4772-8e79-3d69d8477de4").value();
}

std::size_t gpt_primary_bytes(std::uint32_t block_bytes) {
    return std::size_t{2} * block_bytes + kEntriesBytes;
}

std::size_t gpt_backup_bytes(std::uint32_t block_bytes) {
    return std::size_t{block_bytes} + kEntriesBytes;
}

std::uint64_t gpt_usable_end(const GptDisk& disk) {
    return disk.size_bytes - gpt_backup_bytes(disk.block_bytes);
}

std::uint64_t volume_alignment(const geometry::Layout& layout) {
    return round_up(kMiB, layout.stripe_data_bytes());
}

Status check_table(const PartitionTable& table, const GptDisk& disk) {
    WARPRAID_TRY(check_places(table, disk));
    for (const Partition& partition : table.partitions) {
        const auto units = utf16_units(partition.name);
        if (!units || *units > limits::kVolumeNameCharsMax ||
            partition.name.find('\0') != std::string::npos) {
            return Error{ErrorCode::kBadName,
                         fmt::format("the name of partition {} is not UTF-8 of at most {} UTF-16 "
                                     "units without a zero",
                                     partition.index, limits::kVolumeNameCharsMax)};
        }
    }
    return success();
}

std::vector<FreeExtent> free_extents(const PartitionTable& table, const GptDisk& disk,
                                     std::uint64_t alignment) {
    WARPRAID_ASSERT(check_places(table, disk).ok());
    WARPRAID_ASSERT(alignment > 0 && alignment % disk.block_bytes == 0);
    std::vector<FreeExtent> used;
    for (const Partition& partition : table.partitions) {
        used.push_back({partition.start, partition.size_bytes});
    }
    used.push_back({gpt_usable_end(disk), 0});
    std::sort(used.begin(), used.end(),
              [](const FreeExtent& a, const FreeExtent& b) { return a.start < b.start; });
    std::vector<FreeExtent> extents;
    std::uint64_t from = table.first_usable;
    for (const FreeExtent& taken : used) {
        const std::uint64_t start = round_up(from, alignment);
        if (start < taken.start) extents.push_back({start, taken.start - start});
        from = taken.start + taken.size_bytes;
    }
    return extents;
}

void encode_gpt(const PartitionTable& table, const GptDisk& disk, std::span<std::byte> primary,
                std::span<std::byte> backup) {
    WARPRAID_ASSERT(check_table(table, disk).ok());
    WARPRAID_ASSERT(primary.size() == gpt_primary_bytes(disk.block_bytes));
    WARPRAID_ASSERT(backup.size() == gpt_backup_bytes(disk.block_bytes));
    std::fill(primary.begin(), primary.end(), std::byte{0});
    std::fill(backup.begin(), backup.end(), std::byte{0});
    const std::size_t block = disk.block_bytes;
    encode_mbr(disk, primary);
    const std::span<std::byte> entries = primary.subspan(2 * block);
    encode_entries(table, disk, entries);
    const std::uint32_t entries_crc = crc32(entries);
    encode_header(table, disk, Copy::kPrimary, entries_crc, primary.subspan(block, block));
    std::copy(entries.begin(), entries.end(), backup.begin());
    encode_header(table, disk, Copy::kBackup, entries_crc, backup.subspan(kEntriesBytes));
}

Result<DecodedTable> decode_gpt(const GptDisk& disk, std::span<const std::byte> primary,
                                std::span<const std::byte> backup) {
    WARPRAID_TRY(check_disk(disk));
    const std::size_t block = disk.block_bytes;
    if (primary.size() != gpt_primary_bytes(disk.block_bytes) ||
        backup.size() != gpt_backup_bytes(disk.block_bytes)) {
        return bad(fmt::format("tables of {} and {} bytes", primary.size(), backup.size()));
    }
    auto first = decode_copy(disk, Copy::kPrimary, primary.subspan(block, block),
                             primary.subspan(2 * block));
    auto second = decode_copy(disk, Copy::kBackup, backup.subspan(kEntriesBytes),
                              backup.first(kEntriesBytes));
    if (first.ok()) {
        // The headers fit their places, so equal entries and fields mean equal tables.
        const bool equal = second.ok() && second->disk == first->disk &&
                           second->first_usable == first->first_usable &&
                           same_bytes(primary.subspan(2 * block), backup.first(kEntriesBytes));
        return DecodedTable{std::move(first).value(), !equal};
    }
    if (second.ok()) return DecodedTable{std::move(second).value(), true};
    return bad(fmt::format("primary table: {}; backup table: {}", first.error().message,
                           second.error().message));
}

std::optional<std::size_t> utf16_units(std::string_view name) {
    const auto units = utf8_to_utf16(name);
    if (!units) return std::nullopt;
    return units->size();
}

}  // namespace warpraid::format
