// Requests and replies over a real socket, with simple and with structured replies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "base/random.h"
#include "export/nbd/nbd_test_support.h"
#include "export/nbd/wire.h"

namespace warpraid::nbd {
namespace {

constexpr std::uint64_t kDeviceBytes = 64 << 20;
constexpr std::uint32_t kLongest = 32 << 20;

/// The parameter: whether replies are structured.
class Transmission : public testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
        if (!server_.works()) GTEST_SKIP() << "no usable io_uring here";
        client_ = std::make_unique<TestClient>(server_.socket_path());
        flags_ = client_->go("disk", structured(), structured());
    }
    void TearDown() override {
        if (!server_.works()) return;
        client_.reset();
        EXPECT_TRUE(
            server_.wait_for([](Server& server) { return server.connections_of("disk") == 0; }));
        EXPECT_EQ(server_.arena_free_bytes(), TestServerOptions{}.arena_bytes);
    }

    bool structured() const { return GetParam(); }
    std::uint32_t error_of(CommandType type, std::uint64_t offset, std::uint32_t length,
                           std::uint16_t flags = 0, const Bytes& payload = {}) {
        return client_->call(type, offset, length, flags, payload).error;
    }
    void expect_alive() {
        EXPECT_EQ(client_->call(CommandType::kRead, 0, 512).data.size(), 512U)
            << "the stream must still be in step";
    }
    bool device_holds(std::uint64_t offset, const Bytes& bytes) {
        bool holds = false;
        server_.run([&](Server&) {
            holds = std::equal(bytes.begin(), bytes.end(), server_.device().bytes() + offset);
        });
        return holds;
    }

    TestServer server_;
    std::unique_ptr<TestClient> client_;
    std::uint16_t flags_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Replies, Transmission, testing::Bool(),
                         [](const auto& suite) { return suite.param ? "structured" : "simple"; });

TEST_P(Transmission, flags_say_what_the_server_does) {
    EXPECT_EQ(flags_, structured() ? 0x1ed : 0x16d);
}

TEST_P(Transmission, what_is_written_is_read) {
    std::uint64_t offset = 512;
    for (const std::uint32_t length : {512U, 4096U, 65536U - 512U, 65536U, 1U << 20, 3U << 20}) {
        const Bytes data = pattern(length, length);
        EXPECT_EQ(error_of(CommandType::kWrite, offset, length, 0, data), kErrorNone);
        EXPECT_TRUE(device_holds(offset, data)) << length;
        const WireReply read = client_->call(CommandType::kRead, offset, length);
        EXPECT_EQ(read.structured, structured());
        if (structured()) {
            EXPECT_EQ(read.type, ChunkType::kOffsetData);
            EXPECT_EQ(read.flags, kReplyDone);
            EXPECT_EQ(read.offset, offset);
        }
        EXPECT_TRUE(read.data == data) << length;
        offset += length;
    }
}

TEST_P(Transmission, the_longest_request_works_and_a_longer_one_does_not) {
    const Bytes data = pattern(kLongest, 1);
    EXPECT_EQ(error_of(CommandType::kWrite, kLongest, kLongest, 0, data), kErrorNone);
    EXPECT_TRUE(client_->call(CommandType::kRead, kLongest, kLongest).data == data);
    EXPECT_EQ(error_of(CommandType::kRead, 0, kLongest + 512), kErrorInvalid);
    EXPECT_EQ(error_of(CommandType::kWrite, 0, kLongest + 512, 0, Bytes(kLongest + 512)),
              kErrorInvalid);
    EXPECT_EQ(error_of(CommandType::kWriteZeroes, 0, kDeviceBytes), kErrorNone)
        << "without data there is no such bound";
    expect_alive();
    EXPECT_EQ(server_.device().longest_bytes, kDeviceBytes);
}

TEST_P(Transmission, a_payload_of_absurd_length_ends_the_connection) {
    client_->send_request(CommandType::kWrite, 1, 0, kPayloadSkippedBytesMax + 512);
    EXPECT_TRUE(client_->at_end());
    EXPECT_EQ(server_.counters().protocol_errors, 1U);
}

