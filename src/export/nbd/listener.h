// Accepts on one listening socket.
#pragma once

#include <cstdint>
#include <functional>

#include "base/unique_fd.h"
#include "io/reactor.h"

namespace warpraid::nbd {

class Listener {
  public:
    Listener(io::Reactor& reactor, UniqueFd socket, std::function<void(UniqueFd)> accepted);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    void start();
    /// Accepts no more; idle() when the kernel has let go.
    void stop();
    bool idle() const { return !busy_; }
    /// Tries again after an error such as too many open files.
    void check_time(std::uint64_t now_ns);

  private:
    void submit(io::SocketOperation::Kind kind);
    void completed(std::int64_t result);

    io::Reactor& reactor_;
    UniqueFd socket_;
    std::function<void(UniqueFd)> accepted_;
    io::SocketOperation operation_;
    bool busy_ = false;
    bool stopping_ = false;
    std::uint64_t retry_ns_ = 0;  // 0: nothing to retry
};

}  // namespace warpraid::nbd
