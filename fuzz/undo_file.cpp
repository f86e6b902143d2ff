// Feeds arbitrary bytes as the record of what a forced create overwrote: as they are, and as a line
// with its right checksum behind it. What is accepted is written the same again.
#include "control/undo_file.h"

#include <fmt/format.h>

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
    text += '\n';
    text += fmt::format("{:08x}\n", crc32c(std::as_bytes(std::span(std::string_view(text)))));
    try_text(text);
    return 0;
}