TEST_P(Transmission, flush_fua_trim_and_zeroes_reach_the_device) {
    TestDevice& device = server_.device();
    EXPECT_EQ(error_of(CommandType::kFlush, 0, 0), kErrorNone);
    EXPECT_EQ(error_of(CommandType::kFlush, 12345, 77), kErrorNone) << "fields without a meaning";
    EXPECT_EQ(device.flushes, 2U);
    EXPECT_EQ(error_of(CommandType::kWrite, 0, 512, kCommandFua, Bytes(512)), kErrorNone);
    EXPECT_EQ(device.fuas, 1U);
    EXPECT_EQ(error_of(CommandType::kTrim, 0, 4096, kCommandFua), kErrorNone);
    EXPECT_EQ(device.fuas, 2U);
    const Bytes data = pattern(8192, 5);
    EXPECT_EQ(error_of(CommandType::kWrite, 4096, 8192, 0, data), kErrorNone);
    EXPECT_EQ(error_of(CommandType::kWriteZeroes, 4096, 4096, kCommandFua | kCommandNoHole),
              kErrorNone);
    EXPECT_EQ(device.fuas, 3U);
    EXPECT_TRUE(device_holds(4096, Bytes(4096)));
    EXPECT_EQ(device.trims, 1U);
    EXPECT_EQ(device.zeroes, 1U);
    EXPECT_EQ(error_of(CommandType::kRead, 0, 512, kCommandFua), kErrorNone);
    EXPECT_EQ(error_of(CommandType::kFlush, 0, 0, kCommandFua), kErrorNone);
    EXPECT_EQ(device.fuas, 3U) << "it means nothing on a read or a flush";
}

TEST_P(Transmission, requests_past_the_end_are_refused) {
    const std::uint64_t last = kDeviceBytes - 512;
    EXPECT_EQ(error_of(CommandType::kRead, last, 512), kErrorNone);
    EXPECT_EQ(error_of(CommandType::kRead, last, 1024), kErrorInvalid);
    EXPECT_EQ(error_of(CommandType::kRead, kDeviceBytes, 512), kErrorInvalid);
    EXPECT_EQ(error_of(CommandType::kRead, ~std::uint64_t{0} - 511, 512), kErrorInvalid);
    EXPECT_EQ(error_of(CommandType::kWrite, last, 1024, 0, Bytes(1024)), kErrorNoSpace);
    EXPECT_EQ(error_of(CommandType::kWrite, ~std::uint64_t{0} - 511, 512, 0, Bytes(512)),
              kErrorNoSpace);
    EXPECT_EQ(error_of(CommandType::kTrim, last, 1024), kErrorNoSpace);
    EXPECT_EQ(error_of(CommandType::kWriteZeroes, kDeviceBytes, 512), kErrorNoSpace);
    EXPECT_EQ(server_.device().writes, 0U);
    expect_alive();
    EXPECT_EQ(server_.counters().errors, 7U);
}

TEST_P(Transmission, requests_that_are_not_whole_blocks_are_refused) {
    for (const CommandType type :
         {CommandType::kRead, CommandType::kWrite, CommandType::kTrim, CommandType::kWriteZeroes}) {
        const auto payload = [&](std::uint32_t length) {
            return Bytes(type == CommandType::kWrite ? length : 0);
        };
        EXPECT_EQ(error_of(type, 1, 512, 0, payload(512)), kErrorInvalid);
        EXPECT_EQ(error_of(type, 0, 513, 0, payload(513)), kErrorInvalid);
        EXPECT_EQ(error_of(type, 0, 1, 0, payload(1)), kErrorInvalid);
        EXPECT_EQ(error_of(type, 0, 0), kErrorInvalid);
    }
    expect_alive();
}

TEST_P(Transmission, commands_and_flags_that_do_not_exist_are_refused) {
    EXPECT_EQ(error_of(CommandType::kCache, 0, 4096), kErrorInvalid) << "it was not offered";
    EXPECT_EQ(error_of(static_cast<CommandType>(8), 0, 512), kErrorInvalid);
    EXPECT_EQ(error_of(static_cast<CommandType>(0xffff), 0, 512), kErrorInvalid);
    EXPECT_EQ(error_of(CommandType::kRead, 0, 512, 1u << 15), kErrorInvalid);
    EXPECT_EQ(error_of(CommandType::kWrite, 0, 512, kCommandNoHole, Bytes(512)), kErrorInvalid);
    EXPECT_EQ(error_of(CommandType::kRead, 0, 512, kCommandDontFragment),
              structured() ? kErrorNone : kErrorInvalid);
    EXPECT_EQ(server_.device().writes, 0U);
    expect_alive();
}

