// The NBD server: fixed-newstyle negotiation and transmission with structured replies on the same
// reactor as the engine. One server object per shard. Honest flags: flush, FUA, trim, write-zeroes,
// block status (everything is reported allocated) and multi-conn, which is true because every
// connection of an export goes to the same engine, whose flush covers all completed writes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "block/device.h"
#include "io/arena.h"
#include "io/reactor.h"

namespace warpraid::nbd {

struct ExportInfo {
    std::string name;
    std::string description;
    bool read_only = false;
    block::Device* device = nullptr;  // must stay alive until remove_export has completed
};

struct ServerOptions {
    std::uint32_t connections_max = 64;  // per shard, with their handshake done
    /// Unfinished ones have places of their own; the oldest makes room for a newcomer.
    std::uint32_t handshakes_max = 64;
    std::uint32_t requests_in_flight = 256;  // per connection
    std::uint64_t handshake_timeout_ns = 10'000'000'000;
    /// How long a client may take, while another waits for the buffers that it holds, to read
    /// replies or send a payload as far as pace.h asks for. Then it is cut off, the one that holds
    /// most first.
    std::uint64_t crowded_patience_ns = 10'000'000'000;
    /// The same while its connection is being ended.
    std::uint64_t drain_patience_ns = 5'000'000'000;
};

struct ServerCounters {
    std::uint64_t connections = 0, refused_connections = 0, protocol_errors = 0;
    std::uint64_t requests = 0, errors = 0;
};

class Server final : public io::Poller {
  public:
    /// Buffers for request data come from `arena`; a request that finds none waits. The server adds
    /// itself to the reactor's pollers and removes itself when destroyed, which needs idle().
    Server(const ServerOptions& options, io::Reactor& reactor, io::BufferArena& arena);
    ~Server() override;

    /// Starts accepting on a listening socket (Unix or TCP) made by the caller.
    void listen(UniqueFd listener);
    /// The name must not be in use, nor still being removed.
    void add_export(const ExportInfo& info);
    /// No new requests; existing connections of the export are closed once their requests in flight
    /// have completed; then `done` is called on the shard,
    /// never inside this call. An unknown name is done at once, in the same way.
    void remove_export(const std::string& name, std::function<void()> done);
    std::uint32_t connections_of(const std::string& name) const;

    /// Stops accepting, closes all connections after their requests in flight; idle() when done.
    void shut_down();
    bool idle() const;
    const ServerCounters& counters() const;
    bool poll(std::uint64_t now_ns) override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Listening sockets, non-blocking. A stale Unix socket file is replaced only when nobody answers
/// on it (kDaemonRunning otherwise); its mode is set before listen(), whatever the umask.
Result<UniqueFd> listen_unix(const std::string& path, unsigned mode, int group_id);
Result<UniqueFd> listen_tcp(const std::string& address, std::uint16_t port);

}  // namespace warpraid::nbd
