// Server and client over a real Unix socket, and raw bytes where the client is too well-behaved.
#include "api/server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/client.h"
#include "api/service_test_support.h"
#include "base/limits.h"

namespace warpraid::api {

namespace {

class Served : public testing::Test {
  protected:
    void serve(bool read_only) { serve(ServerOptions{.read_only = read_only}); }
    void serve(const ServerOptions& options) {
        ASSERT_NO_FATAL_FAILURE(listen_only(options));
        run();
    }
    /// Clients can connect, and wait until run().
    void listen_only(const ServerOptions& options) {
        path_ = testing::TempDir() + "warpraid-api-" + std::to_string(getpid()) + ".sock";
        unlink(path_.c_str());
        UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
        const sockaddr_un address = address_of(path_);
        ASSERT_EQ(
            bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
        ASSERT_EQ(listen(listener.get(), 256), 0);
        auto server = Server::make(service_, std::move(listener), clock_, options);
        ASSERT_TRUE(server.ok()) << server.error().message;
        server_ = std::move(server).value();
    }
    void run() {
        thread_ = std::thread([this] { server_->run(); });
    }
    void TearDown() override {
        if (server_) server_->stop();
        if (thread_.joinable()) thread_.join();
        unlink(path_.c_str());
    }
    static sockaddr_un address_of(const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        return address;
    }
    Reply request(const std::string& method, const std::string& target,
                  const std::string& body = {}) {
        Client client({.socket_path = path_});
        const Result<Reply> reply = client.request(method, target, body);
        EXPECT_TRUE(reply.ok()) << reply.error().message;
        return reply.ok() ? reply.value() : Reply{};
    }
    UniqueFd connect_raw() {
        UniqueFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
        const sockaddr_un address = address_of(path_);
        EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
                  0);
        return fd;
    }
    static bool send_bytes(const UniqueFd& fd, const std::string& bytes) {
        for (std::size_t sent = 0; sent < bytes.size();) {
            const ssize_t count =
                send(fd.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
            if (count <= 0) return false;
            sent += static_cast<std::size_t>(count);
        }
        return true;
    }
    /// Sends bytes as they are and reads until the server closes. `is_all`: says that nothing more
    /// will come.
    std::string send_raw(const std::string& bytes, bool is_all = true) {
        const UniqueFd fd = connect_raw();
        // The server may answer before it has read everything, but it reads on.
        EXPECT_TRUE(send_bytes(fd, bytes));
        if (is_all) ::shutdown(fd.get(), SHUT_WR);
        return read_all(fd);
    }
    /// `may_be_reset`: by a close that overtook what was still being sent.
    static std::string read_all(const UniqueFd& fd, bool may_be_reset = false) {
        std::string answer;
        char buffer[4096];
        while (true) {
            const ssize_t count = read(fd.get(), buffer, sizeof(buffer));
            EXPECT_TRUE(count >= 0 || may_be_reset) << "a reset";
            if (count <= 0) break;
            answer.append(buffer, static_cast<std::size_t>(count));
        }
        return answer;
    }

    SystemClock clock_;
    FakeService service_;
    std::string path_;
    std::unique_ptr<Server> server_;
    std::thread thread_;
};

TEST_F(Served, answers_queries_and_commands) {
    serve(false);
    const Reply health = request("GET", "/api/v1/health");
    EXPECT_EQ(health.http_status, 200);
    EXPECT_EQ(health.body,
              "{\"schema_version\":1,\"health\":{\"level\":1,\"findings\":[\"group data is "
              "degraded\"]}}\n");
    EXPECT_EQ(request("POST", "/api/v1/drives/%2Fdev%2Fsda/fail").http_status, 200);
    EXPECT_EQ(request("PATCH", "/api/v1/groups/data", R"({"name":"n"})").http_status, 200);
    EXPECT_EQ(request("DELETE", "/api/v1/groups/a%20b?clear=true").http_status, 200);
    EXPECT_EQ(service_.calls, (std::vector<std::string>{"fail_drive drive=/dev/sda generation=-",
                                                        "edit_group group=data name=n rate=-",
                                                        "delete_group group=a b clear=true"}));
}

TEST_F(Served, many_requests_one_after_another) {
    serve(false);
    for (int i = 0; i < 200; ++i) ASSERT_EQ(request("GET", "/api/v1/drives").http_status, 200);
}

TEST_F(Served, errors_are_json_with_the_tables_status) {
    serve(false);
    service_.failure = Error{ErrorCode::kInUse, "busy"};
    const Reply refused = request("DELETE", "/api/v1/groups/data");
    EXPECT_EQ(refused.http_status, 409);
    EXPECT_EQ(refused.body, "{\"error\":{\"code\":\"in-use\",\"message\":\"busy\"}}\n");
    EXPECT_EQ(request("GET", "/nothing").http_status, 404);
    EXPECT_EQ(request("PUT", "/api/v1/groups").http_status, 404);
    EXPECT_NE(request("PUT", "/api/v1/groups").body.find("not-found"), std::string::npos);
}

TEST_F(Served, the_read_only_socket_answers_get_only) {
    serve(true);
    EXPECT_EQ(request("GET", "/api/v1/status").http_status, 200);
    for (const char* method : {"POST", "PATCH", "DELETE", "PUT"}) {
        const Reply reply = request(method, "/api/v1/groups/data");
        EXPECT_EQ(reply.http_status, 403) << method;
        EXPECT_NE(reply.body.find("permission-denied"), std::string::npos);
    }
    EXPECT_TRUE(service_.calls.empty());
}

TEST_F(Served, too_large_bodies_are_refused_whole) {
    serve(false);
    const std::string body(limits::kHttpBodyBytesMax + 1, ' ');
    const std::string head = "POST /api/v1/groups HTTP/1.1\r\nHost: x\r\n";
    const std::string announced = send_raw(
        head + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body, false);
    EXPECT_NE(announced.find(" 413 "), std::string::npos) << announced;
    EXPECT_NE(announced.find("invalid-argument"), std::string::npos) << announced;
    std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < 65; ++i) chunked += "4000\r\n" + std::string(0x4000, ' ') + "\r\n";
    const std::string unannounced = send_raw(chunked + "0\r\n\r\n", false);
    EXPECT_NE(unannounced.find(" 413 "), std::string::npos) << unannounced;
    EXPECT_TRUE(service_.calls.empty());
    // The largest that is allowed is looked at.
    const std::string most(limits::kHttpBodyBytesMax, ' ');
    EXPECT_NE(request("POST", "/api/v1/groups", most).body.find("bad-json"), std::string::npos);
}

TEST_F(Served, a_command_with_an_unclear_length_is_not_carried_out) {
    serve(false);
    for (const char* header :
         {"Content-Length:", "Content-Length: x", "Content-Length: -1", "Content-Length: 0x2",
          "Content-Length: 99999999999999999999999", "Content-Length: 0\r\nContent-Length: 2",
          "Content-Length: 0\r\nTransfer-Encoding: chunked", "Transfer-Encoding: odd"}) {
        const std::string answer = send_raw(
            "POST /api/v1/assemble HTTP/1.1\r\n" + std::string(header) + "\r\n\r\n{}", false);
        EXPECT_NE(answer.find(" 400 "), std::string::npos) << header << "\n" << answer;
    }
    EXPECT_TRUE(service_.calls.empty());
}

TEST_F(Served, a_command_without_a_length_has_no_body) {
    serve(false);
    const std::string answer =
        send_raw("POST /api/v1/groups/data/verify HTTP/1.1\r\nHost: x\r\n\r\n", false);
    EXPECT_NE(answer.find(" 200 "), std::string::npos) << answer;
    EXPECT_EQ(service_.calls.size(), 1u);
}

TEST_F(Served, a_line_break_in_a_name_is_part_of_the_name) {
    serve(false);
    EXPECT_EQ(request("DELETE", "/api/v1/drives/%2Fa%0Ab").http_status, 200);
    ASSERT_EQ(service_.calls.size(), 1u);
    EXPECT_NE(service_.calls[0].find("/a\nb"), std::string::npos) << service_.calls[0];
}

TEST_F(Served, garbage_does_no_harm) {
    serve(false);
    const std::string long_target = "/api/v1/drives/" + std::string(6000, 'a');
    const std::string post = "POST /api/v1/assemble HTTP/1.1\r\n";
    const std::vector<std::string> requests = {
        std::string(),
        std::string("\0\1\2\3", 4),
        std::string("GET\r\n\r\n"),
        std::string("GET / HTTP/9.9\r\n\r\n"),
        post + "Content-Length: 100\r\n\r\n{",
        post + "Content-Length: x\r\n\r\n{",
        post +
            "Content-Type: multipart/form-data; boundary=a\r\nContent-Length: "
            "10\r\n\r\n--a\r\n\r\n--a",
        post + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
        "GET " + long_target + " HTTP/1.1\r\n\r\n",
        "GET /api/v1/drives/%2 HTTP/1.1\r\n\r\n"};
    for (const std::string& bytes : requests) {
        const std::string answer = send_raw(bytes);
        EXPECT_EQ(answer.find(" 200 "), std::string::npos) << bytes << "\n" << answer;
    }
    EXPECT_TRUE(service_.calls.empty());
    EXPECT_EQ(request("GET", "/api/v1/health").http_status, 200);
}

// Whoever ends only its sending waits for the answer.
TEST_F(Served, a_client_that_only_stops_sending_gets_its_answer) {
    serve(false);
    EXPECT_NE(send_raw("GET /api/v1/health HTTP/1.1\r\n\r\n").find(" 200 "), std::string::npos);
    const std::string command =
        "POST /api/v1/groups/data/verify HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
    EXPECT_NE(send_raw(command).find(" 200 "), std::string::npos);
    EXPECT_EQ(service_.calls.size(), 1u);
}

TEST_F(Served, head_is_answered_like_get_without_the_body) {
    for (const bool read_only : {false, true}) {
        serve(read_only);
        const std::string get = send_raw("GET /api/v1/health HTTP/1.1\r\n\r\n");
        const std::string head = send_raw("HEAD /api/v1/health HTTP/1.1\r\n\r\n");
        EXPECT_EQ(head, get.substr(0, get.find("\r\n\r\n") + 4));
        EXPECT_NE(send_raw("HEAD /api/v1/x HTTP/1.1\r\n\r\n").find(" 404 "), std::string::npos);
        TearDown();
    }
}

TEST_F(Served, a_client_that_expects_to_be_told_to_continue_is) {
    serve(false);
    const UniqueFd fd = connect_raw();
    send_bytes(fd,
               "POST /api/v1/groups/data/verify HTTP/1.1\r\nExpect: 100-continue\r\n"
               "Content-Length: 2\r\n\r\n");
    const std::string told = "HTTP/1.1 100 Continue\r\n\r\n";
    std::string answer(told.size(), ' ');
    EXPECT_EQ(recv(fd.get(), answer.data(), answer.size(), MSG_WAITALL),
              static_cast<ssize_t>(told.size()));
    EXPECT_EQ(answer, told);
    send_bytes(fd, "{}");
    EXPECT_NE(read_all(fd).find(" 200 "), std::string::npos);
}

/// Clients that send a byte of a request now and then and never come to its end.
class Drippers {
  public:
    explicit Drippers(std::vector<UniqueFd> sockets)
        : sockets_(std::move(sockets)), thread_([this] { run(); }) {}
    ~Drippers() {
        stopping_ = true;
        thread_.join();
    }
    Drippers(const Drippers&) = delete;
    Drippers& operator=(const Drippers&) = delete;

