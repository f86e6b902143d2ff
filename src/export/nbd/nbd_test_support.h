// For the tests of this folder: a server over a TestDevice on a real reactor with a thread of its
// own, and a client that speaks the protocol byte by byte, also wrongly.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "export/nbd/nbd_test_device.h"
#include "export/nbd/protocol.h"
#include "export/nbd/server.h"

namespace warpraid::nbd {

using Bytes = std::vector<std::byte>;

/// A private directory that disappears with its object.
class TestDirectory {
  public:
    TestDirectory();
    ~TestDirectory();
    TestDirectory(const TestDirectory&) = delete;
    TestDirectory& operator=(const TestDirectory&) = delete;
    std::string path(std::string_view name) const { return directory_ + "/" + std::string(name); }

  private:
    std::string directory_;
};

/// `count` bytes that depend on `seed`.
Bytes pattern(std::size_t count, std::uint64_t seed);

struct TestServerOptions {
    ServerOptions server;
    std::uint64_t device_bytes = 64 << 20;
    std::uint32_t block_bytes = 512;
    std::uint64_t arena_bytes = 128 << 20;
    bool read_only = false;
    std::vector<std::string> names = {"disk"};
};

/// All exports show the same device.
class TestServer {
  public:
    explicit TestServer(const TestServerOptions& options = {});
    ~TestServer();

    /// False when this kernel has no usable io_uring; the test then skips.
    bool works() const;
    const std::string& socket_path() const { return socket_path_; }
    /// Where it listens from now on, on the loopback address.
    std::uint16_t listen_on_tcp();
    std::string uri(std::string_view name = "disk") const;
    TestDevice& device();
    /// Runs `task` on the server's thread and waits for it.
    void run(const std::function<void(Server&)>& task);
    ServerCounters counters();
    /// Waits until `condition` holds on the server's thread; false after `seconds`.
    bool wait_for(const std::function<bool(Server&)>& condition, int seconds = 60);
    std::size_t arena_free_bytes();
    /// Moves the server's clock forward and waits until the server has looked at it. Its time goes
    /// on by itself as well.
    void skip_time(std::uint64_t ns);
    TestDirectory& directory() { return directory_; }

  private:
    struct Thread;
    TestDirectory directory_;
    std::string socket_path_;
    std::unique_ptr<Thread> thread_;
};

/// One reply as it came from the wire.
struct WireReply {
    bool structured = false;
    std::uint16_t flags = 0;
    ChunkType type = ChunkType::kNone;
    std::uint32_t error = 0;
    std::uint64_t cookie = 0;
    std::uint64_t offset = 0;
    std::string message;
    Bytes data;
};

struct WireOptionReply {
    Option option = Option::kAbort;
    OptionReply type = OptionReply::kAck;
    Bytes payload;
};

class TestClient {
  public:
    /// Connects; nothing is exchanged yet.
    explicit TestClient(const std::string& socket_path);
    /// Over TCP, with a small receive buffer.
    explicit TestClient(std::uint16_t tcp_port);

    // Bytes.
    void send(const Bytes& bytes);
    void send(const std::byte* bytes, std::size_t count);
    /// Fewer than `count` at the end of the connection or after a minute.
    Bytes receive(std::size_t count);
    template <typename T>
    T receive_number();
    /// Whether the server has ended the connection (waits for it).
    bool at_end();
    /// No more data will be sent.
    void shut_down_sending();
    void close() { socket_.reset(); }

    // Negotiation.
    void greet(std::uint32_t flags = kHandshakeFixedNewstyle | kHandshakeNoZeroes);
    void send_option(Option option, const Bytes& payload);
    WireOptionReply receive_option_reply();
    /// Sends an option without a payload and returns its first answer.
    WireOptionReply ask(Option option, const Bytes& payload = {});
    /// Greets and goes to the transmission phase; returns the transmission flags.
    std::uint16_t go(std::string_view name, bool structured = false, bool context = false);

    // Transmission.
    void send_request(CommandType type, std::uint64_t cookie, std::uint64_t offset,
                      std::uint32_t length, std::uint16_t flags = 0, const Bytes& payload = {});
    /// `data_bytes`: how much follows a simple reply without an error.
    WireReply receive_reply(std::size_t data_bytes = 0);
    /// The same when that depends on the request.
    WireReply receive_reply_of(const std::function<std::size_t(std::uint64_t cookie)>& data_bytes);
    /// One request and its reply.
    WireReply call(CommandType type, std::uint64_t offset, std::uint32_t length,
                   std::uint16_t flags = 0, const Bytes& payload = {});

  private:
    TestClient(int family, const sockaddr& address, std::size_t address_bytes);

    UniqueFd socket_;
    std::uint64_t next_cookie_ = 0x1000;
};

/// A seed that differs from run to run and is printed; WARPRAID_TEST_SEED sets it.
std::uint64_t seed_for_test();

/// A big-endian number.
template <typename T>
Bytes number_bytes(T value);
Bytes option_bytes(Option option, const Bytes& payload);
// Payloads of options.
Bytes info_payload(std::string_view name, const std::vector<std::uint16_t>& infos = {});
Bytes context_payload(std::string_view name, const std::vector<std::string>& queries);
Bytes text_payload(std::string_view text);
Bytes request_bytes(CommandType type, std::uint64_t cookie, std::uint64_t offset,
                    std::uint32_t length, std::uint16_t flags = 0);

}  // namespace warpraid::nbd
