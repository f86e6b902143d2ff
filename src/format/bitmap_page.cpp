#include "format/bitmap_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "format/bytes.h"
#include "format/superblock.h"

// The offsets below are docs/on-disk-format.md, section "Bitmap page".
namespace warpraid::format {
namespace {

constexpr std::string_view kMagic = "WARPBITM";
constexpr std::uint32_t kVersion = 2;

namespace at {
constexpr std::size_t kMagic = 0, kVersion = 8, kChecksum = 12, kGroup = 16, kPage = 32,
                      kSequence = 40, kHeaderEnd = 48;
}  // namespace at

static_assert(kBitmapOffset >= kSuperblockOffset + kSuperblockBytes);
static_assert(kBitmapOffset + kBitmapPagesMax * kBitmapPageBytes <= limits::kHeadReserveBytesMin);

Error bad(std::uint32_t page, std::string message) {
    return Error{ErrorCode::kBadSuperblock,
                 fmt::format("bitmap page {}: {}", page, std::move(message))};
}

/// Over everything but the checksum itself, which counts as zero.
std::uint32_t checksum(std::span<const std::byte> bytes) {
    constexpr std::byte kZeros[4]{};
    const std::uint32_t sum = crc32c(kZeros, crc32c(bytes.first(at::kChecksum)));
    return crc32c(bytes.subspan(at::kGroup), sum);
}

}  // namespace

void encode(const BitmapPageHeader& header, const BitmapMaps& maps, std::span<std::byte> to) {
    WARPRAID_ASSERT(to.size() == kBitmapPageBytes);
    WARPRAID_ASSERT(maps.dirty.size() == kBitmapMapBytes && maps.missed.size() == kBitmapMapBytes);
    WARPRAID_ASSERT(header.page < kBitmapPagesMax);
    std::ranges::copy(maps.dirty, to.begin() + kBitmapDirtyOffset);
    std::ranges::copy(maps.missed, to.begin() + kBitmapMissedOffset);
    std::fill_n(to.begin(), kBitmapHeaderBytes, std::byte{0});
    put_text(to, at::kMagic, kMagic);
    put(to, at::kVersion, kVersion);
    put_uuid(to, at::kGroup, header.group);
    put(to, at::kPage, header.page);
    put(to, at::kSequence, header.sequence);
    put(to, at::kChecksum, checksum(to));
}

void BitmapContent::note_agreement() {
    missed.resize(std::max(missed.size(), dirty.size()));
    for (std::size_t i = 0; i < dirty.size(); ++i) missed[i] |= std::exchange(dirty[i], 0);
}

BitmapMaps bitmap_maps(std::span<const std::byte> from) {
    return {from.subspan(kBitmapDirtyOffset, kBitmapMapBytes),
            from.subspan(kBitmapMissedOffset, kBitmapMapBytes)};
}

Result<BitmapPageHeader> decode_bitmap_page(std::span<const std::byte> from, const Uuid& group,
                                            std::uint32_t page) {
    if (from.size() < kBitmapPageBytes) {
        return bad(page, fmt::format("{} bytes: {} are needed", from.size(), kBitmapPageBytes));
    }
    from = from.first(kBitmapPageBytes);
    if (!has_text(from, at::kMagic, kMagic)) return bad(page, "no bitmap page");
    const std::uint32_t found = get<std::uint32_t>(from, at::kChecksum);
    const std::uint32_t computed = checksum(from);
    if (found != computed) {
        return bad(page, fmt::format("checksum {:08x} found, {:08x} computed", found, computed));
    }
    if (const auto version = get<std::uint32_t>(from, at::kVersion); version != kVersion) {
        return bad(page, fmt::format("version {}: this program knows {} only", version, kVersion));
    }
    if (!all_zero(from.subspan(at::kPage + 4, at::kSequence - at::kPage - 4)) ||
        !all_zero(from.subspan(at::kHeaderEnd, kBitmapHeaderBytes - at::kHeaderEnd))) {
        return bad(page, "reserved bytes are not zero");
    }
    BitmapPageHeader header;
    header.group = get_uuid(from, at::kGroup);
    header.page = get<std::uint32_t>(from, at::kPage);
    header.sequence = get<std::uint64_t>(from, at::kSequence);
    if (header.group != group) {
        return bad(page, "it belongs to group " + header.group.to_text());
    }
    if (header.page != page) return bad(page, fmt::format("it is page {}", header.page));
    return header;
}

}  // namespace warpraid::format
