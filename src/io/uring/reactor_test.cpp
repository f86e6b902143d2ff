#include "io/uring/reactor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

#include "base/units.h"
#include "io/ram.h"
#include "io/uring/ring.h"
#include "io/uring/socket_entry.h"
#include "io/uring/uring_test_support.h"

namespace warpraid::io::uring {
namespace {

struct TestOperation : SocketOperation {
    bool done = false;
    TestOperation(Kind what, int descriptor) {
        kind = what;
        fd = descriptor;
        complete = [](SocketOperation& operation) {
            static_cast<TestOperation&>(operation).done = true;
        };
    }
};

class SocketPair {
  public:
    SocketPair() {
        int ends[2] = {-1, -1};
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        a.reset(ends[0]);
        b.reset(ends[1]);
    }
    UniqueFd a;
    UniqueFd b;
};

std::int64_t wait_for(Reactor& reactor, TestOperation& operation) {
    EXPECT_TRUE(run_until(reactor, [&] { return operation.done; }));
    return operation.result;
}

TEST(UringReactor, sleeps_when_idle_and_not_when_there_is_work) {
    const auto reactor = make_test_reactor();
    const SystemClock clock;
    reactor->run_once(0);
    std::uint64_t start = clock.monotonic_ns();
    EXPECT_FALSE(reactor->run_once(40 * kNanosecondsPerMillisecond));
    EXPECT_GE(clock.monotonic_ns() - start, 35 * kNanosecondsPerMillisecond);
    EXPECT_GE(reactor->now_ns(), start + 35 * kNanosecondsPerMillisecond) << "time is stale";

    // A completion that waits for its turn, a posted task, and a busy poller each forbid to sleep.
    const auto drive = make_null_drive(1 * kMiB, 512, *reactor);
    TestCommand flush;
    flush.opcode = Opcode::kFlush;
    start = clock.monotonic_ns();
    drive->submit(flush);
    EXPECT_TRUE(reactor->run_once(60 * kNanosecondsPerSecond));
    EXPECT_TRUE(flush.done);
    bool ran = false;
    reactor->post([&] { ran = true; });
    EXPECT_TRUE(reactor->run_once(60 * kNanosecondsPerSecond));
    EXPECT_TRUE(ran);
    struct Busy final : Poller {
        bool poll(std::uint64_t) override { return ++calls < 5; }
        int calls = 0;
    } busy;
    reactor->add_poller(busy);
    reactor->run_once(0);
    while (busy.calls < 5) {
        const bool did_something = reactor->run_once(60 * kNanosecondsPerSecond);
        EXPECT_EQ(did_something, busy.calls < 5);
    }
    reactor->remove_poller(busy);
    EXPECT_LT(clock.monotonic_ns() - start, 20 * kNanosecondsPerSecond);
}

TEST(UringReactor, post_from_another_thread_wakes_a_sleeping_loop_every_time) {
    const auto reactor = make_test_reactor();
    const SystemClock clock;
    std::atomic<int> ran = 0;
    const std::uint64_t start = clock.monotonic_ns();
    std::thread other([&] {
        for (int i = 0; i < 20; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            reactor->post([&] { ++ran; });
        }
    });
    while (ran < 20) reactor->run_once(60 * kNanosecondsPerSecond);
    other.join();
    EXPECT_LT(clock.monotonic_ns() - start, 20 * kNanosecondsPerSecond);
}

TEST(UringReactor, many_threads_may_post_at_once) {
    const auto reactor = make_test_reactor();
    int ran = 0;
    std::vector<std::thread> others;
    for (int t = 0; t < 4; ++t) {
        others.emplace_back([&] {
            for (int i = 0; i < 2000; ++i) reactor->post([&] { ++ran; });
        });
    }
    EXPECT_TRUE(run_until(*reactor, [&] { return ran == 8000; }));
    for (std::thread& other : others) other.join();
}

TEST(UringReactor, receives_what_is_there_and_zero_at_the_end) {
    const auto reactor = make_test_reactor();
    SocketPair pair;
    std::array<std::byte, 64> memory{};
    TestOperation receive(SocketOperation::Kind::kReceive, pair.a.get());
    receive.data = memory.data();
    receive.length = memory.size();
    reactor->submit(receive);
    for (int i = 0; i < 5; ++i) reactor->run_once(kNanosecondsPerMillisecond);
    EXPECT_FALSE(receive.done);
    ASSERT_EQ(write(pair.b.get(), "hello", 5), 5);
    EXPECT_EQ(wait_for(*reactor, receive), 5);
    EXPECT_EQ(std::memcmp(memory.data(), "hello", 5), 0);
    pair.b.reset();
    receive.done = false;
    reactor->submit(receive);
    EXPECT_EQ(wait_for(*reactor, receive), 0);
}

TEST(UringReactor, sends_megabytes_from_many_pieces_to_a_slow_reader) {
    const auto reactor = make_test_reactor();
    const SocketPair pair;
    constexpr std::size_t kBytes = 5 * kMiB + 321;
    const AlignedBytes out(kBytes);
    out.fill(1);
    std::array<iovec, 4> pieces = {out.part(0, 16), out.part(16, 0), out.part(16, 3 * kMiB),
                                   out.part(3 * kMiB + 16, kBytes - 3 * kMiB - 16)};
    TestOperation send(SocketOperation::Kind::kSend, pair.a.get());
    send.message.msg_iov = pieces.data();
    send.message.msg_iovlen = pieces.size();
    reactor->submit(send);
    std::vector<std::byte> in;
    std::thread reader([&] {
        std::array<std::byte, 77777> part;
        while (in.size() < kBytes) {
            const ssize_t size = read(pair.b.get(), part.data(), part.size());
            if (size <= 0) break;
            in.insert(in.end(), part.begin(), part.begin() + size);
            if (in.size() % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
    });
    EXPECT_EQ(wait_for(*reactor, send), static_cast<std::int64_t>(kBytes));
    reader.join();
    ASSERT_EQ(in.size(), kBytes);
    EXPECT_TRUE(std::equal(in.begin(), in.end(), out.data()));
}

TEST(UringReactor, sending_to_nobody_is_an_error_and_no_signal) {
    const auto reactor = make_test_reactor();
    SocketPair pair;
    pair.b.reset();
    const AlignedBytes out(4096);
    iovec piece = out.part(0, 4096);
    TestOperation send(SocketOperation::Kind::kSend, pair.a.get());
    send.message.msg_iov = &piece;
    send.message.msg_iovlen = 1;
    reactor->submit(send);
    EXPECT_EQ(wait_for(*reactor, send), -EPIPE);
}

TEST(SocketEntry, continues_a_short_send_where_it_stopped) {
    std::array<std::byte, 100> bytes{};
    std::array<iovec, 3> pieces = {iovec{bytes.data(), 10}, iovec{bytes.data() + 10, 20},
                                   iovec{bytes.data() + 30, 70}};
    TestOperation send(SocketOperation::Kind::kSend, 0);
    send.message.msg_iov = pieces.data();
    send.message.msg_iovlen = pieces.size();
    EXPECT_FALSE(take_socket_result(send, 15).is_finished);
    EXPECT_EQ(send.message.msg_iovlen, 2u);
    EXPECT_EQ(send.message.msg_iov[0].iov_base, bytes.data() + 15);
    EXPECT_EQ(send.message.msg_iov[0].iov_len, 15u);
    EXPECT_FALSE(take_socket_result(send, -EINTR).is_finished);
    EXPECT_FALSE(take_socket_result(send, 15).is_finished);
    EXPECT_EQ(send.message.msg_iov[0].iov_base, bytes.data() + 30);
    const SocketOutcome outcome = take_socket_result(send, 70);
    EXPECT_TRUE(outcome.is_finished);
    EXPECT_EQ(outcome.result, 100);
}

TEST(SocketEntry, a_send_that_makes_no_progress_or_fails_ends) {
    std::array<std::byte, 10> bytes{};
    iovec piece = {bytes.data(), 10};
    TestOperation send(SocketOperation::Kind::kSend, 0);
    send.message.msg_iov = &piece;
    send.message.msg_iovlen = 1;
    EXPECT_EQ(take_socket_result(send, 0).result, -EPIPE);
    EXPECT_EQ(take_socket_result(send, -ECONNRESET).result, -ECONNRESET);
    EXPECT_TRUE(take_socket_result(send, -ECONNRESET).is_finished);
}

TEST(UringReactor, accepts_connections) {
    const auto reactor = make_test_reactor();
    const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = testing::TempDir() + "warpraid-accept-" + std::to_string(getpid());
    ASSERT_LT(path.size(), sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener.get(), 4), 0);
    TestOperation accept(SocketOperation::Kind::kAccept, listener.get());
    reactor->submit(accept);
    const UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const UniqueFd server(static_cast<int>(wait_for(*reactor, accept)));
    ASSERT_TRUE(server);
    ASSERT_EQ(write(client.get(), "x", 1), 1);
    char letter = 0;
    ASSERT_EQ(read(server.get(), &letter, 1), 1);
    EXPECT_EQ(letter, 'x');
    EXPECT_NE(fcntl(server.get(), F_GETFD) & FD_CLOEXEC, 0);
    unlink(path.c_str());
}

TEST(UringReactor, polls_once) {
    const auto reactor = make_test_reactor();
    const SocketPair pair;
    TestOperation poll(SocketOperation::Kind::kPoll, pair.a.get());
    poll.poll_events = POLLIN;
    reactor->submit(poll);
    for (int i = 0; i < 3; ++i) reactor->run_once(kNanosecondsPerMillisecond);
    EXPECT_FALSE(poll.done);
    ASSERT_EQ(write(pair.b.get(), "x", 1), 1);
    EXPECT_EQ(wait_for(*reactor, poll) & POLLIN, POLLIN);
}

TEST(UringReactor, a_cancelled_operation_completes_as_such) {
    const auto reactor = make_test_reactor();
    const SocketPair pair;
    std::array<std::byte, 16> memory{};
    TestOperation receive(SocketOperation::Kind::kReceive, pair.a.get());
    receive.data = memory.data();
    receive.length = memory.size();
    for (const int turns_before : {0, 3}) {
        receive.done = false;
        reactor->submit(receive);
        for (int i = 0; i < turns_before; ++i) reactor->run_once(kNanosecondsPerMillisecond);
        reactor->cancel(receive);
        reactor->cancel(receive);
        EXPECT_FALSE(receive.done) << "completed inside cancel()";
        EXPECT_EQ(wait_for(*reactor, receive), -ECANCELED);
    }
    // Cancelling what is over does nothing, also not to its next use.
    reactor->cancel(receive);
    receive.done = false;
    reactor->submit(receive);
    ASSERT_EQ(write(pair.b.get(), "x", 1), 1);
    EXPECT_EQ(wait_for(*reactor, receive), 1);
}

TEST(UringReactor, a_cancelled_send_that_is_half_done_is_not_continued) {
    const auto reactor = make_test_reactor();
    const SocketPair pair;
    const AlignedBytes out(8 * kMiB);
    iovec piece = out.part(0, out.size());
    TestOperation send(SocketOperation::Kind::kSend, pair.a.get());
    send.message.msg_iov = &piece;
    send.message.msg_iovlen = 1;
    reactor->submit(send);
    for (int i = 0; i < 5; ++i) reactor->run_once(kNanosecondsPerMillisecond);
    EXPECT_FALSE(send.done) << "nobody reads";
    reactor->cancel(send);
    EXPECT_EQ(wait_for(*reactor, send), -ECANCELED);
}

TEST(UringReactor, more_idle_sockets_than_ring_entries_do_not_stop_drives_or_each_other) {
    const auto reactor = make_test_reactor(8);
    const TemporaryFile file(1 * kMiB);
    const auto provider = make_drive_provider();
    auto blocking = provider->open(file.path(), OpenMode::kExclusive);
    ASSERT_TRUE(blocking.ok());
    auto drive = provider->bind(*blocking.value(), *reactor, 0);
    ASSERT_TRUE(drive.ok());
    std::deque<SocketPair> pairs;
    std::deque<TestOperation> receives;
    std::array<std::byte, 200> memory{};
    for (std::size_t i = 0; i < memory.size(); ++i) {
        pairs.emplace_back();
        receives.emplace_back(SocketOperation::Kind::kReceive, pairs.back().a.get());
        receives.back().data = &memory[i];
        receives.back().length = 1;
        reactor->submit(receives.back());
    }
    const AlignedBytes block(4096);
    TestCommand write_command(Opcode::kWrite, 0, {block.part(0, 4096)});
    for (int i = 0; i < 20; ++i) EXPECT_EQ(execute(*reactor, *drive.value(), write_command), 0);
    for (const SocketPair& pair : pairs) ASSERT_EQ(write(pair.b.get(), "y", 1), 1);
    EXPECT_TRUE(run_until(*reactor, [&] {
        return std::all_of(receives.begin(), receives.end(), [](const auto& r) { return r.done; });
    }));
    for (const std::byte byte : memory) EXPECT_EQ(byte, std::byte{'y'});
}

TEST(UringReactor, that_is_gone_writes_no_more_into_memory) {
    auto reactor = make_test_reactor();
    const SocketPair pair;
    std::array<std::byte, 16> memory{};
    TestOperation receive(SocketOperation::Kind::kReceive, pair.a.get());
    receive.data = memory.data();
    receive.length = memory.size();
    reactor->submit(receive);
    for (int i = 0; i < 3; ++i) reactor->run_once(kNanosecondsPerMillisecond);
    reactor.reset();
    ASSERT_EQ(write(pair.b.get(), "late", 4), 4);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(memory[0], std::byte{0});
    EXPECT_FALSE(receive.done);
    std::array<char, 4> still_there{};
    EXPECT_EQ(recv(pair.a.get(), still_there.data(), 4, MSG_DONTWAIT), 4);
}

TEST(UringReactor, says_what_the_kernel_granted) {
    const auto plain = make_test_reactor();
    EXPECT_FALSE(describe(*plain).registered_buffers);
    auto arena = BufferArena::make(1 * kMiB);
    ASSERT_TRUE(arena.ok());
    const auto reactor = make_test_reactor(64, arena.value().get());
    const ReactorInfo info = describe(*reactor);
    EXPECT_EQ(info.registered_buffers, info.buffers_error == 0);
}

TEST(Features, that_are_missing_are_told_with_the_kernel_that_has_them) {
    EXPECT_TRUE(check_features(~0u).ok());
    EXPECT_TRUE(check_features(kNeededFeatures).ok());
    const Status old = check_features(kNeededFeatures & ~IORING_FEAT_EXT_ARG);
    ASSERT_FALSE(old.ok());
    EXPECT_EQ(old.error().code, ErrorCode::kNotSupported);
    utsname kernel{};
    ASSERT_EQ(uname(&kernel), 0);
    for (const char* part : {static_cast<const char*>(kernel.release), "lacks the features 0x100",
                             "boot Linux 5.15 or newer"}) {
        EXPECT_NE(old.error().message.find(part), std::string::npos) << old.error().message;
    }
}

}  // namespace
}  // namespace warpraid::io::uring