  private:
    void run() {
        while (!stopping_) {
            for (const UniqueFd& fd : sockets_) send(fd.get(), "a", 1, MSG_NOSIGNAL);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    std::atomic<bool> stopping_{false};
    std::vector<UniqueFd> sockets_;
    std::thread thread_;
};

constexpr std::uint64_t kNever = 1000 * kNanosecondsPerSecond;

TEST_F(Served, slow_clients_keep_nobody_from_being_served) {
    serve(ServerOptions{.threads = 2, .connections = 8, .receive_timeout_ns = kNever});
    for (const char* begin : {"", "GET /", "GET / HTTP/1.1\r\nHost: ",
                              "POST /api/v1/assemble HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
                              "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n"}) {
        std::vector<UniqueFd> sockets;
        for (int i = 0; i < 50; ++i) {
            sockets.push_back(connect_raw());
            send_bytes(sockets.back(), begin);
        }
        const Drippers drippers(std::move(sockets));
        for (int i = 0; i < 20; ++i) EXPECT_EQ(request("GET", "/api/v1/health").http_status, 200);
    }
}

TEST_F(Served, clients_that_read_nothing_keep_nobody_from_being_served) {
    serve(ServerOptions{
        .threads = 2, .connections = 8, .send_timeout_ns = kNever, .linger_timeout_ns = kNever});
    std::vector<UniqueFd> sockets;
    for (int i = 0; i < 50; ++i) {
        sockets.push_back(connect_raw());
        send_bytes(sockets.back(), "GET /api/v1/status HTTP/1.1\r\n\r\n");
    }
    EXPECT_EQ(request("GET", "/api/v1/health").http_status, 200);
}

// All of them are accepted in one turn.
TEST_F(Served, who_has_left_already_makes_room_before_anybody_else) {
    listen_only(ServerOptions{.threads = 2, .connections = 4, .receive_timeout_ns = kNever});
    const UniqueFd patient = connect_raw();
    send_bytes(patient, "GET /api/v1/health HTTP/1.1\r\n");
    for (int i = 0; i < 10; ++i) connect_raw();
    run();
    EXPECT_EQ(request("GET", "/api/v1/health").http_status, 200);
    send_bytes(patient, "\r\n");
    EXPECT_NE(read_all(patient).find(" 200 "), std::string::npos);
}

TEST_F(Served, a_request_has_one_time_limit_however_its_bytes_come) {
    serve(ServerOptions{.receive_timeout_ns = 50 * kNanosecondsPerMillisecond});
    const UniqueFd slow = connect_raw();
    const UniqueFd mute = connect_raw();
    while (send_bytes(slow, "a")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_NE(read_all(slow, true).find(" 408 "), std::string::npos);
    EXPECT_EQ(read_all(mute), "");
}

TEST_F(Served, stops_whatever_its_clients_do) {
    serve(ServerOptions{.receive_timeout_ns = kNever, .linger_timeout_ns = kNever});
    std::vector<UniqueFd> sockets;
    for (int i = 0; i < 40; ++i) sockets.push_back(connect_raw());
    const UniqueFd answered = connect_raw();
    send_bytes(answered, "GET /api/v1/health HTTP/1.1\r\n\r\n");
    char byte = 0;
    EXPECT_EQ(recv(answered.get(), &byte, 1, 0), 1);
    const Drippers drippers(std::move(sockets));
    server_->stop();
    thread_.join();
}

TEST_F(Served, stops_before_it_has_started_too) {
    serve(false);  // and TearDown stops at once
}

TEST(ApiClient, an_absent_daemon_is_unreachable) {
    Client client({.socket_path = testing::TempDir() + "nobody-here.sock"});
    const Result<Reply> reply = client.request("GET", "/api/v1/health");
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error().code, ErrorCode::kDaemonUnreachable);
}

TEST_F(Served, TellsWhatEndedARequestThatNoRequestMayEnd) {
    service_.throws = true;
    ASSERT_NO_FATAL_FAILURE(serve(false));
    const Reply reply = request("GET", "/api/v1/health");
    EXPECT_EQ(reply.http_status, to_http_status(ErrorCode::kInternal));
    for (const char* part : {"GET /api/v1/health", "77", "no request may do that", "report it"}) {
        EXPECT_NE(reply.body.find(part), std::string::npos) << part << ": " << reply.body;
    }
    EXPECT_EQ(request("GET", "/api/v1/groups").http_status, 200);
}

}  // namespace

}  // namespace warpraid::api
