#include "export/nbd/command.h"

#include <cerrno>

#include "export/nbd/wire.h"

namespace warpraid::nbd {

namespace {

/// Flags a command may carry. FUA is allowed on every command, as the specification demands; it
/// means something on those that write.
unsigned allowed_flags(CommandType type, const Terms& terms) {
    switch (type) {
        case CommandType::kRead:
            return terms.structured_replies ? kCommandFua | kCommandDontFragment : kCommandFua;
        case CommandType::kWriteZeroes:
            return kCommandFua | kCommandNoHole;
        case CommandType::kBlockStatus:
            return kCommandFua | kCommandRequestOne;
        default:
            return kCommandFua;
    }
}

Judgement refuse(const RequestHeader& header, std::uint32_t error) {
    Judgement judgement;
    judgement.error = error;
    if (header.type != CommandType::kWrite) return judgement;
    // The payload follows whether it is wanted or not.
    judgement.payload_bytes_refused = header.length_bytes;
    if (header.length_bytes > kPayloadSkippedBytesMax) judgement.action = Action::kViolation;
    return judgement;
}

std::optional<block::Operation> to_operation(CommandType type) {
    switch (type) {
        case CommandType::kRead:
            return block::Operation::kRead;
        case CommandType::kWrite:
            return block::Operation::kWrite;
        case CommandType::kFlush:
            return block::Operation::kFlush;
        case CommandType::kTrim:
            return block::Operation::kTrim;
        case CommandType::kWriteZeroes:
            return block::Operation::kWriteZeroes;
        default:
            return std::nullopt;
    }
}

Judgement judge_block_status(const RequestHeader& header, const Terms& terms) {
    Judgement judgement;
    block::Request request;
    // A trim has no maximum length, as a status has none; nothing is written, so read-only is fine.
    request.operation = block::Operation::kTrim;
    request.offset = header.offset;
    request.length_bytes = header.length_bytes;
    block::Limits limits = terms.limits;
    limits.read_only = false;
    const bool fits = block::check_request(request, limits) == 0;
    judgement.error = fits && terms.allocation_context ? kErrorNone : kErrorInvalid;
    return judgement;
}

}  // namespace

std::optional<RequestHeader> decode_request(std::span<const std::byte, kRequestHeaderBytes> bytes) {
    WireReader reader(bytes);
    if (reader.take<std::uint32_t>() != kMagicRequest) return std::nullopt;
    RequestHeader header;
    header.flags = reader.take<std::uint16_t>();
    header.type = static_cast<CommandType>(reader.take<std::uint16_t>());
    header.cookie = reader.take<std::uint64_t>();
    header.offset = reader.take<std::uint64_t>();
    header.length_bytes = reader.take<std::uint32_t>();
    return header;
}

Judgement judge(const RequestHeader& header, const Terms& terms) {
    if (header.type == CommandType::kDisconnect) {
        Judgement judgement;
        judgement.action = Action::kDisconnect;
        return judgement;
    }
    if ((header.flags & ~allowed_flags(header.type, terms)) != 0) {
        return refuse(header, kErrorInvalid);
    }
    if (header.type == CommandType::kBlockStatus) return judge_block_status(header, terms);
    const auto operation = to_operation(header.type);
    if (!operation) return refuse(header, kErrorInvalid);

    block::Request request;
    request.operation = *operation;
    // A flush has neither; old clients leave anything in the fields.
    if (*operation != block::Operation::kFlush) {
        request.offset = header.offset;
        request.length_bytes = header.length_bytes;
    }
    const int error = block::check_request(request, terms.limits);
    if (error != 0) return refuse(header, to_wire_error(error));

    Judgement judgement;
    judgement.action = Action::kSubmit;
    judgement.operation = *operation;
    const bool writes = *operation == block::Operation::kWrite ||
                        *operation == block::Operation::kTrim ||
                        *operation == block::Operation::kWriteZeroes;
    judgement.fua = writes && (header.flags & kCommandFua) != 0;
    if (*operation == block::Operation::kRead || *operation == block::Operation::kWrite) {
        judgement.buffer_bytes = header.length_bytes;
    }
    if (*operation == block::Operation::kWrite) judgement.payload_bytes = header.length_bytes;
    return judgement;
}

std::uint32_t to_wire_error(int error_number) {
    switch (error_number) {
        case 0:
            return kErrorNone;
        case EPERM:
        case EACCES:
        case EROFS:
            return kErrorPermission;
        case ENOMEM:
            return kErrorNoMemory;
        case EINVAL:
        case EOPNOTSUPP:
            return kErrorInvalid;
        case ENOSPC:
        case EFBIG:
        case EDQUOT:
            return kErrorNoSpace;
        case ESHUTDOWN:
            return kErrorShutdown;
        default:
            return kErrorIo;
    }
}

}  // namespace warpraid::nbd
