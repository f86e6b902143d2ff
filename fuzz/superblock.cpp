// Any bytes as a superblock: as they are, and with the checksum put right. What is not refused
// encodes back to the same bytes.
#include "format/superblock.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/crc32c.h"
#include "format/bytes.h"

namespace {

using namespace warpraid;

constexpr std::size_t kChecksumAt = 12;
constexpr std::size_t kCopyAt = 16;

void check(std::span<const std::byte> bytes) {
    const auto decoded = format::decode_superblock(bytes);
    if (!decoded.ok()) {
        WARPRAID_ASSERT(!decoded.error().message.empty());
        return;
    }
    std::vector<std::byte> again(format::kSuperblockBytes);
    format::encode(*decoded, again);
    WARPRAID_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<std::byte> bytes(format::kSuperblockBytes);
    const auto* start = reinterpret_cast<const std::byte*>(data);
    check({start, size});
    std::copy_n(start, std::min(size, bytes.size()), bytes.begin());
    check(bytes);
    const std::byte copy = bytes[kCopyAt];
    std::fill_n(bytes.begin() + kChecksumAt, 5, std::byte{0});
    format::put(std::span(bytes), kChecksumAt, crc32c(bytes));
    bytes[kCopyAt] = copy;
    check(bytes);
    return 0;
}
