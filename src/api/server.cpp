#include "api/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

#include "api/routes.h"
#include "api/server_client.h"
#include "api/workers.h"
#include "base/assert.h"
#include "base/log.h"

namespace warpraid::api {

namespace {

using Phase = ServerClient::Phase;

constexpr int kAcceptsPerTurn = 16;
/// After an error such as too many open files.
constexpr std::uint64_t kAcceptPauseNs = 100 * kNanosecondsPerMillisecond;
constexpr int kPollMillisecondsMax = 1000;

bool is_with_a_worker(const ServerClient& client) {
    return client.phase() == Phase::kWorking;
}

}  // namespace

struct Server::Impl {
    Impl(control::Service& service_in, UniqueFd listener_in, UniqueFd wake_in,
         const Clock& clock_in, const ServerOptions& options_in)
        : service(service_in),
          listener(std::move(listener_in)),
          wake(std::move(wake_in)),
          clock(clock_in),
          options(options_in) {}

    void run();
    void turn(Workers& workers);
    void wait();
    void advance(ServerClient& client, Workers& workers);
    void check_deadlines();
    void accept_some(Workers& workers);
    bool has_room() const;
    void make_room();
    void work(ServerClient& client) const;
    void signal() const;

    control::Service& service;
    UniqueFd listener, wake;
    const Clock& clock;
    const ServerOptions options;
    std::atomic<bool> stopping{false};

    // Of the thread in run(). Oldest first.
    std::vector<std::unique_ptr<ServerClient>> clients;
    std::vector<pollfd> polled;
    std::uint64_t accept_from_ns = 0;
};

void Server::Impl::signal() const {
    // Full means that it is signalled already.
    [[maybe_unused]] const int result = eventfd_write(wake.get(), 1);
}

void Server::Impl::run() {
    Workers workers(
        options.threads, [this](ServerClient& client) { work(client); }, [this] { signal(); });
    while (!stopping) turn(workers);
    workers.stop();
    // Who is answered by now gets what its socket takes at once; the others see the end.
    for (ServerClient* client : workers.take_done()) {
        client->start_sending(clock.monotonic_ns());
        client->advance(clock.monotonic_ns());
    }
    clients.clear();
}

void Server::Impl::turn(Workers& workers) {
    wait();
    if (stopping) return;
    if (polled[0].revents != 0) {
        eventfd_t count = 0;
        eventfd_read(wake.get(), &count);
    }
    for (ServerClient* client : workers.take_done()) {
        client->start_sending(clock.monotonic_ns());
        advance(*client, workers);
    }
    // As wait() left them: nobody has been added or removed since.
    for (std::size_t i = 0; i < clients.size(); ++i) {
        if (polled[2 + i].revents != 0) advance(*clients[i], workers);
    }
    check_deadlines();
    std::erase_if(clients, [](const auto& client) { return client->phase() == Phase::kClosed; });
    if (polled[1].revents != 0) accept_some(workers);
}

/// Descriptors below zero are passed over by poll().
void Server::Impl::wait() {
    const std::uint64_t now_ns = clock.monotonic_ns();
    std::uint64_t until_ns = now_ns + kPollMillisecondsMax * kNanosecondsPerMillisecond;
    if (now_ns < accept_from_ns) until_ns = std::min(until_ns, accept_from_ns);
    polled.clear();
    polled.push_back({wake.get(), POLLIN, 0});
    polled.push_back({has_room() && now_ns >= accept_from_ns ? listener.get() : -1, POLLIN, 0});
    for (const auto& client : clients) {
        const bool waits = !is_with_a_worker(*client);
        polled.push_back({waits ? client->socket() : -1, client->poll_events(), 0});
        if (waits) until_ns = std::min(until_ns, client->deadline_ns());
    }
    const std::uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    const auto milliseconds =
        static_cast<int>((wait_ns + kNanosecondsPerMillisecond - 1) / kNanosecondsPerMillisecond);
    if (::poll(polled.data(), polled.size(), milliseconds) >= 0) return;
    WARPRAID_ASSERT(errno == EINTR || errno == ENOMEM);
    for (pollfd& entry : polled) entry.revents = 0;
}

void Server::Impl::advance(ServerClient& client, Workers& workers) {
    if (is_with_a_worker(client)) return;
    client.advance(clock.monotonic_ns());
    if (is_with_a_worker(client)) workers.give(client);
}

void Server::Impl::check_deadlines() {
    const std::uint64_t now_ns = clock.monotonic_ns();
    for (const auto& client : clients) {
        const bool waits = !is_with_a_worker(*client) && client->phase() != Phase::kClosed;
        if (waits && now_ns >= client->deadline_ns()) client->deadline_passed(now_ns);
    }
}

bool Server::Impl::has_room() const {
    return clients.size() < options.connections ||
           std::any_of(
               clients.begin(), clients.end(),
               [](const auto& client) { return !is_with_a_worker(*client); });
}

/// One that has closed by itself in this turn, if there is one. Else the oldest client that no
/// worker has leaves: it had the longest time to send its request or to take its answer.
void Server::Impl::make_room() {
    if (clients.size() < options.connections) return;
    auto leaver = std::find_if(clients.begin(), clients.end(), [](const auto& client) {
        return client->phase() == Phase::kClosed;
    });
    if (leaver == clients.end()) {
        leaver = std::find_if(clients.begin(), clients.end(),
                              [](const auto& client) { return !is_with_a_worker(*client); });
    }
    clients.erase(leaver);
}

void Server::Impl::accept_some(Workers& workers) {
    for (int i = 0; i < kAcceptsPerTurn && has_room(); ++i) {
        UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket) {
            if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return;
            if (!stopping) {
                log_warning(
                    system_error(ErrorCode::kSystem, "cannot accept an API client", errno).message);
            }
            accept_from_ns = clock.monotonic_ns() + kAcceptPauseNs;
            return;
        }
        make_room();
        clients.push_back(
            std::make_unique<ServerClient>(std::move(socket), options, clock.monotonic_ns()));
        // Most have sent their request by now: they never wait where they could be closed.
        advance(*clients.back(), workers);
    }
}

void Server::Impl::work(ServerClient& client) const {
    const Request request = client.request();
    try {
        client.set_answer(handle(service, request));
    } catch (const std::exception& exception) {
        const std::string text = "an exception ended " + std::string(request.method) + " " +
                                 std::string(request.target) + ": " + exception.what();
        log_error(text);
        client.set_answer(answer_of(
            Error{ErrorCode::kInternal,
                  text + "; no request may do that: report it, with the end of the daemon's log"}));
    }
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::make(control::Service& service, UniqueFd listener,
                                             const Clock& clock, const ServerOptions& options) {
    WARPRAID_ASSERT(options.threads > 0 && options.connections > options.threads);
    const int flags = fcntl(listener.get(), F_GETFL);
    if (flags < 0 || fcntl(listener.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
        return system_error(ErrorCode::kSystem, "cannot use the API's socket", errno);
    }
    UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake) return system_error(ErrorCode::kSystem, "cannot make an event descriptor", errno);
    auto impl =
        std::make_unique<Impl>(service, std::move(listener), std::move(wake), clock, options);
    return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::run() {
    impl_->run();
}

void Server::stop() {
    impl_->stopping = true;
    // Nobody who connects from now on waits for an answer that never comes.
    ::shutdown(impl_->listener.get(), SHUT_RDWR);
    impl_->signal();
}

}  // namespace warpraid::api
