// Any bytes as a bitmap page: as they are, and with the checksum put right. What is not refused
// encodes back to the same bytes.
#include "format/bitmap_page.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/crc32c.h"
#include "format/bytes.h"

namespace {

using namespace warpraid;

constexpr std::size_t kChecksumAt = 12;
constexpr std::size_t kGroupAt = 16;
constexpr std::size_t kPageAt = 32;

void check(std::span<const std::byte> bytes) {
    if (bytes.size() < format::kBitmapPageBytes) {
        WARPRAID_ASSERT(!format::decode_bitmap_page(bytes, {}, 0).ok());
        return;
    }
    const auto page = format::get<std::uint32_t>(bytes, kPageAt);
    const auto header = format::decode_bitmap_page(bytes, format::get_uuid(bytes, kGroupAt), page);
    if (!header.ok() || page >= format::kBitmapPagesMax) return;
    std::vector<std::byte> again(format::kBitmapPageBytes);
    format::encode(*header, format::bitmap_maps(bytes), again);
    WARPRAID_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto* start = reinterpret_cast<const std::byte*>(data);
    check({start, size});
    std::vector<std::byte> bytes(format::kBitmapPageBytes);
    std::copy_n(start, std::min(size, bytes.size()), bytes.begin());
    format::put(std::span(bytes), kChecksumAt, std::uint32_t{0});
    format::put(std::span(bytes), kChecksumAt, crc32c(bytes));
    check(bytes);
    return 0;
}
