// What tests of several connections share: a server, clients that come and go, exports that are
// removed and added, and a look at the end whether everything came back.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "export/nbd/nbd_test_support.h"

namespace warpraid::nbd {

class ServerFixture : public testing::Test {
  protected:
    void start(const TestServerOptions& options = {}) {
        options_ = options;
        server_ = std::make_unique<TestServer>(options);
        if (!server_->works()) GTEST_SKIP() << "no usable io_uring here";
    }
    void TearDown() override {
        if (server_ == nullptr || !server_->works()) return;
        EXPECT_TRUE(all_gone());
        EXPECT_EQ(server_->arena_free_bytes(), options_.arena_bytes) << "a buffer was lost";
    }

    std::unique_ptr<TestClient> connect() {
        return std::make_unique<TestClient>(server_->socket_path());
    }
    std::unique_ptr<TestClient> connect_and_go(std::string_view name = "disk",
                                               bool structured = false) {
        auto client = connect();
        client->go(name, structured);
        return client;
    }
    bool all_gone() {
        return server_->wait_for([this](Server& server) {
            return std::all_of(options_.names.begin(), options_.names.end(),
                               [&](const auto& name) { return server.connections_of(name) == 0; });
        });
    }
    bool wait_for_requests(std::uint64_t count) {
        return server_->wait_for(
            [=](Server& server) { return server.counters().requests == count; });
    }
    /// Starts to remove an export; the flag is set when that is done.
    void remove(const std::string& name, std::atomic<bool>& removed) {
        server_->run([&](Server& server) {
            server.remove_export(name, [&removed] { removed = true; });
            EXPECT_FALSE(removed) << "never inside the call";
        });
    }
    bool wait_for_flag(const std::atomic<bool>& flag) {
        return server_->wait_for([&](Server&) { return flag.load(); });
    }
    void add(const std::string& name) {
        server_->run([&](Server& server) {
            ExportInfo info;
            info.name = name;
            info.device = &server_->device();
            server.add_export(info);
        });
    }

    TestServerOptions options_;
    std::unique_ptr<TestServer> server_;
};

}  // namespace warpraid::nbd
