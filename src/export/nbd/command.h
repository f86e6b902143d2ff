// Requests of the transmission phase, decoded and judged. Pure functions over bytes and limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "block/device.h"
#include "export/nbd/protocol.h"

namespace warpraid::nbd {

struct RequestHeader {
    std::uint16_t flags = 0;
    CommandType type = CommandType::kRead;
    std::uint64_t cookie = 0;
    std::uint64_t offset = 0;
    std::uint32_t length_bytes = 0;
};

/// Nothing when the magic number is wrong: the stream is then out of step for good.
std::optional<RequestHeader> decode_request(std::span<const std::byte, kRequestHeaderBytes> bytes);

/// What was negotiated, as far as requests depend on it.
struct Terms {
    block::Limits limits;
    bool structured_replies = false;
    bool allocation_context = false;
};

enum class Action : std::uint8_t {
    kSubmit,      // hand it to the device
    kReply,       // answer `error`, or the block status, without the device
    kDisconnect,  // the client says goodbye
    kViolation,   // end the connection
};

struct Judgement {
    Action action = Action::kReply;
    block::Operation operation = block::Operation::kRead;
    bool fua = false;
    std::uint32_t error = kErrorNone;         // as it goes on the wire
    std::uint32_t buffer_bytes = 0;           // buffer the request needs
    std::uint32_t payload_bytes = 0;          // bytes that follow the header and go into the buffer
    std::uint32_t payload_bytes_refused = 0;  // bytes that follow the header and are thrown away
};

Judgement judge(const RequestHeader& header, const Terms& terms);

/// The error on the wire for an errno of the device.
std::uint32_t to_wire_error(int error_number);

}  // namespace warpraid::nbd
