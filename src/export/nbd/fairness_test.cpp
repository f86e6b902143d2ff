// What one client can do to the others: hold frames, buffers, the queue, or the end of an export.
// Long times pass by moving the server's clock, so that a slow machine changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "export/nbd/nbd_test_fixture.h"

namespace warpraid::nbd {
namespace {

using Fairness = ServerFixture;

constexpr std::uint64_t kStepNs = 1 * kNanosecondsPerSecond;
constexpr std::uint64_t kNever = 1'000'000 * kNanosecondsPerSecond;

// Together they hold all frames there are, and not one buffer.
TEST_F(Fairness, unread_replies_without_data_keep_nobody_from_a_frame) {
    TestServerOptions options;
    options.server.crowded_patience_ns = 100 * kNanosecondsPerMillisecond;
    start(options);
    if (IsSkipped()) return;
    // More than their sockets take of the answers, which are errors with a text.
    Bytes requests;
    for (std::uint64_t cookie = 0; cookie < 100'000; ++cookie) {
        const Bytes request = request_bytes(CommandType::kRead, cookie, options.device_bytes, 512);
        requests.insert(requests.end(), request.begin(), request.end());
    }
    std::vector<std::unique_ptr<TestClient>> hogs;
    for (int i = 0; i < 17; ++i) hogs.push_back(connect_and_go("disk", true));
    const auto honest = connect_and_go();
    std::atomic<int> cut_off = 0;
    std::vector<std::thread> threads;
    for (const auto& hog : hogs) {
        threads.emplace_back([&] {
            hog->send(requests);  // until it is cut off
            ++cut_off;
        });
    }
    bool is_served = true;
    while (is_served && cut_off == 0) {
        honest->send_request(CommandType::kRead, 1, 0, 512);
        is_served = honest->receive(kSimpleReplyBytes + 512).size() == kSimpleReplyBytes + 512;
    }
    EXPECT_TRUE(is_served);
    for (const auto& hog : hogs) hog->shut_down_sending();
    for (std::thread& thread : threads) thread.join();
    if (is_served) {
        EXPECT_EQ(honest->call(CommandType::kRead, 0, 512).data.size(), 512U);
    }
}

// It was under its share when it came into the queue; who was before it then took memory.
TEST_F(Fairness, the_first_of_the_queue_that_is_over_its_share_lets_others_pass) {
    TestServerOptions options;
    options.arena_bytes = 16 << 20;
    options.names = {"disk", "other"};
    start(options);
    if (IsSkipped()) return;
    server_->device().hold(true);
    // The server has seen what was sent when two of its turns have passed.
    const auto turn = [this] {
        for (int i = 0; i < 2; ++i) server_->run([](Server&) {});
    };
    const auto small = connect_and_go();
    small->send_request(CommandType::kRead, 1, 0, 4096);
    const auto greedy = connect_and_go();
    greedy->send_request(CommandType::kRead, 2, 0, 1 << 20);
    ASSERT_TRUE(wait_for_requests(2));
    // Waits for the whole arena, and all others for it.
    const auto largest = connect_and_go("other");
    largest->send_request(CommandType::kRead, 3, 0, 16 << 20);
    turn();
    const auto large = connect_and_go();
    large->send_request(CommandType::kRead, 4, 0, 8 << 20);
    turn();
    greedy->send_request(CommandType::kRead, 5, 0, 2 << 20);
    turn();
    const auto modest = connect_and_go();
    modest->send_request(CommandType::kRead, 6, 0, 4096);
    turn();
    ASSERT_EQ(server_->counters().requests, 2U) << "all others are in the queue";

    std::atomic<bool> removed = false;
    remove("other", removed);
    ASSERT_TRUE(wait_for_flag(removed));
    EXPECT_TRUE(server_->wait_for([](Server& server) { return server.counters().requests == 4; }))
        << "a reply of the greedy one cannot leave before the modest one is served";
    server_->device().hold(false);
    EXPECT_EQ(small->receive_reply(4096).cookie, 1U);
    EXPECT_EQ(modest->receive_reply(4096).cookie, 6U);
    EXPECT_EQ(large->receive_reply(8 << 20).cookie, 4U);
    EXPECT_EQ(greedy->receive_reply(1 << 20).cookie, 2U);
    EXPECT_EQ(greedy->receive_reply(2 << 20).cookie, 5U);
}

// It takes enough at every moment to be waited for, and a day for the whole.
TEST_F(Fairness, a_client_cannot_stretch_the_end_of_its_export) {
    TestServerOptions options;
    options.server.drain_patience_ns = 100 * kNanosecondsPerSecond;
    options.server.crowded_patience_ns = kNever;
    start(options);
    if (IsSkipped()) return;
    const auto client = connect_and_go();
    client->send_request(CommandType::kRead, 1, 0, 32 << 20);
    EXPECT_EQ(client->receive(kSimpleReplyBytes).size(), kSimpleReplyBytes);
    std::atomic<bool> removed = false;
    remove("disk", removed);
    // Four patiences, and a little for the turns of this machine.
    constexpr int kStepsMax = 420;
    int steps = 0;
    for (; steps < kStepsMax && !removed; ++steps) {
        client->receive(64 * 1024);
        server_->skip_time(kStepNs);
    }
    EXPECT_TRUE(removed);
    EXPECT_GE(steps, 350) << "who takes something is not cut off at once either";
    client->close();
    EXPECT_TRUE(wait_for_flag(removed));
}

// Others wait for a client that holds the whole arena by one request, and moves a little of it in
// every second. Within a minute it must move an eighth.
class Crowded : public ServerFixture {
  protected:
    void start_with(std::uint32_t bytes) {
        TestServerOptions options;
        options.arena_bytes = bytes;
        options.server.crowded_patience_ns = 60 * kNanosecondsPerSecond;
        start(options);
    }
    std::unique_ptr<TestClient> one_that_waits() {
        auto waiting = connect_and_go();
        waiting->send_request(CommandType::kRead, 2, 0, 4096);
        return waiting;
    }
    std::unique_ptr<TestClient> connect_over_tcp_and_go() {
        auto client = std::make_unique<TestClient>(server_->listen_on_tcp());
        client->go("disk");
        return client;
    }
    /// How many bytes of a read's answer the client gets that takes so many at a time.
    std::size_t taken(std::uint32_t bytes, std::size_t step) {
        return taken(connect_and_go(), bytes, step);
    }
    std::size_t taken(const std::unique_ptr<TestClient>& slow, std::uint32_t bytes,
                      std::size_t step) {
        slow->send_request(CommandType::kRead, 1, 0, bytes);
        EXPECT_TRUE(
            server_->wait_for([this](Server&) { return server_->device().reads > reads_; }));
        const auto waiting = one_that_waits();
        EXPECT_EQ(slow->receive(kSimpleReplyBytes).size(), kSimpleReplyBytes);
        std::size_t done = 0;
        for (std::size_t got = step; got == step && done < bytes; done += got) {
            got = slow->receive(std::min(step, bytes - done)).size();
            server_->skip_time(kStepNs);
        }
        EXPECT_EQ(waiting->receive_reply(4096).data.size(), 4096U);
        reads_ = server_->device().reads;
        return done;
    }
    /// Whether a write arrives from a client that sends so many bytes at a time.
    bool is_written(std::uint32_t bytes, std::size_t step) {
        const auto slow = connect_and_go();
        slow->send_request(CommandType::kWrite, 1, 0, bytes);
        EXPECT_TRUE(wait_for_requests(1));
        const auto waiting = one_that_waits();
        for (std::size_t done = 0; done < bytes; done += step) {
            slow->send(Bytes(std::min(step, bytes - done)));
            server_->skip_time(kStepNs);
        }
        EXPECT_EQ(waiting->receive_reply(4096).data.size(), 4096U);
        return server_->device().writes == 1U;
    }

