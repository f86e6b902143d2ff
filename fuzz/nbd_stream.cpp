// Feeds arbitrary bytes as what NBD clients send, from the first byte of the handshake on, to a
// whole server: no sockets, a device in memory, virtual time. The first four bytes steer how the
// stream is cut and what happens meanwhile; the rest is the stream, the same for every client.
// Whatever comes in, the server must end up idle with all its buffers back.
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/random.h"
#include "base/units.h"
#include "export/nbd/nbd_test_device.h"
#include "export/nbd/server.h"
#include "io/arena.h"
#include "io/loop_parts.h"
#include "io/reactor.h"

namespace {

using namespace warpraid;

constexpr std::size_t kSteeringBytes = 4;
constexpr std::uint64_t kTurnNs = 10'000'000;
constexpr int kTurnsMax = 20'000;

/// What the second byte switches on.
enum Switch : unsigned {
    kTwoClients = 1u << 0,
    kSmallPieces = 1u << 1,
    kDeviceHolds = 1u << 2,
    kDeviceReverses = 1u << 3,
    kExportGoes = 1u << 4,
    kSendsBreak = 1u << 5,
    kSmallArena = 1u << 6,
    kReadOnly = 1u << 7,
};

/// A loop whose sockets are the fuzzer's bytes.
class StreamReactor final : public io::Reactor {
  public:
    StreamReactor(std::span<const std::byte> stream, unsigned clients, unsigned switches,
                  std::uint64_t seed)
        : stream_(stream), clients_left_(clients), switches_(switches), random_(seed) {}

    io::CommandFifo& completed_commands() override { return completed_; }
    void submit(io::SocketOperation& operation) override {
        WARPRAID_ASSERT(!operation.in_flight);
        operation.in_flight = true;
        operation.cancelled = false;
        operation.sent_bytes = 0;
        operations_.push_back(operation);
    }
    void cancel(io::SocketOperation& operation) override { operation.cancelled = true; }
    void add_poller(io::Poller& poller) override { pollers_.add(poller); }
    void remove_poller(io::Poller& poller) override { pollers_.remove(poller); }
    void post(std::function<void()> task) override { task(); }
    std::uint64_t now_ns() const override { return now_ns_; }

    bool run_once(std::uint64_t) override {
        now_ns_ += kTurnNs;
        for (std::size_t left = operations_.size(); left > 0; --left) {
            io::SocketOperation& operation = *operations_.pop_front();
            // Not everything that could end ends in this turn.
            if (!operation.cancelled && (random_.below(4) == 0 || !try_finish(operation))) {
                operations_.push_back(operation);
                continue;
            }
            if (operation.cancelled) operation.result = -ECANCELED;
            operation.in_flight = false;
            operation.complete(operation);
        }
        pollers_.run(now_ns_);
        return true;
    }

  private:
    bool try_finish(io::SocketOperation& operation) {
        switch (operation.kind) {
            case io::SocketOperation::Kind::kAccept:
                if (clients_left_ == 0) return false;
                --clients_left_;
                operation.result = open("/dev/null", O_RDONLY | O_CLOEXEC);
                received_[static_cast<int>(operation.result)] = 0;
                return true;
            case io::SocketOperation::Kind::kReceive:
                operation.result = static_cast<std::int64_t>(receive(operation));
                return true;
            case io::SocketOperation::Kind::kSend:
                return send(operation);
            case io::SocketOperation::Kind::kPoll:
                operation.result = 0;
                return true;
        }
        return false;
    }

    std::size_t receive(io::SocketOperation& operation) {
        std::size_t& at = received_.at(operation.fd);
        const std::size_t piece = 1 + random_.below((switches_ & kSmallPieces) != 0 ? 40 : 100'000);
        const std::size_t count = std::min({operation.length, piece, stream_.size() - at});
        std::memcpy(operation.data, stream_.data() + at, count);
        at += count;
        return count;
    }

    bool send(io::SocketOperation& operation) {
        if ((switches_ & kSendsBreak) != 0 && random_.below(16) == 0) {
            operation.result = -EPIPE;
            return true;
        }
        // Every byte is looked at, so that memory that is gone is noticed.
        const std::span<const iovec> parts(operation.message.msg_iov, operation.message.msg_iovlen);
        std::size_t bytes = 0;
        for (const iovec& part : parts) {
            const auto* from = static_cast<const unsigned char*>(part.iov_base);
            for (std::size_t i = 0; i < part.iov_len; i += 64) checksum_ = checksum_ + from[i];
            if (part.iov_len > 0) checksum_ = checksum_ + from[part.iov_len - 1];
            bytes += part.iov_len;
        }
        WARPRAID_ASSERT(bytes > 0);
        operation.result = static_cast<std::int64_t>(bytes);
        return true;
    }

    std::span<const std::byte> stream_;
    unsigned clients_left_;
    unsigned switches_;
    SeededRandom random_;
    std::map<int, std::size_t> received_;
    std::uint64_t now_ns_ = 1;
    volatile unsigned checksum_ = 0;
    io::CommandFifo completed_;
    IntrusiveFifo<io::SocketOperation> operations_;
    io::PollerList pollers_;
};

void add_exports(nbd::Server& server, nbd::TestDevice& device, bool read_only) {
    for (const char* name : {"disk", "d2"}) {
        nbd::ExportInfo info;
        info.name = name;
        info.description = "a disk";
        info.read_only = read_only;
        info.device = &device;
        server.add_export(info);
    }
}

void serve(std::span<const std::byte> steering, std::span<const std::byte> stream) {
    const auto seed = static_cast<std::uint64_t>(steering[0]);
    const auto switches = static_cast<unsigned>(steering[1]);
    const auto is_on = [&](Switch what) { return (switches & what) != 0; };
    const std::size_t arena_bytes = is_on(kSmallArena) ? 64 * kKiB : 1 * kMiB;
    const auto arena = std::move(io::BufferArena::make(arena_bytes)).value();
    StreamReactor reactor(stream, is_on(kTwoClients) ? 2 : 1, switches, seed);
    nbd::TestDevice device(reactor, 256 * kKiB, 512);
    device.reverse_order(is_on(kDeviceReverses));
    nbd::ServerOptions options;
    options.connections_max = 2;
    options.requests_in_flight = 1 + (static_cast<unsigned>(steering[2]) & 15u);
    nbd::Server server(options, reactor, *arena);
    add_exports(server, device, is_on(kReadOnly));
    server.listen(UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)));

    const int removal_turn = static_cast<int>(steering[3]);
    const int turns = 60 + static_cast<int>(stream.size() / 16);
    bool removed = !is_on(kExportGoes);
    for (int turn = 0; turn < turns; ++turn) {
        if (is_on(kDeviceHolds)) device.hold(turn % 8 != 0);
        if (is_on(kExportGoes) && turn == std::min(removal_turn, turns - 1)) {
            server.remove_export("disk", [&removed] { removed = true; });
        }
        reactor.run_once(0);
    }
    device.hold(false);
    server.shut_down();
    for (int turn = 0; turn < kTurnsMax && !(server.idle() && removed); ++turn) reactor.run_once(0);
    WARPRAID_ASSERT(server.idle() && removed);
    WARPRAID_ASSERT(arena->free_bytes() == arena_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < kSteeringBytes) return 0;
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
    serve(bytes.first(kSteeringBytes), bytes.subspan(kSteeringBytes));
    return 0;
}
