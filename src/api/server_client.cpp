#include "api/server_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace warpraid::api {

namespace {

/// Bytes of one client in one turn, so that the others get theirs.
constexpr std::size_t kReceiveBytes = 64 * 1024;

bool would_block() {
    return errno == EAGAIN || errno == EINTR;
}

}  // namespace

ServerClient::ServerClient(UniqueFd socket, const ServerOptions& options, std::uint64_t now_ns)
    : options_(options),
      socket_(std::move(socket)),
      deadline_ns_(now_ns + options.receive_timeout_ns),
      reader_(options.read_only) {}

short ServerClient::poll_events() const {
    return phase_ == Phase::kSending ? POLLOUT : POLLIN;
}

void ServerClient::close() {
    phase_ = Phase::kClosed;
    socket_.reset();
}

void ServerClient::advance(std::uint64_t now_ns) {
    if (phase_ == Phase::kReceiving) receive(now_ns);
    if (phase_ == Phase::kSending) send(now_ns);
    if (phase_ == Phase::kLingering) discard();
}

void ServerClient::deadline_passed(std::uint64_t now_ns) {
    if (phase_ != Phase::kReceiving || !reader_.has_begun()) return close();
    Answer answer = answer_of(
        Error{ErrorCode::kTimeout,
              "the request had not arrived as a whole after " +
                  std::to_string(options_.receive_timeout_ns / kNanosecondsPerMillisecond) +
                  " ms, which is how long it may take: send it again, at once"});
    answer.http_status = 408;
    refuse(answer, now_ns);
    advance(now_ns);
}

void ServerClient::receive(std::uint64_t now_ns) {
    std::array<char, kReceiveBytes> buffer;
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0) {
        if (!would_block()) close();
        return;
    }
    // One that only ends its sending still gets its answer.
    if (count == 0 && !reader_.has_begun()) return close();
    if (count == 0) {
        reader_.end();
    } else {
        reader_.push({buffer.data(), static_cast<std::size_t>(count)});
    }
    if (reader_.state() == RequestReader::State::kRefused) return refuse(reader_.refusal(), now_ns);
    if (reader_.state() == RequestReader::State::kComplete) {
        phase_ = Phase::kWorking;
    } else if (reader_.wants_continue() && !std::exchange(told_to_continue_, true)) {
        // The first bytes to this client: they fit into the socket.
        constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        ::send(socket_.get(), kContinue.data(), kContinue.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

void ServerClient::refuse(const Answer& answer, std::uint64_t now_ns) {
    set_answer(answer);
    start_sending(now_ns);
}

void ServerClient::start_sending(std::uint64_t now_ns) {
    phase_ = Phase::kSending;
    deadline_ns_ = now_ns + options_.send_timeout_ns;
}

void ServerClient::send(std::uint64_t now_ns) {
    while (sent_ < output_.size()) {
        const ssize_t count = ::send(socket_.get(), output_.data() + sent_, output_.size() - sent_,
                                     MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0) {
            if (!would_block()) close();
            return;
        }
        sent_ += static_cast<std::size_t>(count);
    }
    // To close with bytes unread would be a reset, and the answer might be lost.
    ::shutdown(socket_.get(), SHUT_WR);
    phase_ = Phase::kLingering;
    deadline_ns_ = now_ns + options_.linger_timeout_ns;
}

void ServerClient::discard() {
    std::array<char, kReceiveBytes> buffer;
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && !would_block())) close();
}

}  // namespace warpraid::api
