// One HTTP/1.1 request as its bytes arrive, and the bytes of an answer. Pure: no socket, no time.
// Only what this API needs is understood; the rest is refused, and nothing is guessed: half a
// command must never become a whole one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/routes.h"

namespace warpraid::api {

class RequestReader {
  public:
    enum class State : std::uint8_t {
        kHead,      // the request line and the headers are arriving
        kBody,      // the body is
        kComplete,  // request() is there; more bytes are ignored
        kRefused,   // refusal() is there; more bytes are ignored
    };

    /// A reader for a read-only server refuses all methods but GET and HEAD at the head.
    explicit RequestReader(bool read_only) : read_only_(read_only) {}

    void push(std::string_view bytes);
    /// Nothing more comes: what is not complete by now is refused.
    void end();

    State state() const { return state_; }
    bool is_done() const { return state_ == State::kComplete || state_ == State::kRefused; }
    bool has_begun() const { return state_ != State::kHead || !pending_.empty(); }
    /// Whether the client waits for a "100 Continue" before it sends the body.
    bool wants_continue() const { return state_ == State::kBody && expects_continue_; }
    bool is_head() const { return method_ == "HEAD"; }
    /// Views into this reader. A HEAD is told as a GET: its answer goes without the body.
    Request request() const;
    const Answer& refusal() const { return refusal_; }
    /// How many bytes the searches for ends of lines and heads have passed over: about as many as
    /// came, in whatever pieces.
    std::size_t searched_bytes() const { return searched_bytes_; }

  private:
    enum class ChunkStep : std::uint8_t { kSize, kData, kDataEnd, kTrailer };

    void take_head();
    bool take_request_line(std::string_view line);
    bool take_header(std::string_view line);
    void decide_body();
    void take_body();
    void take_chunks();
    bool take_chunk_size(std::string_view line);
    std::optional<std::string_view> take_line();
    std::size_t find_onward(std::string_view mark);
    static std::string shown(std::string_view text);
    void append(std::size_t count);
    void refuse(ErrorCode code, std::string message, int http_status = 0);

    const bool read_only_;
    State state_ = State::kHead;
    std::string pending_;  // arrived and not yet understood, from at_ on
    std::size_t at_ = 0;
    std::size_t searched_ = 0;  // of pending_: what is looked for does not begin before
    std::size_t searched_bytes_ = 0;
    std::string method_, target_, body_;
    Answer refusal_;

    std::size_t lengths_ = 0, encodings_ = 0;  // headers of that name
    std::string length_, encoding_;
    bool expects_continue_ = false;
    std::size_t body_left_ = 0;  // of the body, or of its chunk
    std::size_t framing_bytes_ = 0;
    ChunkStep chunk_step_ = ChunkStep::kSize;
};

/// Head and body as they go to the client; without the body for HEAD.
std::string to_http(const Answer& answer, bool is_head);

}  // namespace warpraid::api
