#include "export/nbd/options.h"

#include "export/nbd/wire.h"

namespace warpraid::nbd {

std::optional<InfoQuery> parse_info_query(std::span<const std::byte> payload) {
    WireReader reader(payload);
    InfoQuery query;
    query.export_name = reader.take_text(reader.take<std::uint32_t>());
    const std::size_t count = reader.take<std::uint16_t>();
    if (!reader.ok() || reader.left() != count * sizeof(std::uint16_t)) return std::nullopt;
    for (std::size_t i = 0; i < count; ++i) {
        switch (static_cast<Info>(reader.take<std::uint16_t>())) {
            case Info::kName:
                query.wants_name = true;
                break;
            case Info::kDescription:
                query.wants_description = true;
                break;
            case Info::kExport:
            case Info::kBlockSize:
                break;  // always told
        }
    }
    return query;
}

std::optional<ContextQuery> parse_context_query(Option option, std::span<const std::byte> payload) {
    const bool listing = option == Option::kListMetaContext;
    WireReader reader(payload);
    ContextQuery query;
    query.export_name = reader.take_text(reader.take<std::uint32_t>());
    const std::uint32_t count = reader.take<std::uint32_t>();
    if (!reader.ok()) return std::nullopt;
    if (listing && count == 0) query.allocation = true;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::string_view text = reader.take_text(reader.take<std::uint32_t>());
        if (!reader.ok()) return std::nullopt;
        if (text == kAllocationContext) query.allocation = true;
        // A bare namespace asks which contexts there are; it cannot be selected.
        if (listing && text == "base:") query.allocation = true;
    }
    if (reader.left() != 0) return std::nullopt;
    return query;
}

}  // namespace warpraid::nbd
