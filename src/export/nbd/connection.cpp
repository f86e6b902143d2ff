#include "export/nbd/connection.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <utility>

#include "base/assert.h"

namespace warpraid::nbd {

namespace {

/// Of what the kernel took from us, what the client's side has not taken yet: over TCP the bytes it
/// has not acknowledged, over a Unix socket the memory of those it has not read, which is a little
/// more. Where the kernel cannot say, all of it is taken but a byte.
std::int64_t bytes_not_taken(int fd) {
    int bytes = 0;
    return ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : 1;
}

}  // namespace

std::string_view to_text(ConnectionState state) {
    switch (state) {
        case ConnectionState::kHandshake:
            return "handshake";
        case ConnectionState::kTransmission:
            return "transmission";
        case ConnectionState::kDraining:
            return "draining";
        case ConnectionState::kFinished:
            return "finished";
    }
    return "unknown";
}

std::string_view to_text(ReceiveStep step) {
    switch (step) {
        case ReceiveStep::kHeader:
            return "header";
        case ReceiveStep::kAdmission:
            return "admission";
        case ReceiveStep::kPayload:
            return "payload";
        case ReceiveStep::kSkip:
            return "skip";
    }
    return "unknown";
}

Connection::Connection(Core& core, UniqueFd socket)
    : core_(core),
      socket_(std::move(socket)),
      started_ns_(core.reactor.now_ns()),
      handshake_(core.exports),
      // Not cleared: pages of it are touched when bytes arrive, not before.
      input_(new std::byte[kReceiveBufferBytes]) {
    admission_.connection = this;
    send_ticket_.connection = this;
    gather_ticket_.connection = this;
    receive_.kind = io::SocketOperation::Kind::kReceive;
    receive_.fd = socket_.get();
    receive_.owner = this;
    receive_.complete = [](io::SocketOperation& operation) {
        static_cast<Connection*>(operation.owner)->receive_completed(operation.result);
    };
    send_.kind = io::SocketOperation::Kind::kSend;
    send_.fd = socket_.get();
    send_.owner = this;
    send_.complete = [](io::SocketOperation& operation) {
        static_cast<Connection*>(operation.owner)->send_completed(operation.result);
    };
}

Connection::~Connection() {
    WARPRAID_ASSERT(!receive_busy_ && !send_busy_ && frames_held_ == 0);
    WARPRAID_ASSERT(!admission_.is_queued() && !send_ticket_.is_queued());
}

void Connection::start() {
    Handshake::append_greeting(output_);
    handshake_verdict_ = HandshakeVerdict::kAgain;
    start_send();
}

void Connection::drain(Ending ending) {
    if (state_ == ConnectionState::kFinished) return;
    if (ending == Ending::kBroken && !broken_) {
        broken_ = true;
        if (send_busy_) core_.reactor.cancel(send_);
        release(ready_);
    }
    if (state_ != ConnectionState::kDraining) {
        state_ = ConnectionState::kDraining;
        taking_pace_.restart();
        drain_started_ns_ = core_.reactor.now_ns();
        if (admission_.is_queued()) {
            AdmissionTicket* previous = nullptr;
            for (AdmissionTicket* ticket = core_.admissions.front(); ticket != &admission_;) {
                previous = ticket;
                ticket = IntrusiveFifo<AdmissionTicket>::after(*ticket);
            }
            core_.admissions.remove_after(previous, admission_);
        }
        if (receive_busy_) {
            // The kernel may still write into the buffer; it is dropped when the receive has ended.
            core_.reactor.cancel(receive_);
        } else {
            drop_incoming();
        }
    }
    finish_if_done();
}

void Connection::finish_if_done() {
    if (state_ != ConnectionState::kDraining) return;
    if (receive_busy_ || send_busy_ || gather_ticket_.is_queued() || frames_held_ != 0) return;
    WARPRAID_ASSERT(ready_.empty() && sending_.empty() && incoming_ == nullptr);
    state_ = ConnectionState::kFinished;
    core_.has_finished = true;
    socket_.reset();
    if (export_ != nullptr) {
        WARPRAID_ASSERT(export_->connections > 0);
        --std::exchange(export_, nullptr)->connections;
        --core_.established;
    }
}

/// It is the client's turn while a send waits for it, and while its payload is incomplete.
void Connection::watch_pace(std::uint64_t now_ns) {
    const std::int64_t unread_bytes = send_busy_ ? bytes_not_taken(socket_.get()) : 0;
    if (unread_bytes == 0) {
        taking_pace_.restart();
    } else {
        const std::int64_t sent_bytes = sent_bytes_ + static_cast<std::int64_t>(send_.sent_bytes);
        taking_pace_.look(now_ns, sent_bytes - unread_bytes, progress_needed(held_bytes()));
    }
    if (step_ != ReceiveStep::kPayload) {
        payload_pace_.restart();
    } else {
        // What else it holds is not kept by what is missing here.
        payload_pace_.look(now_ns, static_cast<std::int64_t>(payload_done_),
                           progress_needed(judgement_.payload_bytes));
    }
}

void Connection::check_time(std::uint64_t now_ns) {
    watch_pace(now_ns);
    const bool hesitates = state_ == ConnectionState::kHandshake &&
                           now_ns - started_ns_ > core_.options.handshake_timeout_ns;
    const bool lingers =
        state_ == ConnectionState::kDraining && send_busy_ &&
        (taking_pace_.waited_ns() > core_.options.drain_patience_ns ||
         now_ns - drain_started_ns_ > kDrainPatiencesMax * core_.options.drain_patience_ns);
    if (hesitates || lingers) drain(Ending::kBroken);
}

std::size_t Connection::stuck_bytes() const {
    const bool is_ending = state_ == ConnectionState::kDraining && !broken_;
    if (state_ != ConnectionState::kTransmission && !is_ending) return 0;
    const std::uint64_t patience_ns = core_.options.crowded_patience_ns;
    const bool is_stuck =
        taking_pace_.waited_ns() > patience_ns || payload_pace_.waited_ns() > patience_ns;
    return is_stuck ? held_bytes() : 0;
}

}  // namespace warpraid::nbd
