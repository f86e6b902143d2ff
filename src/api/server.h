// The API over one listening Unix socket: HTTP in front of handle(). One thread moves the bytes of
// all clients and waits for none of them; worker threads only carry out requests that are there as
// a whole. So a client that sends or reads slowly costs a place among the connections, never a
// worker, and when places run out the oldest of these clients loses its own. Every request is one
// connection. A read-only server answers GET and HEAD only.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "control/service.h"

namespace warpraid::api {

struct ServerOptions {
    bool read_only = false;
    /// Requests carried out at a time.
    unsigned threads = 16;
    /// With those that wait for a worker. More than threads, so that there is always one to close.
    unsigned connections = 64;
    /// For a whole request, from the connection to its last byte, and for a whole answer.
    std::uint64_t receive_timeout_ns = 5 * kNanosecondsPerSecond;
    std::uint64_t send_timeout_ns = 5 * kNanosecondsPerSecond;
    /// How long an answered client may take to close.
    std::uint64_t linger_timeout_ns = 1 * kNanosecondsPerSecond;
};

class Server {
  public:
    /// For `listener`, a listening stream socket. kSystem when it cannot be used.
    static Result<std::unique_ptr<Server>> make(control::Service& service, UniqueFd listener,
                                                const Clock& clock, const ServerOptions& options);
    /// run() must have returned.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Serves until stop(), on a thread of the caller's; requests run on threads of the server's.
    void run();
    /// Any thread, before or during run(): accepts and receives nothing more; run() returns after
    /// the requests being carried out, whatever the clients do.
    void stop();

  private:
    struct Impl;
    explicit Server(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace warpraid::api
