// Any bytes as the edges of a drive. The first two bytes give the drive's size in odd units; the
// rest is the head and, mirrored from the end, the tail.
#include "format/signatures.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/assert.h"
#include "format/md_protective.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace warpraid;
    if (size < 2) return 0;
    const std::uint64_t unit = std::uint64_t{data[0]} * 256 + data[1];
    const std::uint64_t drive_bytes = 512 * (1 + unit * unit);
    const std::size_t edge = std::min<std::uint64_t>(drive_bytes, format::kEdgeBytes);
    const std::span input(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
    const std::size_t used = std::min(input.size(), edge);
    std::vector<std::byte> head(edge);
    std::vector<std::byte> tail(edge);
    std::copy_n(input.begin(), used, head.begin());
    std::copy_n(input.begin(), used, tail.end() - static_cast<std::ptrdiff_t>(used));
    std::set<std::string> texts;
    for (const format::Signature& signature : format::find_signatures({head, tail, drive_bytes})) {
        WARPRAID_ASSERT(!signature.text.empty());
        WARPRAID_ASSERT(texts.insert(signature.text).second);
    }
    static_cast<void>(format::find_signatures({input, input, drive_bytes}));
    const bool is_protective = format::is_protective_md(input);
    WARPRAID_ASSERT(is_protective || !format::decode_protective_mark(input));
    return 0;
}
