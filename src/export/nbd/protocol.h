// The NBD protocol's numbers (fixed-newstyle negotiation, simple and structured replies), as the
// public specification gives them. All integers on the wire are big-endian.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/limits.h"
#include "base/units.h"

namespace warpraid::nbd {

inline constexpr std::uint64_t kMagicServer = 0x4e42'444d'4147'4943;  // "NBDMAGIC"
inline constexpr std::uint64_t kMagicOption = 0x4948'4156'454f'5054;  // "IHAVEOPT"
inline constexpr std::uint64_t kMagicOptionReply = 0x0003'e889'0455'65a9;
inline constexpr std::uint32_t kMagicRequest = 0x2560'9513;
inline constexpr std::uint32_t kMagicSimpleReply = 0x6744'6698;
inline constexpr std::uint32_t kMagicStructuredReply = 0x668e'33ef;

// Handshake flags, the same bits from server and client.
inline constexpr std::uint32_t kHandshakeFixedNewstyle = 1u << 0;
inline constexpr std::uint32_t kHandshakeNoZeroes = 1u << 1;

enum class Option : std::uint32_t {
    kExportName = 1,
    kAbort = 2,
    kList = 3,
    kStartTls = 5,
    kInfo = 6,
    kGo = 7,
    kStructuredReply = 8,
    kListMetaContext = 9,
    kSetMetaContext = 10,
};

enum class OptionReply : std::uint32_t {
    kAck = 1,
    kServer = 2,
    kInfo = 3,
    kMetaContext = 4,
    kErrorUnsupported = 0x8000'0001,
    kErrorInvalid = 0x8000'0003,
    kErrorUnknown = 0x8000'0006,
    kErrorTooBig = 0x8000'0009,
};

enum class Info : std::uint16_t { kExport = 0, kName = 1, kDescription = 2, kBlockSize = 3 };

// Transmission flags.
inline constexpr std::uint16_t kFlagHasFlags = 1u << 0;
inline constexpr std::uint16_t kFlagReadOnly = 1u << 1;
inline constexpr std::uint16_t kFlagSendFlush = 1u << 2;
inline constexpr std::uint16_t kFlagSendFua = 1u << 3;
inline constexpr std::uint16_t kFlagSendTrim = 1u << 5;
inline constexpr std::uint16_t kFlagSendWriteZeroes = 1u << 6;
inline constexpr std::uint16_t kFlagSendDontFragment = 1u << 7;
inline constexpr std::uint16_t kFlagMultiConn = 1u << 8;

enum class CommandType : std::uint16_t {
    kRead = 0,
    kWrite = 1,
    kDisconnect = 2,
    kFlush = 3,
    kTrim = 4,
    kCache = 5,
    kWriteZeroes = 6,
    kBlockStatus = 7,
};

// Command flags.
inline constexpr std::uint16_t kCommandFua = 1u << 0;
inline constexpr std::uint16_t kCommandNoHole = 1u << 1;
inline constexpr std::uint16_t kCommandDontFragment = 1u << 2;
inline constexpr std::uint16_t kCommandRequestOne = 1u << 3;

// Structured replies.
inline constexpr std::uint16_t kReplyDone = 1u << 0;
enum class ChunkType : std::uint16_t {
    kNone = 0,
    kOffsetData = 1,
    kBlockStatus = 5,
    kError = 0x8001,
};

// The only errors a server may put on the wire.
inline constexpr std::uint32_t kErrorNone = 0;
inline constexpr std::uint32_t kErrorPermission = 1;
inline constexpr std::uint32_t kErrorIo = 5;
inline constexpr std::uint32_t kErrorNoMemory = 12;
inline constexpr std::uint32_t kErrorInvalid = 22;
inline constexpr std::uint32_t kErrorNoSpace = 28;
inline constexpr std::uint32_t kErrorShutdown = 108;

// Sizes on the wire.
inline constexpr std::size_t kGreetingBytes = 18;
inline constexpr std::size_t kOptionHeaderBytes = 16;
inline constexpr std::size_t kOptionReplyHeaderBytes = 20;
inline constexpr std::size_t kExportNameZeroes = 124;
inline constexpr std::size_t kRequestHeaderBytes = 28;
inline constexpr std::size_t kSimpleReplyBytes = 16;
inline constexpr std::size_t kChunkHeaderBytes = 20;
/// The longest fixed part of any reply: a chunk header and a block status extent.
inline constexpr std::size_t kReplyHeadBytesMax = kChunkHeaderBytes + 12;
inline constexpr std::size_t kStringBytesMax = 4096;

/// The one metadata context that is offered, and the number it has on the wire.
inline constexpr char kAllocationContext[] = "base:allocation";
inline constexpr std::uint32_t kAllocationContextId = 1;

// What this server takes.
inline constexpr std::size_t kReceiveBufferBytes = 64 * kKiB;
inline constexpr std::size_t kOptionBytesMax = 32 * kKiB;
/// An option longer than kOptionBytesMax is skipped and refused; one longer than this ends the
/// connection.
inline constexpr std::uint32_t kOptionSkippedBytesMax = 1 * kMiB;
/// A refused write's payload is skipped up to this length; beyond it the connection ends.
inline constexpr std::uint32_t kPayloadSkippedBytesMax = 2 * limits::kRequestBytesMax;

static_assert(kOptionHeaderBytes + kOptionBytesMax <= kReceiveBufferBytes);
static_assert(kReplyHeadBytesMax >= kChunkHeaderBytes + 8, "an offset-data chunk fits");
static_assert(kReplyHeadBytesMax >= kChunkHeaderBytes + 6, "an error chunk fits");
static_assert(kReplyHeadBytesMax >= kSimpleReplyBytes);
static_assert(limits::kNbdExportNameBytesMax <= kStringBytesMax);
static_assert(limits::kRequestBytesMax <= 0xffff'ffff);

}  // namespace warpraid::nbd
