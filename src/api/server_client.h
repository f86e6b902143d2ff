// One client of the server: its socket, which never blocks, and how far its request has come.
#pragma once

#include <cstdint>
#include <string>

#include "api/http.h"
#include "api/server.h"
#include "base/unique_fd.h"

namespace warpraid::api {

class ServerClient {
  public:
    enum class Phase : std::uint8_t {
        kReceiving,  // the request
        kWorking,    // a worker has it
        kSending,    // the answer
        kLingering,  // answered: waits for the client to close, or it might miss the answer
        kClosed,
    };

    ServerClient(UniqueFd socket, const ServerOptions& options, std::uint64_t now_ns);

    Phase phase() const { return phase_; }
    int socket() const { return socket_.get(); }
    short poll_events() const;
    std::uint64_t deadline_ns() const { return deadline_ns_; }

    /// Does what the socket allows now. Stays in kWorking when it gets there.
    void advance(std::uint64_t now_ns);
    void deadline_passed(std::uint64_t now_ns);
    void close();

    /// On a worker.
    Request request() const { return reader_.request(); }
    void set_answer(const Answer& answer) { output_ = to_http(answer, reader_.is_head()); }
    /// After the worker.
    void start_sending(std::uint64_t now_ns);

  private:
    void receive(std::uint64_t now_ns);
    void refuse(const Answer& answer, std::uint64_t now_ns);
    void send(std::uint64_t now_ns);
    void discard();

    const ServerOptions& options_;
    UniqueFd socket_;
    Phase phase_ = Phase::kReceiving;
    std::uint64_t deadline_ns_;
    RequestReader reader_;
    bool told_to_continue_ = false;
    std::string output_;
    std::size_t sent_ = 0;
};

}  // namespace warpraid::api
