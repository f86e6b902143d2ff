// The clients people use, against the server: nbdinfo, nbdcopy, qemu-io, fio. A client that is not
// installed skips its test.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "export/nbd/nbd_test_support.h"

namespace warpraid::nbd {
namespace {

struct Outcome {
    int status = -1;
    std::string output;  // both streams
};

Outcome run(const std::string& command) {
    Outcome outcome;
    FILE* pipe = popen(("( " + command + " ) 2>&1").c_str(), "r");
    if (pipe == nullptr) return outcome;
    std::array<char, 4096> piece;
    while (const std::size_t count = fread(piece.data(), 1, piece.size(), pipe)) {
        outcome.output.append(piece.data(), count);
    }
    const int ended = pclose(pipe);
    if (WIFEXITED(ended)) outcome.status = WEXITSTATUS(ended);
    return outcome;
}

void expect_success(const std::string& command) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.status, 0) << command << "\n" << outcome.output;
}

bool is_installed(const std::string& program) {
    return run("command -v " + program).status == 0;
}

class Clients : public testing::Test {
  protected:
    void start(const std::string& program, const TestServerOptions& options = {}) {
        if (!is_installed(program)) GTEST_SKIP() << program << " is not installed";
        server_ = std::make_unique<TestServer>(options);
        if (!server_->works()) GTEST_SKIP() << "no usable io_uring here";
        uri_ = "'" + server_->uri() + "'";
    }
    void TearDown() override {
        if (server_ == nullptr || !server_->works()) return;
        EXPECT_TRUE(
            server_->wait_for([](Server& server) { return server.connections_of("disk") == 0; }));
        EXPECT_EQ(server_->counters().protocol_errors, 0U);
    }
    std::string path(std::string_view name) { return server_->directory().path(name); }
    void make_file(const std::string& name, const Bytes& bytes) {
        std::ofstream(path(name), std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
    }

    std::unique_ptr<TestServer> server_;
    std::string uri_;
};

TEST_F(Clients, nbdinfo_reads_what_was_offered) {
    TestServerOptions options;
    options.names = {"disk", "other"};
    ASSERT_NO_FATAL_FAILURE(start("nbdinfo", options));
    if (IsSkipped()) return;
    const Outcome outcome = run("nbdinfo --json " + uri_);
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    for (const char* line :
         {"\"protocol\": \"newstyle-fixed\"", "\"structured\": true", "\"export-name\": \"disk\"",
          "\"base:allocation\"", "\"is_read_only\": false", "\"can_cache\": false",
          "\"can_df\": true", "\"can_flush\": true", "\"can_fua\": true",
          "\"can_multi_conn\": true", "\"can_trim\": true", "\"can_zero\": true",
          "\"block_size_minimum\": 512", "\"block_size_preferred\": 262144",
          "\"block_size_maximum\": 33554432", "\"export-size\": 67108864"}) {
        EXPECT_NE(outcome.output.find(line), std::string::npos) << line << "\n" << outcome.output;
    }

    const Outcome list = run("nbdinfo --list " + uri_);
    EXPECT_EQ(list.status, 0);
    EXPECT_NE(list.output.find("export=\"other\""), std::string::npos) << list.output;
    EXPECT_NE(list.output.find("test export other"), std::string::npos) << list.output;
    const Outcome map = run("nbdinfo --map " + uri_);
    EXPECT_EQ(map.status, 0);
    EXPECT_NE(map.output.find("data"), std::string::npos) << map.output;
    EXPECT_NE(run("nbdinfo 'nbd+unix:///none?socket=" + server_->socket_path() + "'").status, 0);
}

TEST_F(Clients, nbdcopy_copies_in_and_out_over_several_connections) {
    TestServerOptions options;
    ASSERT_NO_FATAL_FAILURE(start("nbdcopy", options));
    if (IsSkipped()) return;
    const Bytes data = pattern(options.device_bytes, seed_for_test());
    make_file("image", data);
    for (const std::string& how : {std::string("--connections=4 --requests=64 --flush"),
                                   std::string("--synchronous --request-size=33554432"),
                                   std::string("--connections=1 --no-extents")}) {
        expect_success("nbdcopy " + how + " " + path("image") + " " + uri_);
        server_->run([&](Server&) {
            EXPECT_TRUE(std::equal(data.begin(), data.end(), server_->device().bytes())) << how;
        });
        expect_success("nbdcopy " + how + " " + uri_ + " " + path("back"));
        expect_success("cmp " + path("image") + " " + path("back"));
        std::filesystem::remove(path("back"));
    }
    EXPECT_GT(server_->device().flushes, 0U);
}

TEST_F(Clients, qemu_io_checks_patterns_flags_and_bounds) {
    ASSERT_NO_FATAL_FAILURE(start("qemu-io"));
    if (IsSkipped()) return;
    expect_success("qemu-io -f raw " + uri_ +
                   " -c 'write -P 0xab 0 1M' -c 'write -P 0xcd -f 512 512' -c 'flush'"
                   " -c 'write -z 64k 64k' -c 'discard 128k 64k' -c 'read -P 0xcd 512 512'"
                   " -c 'read -P 0xab 1024 63k' -c 'read -P 0 64k 64k' -c 'map'"
                   " -c 'aio_write -P 1 4M 1M' -c 'aio_write -P 2 8M 1M' -c 'aio_flush'"
                   " -c 'read -P 1 4M 1M' -c 'read -P 2 8M 1M' -c 'read 60M 4M'");
    EXPECT_GE(server_->device().fuas, 1U);
    EXPECT_GE(server_->device().flushes, 1U);
    EXPECT_GE(server_->device().trims, 1U);
    EXPECT_GE(server_->device().zeroes, 1U);
    const Outcome past = run("qemu-io -f raw " + uri_ + " -c 'read 64M 4k'");
    EXPECT_NE(past.output.find("rror"), std::string::npos) << past.output;
}

TEST_F(Clients, qemu_io_reports_the_device_s_errors) {
    ASSERT_NO_FATAL_FAILURE(start("qemu-io"));
    if (IsSkipped()) return;
    server_->device().fail_at(1 << 20, 5);
    const Outcome outcome =
        run("qemu-io -f raw " + uri_ + " -c 'read 1M 4k' -c 'read 2M 4k' -c 'write 1M 4k'");
    EXPECT_NE(outcome.output.find("read failed: Input/output error"), std::string::npos)
        << outcome.output;
    EXPECT_NE(outcome.output.find("write failed: Input/output error"), std::string::npos);
    EXPECT_NE(outcome.output.find("read 4096/4096 bytes at offset 2097152"), std::string::npos);
}

TEST_F(Clients, fio_verifies_what_it_wrote) {
    ASSERT_NO_FATAL_FAILURE(start("fio"));
    if (IsSkipped()) return;
    if (run("fio --enghelp").output.find("nbd") == std::string::npos) {
        GTEST_SKIP() << "this fio has no NBD engine";
    }
    expect_success(
        "cd " + path("") + " && fio --ioengine=nbd --uri=" + uri_ +
        " --name=mix --rw=randrw --bsrange=512-128k --bs_unaligned=0 --iodepth=32 --numjobs=4"
        " --size=16m --offset_increment=16m --io_size=16m --verify=crc32c --verify_fatal=1"
        " --fsync=64 --do_verify=1 --randrepeat=0");
    EXPECT_GT(server_->device().flushes, 0U);
}

}  // namespace
}  // namespace warpraid::nbd
