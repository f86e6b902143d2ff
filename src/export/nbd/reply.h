// Replies of the transmission phase: the bytes in front of the data. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "export/nbd/protocol.h"

namespace warpraid::nbd {

struct Reply {
    CommandType type = CommandType::kRead;
    std::uint64_t cookie = 0;
    std::uint64_t offset = 0;        // as requested
    std::uint32_t length_bytes = 0;  // as requested
    std::uint32_t error = kErrorNone;
};

struct ReplyHead {
    std::size_t bytes = 0;
    /// Static text that follows the head on the wire.
    std::string_view message;
    /// Whether the data of the read follows.
    bool data_follows = false;
};

/// Writes the head of `reply` to `to`.
ReplyHead encode_reply(const Reply& reply, bool structured_replies,
                       std::span<std::byte, kReplyHeadBytesMax> to);

}  // namespace warpraid::nbd