  private:
    std::uint64_t reads_ = 0;
};

// Within a single send, of which the kernel takes parts of more than a megabyte.
TEST_F(Crowded, who_takes_its_reply_slowly_is_waited_for) {
    start_with(4 << 20);
    if (IsSkipped()) return;
    EXPECT_EQ(taken(4 << 20, 20'000), 4U << 20);
}

TEST_F(Crowded, who_takes_just_a_little_of_its_reply_is_cut_off) {
    start_with(16 << 20);
    if (IsSkipped()) return;
    EXPECT_LT(taken(16 << 20, 20'000), 16U << 20);
}

TEST_F(Crowded, over_tcp_it_is_the_same) {
    start_with(16 << 20);
    if (IsSkipped()) return;
    EXPECT_LT(taken(connect_over_tcp_and_go(), 16 << 20, 20'000), 16U << 20);
    ASSERT_TRUE(all_gone());
    EXPECT_EQ(taken(connect_over_tcp_and_go(), 16 << 20, 100'000), 16U << 20);
}

TEST_F(Crowded, who_sends_its_payload_slowly_is_waited_for) {
    start_with(4 << 20);
    if (IsSkipped()) return;
    EXPECT_TRUE(is_written(4 << 20, 20'000));
}

TEST_F(Crowded, who_sends_just_a_little_of_its_payload_is_cut_off) {
    start_with(16 << 20);
    if (IsSkipped()) return;
    EXPECT_FALSE(is_written(16 << 20, 20'000));
}

}  // namespace
}  // namespace warpraid::nbd
