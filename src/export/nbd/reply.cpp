#include "export/nbd/reply.h"

#include "export/nbd/wire.h"

namespace warpraid::nbd {

namespace {

std::string_view error_message(std::uint32_t error) {
    switch (error) {
        case kErrorPermission:
            return "the export is read-only";
        case kErrorIo:
            return "the blocks cannot be read or written";
        case kErrorNoMemory:
            return "out of memory";
        case kErrorInvalid:
            return "offset, length, flags or command are not allowed here";
        case kErrorNoSpace:
            return "the write is past the end of the export";
        case kErrorShutdown:
            return "the server shuts down";
        default:
            return "error";
    }
}

void put_chunk_header(WireWriter& writer, const Reply& reply, ChunkType type, std::size_t length) {
    writer.put(kMagicStructuredReply);
    writer.put(kReplyDone);
    writer.put(static_cast<std::uint16_t>(type));
    writer.put(reply.cookie);
    writer.put(static_cast<std::uint32_t>(length));
}

}  // namespace

ReplyHead encode_reply(const Reply& reply, bool structured_replies,
                       std::span<std::byte, kReplyHeadBytesMax> to) {
    WireWriter writer(to);
    ReplyHead head;
    const bool failed = reply.error != kErrorNone;
    if (structured_replies && failed) {
        head.message = error_message(reply.error);
        put_chunk_header(writer, reply, ChunkType::kError, 4 + 2 + head.message.size());
        writer.put(reply.error);
        writer.put(static_cast<std::uint16_t>(head.message.size()));
    } else if (structured_replies && reply.type == CommandType::kRead) {
        put_chunk_header(writer, reply, ChunkType::kOffsetData,
                         std::size_t{8} + reply.length_bytes);
        writer.put(reply.offset);
        head.data_follows = true;
    } else if (structured_replies && reply.type == CommandType::kBlockStatus) {
        // One extent: everything is allocated and nothing is known to be zero.
        put_chunk_header(writer, reply, ChunkType::kBlockStatus, 4 + 4 + 4);
        writer.put(kAllocationContextId);
        writer.put(reply.length_bytes);
        writer.put(std::uint32_t{0});
    } else {
        // Also what a client with structured replies gets for commands that return nothing.
        writer.put(kMagicSimpleReply);
        writer.put(reply.error);
        writer.put(reply.cookie);
        head.data_follows = !failed && reply.type == CommandType::kRead;
    }
    head.bytes = writer.written();
    return head;
}

}  // namespace warpraid::nbd