TEST_P(Transmission, errors_of_the_device_reach_the_client) {
    const std::pair<int, std::uint32_t> errors[] = {
        {EIO, kErrorIo},         {ENODEV, kErrorIo},       {EROFS, kErrorPermission},
        {ENOSPC, kErrorNoSpace}, {ENOMEM, kErrorNoMemory}, {ESHUTDOWN, kErrorShutdown}};
    for (const auto& [from_device, on_wire] : errors) {
        server_.device().fail_at(8192, from_device);
        const WireReply reply = client_->call(CommandType::kRead, 8192, 4096);
        EXPECT_EQ(reply.error, on_wire);
        EXPECT_TRUE(reply.data.empty());
        if (structured()) {
            EXPECT_EQ(reply.type, ChunkType::kError);
            EXPECT_FALSE(reply.message.empty());
        }
        EXPECT_EQ(error_of(CommandType::kWrite, 8192, 512, 0, Bytes(512)), on_wire);
    }
    expect_alive();
}

TEST_P(Transmission, block_status_says_allocated) {
    for (const std::uint32_t length : {512U, kLongest + 512U, std::uint32_t{kDeviceBytes}}) {
        const WireReply reply = client_->call(CommandType::kBlockStatus, 0, length);
        if (!structured()) {
            EXPECT_EQ(reply.error, kErrorInvalid) << "no context was negotiated";
            continue;
        }
        EXPECT_EQ(reply.type, ChunkType::kBlockStatus);
        ASSERT_EQ(reply.data.size(), 12U);
        WireReader reader(reply.data);
        EXPECT_EQ(reader.take<std::uint32_t>(), kAllocationContextId);
        EXPECT_EQ(reader.take<std::uint32_t>(), length);
        EXPECT_EQ(reader.take<std::uint32_t>(), 0U);
    }
    if (structured()) {
        EXPECT_EQ(client_->call(CommandType::kBlockStatus, 0, 512, kCommandRequestOne).type,
                  ChunkType::kBlockStatus);
    }
    EXPECT_EQ(error_of(CommandType::kBlockStatus, kDeviceBytes - 512, 1024), kErrorInvalid);
    EXPECT_EQ(error_of(CommandType::kBlockStatus, 0, 0), kErrorInvalid);
    expect_alive();
}

TEST_P(Transmission, replies_come_as_the_device_completes) {
    constexpr std::uint64_t kCount = 16;
    server_.device().hold(true);
    server_.device().reverse_order(true);
    for (std::uint64_t i = 0; i < kCount; ++i) {
        client_->send_request(CommandType::kRead, i, i * 4096, 4096);
    }
    ASSERT_TRUE(server_.wait_for([](Server& server) { return server.counters().requests == 16; }));
    server_.device().hold(false);
    for (std::uint64_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(client_->receive_reply(4096).cookie, kCount - 1 - i);
    }
}

