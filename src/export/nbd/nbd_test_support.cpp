#include "export/nbd/nbd_test_support.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <span>
#include <thread>

#include "base/random.h"
#include "export/nbd/wire.h"
#include "io/uring/provider.h"

namespace warpraid::nbd {

TestDirectory::TestDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "nbd-test-XXXXXX").string();
    const char* made = mkdtemp(name.data());
    WARPRAID_ASSERT(made != nullptr);
    directory_ = name;
}

TestDirectory::~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
}

Bytes pattern(std::size_t count, std::uint64_t seed) {
    SeededRandom random(seed);
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; i += 8) {
        const std::uint64_t word = random.next();
        std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, count - i));
    }
    return bytes;
}

/// The kernel's time, and what a test adds to it.
class SkippingClock final : public Clock {
  public:
    std::uint64_t monotonic_ns() const override { return clock_.monotonic_ns() + skipped_ns_; }
    std::uint64_t wall_ns() const override { return clock_.wall_ns() + skipped_ns_; }
    void skip(std::uint64_t ns) { skipped_ns_ += ns; }

  private:
    SystemClock clock_;
    std::atomic<std::uint64_t> skipped_ns_ = 0;
};

struct TestServer::Thread {
    SkippingClock clock;
    std::unique_ptr<io::BufferArena> arena;
    std::unique_ptr<io::Reactor> reactor;
    std::unique_ptr<TestDevice> device;
    std::unique_ptr<Server> server;
    std::atomic<bool> stop = false;
    std::mutex mutex;
    std::condition_variable changed;
    bool started = false;
    std::thread thread;

    void main(const TestServerOptions& options, const std::string& socket_path) {
        const bool made = build(options, socket_path);
        {
            const std::lock_guard lock(mutex);
            started = true;
        }
        changed.notify_all();
        if (!made) return;
        while (!stop) reactor->run_once(5 * kNanosecondsPerMillisecond);
        device->hold(false);
        server->shut_down();
        while (!server->idle()) reactor->run_once(5 * kNanosecondsPerMillisecond);
        server.reset();
        device.reset();
        reactor.reset();
    }

    bool build(const TestServerOptions& options, const std::string& socket_path) {
        auto new_arena = io::BufferArena::make(options.arena_bytes);
        WARPRAID_ASSERT(new_arena.ok());
        arena = std::move(new_arena).value();
        auto new_reactor = io::uring::make_reactor(clock, {});
        if (!new_reactor) return false;
        reactor = std::move(new_reactor).value();
        device = std::make_unique<TestDevice>(*reactor, options.device_bytes, options.block_bytes);
        server = std::make_unique<Server>(options.server, *reactor, *arena);
        for (const std::string& name : options.names) {
            ExportInfo info;
            info.name = name;
            info.description = "test export " + name;
            info.read_only = options.read_only;
            info.device = device.get();
            server->add_export(info);
        }
        auto listener = listen_unix(socket_path, 0600, -1);
        WARPRAID_ASSERT(listener.ok());
        server->listen(std::move(listener).value());
        return true;
    }
};

TestServer::TestServer(const TestServerOptions& options)
    : socket_path_(directory_.path("socket")), thread_(std::make_unique<Thread>()) {
    thread_->thread = std::thread([this, options] { thread_->main(options, socket_path_); });
    std::unique_lock lock(thread_->mutex);
    thread_->changed.wait(lock, [this] { return thread_->started; });
}

TestServer::~TestServer() {
    thread_->stop = true;
    thread_->thread.join();
}

bool TestServer::works() const {
    return thread_->server != nullptr;
}

std::string TestServer::uri(std::string_view name) const {
    return "nbd+unix:///" + std::string(name) + "?socket=" + socket_path_;
}

TestDevice& TestServer::device() {
    return *thread_->device;
}

void TestServer::run(const std::function<void(Server&)>& task) {
    bool ran = false;
    thread_->reactor->post([&] {
        task(*thread_->server);
        const std::lock_guard lock(thread_->mutex);
        ran = true;
        thread_->changed.notify_all();
    });
    std::unique_lock lock(thread_->mutex);
    thread_->changed.wait(lock, [&] { return ran; });
}

ServerCounters TestServer::counters() {
    ServerCounters counters;
    run([&](Server& server) { counters = server.counters(); });
    return counters;
}

