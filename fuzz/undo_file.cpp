// Feeds arbitrary bytes as the file of what a forced create overwrote: as they are, and as a first
// line with a right checksum behind images of zeroes. What is accepted is written the same again.
#include "control/undo_file.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/crc32c.h"

namespace {

using namespace warpraid;

void try_text(const std::string& text) {
    const Result<control::UndoRecord> record = control::decode_undo(text);
    if (!record.ok()) {
        WARPRAID_ASSERT(record.error().code == ErrorCode::kInvalidArgument);
        WARPRAID_ASSERT(!record.error().message.empty());
        return;
    }
    WARPRAID_ASSERT(!record->group.is_nil() && !record->drives.empty());
    const std::string once = control::encode_undo(*record);
    const Result<control::UndoRecord> again = control::decode_undo(once);
    WARPRAID_ASSERT(again.ok() && control::encode_undo(*again) == once);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string text(reinterpret_cast<const char*>(data), size);
    try_text(text);
    // One drive whose size is a multiple of 4 KiB has this much.
    text += '\n' + std::string(limits::kHeadReserveBytesMin + limits::kTailReserveBytes, '\0');
    const std::uint32_t sum = crc32c(std::as_bytes(std::span(std::string_view(text))));
    for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(sum >> shift);
    try_text(text);
    return 0;
}
