#include "export/nbd/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "export/nbd/connection.h"
#include "export/nbd/core.h"
#include "export/nbd/listener.h"

namespace warpraid::nbd {

namespace {

constexpr std::uint64_t kTimeCheckIntervalNs = 50 * kNanosecondsPerMillisecond;
constexpr std::uint64_t kCrowdedWaitNs = 200 * kNanosecondsPerMillisecond;
constexpr int kSendBufferBytes = 1 << 20;

/// Best effort: a connection works without any of this.
void tune_socket(int fd) {
    const int on = 1;
    // Fails on Unix sockets, which never delay.
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    // A client that vanished without a word is noticed in the end.
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof(kSendBufferBytes));
}

}  // namespace

struct Server::Impl {
    Impl(const ServerOptions& options, io::Reactor& reactor, io::BufferArena& arena)
        : core(options, reactor, arena) {}

    void accepted(UniqueFd client);
    bool admit();
    bool send();
    bool receive_gathered(std::uint64_t now_ns);
    bool reap();
    void check_time(std::uint64_t now_ns);
    void relieve_crowd(std::uint64_t now_ns);
    void make_room_for_handshake();

    Core core;
    std::vector<std::unique_ptr<Listener>> listeners;
    std::vector<std::unique_ptr<Connection>> connections;
    std::uint64_t next_time_check_ns = 0;
    bool has_removals = false;
    std::vector<std::function<void()>> nothing_to_remove;  // called like those of real removals
    bool shutting_down = false;
};

Server::Server(const ServerOptions& options, io::Reactor& reactor, io::BufferArena& arena)
    : impl_(std::make_unique<Impl>(options, reactor, arena)) {
    WARPRAID_ASSERT(options.connections_max <= limits::kNbdConnectionsMax);
    WARPRAID_ASSERT(options.connections_max > 0 && options.requests_in_flight > 0);
    WARPRAID_ASSERT(options.handshakes_max > 0);
    reactor.add_poller(*this);
}

Server::~Server() {
    WARPRAID_ASSERT(idle());
    impl_->core.reactor.remove_poller(*this);
}

void Server::listen(UniqueFd listener) {
    WARPRAID_ASSERT(!impl_->shutting_down);
    impl_->listeners.push_back(std::make_unique<Listener>(
        impl_->core.reactor, std::move(listener),
        [this](UniqueFd client) { impl_->accepted(std::move(client)); }));
    impl_->listeners.back()->start();
}

void Server::add_export(const ExportInfo& info) {
    impl_->core.exports.add(info);
}

void Server::remove_export(const std::string& name, std::function<void()> done) {
    impl_->has_removals = true;
    Export* entry = impl_->core.exports.find_exact(name);
    if (entry == nullptr) {
        impl_->nothing_to_remove.push_back(std::move(done));
        return;
    }
    entry->removing = true;
    entry->removed.push_back(std::move(done));
    for (auto& connection : impl_->connections) {
        if (connection->chosen_export() == entry) connection->drain(Ending::kAnswer);
    }
}

std::uint32_t Server::connections_of(const std::string& name) const {
    const Export* entry = impl_->core.exports.find_exact(name);
    return entry == nullptr ? 0 : entry->connections;
}

void Server::shut_down() {
    if (std::exchange(impl_->shutting_down, true)) return;
    for (auto& listener : impl_->listeners) listener->stop();
    for (auto& connection : impl_->connections) connection->drain(Ending::kAnswer);
}

bool Server::idle() const {
    return impl_->connections.empty() &&
           std::all_of(impl_->listeners.begin(), impl_->listeners.end(),
                       [](const auto& listener) { return listener->idle(); });
}

const ServerCounters& Server::counters() const {
    return impl_->core.counters;
}

bool Server::poll(std::uint64_t now_ns) {
    bool worked = impl_->admit();
    worked |= impl_->send();
    worked |= impl_->receive_gathered(now_ns);
    if (impl_->core.has_finished || impl_->has_removals) worked |= impl_->reap();
    if (now_ns >= impl_->next_time_check_ns) impl_->check_time(now_ns);
    return worked;
}

void Server::Impl::accepted(UniqueFd client) {
    if (core.established >= core.options.connections_max) {
        ++core.counters.refused_connections;
        return;
    }
    make_room_for_handshake();
    ++core.counters.connections;
    tune_socket(client.get());
    connections.push_back(std::make_unique<Connection>(core, std::move(client)));
    connections.back()->start();
}

/// Oldest first in `connections`. Who has not said what it wants by now had the longest time to.
void Server::Impl::make_room_for_handshake() {
    const auto negotiates = [](const std::unique_ptr<Connection>& connection) {
        return connection->state() == ConnectionState::kHandshake;
    };
    const auto count = std::count_if(connections.begin(), connections.end(), negotiates);
    if (static_cast<std::uint64_t>(count) < core.options.handshakes_max) return;
    (*std::find_if(connections.begin(), connections.end(), negotiates))->drain(Ending::kBroken);
}

bool Server::Impl::admit() {
    bool worked = false;
    while (AdmissionTicket* first = core.admissions.front()) {
        const bool admitted = first->connection->admit_waiting();
        if (!admitted && core.admissions.front() == first) break;
        worked = worked || admitted;
    }
    return worked;
}

bool Server::Impl::send() {
    bool worked = false;
    while (SendTicket* ticket = core.senders.pop_front()) {
        ticket->connection->send_ready();
        worked = true;
    }
    return worked;
}

// As long as some are left the loop does not sleep.
bool Server::Impl::receive_gathered(std::uint64_t now_ns) {
    bool worked = !core.gathering.empty();
    while (GatherTicket* first = core.gathering.front()) {
        if (now_ns < first->until_ns) break;
        core.gathering.pop_front();
        first->connection->receive_gathered();
    }
    return worked;
}

bool Server::Impl::reap() {
    if (std::exchange(core.has_finished, false)) {
        std::erase_if(connections, [](const std::unique_ptr<Connection>& connection) {
            return connection->state() == ConnectionState::kFinished;
        });
    }
    if (!has_removals) return true;
    auto callbacks = core.exports.take_removed();
    callbacks.insert(callbacks.end(), nothing_to_remove.begin(), nothing_to_remove.end());
    nothing_to_remove.clear();
    has_removals = core.exports.has_removals();
    for (const auto& done : callbacks) {
        if (done) done();
    }
    return !callbacks.empty();
}

void Server::Impl::check_time(std::uint64_t now_ns) {
    next_time_check_ns = now_ns + kTimeCheckIntervalNs;
    for (auto& listener : listeners) listener->check_time(now_ns);
    for (auto& connection : connections) connection->check_time(now_ns);
    if (!core.admissions.empty()) relieve_crowd(now_ns);
}

/// Cuts off one connection at a time: what it held may be enough for those who wait. That somebody
/// waits for a moment is usual under load and harms nobody.
void Server::Impl::relieve_crowd(std::uint64_t now_ns) {
    const std::uint64_t waited_ns = now_ns - core.admissions.front()->since_ns;
    if (waited_ns < std::min(core.options.crowded_patience_ns, kCrowdedWaitNs)) return;
    Connection* worst = nullptr;
    std::size_t worst_bytes = 0;
    for (const auto& connection : connections) {
        const std::size_t bytes = connection->stuck_bytes();
        if (bytes > worst_bytes) {
            worst = connection.get();
            worst_bytes = bytes;
        }
    }
    if (worst != nullptr) worst->drain(Ending::kBroken);
}

}  // namespace warpraid::nbd