bool TestServer::wait_for(const std::function<bool(Server&)>& condition, int seconds) {
    for (int i = 0; i < seconds * 200; ++i) {
        bool holds = false;
        run([&](Server& server) { holds = condition(server); });
        if (holds) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

std::size_t TestServer::arena_free_bytes() {
    std::size_t bytes = 0;
    run([&](Server&) { bytes = thread_->arena->free_bytes(); });
    return bytes;
}

std::uint16_t TestServer::listen_on_tcp() {
    std::uint16_t port = 0;
    run([&](Server& server) {
        auto listener = listen_tcp("127.0.0.1", 0);
        WARPRAID_ASSERT(listener.ok());
        sockaddr_in address{};
        socklen_t length = sizeof(address);
        getsockname(listener.value().get(), reinterpret_cast<sockaddr*>(&address), &length);
        port = ntohs(address.sin_port);
        server.listen(std::move(listener).value());
    });
    return port;
}

void TestServer::skip_time(std::uint64_t ns) {
    thread_->clock.skip(ns);
    // The turn that ran the first task is over when the second one runs.
    for (int i = 0; i < 2; ++i) run([](Server&) {});
}

namespace {

template <typename T>
void put(Bytes& bytes, T value) {
    const std::size_t start = bytes.size();
    bytes.resize(start + sizeof(T));
    WireWriter(std::span<std::byte>(bytes).subspan(start)).put(value);
}

void put_text(Bytes& bytes, std::string_view text) {
    const auto* from = reinterpret_cast<const std::byte*>(text.data());
    bytes.insert(bytes.end(), from, from + text.size());
}

}  // namespace

namespace {

sockaddr_un unix_address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

sockaddr_in loopback_address(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

template <typename Address>
const sockaddr& any(const Address& address) {
    return reinterpret_cast<const sockaddr&>(address);
}

}  // namespace

TestClient::TestClient(const std::string& socket_path)
    : TestClient(AF_UNIX, any(unix_address(socket_path)), sizeof(sockaddr_un)) {}

TestClient::TestClient(std::uint16_t tcp_port)
    : TestClient(AF_INET, any(loopback_address(tcp_port)), sizeof(sockaddr_in)) {}

TestClient::TestClient(int family, const sockaddr& address, std::size_t address_bytes)
    : socket_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int receive_buffer_bytes = 64 * 1024;
    if (family == AF_INET) {
        setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                   sizeof(receive_buffer_bytes));
    }
    const timeval limit{60, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    EXPECT_EQ(connect(socket_.get(), &address, static_cast<socklen_t>(address_bytes)), 0);
}

void TestClient::send(const Bytes& bytes) {
    send(bytes.data(), bytes.size());
}

void TestClient::send(const std::byte* bytes, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
        const ssize_t sent = ::send(socket_.get(), bytes + done, count - done, MSG_NOSIGNAL);
        if (sent <= 0) return;  // the server hung up; the test sees it when it receives
        done += static_cast<std::size_t>(sent);
    }
}

Bytes TestClient::receive(std::size_t count) {
    Bytes bytes(count);
    std::size_t done = 0;
    while (done < count) {
        const ssize_t got = recv(socket_.get(), bytes.data() + done, count - done, 0);
        if (got <= 0) break;
        done += static_cast<std::size_t>(got);
    }
    bytes.resize(done);
    return bytes;
}

template <typename T>
T TestClient::receive_number() {
    const Bytes bytes = receive(sizeof(T));
    WireReader reader(bytes);
    const T value = reader.take<T>();
    EXPECT_TRUE(reader.ok()) << "the connection ended inside a number";
    return value;
}

bool TestClient::at_end() {
    std::byte byte{};
    const ssize_t got = recv(socket_.get(), &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

void TestClient::shut_down_sending() {
    shutdown(socket_.get(), SHUT_WR);
}

void TestClient::greet(std::uint32_t flags) {
    EXPECT_EQ(receive_number<std::uint64_t>(), kMagicServer);
    EXPECT_EQ(receive_number<std::uint64_t>(), kMagicOption);
    EXPECT_EQ(receive_number<std::uint16_t>(), kHandshakeFixedNewstyle | kHandshakeNoZeroes);
    send(number_bytes(flags));
}

void TestClient::send_option(Option option, const Bytes& payload) {
    send(option_bytes(option, payload));
}

WireOptionReply TestClient::receive_option_reply() {
    WireOptionReply reply;
    EXPECT_EQ(receive_number<std::uint64_t>(), kMagicOptionReply);
    reply.option = static_cast<Option>(receive_number<std::uint32_t>());
    reply.type = static_cast<OptionReply>(receive_number<std::uint32_t>());
    const auto length = receive_number<std::uint32_t>();
    reply.payload = receive(length);
    EXPECT_EQ(reply.payload.size(), length);
    return reply;
}

WireOptionReply TestClient::ask(Option option, const Bytes& payload) {
    send_option(option, payload);
    WireOptionReply reply = receive_option_reply();
    EXPECT_EQ(reply.option, option);
    return reply;
}

std::uint16_t TestClient::go(std::string_view name, bool structured, bool context) {
    greet();
    if (structured) {
        EXPECT_EQ(ask(Option::kStructuredReply).type, OptionReply::kAck);
    }
    if (context) {
        const auto selected =
            ask(Option::kSetMetaContext, context_payload(name, {"base:allocation"}));
        EXPECT_EQ(selected.type, OptionReply::kMetaContext);
        EXPECT_EQ(receive_option_reply().type, OptionReply::kAck);
    }
    WireOptionReply reply = ask(Option::kGo, info_payload(name));
    std::uint16_t flags = 0;
    while (reply.type == OptionReply::kInfo) {
        WireReader reader(reply.payload);
        if (reader.take<std::uint16_t>() == static_cast<std::uint16_t>(Info::kExport)) {
            reader.take<std::uint64_t>();
            flags = reader.take<std::uint16_t>();
        }
        reply = receive_option_reply();
    }
    EXPECT_EQ(reply.type, OptionReply::kAck);
    return flags;
}

void TestClient::send_request(CommandType type, std::uint64_t cookie, std::uint64_t offset,
                              std::uint32_t length, std::uint16_t flags, const Bytes& payload) {
    Bytes bytes = request_bytes(type, cookie, offset, length, flags);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    send(bytes);
}

WireReply TestClient::receive_reply(std::size_t data_bytes) {
    return receive_reply_of([&](std::uint64_t) { return data_bytes; });
}

WireReply TestClient::receive_reply_of(
    const std::function<std::size_t(std::uint64_t cookie)>& data_bytes) {
    WireReply reply;
    const auto magic = receive_number<std::uint32_t>();
    if (magic == kMagicSimpleReply) {
        reply.error = receive_number<std::uint32_t>();
        reply.cookie = receive_number<std::uint64_t>();
        if (reply.error == 0) reply.data = receive(data_bytes(reply.cookie));
        return reply;
    }
    EXPECT_EQ(magic, kMagicStructuredReply);
    reply.structured = true;
    reply.flags = receive_number<std::uint16_t>();
    reply.type = static_cast<ChunkType>(receive_number<std::uint16_t>());
    reply.cookie = receive_number<std::uint64_t>();
    const auto length = receive_number<std::uint32_t>();
    Bytes payload = receive(length);
    EXPECT_EQ(payload.size(), length);
    WireReader reader(payload);
    if (reply.type == ChunkType::kError) {
        reply.error = reader.take<std::uint32_t>();
        reply.message = reader.take_text(reader.take<std::uint16_t>());
        EXPECT_EQ(reader.left(), 0U);
    } else if (reply.type == ChunkType::kOffsetData) {
        reply.offset = reader.take<std::uint64_t>();
        reply.data.assign(payload.begin() + 8, payload.end());
    } else {
        reply.data = std::move(payload);
    }
    return reply;
}

WireReply TestClient::call(CommandType type, std::uint64_t offset, std::uint32_t length,
                           std::uint16_t flags, const Bytes& payload) {
    const std::uint64_t cookie = next_cookie_++;
    send_request(type, cookie, offset, length, flags, payload);
    WireReply reply = receive_reply(type == CommandType::kRead ? length : 0);
    EXPECT_EQ(reply.cookie, cookie);
    return reply;
}

std::uint64_t seed_for_test() {
    const char* given = std::getenv("WARPRAID_TEST_SEED");
    const std::uint64_t seed =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::printf("seed: WARPRAID_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    return seed;
}

template <typename T>
Bytes number_bytes(T value) {
    Bytes bytes;
    put(bytes, value);
    return bytes;
}

Bytes option_bytes(Option option, const Bytes& payload) {
    Bytes bytes;
    put(bytes, kMagicOption);
    put(bytes, static_cast<std::uint32_t>(option));
    put(bytes, static_cast<std::uint32_t>(payload.size()));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
}

Bytes info_payload(std::string_view name, const std::vector<std::uint16_t>& infos) {
    Bytes bytes;
    put(bytes, static_cast<std::uint32_t>(name.size()));
    put_text(bytes, name);
    put(bytes, static_cast<std::uint16_t>(infos.size()));
    for (const std::uint16_t info : infos) put(bytes, info);
    return bytes;
}

Bytes context_payload(std::string_view name, const std::vector<std::string>& queries) {
    Bytes bytes;
    put(bytes, static_cast<std::uint32_t>(name.size()));
    put_text(bytes, name);
    put(bytes, static_cast<std::uint32_t>(queries.size()));
    for (const std::string& query : queries) {
        put(bytes, static_cast<std::uint32_t>(query.size()));
        put_text(bytes, query);
    }
    return bytes;
}

Bytes text_payload(std::string_view text) {
    Bytes bytes;
    put_text(bytes, text);
    return bytes;
}

Bytes request_bytes(CommandType type, std::uint64_t cookie, std::uint64_t offset,
                    std::uint32_t length, std::uint16_t flags) {
    Bytes bytes;
    put(bytes, kMagicRequest);
    put(bytes, flags);
    put(bytes, static_cast<std::uint16_t>(type));
    put(bytes, cookie);
    put(bytes, offset);
    put(bytes, length);
    return bytes;
}

template Bytes number_bytes<std::uint32_t>(std::uint32_t);
template std::uint16_t TestClient::receive_number<std::uint16_t>();
template std::uint32_t TestClient::receive_number<std::uint32_t>();
template std::uint64_t TestClient::receive_number<std::uint64_t>();

}  // namespace warpraid::nbd