/// A burst of requests of every kind, in one piece of bytes and cut anywhere.
TEST_P(Transmission, bursts_are_answered_one_by_one_however_they_are_cut) {
    SeededRandom random(seed_for_test());
    for (int round = 0; round < 20; ++round) {
        Bytes burst;
        std::map<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>> expected;
        for (std::uint64_t cookie = 0; cookie < 200; ++cookie) {
            const std::uint32_t length = 512 * static_cast<std::uint32_t>(1 + random.below(24));
            const std::uint64_t offset = 512 * random.below(100);
            const bool write = random.below(2) == 0;
            const bool bad = random.below(5) == 0;
            const Bytes request = request_bytes(write ? CommandType::kWrite : CommandType::kRead,
                                                cookie, bad ? offset + 1 : offset, length);
            burst.insert(burst.end(), request.begin(), request.end());
            if (write) burst.resize(burst.size() + length, std::byte{7});
            expected[cookie] = {bad ? kErrorInvalid : kErrorNone, write || bad ? 0 : length};
        }
        std::thread sender([&, seed = random.next()] {
            SeededRandom cuts(seed);
            for (std::size_t at = 0; at < burst.size();) {
                const std::size_t count = std::min<std::size_t>(
                    burst.size() - at, round == 0 ? burst.size() : 1 + cuts.below(100'000));
                client_->send(burst.data() + at, count);
                at += count;
            }
        });
        while (!expected.empty()) {
            // The length of a simple reply's data depends on its cookie: ask for the head first.
            const WireReply reply = client_->receive_reply_of(
                [&](std::uint64_t cookie) { return expected.at(cookie).second; });
            const auto found = expected.find(reply.cookie);
            if (found == expected.end()) break;
            EXPECT_EQ(reply.error, found->second.first);
            EXPECT_EQ(reply.data.size(), found->second.second);
            expected.erase(found);
        }
        sender.join();
        EXPECT_TRUE(expected.empty());
    }
}

TEST_P(Transmission, a_wrong_magic_number_ends_the_connection_after_what_was_asked_before) {
    Bytes bytes = request_bytes(CommandType::kRead, 5, 0, 512);
    const Bytes junk = pattern(kRequestHeaderBytes, 9);
    bytes.insert(bytes.end(), junk.begin(), junk.end());
    client_->send(bytes);
    EXPECT_EQ(client_->receive_reply(512).cookie, 5U);
    EXPECT_TRUE(client_->at_end());
    EXPECT_EQ(server_.counters().protocol_errors, 1U);
}

TEST_P(Transmission, a_disconnect_waits_for_what_was_asked_before) {
    const Bytes data = pattern(4096, 3);
    server_.device().hold(true);
    client_->send_request(CommandType::kWrite, 1, 4096, 4096, 0, data);
    client_->send_request(CommandType::kDisconnect, 2, 0, 0);
    client_->send_request(CommandType::kRead, 3, 0, 512);  // nobody listens any more
    ASSERT_TRUE(server_.wait_for([](Server& server) { return server.counters().requests == 1; }));
    server_.device().hold(false);
    EXPECT_EQ(client_->receive_reply().cookie, 1U);
    EXPECT_TRUE(client_->at_end());
    EXPECT_TRUE(device_holds(4096, data));
    EXPECT_EQ(server_.device().reads, 0U);
    EXPECT_EQ(server_.counters().protocol_errors, 0U);
}

TEST_P(Transmission, every_connection_sees_what_another_wrote_and_flushes_it) {
    TestClient other(server_.socket_path());
    EXPECT_NE(other.go("disk", structured()) & kFlagMultiConn, 0);
    const Bytes data = pattern(4096, 11);
    EXPECT_EQ(error_of(CommandType::kWrite, 0, 4096, 0, data), kErrorNone);
    EXPECT_TRUE(other.call(CommandType::kRead, 0, 4096).data == data);
    EXPECT_EQ(other.call(CommandType::kFlush, 0, 0).error, kErrorNone);
    EXPECT_EQ(server_.device().flushes, 1U) << "one device behind all connections";
}

TEST(ReadOnlyExport, takes_no_change) {
    TestServerOptions options;
    options.read_only = true;
    TestServer server(options);
    if (!server.works()) GTEST_SKIP() << "no usable io_uring here";
    TestClient client(server.socket_path());
    EXPECT_EQ(client.go("disk", true, true), 0x18f);
    const Bytes data(4096);
    EXPECT_EQ(client.call(CommandType::kWrite, 0, 4096, 0, data).error, kErrorPermission);
    EXPECT_EQ(client.call(CommandType::kTrim, 0, 4096).error, kErrorPermission);
    EXPECT_EQ(client.call(CommandType::kWriteZeroes, 0, 4096).error, kErrorPermission);
    EXPECT_EQ(client.call(CommandType::kFlush, 0, 0).error, kErrorNone);
    EXPECT_EQ(client.call(CommandType::kBlockStatus, 0, 4096).type, ChunkType::kBlockStatus);
    EXPECT_EQ(client.call(CommandType::kRead, 0, 4096).data.size(), 4096U);
    EXPECT_EQ(server.device().writes + server.device().trims + server.device().zeroes, 0U);
}

TEST(SmallArena, narrows_what_one_request_may_ask_for) {
    TestServerOptions options;
    options.arena_bytes = 1 << 20;
    TestServer server(options);
    if (!server.works()) GTEST_SKIP() << "no usable io_uring here";
    TestClient client(server.socket_path());
    client.go("disk");
    EXPECT_EQ(client.call(CommandType::kRead, 0, 1 << 20).data.size(), 1U << 20);
    EXPECT_EQ(client.call(CommandType::kRead, 0, (1 << 20) + 512).error, kErrorInvalid)
        << "it would wait for ever";
}

}  // namespace
}  // namespace warpraid::nbd
