// One client. At most one receive and one send are with the reactor at a time; a receive picks up
// as many requests as the client has sent, a send takes all replies that are ready.
//
// Invariants:
// - input_ bytes [input_begin_, input_end_) are received and not yet used; no receive is in flight
//   while they are being worked off.
// - A frame belongs to exactly one of: incoming_ (its payload is arriving), the device, ready_,
//   sending_. frames_held_ and buffer_bytes_held_ count them all.
// - A request gets its frame and its whole buffer before any of its payload is received, so that
//   half-received requests can never hold the arena in a circle.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "export/nbd/command.h"
#include "export/nbd/core.h"
#include "export/nbd/handshake.h"
#include "export/nbd/pace.h"

namespace warpraid::nbd {

enum class ConnectionState : std::uint8_t {
    kHandshake,
    kTransmission,
    kDraining,  // nothing more is received; requests in flight complete and are answered
    kFinished,  // may be destroyed
};
std::string_view to_text(ConnectionState state);

/// Where the stream of requests stands.
enum class ReceiveStep : std::uint8_t {
    kHeader,     // a request header is next
    kAdmission,  // a request waits for a frame and a buffer
    kPayload,    // a write's data is next
    kSkip,       // data of a refused write is next
};
std::string_view to_text(ReceiveStep step);

/// Why a connection is ended: whether replies can still be of use to the client.
enum class Ending : std::uint8_t { kAnswer, kBroken };

class Connection {
  public:
    Connection(Core& core, UniqueFd socket);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void start();
    /// Sends what is ready. From the server's turn.
    void send_ready();
    /// Receives again, having let requests gather. From the server's turn.
    void receive_gathered();
    /// Tries again to admit the request that waits. From the server's turn, for the first in the
    /// queue only; false when it must go on waiting, in the queue or for its own replies.
    bool admit_waiting();
    /// Takes no more requests; finishes when those in flight are answered.
    void drain(Ending ending);
    /// Ends what takes too long.
    void check_time(std::uint64_t now_ns);
    /// How many bytes of buffers it keeps from others by not going on with its side; 0 while it
    /// does. As of the last check_time().
    std::size_t stuck_bytes() const;

    ConnectionState state() const { return state_; }
    const Export* chosen_export() const { return export_; }

  private:
    static constexpr std::size_t kRepliesPerSend = 256;
    /// A send is cut here, so that buffers come back while a long queue of replies leaves.
    static constexpr std::size_t kSendBytes = 1 * kMiB;

    /// A client that sent several requests at a time keeps several in flight. Its next ones are
    /// left to gather for a moment: a receive that waits would be woken by the first of them, and
    /// the client would pay for the waking; see docs/performance.md. One at a time is never
    /// delayed.
    static constexpr std::uint32_t kGatherRequestsMin = 2;
    static constexpr std::uint64_t kGatherNs = 10'000;

    // receive.cpp
    void receive_completed(std::int64_t result);
    void arm_receive();
    bool lets_gather();
    void process_input();
    void process_handshake();
    void enter_transmission();
    void process_requests();
    bool take_header();
    bool try_admit();
    void open_frame();
    bool take_payload();
    bool skip_payload();
    void dispatch();
    void drop_incoming();
    std::size_t input_left() const { return input_end_ - input_begin_; }

    // send.cpp
    void device_completed(Frame& frame);
    void reply_ready(Frame& frame);
    std::size_t gather();
    void append_segment(const void* bytes, std::size_t length);
    void start_send();
    void send_completed(std::int64_t result);
    void release(IntrusiveFifo<Frame>& frames);

    void give_back(Frame& frame);
    void finish_if_done();
    void watch_pace(std::uint64_t now_ns);
    /// What it keeps from others: requests without data hold places that are scarce as well.
    std::size_t held_bytes() const { return buffer_bytes_held_ + frames_held_ * kFrameWorthBytes; }

    Core& core_;
    UniqueFd socket_;
    ConnectionState state_ = ConnectionState::kHandshake;
    ReceiveStep step_ = ReceiveStep::kHeader;
    bool receive_busy_ = false;
    bool send_busy_ = false;
    bool receives_payload_ = false;  // the receive in flight goes into incoming_'s buffer
    bool broken_ = false;
    std::uint64_t started_ns_ = 0;
    std::uint64_t drain_started_ns_ = 0;
    // Of the replies it is to take, and of the payload it is to send.
    Pace taking_pace_;
    Pace payload_pace_;
    std::int64_t sent_bytes_ = 0;  // by sends that are complete

    // The handshake; its output is empty afterwards.
    Handshake handshake_;
    HandshakeVerdict handshake_verdict_ = HandshakeVerdict::kNeedInput;
    std::vector<std::byte> output_;

    Export* export_ = nullptr;
    Terms terms_;

    std::unique_ptr<std::byte[]> input_;
    std::size_t input_begin_ = 0;
    std::size_t input_end_ = 0;
    RequestHeader header_;
    Judgement judgement_;
    Frame* incoming_ = nullptr;
    std::size_t payload_done_ = 0;
    std::size_t skip_left_ = 0;

    std::uint32_t frames_held_ = 0;
    std::size_t buffer_bytes_held_ = 0;
    IntrusiveFifo<Frame> ready_;
    IntrusiveFifo<Frame> sending_;
    AdmissionTicket admission_;
    SendTicket send_ticket_;
    GatherTicket gather_ticket_;
    std::uint32_t requests_received_ = 0;  // by the last receive

    io::SocketOperation receive_;
    io::SocketOperation send_;
    std::size_t head_bytes_ = 0;
    std::size_t segment_count_ = 0;
    std::array<std::byte, kRepliesPerSend * kReplyHeadBytesMax> heads_;
    std::array<iovec, 2 * kRepliesPerSend> segments_;
    static_assert(2 * kRepliesPerSend <= limits::kSegmentsPerCommandMax);
};

}  // namespace warpraid::nbd
