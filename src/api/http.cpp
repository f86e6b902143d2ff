#include "api/http.h"

#include <algorithm>
#include <utility>

#include "api/target.h"
#include "base/limits.h"
#include "base/number_text.h"

namespace warpraid::api {

namespace {

constexpr std::size_t kHeadBytesMax = 32 * kKiB;
/// Sizes and line ends of chunks, and what follows the last one: chunks of a byte each are fine.
constexpr std::size_t kFramingBytesMax = 8 * limits::kHttpBodyBytesMax;
constexpr std::size_t kChunkLineBytesMax = 1 * kKiB;
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kNeverInALine("\r\n\0", 3);
constexpr std::string_view kNeverInATarget(" \t\r\n\0", 5);
constexpr std::string_view kHeadEnd = "\r\n\r\n";

bool is_same_word(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
        return std::tolower(x) == std::tolower(y);
    });
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string_view status_words(int http_status) {
    switch (http_status) {
        case 200:
            return "OK";
        case 400:
            return "Bad Request";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 408:
            return "Request Timeout";
        case 409:
            return "Conflict";
        case 413:
            return "Payload Too Large";
        case 431:
            return "Request Header Fields Too Large";
        default:
            return http_status < 500 ? "Refused" : "Failed";
    }
}

}  // namespace

Request RequestReader::request() const {
    return Request{is_head() ? std::string_view("GET") : std::string_view(method_), target_, body_};
}

void RequestReader::refuse(ErrorCode code, std::string message, int http_status) {
    state_ = State::kRefused;
    refusal_ = answer_of(Error{code, std::move(message)});
    if (http_status != 0) refusal_.http_status = http_status;
    pending_.clear();
    body_.clear();
    at_ = 0;
    searched_ = 0;
}

void RequestReader::push(std::string_view bytes) {
    if (is_done()) return;
    pending_.append(bytes);
    if (state_ == State::kHead) take_head();
    if (state_ == State::kBody) take_body();
    searched_ -= std::min(searched_, at_);
    pending_.erase(0, std::exchange(at_, 0));
}

void RequestReader::end() {
    if (is_done()) return;
    refuse(ErrorCode::kProtocol, state_ == State::kHead
                                     ? "the request ended before its head did: send all of it"
                                     : "the request ended before its body did: send all of it");
}

/// The start of what a client sent, fit for a message.
std::string RequestReader::shown(std::string_view text) {
    constexpr std::size_t kShownMax = 40;
    std::string start(text.substr(0, kShownMax));
    for (char& c : start) {
        if (c < ' ' || c > '~') c = '?';
    }
    return start;
}

/// Where `mark` begins in what is not yet understood. What an earlier search has seen is not looked
/// at again, but for a mark that had only begun: a client may send a byte at a time.
std::size_t RequestReader::find_onward(std::string_view mark) {
    const std::size_t from = std::max(at_, searched_);
    const std::size_t found = pending_.find(mark, from);
    const bool is_found = found != std::string::npos;
    searched_bytes_ += (is_found ? found + mark.size() : pending_.size()) - from;
    searched_ = is_found ? found : pending_.size() - std::min(pending_.size(), mark.size() - 1);
    return found;
}

void RequestReader::take_head() {
    const std::size_t end = find_onward(kHeadEnd);
    if (std::min(end, pending_.size()) > kHeadBytesMax) {
        return refuse(
            ErrorCode::kProtocol,
            "the request's head is larger than " + std::to_string(kHeadBytesMax) + " bytes", 431);
    }
    if (end == std::string::npos) return;
    // Each line of the head, with its end, without the empty one.
    const std::string head = pending_.substr(0, end + kLineEnd.size());
    at_ = end + kHeadEnd.size();
    std::size_t begin = 0;
    for (bool is_first = true; begin < head.size(); is_first = false) {
        const std::size_t line_end = head.find(kLineEnd, begin);
        const std::string_view line = std::string_view(head).substr(begin, line_end - begin);
        begin = line_end + kLineEnd.size();
        if (!(is_first ? take_request_line(line) : take_header(line))) {
            // A reason given further down is better than this one.
            if (state_ != State::kRefused) {
                refuse(ErrorCode::kProtocol, "not a request this server understands at '" +
                                                 shown(line) +
                                                 "': write one of HTTP/1.1, its request line and "
                                                 "headers");
            }
            return;
        }
    }
    decide_body();
}

bool RequestReader::take_request_line(std::string_view line) {
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == std::string_view::npos || first == 0 || last == first) return false;
    const std::string_view version = line.substr(last + 1);
    if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
    method_ = line.substr(0, first);
    target_ = line.substr(first + 1, last - first - 1);
    if (read_only_ && method_ != "GET" && method_ != "HEAD") {
        refuse(ErrorCode::kPermissionDenied,
               "this is the read-only socket: it answers GET and "
               "HEAD, and " +
                   shown(method_) + " was asked: use the control socket");
        return false;
    }
    if (target_.size() > kTargetBytesMax) {
        refuse(ErrorCode::kInvalidArgument, "the request's address has " +
                                                std::to_string(target_.size()) + " bytes, " +
                                                std::to_string(kTargetBytesMax) + " at most");
        return false;
    }
    return target_.find_first_of(kNeverInATarget) == std::string::npos;
}

