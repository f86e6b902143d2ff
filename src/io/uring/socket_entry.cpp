#include "io/uring/socket_entry.h"

#include <cerrno>

namespace warpraid::io::uring {
namespace {

/// Drops the first `bytes` of the message; returns whether anything is left.
bool advance_message(msghdr& message, std::size_t bytes) {
    while (message.msg_iovlen > 0) {
        iovec& front = *message.msg_iov;
        if (bytes < front.iov_len) {
            front.iov_base = static_cast<std::byte*>(front.iov_base) + bytes;
            front.iov_len -= bytes;
            return true;
        }
        bytes -= front.iov_len;
        ++message.msg_iov;
        --message.msg_iovlen;
    }
    return false;
}

}  // namespace

void fill_socket_entry(SocketOperation& operation, io_uring_sqe& entry) {
    switch (operation.kind) {
        case SocketOperation::Kind::kAccept:
            io_uring_prep_accept(&entry, operation.fd, nullptr, nullptr, SOCK_CLOEXEC);
            break;
        case SocketOperation::Kind::kReceive:
            io_uring_prep_recv(&entry, operation.fd, operation.data, operation.length, 0);
            break;
        case SocketOperation::Kind::kSend:
            // Without MSG_WAITALL: its parts come back as they are sent, so that sent_bytes tells
            // how far it is.
            io_uring_prep_sendmsg(&entry, operation.fd, &operation.message, MSG_NOSIGNAL);
            break;
        case SocketOperation::Kind::kPoll:
            io_uring_prep_poll_add(&entry, operation.fd, operation.poll_events);
            break;
    }
}

SocketOutcome take_socket_result(SocketOperation& operation, int result) {
    if (result == -EINTR) return {.is_finished = false, .result = 0};
    if (operation.kind != SocketOperation::Kind::kSend || result < 0) {
        return {.is_finished = true, .result = result};
    }
    operation.sent_bytes += static_cast<std::size_t>(result);
    if (!advance_message(operation.message, static_cast<std::size_t>(result))) {
        return {.is_finished = true, .result = static_cast<std::int64_t>(operation.sent_bytes)};
    }
    // Nothing sent although something is left would repeat forever.
    if (result == 0) return {.is_finished = true, .result = -EPIPE};
    return {.is_finished = false, .result = 0};
}

}  // namespace warpraid::io::uring
