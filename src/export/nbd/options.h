// The payloads of negotiation options, taken apart. Pure functions: no length in the input is
// trusted, and the results refer to the input's own bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "export/nbd/protocol.h"

namespace warpraid::nbd {

/// NBD_OPT_INFO and NBD_OPT_GO.
struct InfoQuery {
    std::string_view export_name;
    bool wants_name = false;
    bool wants_description = false;
};
/// Nothing when the payload is malformed.
std::optional<InfoQuery> parse_info_query(std::span<const std::byte> payload);

/// NBD_OPT_LIST_META_CONTEXT and NBD_OPT_SET_META_CONTEXT.
struct ContextQuery {
    std::string_view export_name;
    /// Whether any query selects base:allocation.
    bool allocation = false;
};
/// `option` decides what no query and a bare namespace mean. Nothing when the payload is malformed.
std::optional<ContextQuery> parse_context_query(Option option, std::span<const std::byte> payload);

}  // namespace warpraid::nbd
