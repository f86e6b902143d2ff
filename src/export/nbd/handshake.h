// Fixed-newstyle negotiation as a state machine over bytes: it reads a prefix of what the client
// sent and appends what the server answers. It knows no socket, so that it can be fuzzed. What one
// call appends is bounded; the caller sends it before it calls again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/nbd/exports.h"
#include "export/nbd/protocol.h"

namespace warpraid::nbd {

enum class HandshakeState : std::uint8_t {
    kClientFlags,  // the greeting went out, the client's flags are next
    kOption,       // between options
    kSkipping,     // inside an option that is too long
    kListing,      // in the middle of the answers to a list
    kAgreed,       // the client chose an export
    kEnded,        // the client gave up or broke the protocol
};
std::string_view to_text(HandshakeState state);

enum class HandshakeVerdict : std::uint8_t {
    kNeedInput,     // nothing more to do with these bytes
    kAgain,         // something was done; call again
    kTransmission,  // agreed: the next byte belongs to the transmission phase
    kClose,         // end the connection after sending what was appended
    kViolation,     // as kClose, and the client is to blame
};

class Handshake {
  public:
    struct Progress {
        std::size_t consumed = 0;
        HandshakeVerdict verdict = HandshakeVerdict::kNeedInput;
    };
    /// What was agreed on.
    struct Agreement {
        std::string export_name;  // its full name, also when the client asked for the default
        bool structured_replies = false;
        bool allocation_context = false;
    };

    /// No single call appends more than this.
    static constexpr std::size_t kAnswerBytesMax = 64 * kKiB;

    explicit Handshake(const ExportDirectory& directory) : directory_(directory) {}

    static void append_greeting(std::vector<std::byte>& output);
    Progress advance(std::span<const std::byte> input, std::vector<std::byte>& output);

    HandshakeState state() const { return state_; }
    const Agreement& agreement() const { return agreement_; }

  private:
    using Output = std::vector<std::byte>;
    Progress take_client_flags(std::span<const std::byte> input);
    Progress take_option(std::span<const std::byte> input, Output& output);
    Progress skip(std::span<const std::byte> input, Output& output);
    Progress list_more(Output& output);

    HandshakeVerdict answer(Option option, std::span<const std::byte> payload, Output& output);
    HandshakeVerdict answer_export_name(std::span<const std::byte> payload, Output& output);
    HandshakeVerdict answer_abort(Output& output);
    HandshakeVerdict answer_list(std::span<const std::byte> payload, Output& output);
    HandshakeVerdict answer_info(Option option, std::span<const std::byte> payload, Output& output);
    HandshakeVerdict answer_structured(std::span<const std::byte> payload, Output& output);
    HandshakeVerdict answer_context(Option option, std::span<const std::byte> payload,
                                    Output& output);
    void agree_on(std::string_view export_name);

    const ExportDirectory& directory_;
    HandshakeState state_ = HandshakeState::kClientFlags;
    Agreement agreement_;
    bool no_zeroes_ = false;
    std::uint32_t skip_left_ = 0;
    Option skipped_ = Option::kAbort;
    std::optional<std::string> listed_;        // the last name that was listed
    std::optional<std::string> context_name_;  // the export whose context was selected
};

}  // namespace warpraid::nbd
