#include "export/nbd/handshake.h"

#include <algorithm>

#include "base/assert.h"
#include "export/nbd/answers.h"
#include "export/nbd/options.h"
#include "export/nbd/wire.h"

namespace warpraid::nbd {

namespace {

/// Entries that go into one call's output: with names and descriptions of the longest kind they
/// stay below Handshake::kAnswerBytesMax.
constexpr std::size_t kListedPerCall = 8;
static_assert(kListedPerCall * (kOptionReplyHeaderBytes + 4 + limits::kNbdExportNameBytesMax +
                                kStringBytesMax) <=
              Handshake::kAnswerBytesMax);

constexpr std::string_view kNoSuchExport = "there is no export of this name";

}  // namespace

std::string_view to_text(HandshakeState state) {
    switch (state) {
        case HandshakeState::kClientFlags:
            return "client-flags";
        case HandshakeState::kOption:
            return "option";
        case HandshakeState::kSkipping:
            return "skipping";
        case HandshakeState::kListing:
            return "listing";
        case HandshakeState::kAgreed:
            return "agreed";
        case HandshakeState::kEnded:
            return "ended";
    }
    return "unknown";
}

void Handshake::append_greeting(std::vector<std::byte>& output) {
    const std::size_t start = output.size();
    output.resize(start + kGreetingBytes);
    WireWriter writer(std::span<std::byte>(output).subspan(start));
    writer.put(kMagicServer);
    writer.put(kMagicOption);
    writer.put(static_cast<std::uint16_t>(kHandshakeFixedNewstyle | kHandshakeNoZeroes));
    WARPRAID_ASSERT(writer.written() == kGreetingBytes);
}

Handshake::Progress Handshake::advance(std::span<const std::byte> input, Output& output) {
    Progress progress;
    switch (state_) {
        case HandshakeState::kClientFlags:
            progress = take_client_flags(input);
            break;
        case HandshakeState::kOption:
            progress = take_option(input, output);
            break;
        case HandshakeState::kSkipping:
            progress = skip(input, output);
            break;
        case HandshakeState::kListing:
            progress = list_more(output);
            break;
        case HandshakeState::kAgreed:
            progress = {0, HandshakeVerdict::kTransmission};
            break;
        case HandshakeState::kEnded:
            progress = {0, HandshakeVerdict::kClose};
            break;
    }
    const bool ended = progress.verdict == HandshakeVerdict::kClose ||
                       progress.verdict == HandshakeVerdict::kViolation;
    if (ended) state_ = HandshakeState::kEnded;
    return progress;
}

Handshake::Progress Handshake::take_client_flags(std::span<const std::byte> input) {
    if (input.size() < sizeof(std::uint32_t)) return {};
    const auto flags = WireReader(input).take<std::uint32_t>();
    // An unknown flag may change what follows, so the specification asks to hang up.
    if ((flags & ~(kHandshakeFixedNewstyle | kHandshakeNoZeroes)) != 0) {
        return {sizeof(std::uint32_t), HandshakeVerdict::kViolation};
    }
    no_zeroes_ = (flags & kHandshakeNoZeroes) != 0;
    state_ = HandshakeState::kOption;
    return {sizeof(std::uint32_t), HandshakeVerdict::kAgain};
}

Handshake::Progress Handshake::take_option(std::span<const std::byte> input, Output& output) {
    if (input.size() < kOptionHeaderBytes) return {};
    WireReader reader(input);
    if (reader.take<std::uint64_t>() != kMagicOption) return {0, HandshakeVerdict::kViolation};
    const auto option = static_cast<Option>(reader.take<std::uint32_t>());
    const auto length = reader.take<std::uint32_t>();
    if (length > kOptionBytesMax) {
        // NBD_OPT_EXPORT_NAME has no answer that means no.
        if (length > kOptionSkippedBytesMax || option == Option::kExportName) {
            return {0, HandshakeVerdict::kViolation};
        }
        skip_left_ = length;
        skipped_ = option;
        state_ = HandshakeState::kSkipping;
        return {kOptionHeaderBytes, HandshakeVerdict::kAgain};
    }
    if (input.size() - kOptionHeaderBytes < length) return {};
    return {kOptionHeaderBytes + length,
            answer(option, input.subspan(kOptionHeaderBytes, length), output)};
}

Handshake::Progress Handshake::skip(std::span<const std::byte> input, Output& output) {
    const std::size_t count = std::min<std::size_t>(input.size(), skip_left_);
    skip_left_ -= static_cast<std::uint32_t>(count);
    if (skip_left_ > 0) return {count, HandshakeVerdict::kNeedInput};
    append_refusal(output, skipped_, OptionReply::kErrorTooBig, "the option is too long");
    state_ = HandshakeState::kOption;
    return {count, HandshakeVerdict::kAgain};
}

HandshakeVerdict Handshake::answer(Option option, std::span<const std::byte> payload,
                                   Output& output) {
    switch (option) {
        case Option::kExportName:
            return answer_export_name(payload, output);
        case Option::kAbort:
            return answer_abort(output);
        case Option::kList:
            return answer_list(payload, output);
        case Option::kInfo:
        case Option::kGo:
            return answer_info(option, payload, output);
        case Option::kStructuredReply:
            return answer_structured(payload, output);
        case Option::kListMetaContext:
        case Option::kSetMetaContext:
            return answer_context(option, payload, output);
        case Option::kStartTls:
            append_refusal(output, option, OptionReply::kErrorUnsupported,
                           "this server does not offer TLS");
            return HandshakeVerdict::kAgain;
    }
    append_reply(output, option, OptionReply::kErrorUnsupported);
    return HandshakeVerdict::kAgain;
}

HandshakeVerdict Handshake::answer_export_name(std::span<const std::byte> payload, Output& output) {
    const auto offer = directory_.find_offer(WireReader(payload).take_text(payload.size()));
    if (!offer) return HandshakeVerdict::kClose;
    agree_on(offer->name);
    append_export_name_answer(
        output, *offer, transmission_flags(*offer, agreement_.structured_replies), no_zeroes_);
    return HandshakeVerdict::kTransmission;
}

HandshakeVerdict Handshake::answer_abort(Output& output) {
    append_reply(output, Option::kAbort, OptionReply::kAck);
    return HandshakeVerdict::kClose;
}

HandshakeVerdict Handshake::answer_list(std::span<const std::byte> payload, Output& output) {
    if (!payload.empty()) {
        append_refusal(output, Option::kList, OptionReply::kErrorInvalid, "unexpected payload");
        return HandshakeVerdict::kAgain;
    }
    listed_.reset();
    state_ = HandshakeState::kListing;
    return HandshakeVerdict::kAgain;
}

Handshake::Progress Handshake::list_more(Output& output) {
    for (std::size_t i = 0; i < kListedPerCall; ++i) {
        const auto offer = directory_.offer_after(listed_ ? &*listed_ : nullptr);
        if (!offer) {
            append_reply(output, Option::kList, OptionReply::kAck);
            state_ = HandshakeState::kOption;
            break;
        }
        append_listed(output, *offer);
        listed_.emplace(offer->name);
    }
    return {0, HandshakeVerdict::kAgain};
}

HandshakeVerdict Handshake::answer_info(Option option, std::span<const std::byte> payload,
                                        Output& output) {
    const auto query = parse_info_query(payload);
    if (!query) {
        append_refusal(output, option, OptionReply::kErrorInvalid, "malformed payload");
        return HandshakeVerdict::kAgain;
    }
    const auto offer = directory_.find_offer(query->export_name);
    if (!offer) {
        append_refusal(output, option, OptionReply::kErrorUnknown, kNoSuchExport);
        return HandshakeVerdict::kAgain;
    }
    append_export_info(output, option, *offer,
                       transmission_flags(*offer, agreement_.structured_replies));
    // Told to everybody: a client that ignores block sizes would meet EINVAL without a reason.
    append_block_sizes(output, option, *offer);
    if (query->wants_name) append_text_info(output, option, Info::kName, offer->name);
    if (query->wants_description) {
        append_text_info(output, option, Info::kDescription, offer->description);
    }
    append_reply(output, option, OptionReply::kAck);
    if (option == Option::kInfo) return HandshakeVerdict::kAgain;
    agree_on(offer->name);
    return HandshakeVerdict::kTransmission;
}

HandshakeVerdict Handshake::answer_structured(std::span<const std::byte> payload, Output& output) {
    if (!payload.empty()) {
        append_refusal(output, Option::kStructuredReply, OptionReply::kErrorInvalid,
                       "unexpected payload");
        return HandshakeVerdict::kAgain;
    }
    agreement_.structured_replies = true;
    append_reply(output, Option::kStructuredReply, OptionReply::kAck);
    return HandshakeVerdict::kAgain;
}

HandshakeVerdict Handshake::answer_context(Option option, std::span<const std::byte> payload,
                                           Output& output) {
    const bool selects = option == Option::kSetMetaContext;
    // A failed selection leaves none selected.
    if (selects) context_name_.reset();
    const auto query = parse_context_query(option, payload);
    if (!query || !agreement_.structured_replies) {
        append_refusal(output, option, OptionReply::kErrorInvalid,
                       query ? "structured replies must be negotiated first" : "malformed payload");
        return HandshakeVerdict::kAgain;
    }
    const auto offer = directory_.find_offer(query->export_name);
    if (!offer) {
        append_refusal(output, option, OptionReply::kErrorUnknown, kNoSuchExport);
        return HandshakeVerdict::kAgain;
    }
    if (query->allocation) {
        append_context(output, option, kAllocationContextId, kAllocationContext);
        if (selects) context_name_.emplace(offer->name);
    }
    append_reply(output, option, OptionReply::kAck);
    return HandshakeVerdict::kAgain;
}

void Handshake::agree_on(std::string_view export_name) {
    agreement_.export_name = export_name;
    // A context selected for one export says nothing about another.
    agreement_.allocation_context = context_name_ == agreement_.export_name;
    state_ = HandshakeState::kAgreed;
}

}  // namespace warpraid::nbd
