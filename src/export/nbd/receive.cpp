// The receiving half of a connection: bytes in, requests to the device.
#include <algorithm>
#include <cstring>
#include <span>

#include "base/assert.h"
#include "export/nbd/connection.h"

namespace warpraid::nbd {

void Connection::receive_completed(std::int64_t result) {
    receive_busy_ = false;
    // The kernel wrote into a payload's buffer until now, so it must still be ours.
    WARPRAID_ASSERT(!receives_payload_ || incoming_ != nullptr);
    if (state_ == ConnectionState::kDraining) {
        drop_incoming();
        finish_if_done();
        return;
    }
    if (result <= 0) {
        drain(result == 0 ? Ending::kAnswer : Ending::kBroken);
        return;
    }
    if (receives_payload_) {
        payload_done_ += static_cast<std::size_t>(result);
    } else {
        input_end_ += static_cast<std::size_t>(result);
    }
    requests_received_ = 0;
    process_input();
}

void Connection::process_input() {
    if (state_ == ConnectionState::kHandshake) process_handshake();
    if (state_ == ConnectionState::kTransmission) process_requests();
    if (input_begin_ == input_end_) input_begin_ = input_end_ = 0;
    arm_receive();
}

void Connection::arm_receive() {
    if (receive_busy_ || gather_ticket_.is_queued() || step_ == ReceiveStep::kAdmission) return;
    // In the handshake one side speaks at a time, so the answers cannot pile up.
    if (state_ == ConnectionState::kHandshake && send_busy_) return;
    if (state_ != ConnectionState::kHandshake && state_ != ConnectionState::kTransmission) return;
    receives_payload_ = step_ == ReceiveStep::kPayload;
    if (lets_gather()) return;
    if (receives_payload_) {
        receive_.data = incoming_->data.data() + payload_done_;
        receive_.length = judgement_.payload_bytes - payload_done_;
    } else {
        // What is left here is the beginning of a header or of an option.
        if (input_begin_ != 0) {
            std::memmove(input_.get(), input_.get() + input_begin_, input_left());
            input_end_ -= input_begin_;
            input_begin_ = 0;
        }
        receive_.data = input_.get() + input_end_;
        receive_.length = kReceiveBufferBytes - input_end_;
    }
    WARPRAID_ASSERT(receive_.length > 0);
    receive_busy_ = true;
    core_.reactor.submit(receive_);
}

bool Connection::lets_gather() {
    const bool is_busy = requests_received_ >= kGatherRequestsMin && !receives_payload_;
    requests_received_ = 0;
    if (!is_busy) return false;
    gather_ticket_.until_ns = core_.reactor.now_ns() + kGatherNs;
    core_.gathering.push_back(gather_ticket_);
    return true;
}

void Connection::receive_gathered() {
    arm_receive();
    finish_if_done();
}

void Connection::process_handshake() {
    if (send_busy_) return;
    while (output_.size() < Handshake::kAnswerBytesMax) {
        const auto progress = handshake_.advance(
            std::span<const std::byte>(input_.get() + input_begin_, input_left()), output_);
        input_begin_ += progress.consumed;
        handshake_verdict_ = progress.verdict;
        if (progress.verdict != HandshakeVerdict::kAgain) break;
    }
    if (handshake_verdict_ == HandshakeVerdict::kTransmission) {
        if (core_.established >= core_.options.connections_max) {
            // The last place was taken while this client was negotiating.
            ++core_.counters.refused_connections;
            return drain(Ending::kBroken);
        }
        enter_transmission();
    }
    if (handshake_verdict_ == HandshakeVerdict::kViolation) ++core_.counters.protocol_errors;
    const bool ends = handshake_verdict_ == HandshakeVerdict::kViolation ||
                      handshake_verdict_ == HandshakeVerdict::kClose;
    if (!output_.empty()) start_send();
    if (ends) drain(Ending::kAnswer);
}

void Connection::enter_transmission() {
    const Handshake::Agreement& agreement = handshake_.agreement();
    export_ = core_.exports.find_exact(agreement.export_name);
    WARPRAID_ASSERT(export_ != nullptr && !export_->removing);
    ++export_->connections;
    ++core_.established;
    terms_.limits = export_->limits;
    terms_.structured_replies = agreement.structured_replies;
    terms_.allocation_context = agreement.allocation_context;
    state_ = ConnectionState::kTransmission;
}

void Connection::process_requests() {
    bool moving = true;
    while (moving && state_ == ConnectionState::kTransmission) {
        switch (step_) {
            case ReceiveStep::kHeader:
                moving = take_header();
                break;
            case ReceiveStep::kAdmission:
                // In the queue, the server's turn decides.
                moving = !admission_.is_queued() && try_admit();
                break;
            case ReceiveStep::kPayload:
                moving = take_payload();
                break;
            case ReceiveStep::kSkip:
                moving = skip_payload();
                break;
        }
    }
}

bool Connection::take_header() {
    if (input_left() < kRequestHeaderBytes) return false;
    const auto header = decode_request(std::span<const std::byte, kRequestHeaderBytes>(
        input_.get() + input_begin_, kRequestHeaderBytes));
    input_begin_ += kRequestHeaderBytes;
    if (!header) {
        ++core_.counters.protocol_errors;
        drain(Ending::kAnswer);
        return false;
    }
    header_ = *header;
    judgement_ = judge(header_, terms_);
    if (judgement_.action == Action::kViolation) ++core_.counters.protocol_errors;
    if (judgement_.action == Action::kViolation || judgement_.action == Action::kDisconnect) {
        drain(Ending::kAnswer);
        return false;
    }
    ++requests_received_;
    step_ = ReceiveStep::kAdmission;
    return true;
}

bool Connection::try_admit() {
    const std::size_t bytes_max = core_.arena.free_bytes() / kFreePartsPerConnection;
    const bool is_over_share = judgement_.buffer_bytes > 0 && buffer_bytes_held_ > 0 &&
                               buffer_bytes_held_ + judgement_.buffer_bytes > bytes_max;
    if (frames_held_ >= core_.options.requests_in_flight || is_over_share) {
        // A reply that leaves makes room; send_completed() comes back here. Until then others may
        // pass: who is asked while queued is the first of the queue.
        if (admission_.is_queued()) core_.admissions.pop_front();
        return false;
    }
    const bool first = core_.admissions.empty() || core_.admissions.front() == &admission_;
    io::Buffer buffer;
    bool available = first && !core_.frames.empty();
    if (available && judgement_.buffer_bytes > 0) {
        buffer = core_.arena.try_acquire(judgement_.buffer_bytes);
        available = static_cast<bool>(buffer);
    }
    if (!available) {
        if (!admission_.is_queued()) {
            admission_.since_ns = core_.reactor.now_ns();
            core_.admissions.push_back(admission_);
        }
        return false;
    }
    if (admission_.is_queued()) core_.admissions.pop_front();
    incoming_ = &core_.frames.take();
    ++frames_held_;
    buffer_bytes_held_ += buffer.size_bytes();
    incoming_->data = std::move(buffer);
    open_frame();
    return true;
}

void Connection::open_frame() {
    ++core_.counters.requests;
    Frame& frame = *incoming_;
    frame.connection = this;
    frame.reply.type = header_.type;
    frame.reply.cookie = header_.cookie;
    frame.reply.offset = header_.offset;
    frame.reply.length_bytes = header_.length_bytes;
    frame.reply.error = judgement_.error;
    block::Request& request = frame.request;
    request.operation = judgement_.operation;
    request.fua = judgement_.fua;
    const bool flush = judgement_.operation == block::Operation::kFlush;
    request.offset = flush ? 0 : header_.offset;
    request.length_bytes = flush ? 0 : header_.length_bytes;
    request.data = frame.data.data();
    request.error = 0;
    request.owner = &frame;
    request.complete = [](block::Request& completed) {
        Frame& owner = *static_cast<Frame*>(completed.owner);
        owner.connection->device_completed(owner);
    };
    payload_done_ = 0;
    skip_left_ = judgement_.payload_bytes_refused;
    if (judgement_.payload_bytes > 0) {
        step_ = ReceiveStep::kPayload;
        payload_pace_.restart();
    } else if (skip_left_ > 0) {
        step_ = ReceiveStep::kSkip;
    } else {
        dispatch();
    }
}

bool Connection::take_payload() {
    const std::size_t count =
        std::min<std::size_t>(input_left(), judgement_.payload_bytes - payload_done_);
    if (count > 0) {
        std::memcpy(incoming_->data.data() + payload_done_, input_.get() + input_begin_, count);
        input_begin_ += count;
        payload_done_ += count;
    }
    if (payload_done_ < judgement_.payload_bytes) return false;
    dispatch();
    return true;
}

bool Connection::skip_payload() {
    const std::size_t count = std::min(input_left(), skip_left_);
    input_begin_ += count;
    skip_left_ -= count;
    if (skip_left_ > 0) return false;
    dispatch();
    return true;
}

void Connection::dispatch() {
    Frame& frame = *std::exchange(incoming_, nullptr);
    step_ = ReceiveStep::kHeader;
    if (judgement_.action == Action::kSubmit) {
        export_->info.device->submit(frame.request);
    } else {
        reply_ready(frame);
    }
}

bool Connection::admit_waiting() {
    WARPRAID_ASSERT(core_.admissions.front() == &admission_);
    if (!try_admit()) return false;
    process_input();
    return true;
}

void Connection::drop_incoming() {
    step_ = ReceiveStep::kHeader;
    input_begin_ = input_end_ = 0;
    if (incoming_ == nullptr) return;
    give_back(*std::exchange(incoming_, nullptr));
}

}  // namespace warpraid::nbd
