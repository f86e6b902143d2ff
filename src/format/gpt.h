// Volumes are the partitions of a GUID partition table in the group's address space (UEFI 2.10,
// chapter 5), so any system that sees the group's bytes sees the same volumes. Primary table at the
// group's start behind a protective MBR, backup at its end. Pure; any thread.
//
// Order of writing: primary, flush, backup, flush. A primary that decodes wins over the backup.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "base/uuid.h"
#include "geometry/layout.h"

namespace warpraid::format {

inline constexpr std::size_t kGptEntries = 128;
inline constexpr std::size_t kGptEntryBytes = 128;
static_assert(kGptEntries == limits::kVolumesPerGroupMax);

/// The type of new volumes: "Linux filesystem data" (0fc63daf-8483-4772-8e79-3d69d8477de4), which
/// every tool treats as an ordinary partition once the group is released to Linux MD.
Uuid linux_data_type();

struct Partition {
    std::uint32_t index = 0;  // entry number, 0-based; stable for the volume's life
    Uuid type;
    Uuid uuid;
    std::string name;         // UTF-8; at most limits::kVolumeNameCharsMax UTF-16 units
    std::uint64_t start = 0;  // group offset
    std::uint64_t size_bytes = 0;
    std::uint64_t attributes = 0;
};

struct PartitionTable {
    Uuid disk;
    std::uint64_t first_usable = 0;     // group offset; new volumes start here or behind
    std::vector<Partition> partitions;  // by index, ascending
};

/// What a table needs to know about its group.
struct GptDisk {
    std::uint64_t size_bytes = 0;
    std::uint32_t block_bytes = 0;  // 512 or 4096
};

/// Bytes of the primary table from the group's start, and of the backup up to its end.
std::size_t gpt_primary_bytes(std::uint32_t block_bytes);
std::size_t gpt_backup_bytes(std::uint32_t block_bytes);
/// First byte behind the last volume possible.
std::uint64_t gpt_usable_end(const GptDisk& disk);

/// Where volumes of this layout start: at multiples of the smallest number of whole stripes that is
/// at least 1 MiB. Also the first usable byte of a new table.
std::uint64_t volume_alignment(const geometry::Layout& layout);

/// Whether the table can be stored: bounds, overlap, duplicates, names. kBadPartitionTable or
/// kBadName.
Status check_table(const PartitionTable& table, const GptDisk& disk);

/// Unused stretches between first_usable and the backup, starts rounded up to `alignment`.
struct FreeExtent {
    std::uint64_t start = 0;
    std::uint64_t size_bytes = 0;
};
std::vector<FreeExtent> free_extents(const PartitionTable& table, const GptDisk& disk,
                                     std::uint64_t alignment);

/// `primary` and `backup` have the sizes named above; check_table() holds.
void encode_gpt(const PartitionTable& table, const GptDisk& disk, std::span<std::byte> primary,
                std::span<std::byte> backup);

struct DecodedTable {
    PartitionTable table;
    /// A copy is bad or older than the other: write both again.
    bool needs_repair = false;
};
/// The good copy of the two. kBadPartitionTable when neither decodes, saying what is wrong with
/// each.
Result<DecodedTable> decode_gpt(const GptDisk& disk, std::span<const std::byte> primary,
                                std::span<const std::byte> backup);

/// UTF-16 units that `name` takes; nothing when it is not valid UTF-8.
std::optional<std::size_t> utf16_units(std::string_view name);

}  // namespace warpraid::format