/// Ranges, conditions, types and whatever else a header may ask for are for documents, and the
/// answers here are none: they are read over. The type of a body is not asked for: it is JSON.
bool RequestReader::take_header(std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return false;
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trimmed(line.substr(colon + 1));
    // Also the lines that are folded: they begin with a space.
    if (name.find_first_of(" \t") != std::string_view::npos) return false;
    // Others might take a lone one for the line's end, and what follows for a header.
    if (line.find_first_of(kNeverInALine) != std::string_view::npos) return false;
    if (is_same_word(name, "Content-Length")) {
        ++lengths_;
        length_ = value;
    } else if (is_same_word(name, "Transfer-Encoding")) {
        ++encodings_;
        encoding_ = value;
    } else if (is_same_word(name, "Expect")) {
        expects_continue_ = is_same_word(value, "100-continue");
    } else if (is_same_word(name, "Content-Encoding") && !is_same_word(value, "identity")) {
        refuse(ErrorCode::kInvalidArgument,
               "the body must be sent as it is, not as '" + shown(value) + "'");
        return false;
    }
    return true;
}

void RequestReader::decide_body() {
    const auto length = parse_whole_number<std::size_t>(length_);
    const bool is_chunked = encodings_ == 1 && is_same_word(encoding_, "chunked");
    const bool is_clear = encodings_ == 0 ? lengths_ == 0 || (lengths_ == 1 && length.has_value())
                                          : lengths_ == 0 && is_chunked;
    if (!is_clear)
        return refuse(ErrorCode::kProtocol,
                      "how long the body is cannot be told: send one "
                      "Content-Length, or the one Transfer-Encoding "
                      "'chunked'");
    body_left_ = length.value_or(0);
    if (body_left_ > limits::kHttpBodyBytesMax) return append(body_left_);
    // Only commands have one; what follows a query is not looked at.
    const bool has_body = is_chunked || body_left_ > 0;
    const bool is_query = method_ == "GET" || is_head();
    state_ = has_body && !is_query ? State::kBody : State::kComplete;
}

void RequestReader::append(std::size_t count) {
    // `count` may be anything that a client can write down: no sum that could wrap.
    if (count > limits::kHttpBodyBytesMax - body_.size() || framing_bytes_ > kFramingBytesMax) {
        return refuse(
            ErrorCode::kInvalidArgument,
            "the body is larger than " + std::to_string(limits::kHttpBodyBytesMax) + " bytes", 413);
    }
    body_.append(pending_, at_, count);
    at_ += count;
    body_left_ -= count;
}

void RequestReader::take_body() {
    if (encodings_ > 0) return take_chunks();
    append(std::min(body_left_, pending_.size() - at_));
    if (body_left_ == 0) state_ = State::kComplete;
}

std::optional<std::string_view> RequestReader::take_line() {
    const std::size_t end = find_onward(kLineEnd);
    if (std::min(end, pending_.size()) - at_ > kChunkLineBytesMax) {
        refuse(ErrorCode::kProtocol, "the body's chunks are not understood");
        return std::nullopt;
    }
    if (end == std::string::npos) return std::nullopt;
    const std::string_view line = std::string_view(pending_).substr(at_, end - at_);
    framing_bytes_ += line.size() + kLineEnd.size();
    at_ = end + kLineEnd.size();
    return line;
}

bool RequestReader::take_chunk_size(std::string_view line) {
    const auto size = parse_whole_number<std::size_t>(trimmed(line.substr(0, line.find(';'))), 16);
    if (!size) return false;
    body_left_ = *size;
    chunk_step_ = body_left_ == 0 ? ChunkStep::kTrailer : ChunkStep::kData;
    // Told at once, not after so many bytes.
    if (body_left_ > limits::kHttpBodyBytesMax) append(body_left_);
    return true;
}

void RequestReader::take_chunks() {
    while (state_ == State::kBody) {
        if (chunk_step_ == ChunkStep::kData) {
            append(std::min(body_left_, pending_.size() - at_));
            if (body_left_ > 0) return;
            chunk_step_ = ChunkStep::kDataEnd;
            continue;
        }
        const std::optional<std::string_view> line = take_line();
        if (!line) return;
        bool is_fine = true;
        if (chunk_step_ == ChunkStep::kSize) {
            is_fine = take_chunk_size(*line);
        } else if (chunk_step_ == ChunkStep::kDataEnd) {
            is_fine = line->empty();
            chunk_step_ = ChunkStep::kSize;
        } else if (line->empty()) {
            state_ = State::kComplete;
        } else {
            append(0);  // trailers are read over, but not without end
        }
        if (!is_fine) refuse(ErrorCode::kProtocol, "the body's chunks are not understood");
    }
}

std::string to_http(const Answer& answer, bool is_head) {
    std::string text = "HTTP/1.1 " + std::to_string(answer.http_status) + " ";
    text += status_words(answer.http_status);
    text += "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
            std::to_string(answer.body.size()) + "\r\n\r\n";
    if (!is_head) text += answer.body;
    return text;
}

}  // namespace warpraid::api
