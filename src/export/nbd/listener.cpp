#include "export/nbd/listener.h"

#include <poll.h>

#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"

namespace warpraid::nbd {

namespace {

constexpr std::uint64_t kRetryDelayNs = 200 * kNanosecondsPerMillisecond;

}  // namespace

Listener::Listener(io::Reactor& reactor, UniqueFd socket, std::function<void(UniqueFd)> accepted)
    : reactor_(reactor), socket_(std::move(socket)), accepted_(std::move(accepted)) {
    operation_.fd = socket_.get();
    operation_.poll_events = POLLIN;
    operation_.owner = this;
    operation_.complete = [](io::SocketOperation& operation) {
        static_cast<Listener*>(operation.owner)->completed(operation.result);
    };
}

Listener::~Listener() {
    WARPRAID_ASSERT(!busy_);
}

void Listener::start() {
    WARPRAID_ASSERT(!busy_ && !stopping_);
    submit(io::SocketOperation::Kind::kAccept);
}

void Listener::submit(io::SocketOperation::Kind kind) {
    operation_.kind = kind;
    busy_ = true;
    reactor_.submit(operation_);
}

void Listener::stop() {
    if (std::exchange(stopping_, true)) return;
    if (busy_) {
        reactor_.cancel(operation_);
    } else {
        socket_.reset();
    }
}

void Listener::check_time(std::uint64_t now_ns) {
    if (retry_ns_ == 0 || stopping_ || now_ns < retry_ns_) return;
    retry_ns_ = 0;
    start();
}

void Listener::completed(std::int64_t result) {
    busy_ = false;
    const bool was_accept = operation_.kind == io::SocketOperation::Kind::kAccept;
    UniqueFd client(was_accept && result >= 0 ? static_cast<int>(result) : -1);
    if (stopping_) {
        socket_.reset();
        return;
    }
    if (client) {
        accepted_(std::move(client));
    } else if (was_accept && result == -EAGAIN) {
        // The socket does not block, so the kernel does not wait by itself.
        submit(io::SocketOperation::Kind::kPoll);
        return;
    } else if (result < 0 && result != -ECONNABORTED && result != -EINTR) {
        // Out of descriptors or memory: without a pause this would turn for nothing.
        log_warning(system_error(ErrorCode::kSystem, "cannot accept an NBD connection",
                                 static_cast<int>(-result))
                        .message);
        retry_ns_ = reactor_.now_ns() + kRetryDelayNs;
        return;
    }
    start();
}

}  // namespace warpraid::nbd
