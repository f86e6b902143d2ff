// The sending half of a connection: completed requests, in the order of their completion, leave in
// as few sends as possible.
#include <span>

#include "base/assert.h"
#include "export/nbd/connection.h"

namespace warpraid::nbd {

void Connection::device_completed(Frame& frame) {
    frame.reply.error = to_wire_error(frame.request.error);
    reply_ready(frame);
}

void Connection::reply_ready(Frame& frame) {
    if (frame.reply.error != kErrorNone) ++core_.counters.errors;
    if (broken_) {
        give_back(frame);
        finish_if_done();
        return;
    }
    ready_.push_back(frame);
    if (!send_busy_ && !send_ticket_.is_queued()) core_.senders.push_back(send_ticket_);
}

void Connection::send_ready() {
    // The last answers of the handshake may still be on their way.
    if (send_busy_ || ready_.empty()) return;
    gather();
    start_send();
}

std::size_t Connection::gather() {
    head_bytes_ = 0;
    segment_count_ = 0;
    std::size_t bytes = 0;
    std::size_t replies = 0;
    while (!ready_.empty() && replies < kRepliesPerSend && bytes < kSendBytes) {
        Frame& frame = *ready_.pop_front();
        const std::span<std::byte, kReplyHeadBytesMax> to(heads_.data() + head_bytes_,
                                                          kReplyHeadBytesMax);
        const ReplyHead head = encode_reply(frame.reply, terms_.structured_replies, to);
        append_segment(to.data(), head.bytes);
        head_bytes_ += head.bytes;
        if (!head.message.empty()) append_segment(head.message.data(), head.message.size());
        if (head.data_follows) append_segment(frame.data.data(), frame.reply.length_bytes);
        bytes += head.bytes + (head.data_follows ? frame.reply.length_bytes : 0);
        sending_.push_back(frame);
        ++replies;
    }
    return bytes;
}

void Connection::append_segment(const void* bytes, std::size_t length) {
    if (segment_count_ > 0) {
        // Replies without data follow each other in heads_.
        iovec& last = segments_[segment_count_ - 1];
        if (static_cast<const std::byte*>(last.iov_base) + last.iov_len == bytes) {
            last.iov_len += length;
            return;
        }
    }
    segments_[segment_count_++] = iovec{const_cast<void*>(bytes), length};
}

void Connection::start_send() {
    WARPRAID_ASSERT(!send_busy_);
    if (!output_.empty()) {
        segment_count_ = 1;
        segments_[0] = iovec{output_.data(), output_.size()};
    }
    send_.message = {};
    send_.message.msg_iov = segments_.data();
    send_.message.msg_iovlen = segment_count_;
    send_busy_ = true;
    core_.reactor.submit(send_);
}

void Connection::send_completed(std::int64_t result) {
    send_busy_ = false;
    output_.clear();
    release(sending_);
    if (result < 0) {
        drain(Ending::kBroken);
        return;
    }
    sent_bytes_ += result;
    if (!ready_.empty() && !send_ticket_.is_queued()) core_.senders.push_back(send_ticket_);
    // Frames came back, or the handshake's answers are out: go on with what was received.
    if (!receive_busy_) process_input();
    finish_if_done();
}

void Connection::release(IntrusiveFifo<Frame>& frames) {
    while (Frame* frame = frames.pop_front()) give_back(*frame);
}

void Connection::give_back(Frame& frame) {
    buffer_bytes_held_ -= frame.data.size_bytes();
    --frames_held_;
    core_.frames.give_back(frame);
}

}  // namespace warpraid::nbd
