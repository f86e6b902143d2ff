// The bytes of the server's side of negotiation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "export/nbd/exports.h"
#include "export/nbd/protocol.h"

namespace warpraid::nbd {

/// An answer without a payload.
void append_reply(std::vector<std::byte>& output, Option option, OptionReply type);
/// A refusal with a sentence for the user.
void append_refusal(std::vector<std::byte>& output, Option option, OptionReply type,
                    std::string_view message);
/// One entry of a list.
void append_listed(std::vector<std::byte>& output, const ExportOffer& offer);
/// Size and transmission flags.
void append_export_info(std::vector<std::byte>& output, Option option, const ExportOffer& offer,
                        std::uint16_t flags);
void append_block_sizes(std::vector<std::byte>& output, Option option, const ExportOffer& offer);
/// NBD_INFO_NAME or NBD_INFO_DESCRIPTION.
void append_text_info(std::vector<std::byte>& output, Option option, Info info,
                      std::string_view text);
void append_context(std::vector<std::byte>& output, Option option, std::uint32_t id,
                    std::string_view name);
/// The whole answer to NBD_OPT_EXPORT_NAME, which has no header.
void append_export_name_answer(std::vector<std::byte>& output, const ExportOffer& offer,
                               std::uint16_t flags, bool no_zeroes);

}  // namespace warpraid::nbd
