// Any bytes as the two copies of a partition table, with the checksums as they are and put right.
// The first byte picks the block size; the rest is the primary copy and then the backup. What is
// not refused can be stored again and decodes to the same volumes.
#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "format/bytes.h"
#include "format/crc32.h"
#include "format/gpt.h"

namespace {

using namespace warpraid;

constexpr std::size_t kHeaderBytes = 92;
constexpr std::size_t kHeaderCrcAt = 16;
constexpr std::size_t kEntriesCrcAt = 88;
constexpr std::size_t kEntriesBytes = format::kGptEntries * format::kGptEntryBytes;

void put_checksums_right(std::span<std::byte> header, std::span<const std::byte> entries) {
    format::put(header, kEntriesCrcAt, format::crc32(entries));
    format::put(header, kHeaderCrcAt, std::uint32_t{0});
    format::put(header, kHeaderCrcAt, format::crc32(header.first(kHeaderBytes)));
}

void check(const format::GptDisk& disk, std::span<const std::byte> primary,
           std::span<const std::byte> backup) {
    const auto decoded = format::decode_gpt(disk, primary, backup);
    if (!decoded.ok()) {
        WARPRAID_ASSERT(decoded.error().code == ErrorCode::kBadPartitionTable);
        return;
    }
    WARPRAID_ASSERT(format::check_table(decoded->table, disk).ok());
    for (const format::FreeExtent& extent :
         format::free_extents(decoded->table, disk, disk.block_bytes)) {
        WARPRAID_ASSERT(extent.start + extent.size_bytes <= format::gpt_usable_end(disk));
    }
    std::vector<std::byte> first(primary.size());
    std::vector<std::byte> second(backup.size());
    format::encode_gpt(decoded->table, disk, first, second);
    const auto again = format::decode_gpt(disk, first, second);
    WARPRAID_ASSERT(again.ok() && !again->needs_repair);
    WARPRAID_ASSERT(again->table.partitions.size() == decoded->table.partitions.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::uint32_t block = (data[0] & 1) != 0 ? 4096 : 512;
    const format::GptDisk disk = {64 * kMiB, block};
    std::vector<std::byte> primary(format::gpt_primary_bytes(block));
    std::vector<std::byte> backup(format::gpt_backup_bytes(block));
    const std::span input(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
    const std::size_t first = std::min(input.size(), primary.size());
    std::copy_n(input.begin(), first, primary.begin());
    std::copy_n(input.begin() + static_cast<std::ptrdiff_t>(first),
                std::min(input.size() - first, backup.size()), backup.begin());
    check(disk, primary, backup);
    put_checksums_right(std::span(primary).subspan(block, block),
                        std::span(primary).subspan(std::size_t{2} * block));
    check(disk, primary, backup);
    std::fill(primary.begin(), primary.end(), std::byte{0});
    put_checksums_right(std::span(backup).subspan(kEntriesBytes),
                        std::span(backup).first(kEntriesBytes));
    check(disk, primary, backup);
    return 0;
}
