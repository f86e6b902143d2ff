#include "export/nbd/answers.h"

#include <cstring>

#include "export/nbd/wire.h"

namespace warpraid::nbd {

namespace {

template <typename T>
void append(std::vector<std::byte>& output, T value) {
    const T swapped = swap_to_big_endian(value);
    const auto* bytes = reinterpret_cast<const std::byte*>(&swapped);
    output.insert(output.end(), bytes, bytes + sizeof(T));
}

void append_text(std::vector<std::byte>& output, std::string_view text) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    output.insert(output.end(), bytes, bytes + text.size());
}

void append_header(std::vector<std::byte>& output, Option option, OptionReply type,
                   std::size_t payload_bytes) {
    append(output, kMagicOptionReply);
    append(output, static_cast<std::uint32_t>(option));
    append(output, static_cast<std::uint32_t>(type));
    append(output, static_cast<std::uint32_t>(payload_bytes));
}

}  // namespace

void append_reply(std::vector<std::byte>& output, Option option, OptionReply type) {
    append_header(output, option, type, 0);
}

void append_refusal(std::vector<std::byte>& output, Option option, OptionReply type,
                    std::string_view message) {
    append_header(output, option, type, message.size());
    append_text(output, message);
}

void append_listed(std::vector<std::byte>& output, const ExportOffer& offer) {
    append_header(output, Option::kList, OptionReply::kServer,
                  sizeof(std::uint32_t) + offer.name.size() + offer.description.size());
    append(output, static_cast<std::uint32_t>(offer.name.size()));
    append_text(output, offer.name);
    append_text(output, offer.description);
}

void append_export_info(std::vector<std::byte>& output, Option option, const ExportOffer& offer,
                        std::uint16_t flags) {
    append_header(output, option, OptionReply::kInfo, 2 + 8 + 2);
    append(output, static_cast<std::uint16_t>(Info::kExport));
    append(output, offer.size_bytes);
    append(output, flags);
}

void append_block_sizes(std::vector<std::byte>& output, Option option, const ExportOffer& offer) {
    append_header(output, option, OptionReply::kInfo, 2 + 3 * 4);
    append(output, static_cast<std::uint16_t>(Info::kBlockSize));
    append(output, offer.block_bytes_min);
    append(output, offer.block_bytes_preferred);
    append(output, offer.block_bytes_max);
}

void append_text_info(std::vector<std::byte>& output, Option option, Info info,
                      std::string_view text) {
    append_header(output, option, OptionReply::kInfo, 2 + text.size());
    append(output, static_cast<std::uint16_t>(info));
    append_text(output, text);
}

void append_context(std::vector<std::byte>& output, Option option, std::uint32_t id,
                    std::string_view name) {
    append_header(output, option, OptionReply::kMetaContext, 4 + name.size());
    append(output, id);
    append_text(output, name);
}

void append_export_name_answer(std::vector<std::byte>& output, const ExportOffer& offer,
                               std::uint16_t flags, bool no_zeroes) {
    append(output, offer.size_bytes);
    append(output, flags);
    if (!no_zeroes) output.resize(output.size() + kExportNameZeroes);
}

}  // namespace warpraid::nbd
