// Connections that end at bad moments, stay silent, or are too many; exports that go away.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "export/nbd/nbd_test_fixture.h"

namespace warpraid::nbd {
namespace {

using Lifecycle = ServerFixture;

TEST_F(Lifecycle, a_client_that_leaves_during_a_payload_changes_nothing) {
    start();
    for (const std::size_t sent : {0UL, 1UL, 4095UL, 65536UL, 1'000'000UL}) {
        const auto client = connect_and_go();
        client->send_request(CommandType::kWrite, 1, 0, 1 << 20, 0, Bytes(sent, std::byte{1}));
        client->close();
        EXPECT_TRUE(all_gone());
        EXPECT_EQ(server_->arena_free_bytes(), options_.arena_bytes);
    }
    EXPECT_EQ(server_->device().writes, 0U);
}

TEST_F(Lifecycle, a_client_that_leaves_during_a_refused_payload_or_a_header) {
    start();
    auto client = connect_and_go();
    client->send_request(CommandType::kWrite, 1, 1, 1 << 20, 0, Bytes(1000));
    client = connect_and_go();
    client->send(Bytes(kRequestHeaderBytes - 1));
    client = connect();
    client->greet();
    client->send(Bytes(5));
    client.reset();
    EXPECT_TRUE(all_gone());
}

TEST_F(Lifecycle, requests_of_a_client_that_left_complete_and_are_forgotten) {
    start();
    server_->device().hold(true);
    for (int i = 0; i < 4; ++i) {
        const auto client = connect_and_go();
        for (std::uint64_t cookie = 0; cookie < 10; ++cookie) {
            client->send_request(CommandType::kRead, cookie, 0, 65536);
            client->send_request(CommandType::kWrite, cookie, 0, 4096, 0, Bytes(4096));
        }
        ASSERT_TRUE(wait_for_requests(20 * static_cast<std::uint64_t>(i + 1)));
    }
    EXPECT_EQ(server_->device().writes, 0U);
    server_->device().hold(false);
    EXPECT_TRUE(all_gone());
    EXPECT_EQ(server_->device().writes, 40U);
    EXPECT_EQ(server_->device().reads, 40U);
}

TEST_F(Lifecycle, a_client_that_only_stops_sending_gets_all_its_answers) {
    start();
    const auto client = connect_and_go();
    server_->device().hold(true);
    for (std::uint64_t cookie = 0; cookie < 20; ++cookie) {
        client->send_request(CommandType::kRead, cookie, 0, 65536);
    }
    client->shut_down_sending();
    ASSERT_TRUE(wait_for_requests(20));
    server_->device().hold(false);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(client->receive_reply(65536).data.size(), 65536U);
    EXPECT_TRUE(client->at_end());
}

TEST_F(Lifecycle, a_client_that_does_not_read_holds_up_only_itself) {
    TestServerOptions options;
    options.arena_bytes = 16 << 20;
    start(options);
    const auto slow = connect_and_go();
    std::thread asking([&] {
        for (std::uint64_t cookie = 0; cookie < 100; ++cookie) {
            slow->send_request(CommandType::kRead, cookie, cookie * 4096, 1 << 20);
        }
    });
    asking.join();  // requests are small: they all fit into the sockets
    const auto brisk = connect_and_go();
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(brisk->call(CommandType::kRead, 0, 1 << 20).data.size(), 1U << 20);
    }
    EXPECT_GE(server_->arena_free_bytes(), options.arena_bytes / 4 * 3);
    EXPECT_LT(server_->device().reads, 100U) << "the slow one's requests wait";
    for (std::uint64_t cookie = 0; cookie < 100; ++cookie) {
        const WireReply reply = slow->receive_reply(1 << 20);
        EXPECT_EQ(reply.cookie, cookie);
        EXPECT_EQ(reply.data.size(), 1U << 20);
    }
}

// One of them leaves room by itself; of many, those that hold most are cut off.
TEST_F(Lifecycle, many_clients_that_do_not_read_keep_nobody_from_memory) {
    TestServerOptions options;
    options.arena_bytes = 16 << 20;
    options.server.crowded_patience_ns = 100'000'000;
    start(options);
    std::vector<std::unique_ptr<TestClient>> deaf;
    for (int i = 0; i < 40; ++i) {
        deaf.push_back(connect_and_go());
        // Some take the largest that fits, some as much as they can of small ones.
        const std::uint32_t length = i % 4 == 0 ? 16 << 20 : 1 << 20;
        for (std::uint64_t cookie = 0; cookie < 20; ++cookie) {
            deaf.back()->send_request(CommandType::kRead, cookie, 0, length);
        }
    }
    const auto brisk = connect_and_go();
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(brisk->call(CommandType::kRead, 0, 1 << 20).data.size(), 1U << 20);
    }
    // Also when they come with nothing but a byte of a payload now and then.
    std::vector<std::unique_ptr<TestClient>> drips;
    for (int i = 0; i < 20; ++i) {
        drips.push_back(connect_and_go());
        drips.back()->send_request(CommandType::kWrite, 1, 0, 1 << 20);
    }
    std::atomic<bool> stop = false;
    std::thread dripping([&] {
        while (!stop) {
            for (const auto& client : drips) client->send(Bytes(1));
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(brisk->call(CommandType::kRead, 0, 1 << 20).data.size(), 1U << 20);
    }
    stop = true;
    dripping.join();
}

TEST_F(Lifecycle, several_clients_that_do_not_read_leave_room_without_being_cut_off) {
    TestServerOptions options;
    options.arena_bytes = 64 << 20;
    options.server.crowded_patience_ns = 1'000'000'000'000;
    start(options);
    std::vector<std::unique_ptr<TestClient>> deaf;
    for (int i = 0; i < 10; ++i) {
        deaf.push_back(connect_and_go());
        for (std::uint64_t cookie = 0; cookie < 100; ++cookie) {
            deaf.back()->send_request(CommandType::kRead, cookie, 0, 1 << 20);
        }
    }
    const auto brisk = connect_and_go();
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(brisk->call(CommandType::kRead, 0, 1 << 20).data.size(), 1U << 20);
    }
    for (const auto& client : deaf) {
        for (std::uint64_t cookie = 0; cookie < 100; ++cookie) {
            ASSERT_EQ(client->receive_reply(1 << 20).data.size(), 1U << 20);
        }
    }
}

TEST_F(Lifecycle, requests_in_flight_of_one_connection_are_bounded) {
    TestServerOptions options;
    options.server.requests_in_flight = 8;
    start(options);
    const auto client = connect_and_go();
    server_->device().hold(true);
    for (std::uint64_t cookie = 0; cookie < 50; ++cookie) {
        client->send_request(CommandType::kFlush, cookie, 0, 0);
    }
    ASSERT_TRUE(wait_for_requests(8));
    server_->device().hold(false);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(client->receive_reply().error, kErrorNone);
    EXPECT_EQ(server_->device().flushes, 50U);
}

TEST_F(Lifecycle, a_large_request_gets_its_turn_among_small_ones) {
    TestServerOptions options;
    options.arena_bytes = 32 << 20;
    start(options);
    std::atomic<bool> stop = false;
    std::vector<std::thread> small;
    for (int i = 0; i < 2; ++i) {
        small.emplace_back([&] {
            const auto client = connect_and_go();
            while (!stop) client->call(CommandType::kRead, 0, 65536);
        });
    }
    const auto large = connect_and_go();
    for (int i = 0; i < 2; ++i) {
        const Bytes data(32 << 20, std::byte{static_cast<unsigned char>(i)});
        EXPECT_EQ(large->call(CommandType::kWrite, 0, 32 << 20, 0, data).error, kErrorNone);
        EXPECT_EQ(large->call(CommandType::kRead, 0, 32 << 20).data.size(), data.size());
    }
    stop = true;
    for (std::thread& thread : small) thread.join();
}

TEST_F(Lifecycle, a_client_that_keeps_buffers_from_others_is_cut_off_in_the_end) {
    TestServerOptions options;
    options.arena_bytes = 1 << 20;
    options.server.crowded_patience_ns = 200'000'000;
    start(options);
    const auto silent = connect_and_go();
    silent->send_request(CommandType::kWrite, 1, 0, 1 << 20, 0, Bytes(4096));
    ASSERT_TRUE(wait_for_requests(1));
    const auto waiting = connect_and_go();
    EXPECT_EQ(waiting->call(CommandType::kRead, 0, 4096).data.size(), 4096U);
    EXPECT_TRUE(silent->at_end());
    EXPECT_EQ(server_->device().writes, 0U);
}

TEST_F(Lifecycle, a_silent_client_may_hold_a_half_payload_while_nobody_minds) {
    TestServerOptions options;
    options.server.crowded_patience_ns = 1;
    options.server.handshake_timeout_ns = 100'000'000'000;
    start(options);
    const auto client = connect_and_go();
    const Bytes data = pattern(1 << 20, 1);
    client->send_request(CommandType::kWrite, 1, 0, 1 << 20);
    client->send(data.data(), 1000);
    server_->skip_time(600'000'000'000);
    client->send(data.data() + 1000, data.size() - 1000);
    EXPECT_EQ(client->receive_reply().error, kErrorNone);
}

TEST_F(Lifecycle, a_handshake_has_a_time_limit) {
    TestServerOptions options;
    options.server.handshake_timeout_ns = 100'000'000;
    start(options);
    const auto mute = connect();
    const auto hesitant = connect();
    hesitant->greet();
    hesitant->send(Bytes(3));
    EXPECT_EQ(mute->receive(kGreetingBytes).size(), kGreetingBytes);
    EXPECT_TRUE(mute->at_end());
    EXPECT_TRUE(hesitant->at_end());
}

TEST_F(Lifecycle, unfinished_handshakes_shut_nobody_out) {
    TestServerOptions options;
    options.server.connections_max = 2;
    options.server.handshakes_max = 4;
    options.server.handshake_timeout_ns = 1'000'000'000'000;
    start(options);
    const auto established = connect_and_go();
    std::vector<std::unique_ptr<TestClient>> mute;
    for (int i = 0; i < 100; ++i) {
        mute.push_back(connect());
        if (i % 2 == 0) mute.back()->greet();
    }
    const auto newcomer = connect_and_go();
    EXPECT_EQ(newcomer->call(CommandType::kRead, 0, 512).data.size(), 512U);
    EXPECT_EQ(established->call(CommandType::kRead, 0, 512).data.size(), 512U);
    // The oldest left; the last is still there, but all places are taken when it has decided.
    mute.front()->receive(kGreetingBytes);
    EXPECT_TRUE(mute.front()->at_end());
    mute.back()->receive(kGreetingBytes);
    mute.back()->send(number_bytes(kHandshakeFixedNewstyle | kHandshakeNoZeroes));
    mute.back()->send_option(Option::kExportName, text_payload("disk"));
    EXPECT_TRUE(mute.back()->at_end());
    EXPECT_EQ(server_->counters().refused_connections, 1U);
    EXPECT_EQ(established->call(CommandType::kRead, 0, 512).data.size(), 512U);
}

TEST_F(Lifecycle, connections_are_limited_and_a_freed_place_is_used_again) {
    TestServerOptions options;
    options.server.connections_max = 3;
    start(options);
    std::vector<std::unique_ptr<TestClient>> clients;
    for (int i = 0; i < 3; ++i) clients.push_back(connect_and_go());
    const auto refused = connect();
    EXPECT_TRUE(refused->at_end());
    EXPECT_EQ(server_->counters().refused_connections, 1U);
    clients.pop_back();
    ASSERT_TRUE(
        server_->wait_for([](Server& server) { return server.connections_of("disk") == 2; }));
    EXPECT_EQ(connect_and_go()->call(CommandType::kRead, 0, 512).data.size(), 512U);
}

TEST_F(Lifecycle, many_connections_work_at_once) {
    start();
    const std::uint64_t seed = seed_for_test();
    constexpr std::uint64_t kPart = 1 << 20;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 60; ++i) {
        threads.emplace_back([this, i, seed] {
            SeededRandom random(seed + i);
            TestClient client(server_->socket_path());
            client.go("disk", i % 2 == 0);
            Bytes mine(kPart);
            EXPECT_EQ(client.call(CommandType::kWriteZeroes, i * kPart, kPart).error, 0U);
            for (int round = 0; round < 10; ++round) {
                const std::size_t length = 512 * (1 + random.below(200));
                const std::size_t at = 512 * random.below((kPart - length) / 512);
                const auto place = mine.begin() + static_cast<std::ptrdiff_t>(at);
                const auto wire_length = static_cast<std::uint32_t>(length);
                const std::uint64_t offset = i * kPart + at;
                if (random.below(2) == 0) {
                    const Bytes data = pattern(length, random.next());
                    std::copy(data.begin(), data.end(), place);
                    EXPECT_EQ(client.call(CommandType::kWrite, offset, wire_length, 0, data).error,
                              0U);
                } else {
                    const Bytes data = client.call(CommandType::kRead, offset, wire_length).data;
                    EXPECT_EQ(data.size(), length);
                    EXPECT_TRUE(std::equal(data.begin(), data.end(), place));
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(server_->counters().connections, 60U);
    EXPECT_EQ(server_->counters().errors, 0U);
}

TEST_F(Lifecycle, removing_an_export_waits_for_its_requests_and_answers_them) {
    TestServerOptions options;
    options.names = {"disk", "other"};
    start(options);
    const auto client = connect_and_go();
    const auto other = connect_and_go("other");
    server_->device().hold(true);
    const Bytes data = pattern(4096, 1);
    for (std::uint64_t cookie = 0; cookie < 10; ++cookie) {
        client->send_request(CommandType::kWrite, cookie, cookie * 4096, 4096, 0, data);
    }
    client->send_request(CommandType::kWrite, 10, 0, 1 << 20, 0, data);  // most of it is missing
    ASSERT_TRUE(wait_for_requests(11));
    std::atomic<bool> removed = false;
    remove("disk", removed);
    {
        TestClient late(server_->socket_path());
        late.greet();
        EXPECT_EQ(late.ask(Option::kGo, info_payload("disk")).type, OptionReply::kErrorUnknown);
    }
    EXPECT_FALSE(removed) << "its requests are still with the device";
    server_->device().hold(false);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(client->receive_reply().error, kErrorNone);
    EXPECT_TRUE(client->at_end());
    EXPECT_TRUE(wait_for_flag(removed));
    EXPECT_EQ(server_->device().writes, 10U) << "the half one was dropped";
    EXPECT_EQ(other->call(CommandType::kRead, 0, 4096).data.size(), 4096U);
    add("disk");
    EXPECT_EQ(connect_and_go()->call(CommandType::kRead, 0, 4096).data.size(), 4096U);
}

TEST_F(Lifecycle, removing_an_export_nobody_uses_or_knows) {
    start();
    std::atomic<bool> removed = false;
    std::atomic<bool> removed_again = false;
    std::atomic<bool> unknown_removed = false;
    server_->run([&](Server& server) {
        server.remove_export("disk", [&] { removed = true; });
        server.remove_export("disk", [&] { removed_again = true; });
        server.remove_export("unknown", [&] { unknown_removed = true; });
        EXPECT_FALSE(removed || removed_again || unknown_removed);
    });
    EXPECT_TRUE(wait_for_flag(removed));
    EXPECT_TRUE(wait_for_flag(removed_again));
    EXPECT_TRUE(wait_for_flag(unknown_removed));
    EXPECT_EQ(server_->counters().connections, 0U);
}

TEST_F(Lifecycle, removing_an_export_ends_who_waits_for_a_buffer_and_who_does_not_read) {
    TestServerOptions options;
    options.arena_bytes = 1 << 20;
    options.server.drain_patience_ns = 200'000'000;
    start(options);
    const auto deaf = connect_and_go();
    for (int i = 0; i < 8; ++i) deaf->send_request(CommandType::kRead, 1, 0, 1 << 20);
    ASSERT_TRUE(server_->wait_for([](Server& server) { return server.counters().requests >= 2; }));
    const auto waiting = connect_and_go();
    waiting->send_request(CommandType::kRead, 2, 0, 4096);
    std::atomic<bool> removed = false;
    remove("disk", removed);
    EXPECT_TRUE(waiting->at_end());
    EXPECT_TRUE(wait_for_flag(removed));
}

TEST_F(Lifecycle, shutting_down_answers_what_is_in_flight) {
    start();
    const auto client = connect_and_go();
    server_->device().hold(true);
    client->send_request(CommandType::kRead, 7, 0, 4096);
    ASSERT_TRUE(wait_for_requests(1));
    const auto greeted = connect();
    EXPECT_EQ(greeted->receive(kGreetingBytes).size(), kGreetingBytes);
    server_.reset();  // lets the device go, shuts down, and waits until the server is idle
    EXPECT_EQ(client->receive_reply(4096).cookie, 7U);
    EXPECT_TRUE(client->at_end());
    EXPECT_TRUE(greeted->at_end());
}

/// One client that does something at random and leaves at random.
void misbehave(const std::string& socket_path, const std::string& name, std::uint64_t seed) {
    SeededRandom random(seed);
    TestClient client(socket_path);
    client.receive(kGreetingBytes);
    client.send(number_bytes(kHandshakeFixedNewstyle | kHandshakeNoZeroes));
    client.send_option(Option::kExportName, text_payload(name));
    if (client.receive(10).size() < 10) return;  // the export is just not there
    for (std::uint64_t left = random.below(30); left > 0; --left) {
        const auto length = static_cast<std::uint32_t>(512 * (1 + random.below(500)));
        const std::uint64_t offset = 512 * random.below(1000);
        switch (random.below(5)) {
            case 0:
                client.send_request(CommandType::kRead, left, offset, length);
                break;
            case 1:
                client.send_request(CommandType::kWrite, left, offset, length, 0, Bytes(length));
                break;
            case 2:
                client.send_request(CommandType::kFlush, left, 0, 0);
                break;
            case 3:
                // Without this it would wait a minute for more than it asked for.
                client.shut_down_sending();
                client.receive(random.below(100'000));
                return;
            default:
                client.send_request(CommandType::kWrite, left, offset, length, 0,
                                    Bytes(random.below(length)));
                return;
        }
    }
}

// After a burst the server waits a moment before it receives again; whatever comes then must count.
TEST_F(Lifecycle, a_burst_may_be_followed_by_anything) {
    start();
    const auto burst = [](TestClient& client) {
        Bytes requests;
        for (std::uint64_t cookie = 0; cookie < 8; ++cookie) {
            const Bytes request = request_bytes(CommandType::kRead, cookie, 0, 512);
            requests.insert(requests.end(), request.begin(), request.end());
        }
        client.send(requests);
        for (int i = 0; i < 8; ++i) EXPECT_EQ(client.receive_reply(512).data.size(), 512U);
    };
    for (int round = 0; round < 20; ++round) {
        const auto client = connect_and_go();
        burst(*client);
        EXPECT_EQ(client->call(CommandType::kRead, 0, 4096).data.size(), 4096U);
        burst(*client);
        burst(*client);
        switch (round % 3) {
            case 0:
                client->close();
                break;
            case 1:
                client->send_request(CommandType::kDisconnect, 1, 0, 0);
                EXPECT_TRUE(client->at_end());
                break;
            default:
                std::atomic<bool> removed = false;
                remove("disk", removed);
                EXPECT_TRUE(client->at_end());
                ASSERT_TRUE(wait_for_flag(removed));
                add("disk");
        }
        EXPECT_TRUE(all_gone());
    }
}

TEST_F(Lifecycle, nothing_is_lost_while_clients_and_exports_come_and_go) {
    TestServerOptions options;
    options.arena_bytes = 2 << 20;
    options.names = {"disk", "other"};
    options.server.drain_patience_ns = 50'000'000;
    options.server.crowded_patience_ns = 100'000'000;
    start(options);
    const std::uint64_t seed = seed_for_test();
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
            for (std::uint64_t round = 0; !stop; ++round) {
                misbehave(server_->socket_path(), i % 4 == 0 ? "other" : "disk",
                          seed + 1000 * round + i);
            }
        });
    }
    SeededRandom random(seed);
    for (int round = 0; round < 12; ++round) {
        std::this_thread::sleep_for(std::chrono::milliseconds(random.below(30)));
        server_->device().hold(random.below(2) == 0);
        server_->device().reverse_order(random.below(2) == 0);
        std::atomic<bool> removed = false;
        remove("disk", removed);
        std::this_thread::sleep_for(std::chrono::milliseconds(random.below(30)));
        server_->device().hold(false);
        ASSERT_TRUE(wait_for_flag(removed));
        add("disk");
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace warpraid::nbd
