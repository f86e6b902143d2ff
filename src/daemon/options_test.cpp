#include "daemon/options.h"

#include <gtest/gtest.h>

#include "daemon/command_line.h"

namespace warpraid::daemon {

namespace {

CommandLine line_of(const std::vector<std::string>& words) {
    std::vector<const char*> argv = {"warpraidd"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

TEST(DaemonOptions, flags_are_taken) {
    const CommandLine line = line_of({"--state-dir",
                                      "/s",
                                      "--socket",
                                      "/r/c.sock",
                                      "--drives",
                                      "/dev/a*",
                                      "/dev/b*",
                                      "--engine-arena",
                                      "128M",
                                      "--nbd-arena",
                                      "64M",
                                      "--command-timeout",
                                      "5",
                                      "--absent-grace",
                                      "0",
                                      "--read-errors-max",
                                      "7",
                                      "--rebuild-rate",
                                      "200M",
                                      "--nbd-tcp",
                                      "127.0.0.1:10809",
                                      "--socket-group",
                                      "disk"});
    ASSERT_FALSE(line.exit_status.has_value()) << line.text;
    const Options& options = line.options;
    EXPECT_EQ(options.state_directory, "/s");
    EXPECT_EQ(options.drive_patterns, (std::vector<std::string>{"/dev/a*", "/dev/b*"}));
    EXPECT_EQ(options.engine_arena_bytes, 128 * kMiB);
    EXPECT_EQ(options.nbd_arena_bytes, 64 * kMiB);
    EXPECT_EQ(options.command_timeout_seconds, 5u);
    EXPECT_EQ(options.absent_grace_seconds, 0u);
    EXPECT_EQ(options.read_errors_max, 7u);
    EXPECT_EQ(options.rebuild_bytes_per_second_max, 200 * kMiB);
    EXPECT_EQ(options.nbd_tcp, "127.0.0.1:10809");
    EXPECT_EQ(options.socket_group, "disk");
}

TEST(DaemonOptions, the_other_sockets_lie_beside_the_first) {
    const Options options = line_of({"--socket", "demo/control.sock"}).options;
    EXPECT_EQ(options.readonly_socket_path, "demo/control-ro.sock");
    EXPECT_EQ(options.nbd_socket_path, "demo/nbd.sock");
    EXPECT_EQ(line_of({"--socket", "x"}).options.readonly_socket_path, "x-ro.sock");
    EXPECT_EQ(line_of({}).options.nbd_socket_path, "/run/warpraid/nbd.sock");
}

TEST(DaemonOptions, what_makes_no_sense_is_refused_by_name) {
    const std::pair<std::vector<std::string>, std::string> rows[] = {
        {{"--engine-arena", "12Q"}, "engine-arena"},
        {{"--engine-arena", "1M"}, "engine-arena"},
        {{"--nbd-arena", "1000T"}, "nbd-arena"},
        {{"--command-timeout", "-1"}, "command-timeout"},
        {{"--command-timeout", "1.5"}, "command-timeout"},
        {{"--absent-grace", "99999999999999999999"}, "absent-grace"},
        {{"--read-errors-max", "4294967296"}, "read-errors-max"},
        {{"--rebuild-rate", "fast"}, "rebuild-rate"},
        {{"--register-buffers", "yes"}, "register-buffers"},
        {{"--shards", "2"}, "shards"},
        {{"--shards", "0"}, "shards"},
        {{"--nbd-tcp", "127.0.0.1"}, "nbd-tcp"},
        {{"--nbd-tcp", "127.0.0.1:0"}, "nbd-tcp"},
        {{"--nbd-tcp", "127.0.0.1:65536"}, "nbd-tcp"},
        {{"--nbd-tcp", "127.0.0.1:x"}, "nbd-tcp"},
        {{"--nbd-tcp", "::1:10809"}, "nbd-tcp"},
        {{"--nbd-tcp", ":10809"}, "nbd-tcp"},
        {{"--nbd-tcp", "[]:10809"}, "nbd-tcp"},
        {{"--state-dir", ""}, "state-dir"},
        {{"--socket", "/a", "--nbd-socket", "/a"}, "nbd-socket"},
        {{"--socket", "/a", "--socket", "/b"}, "socket"},
        {{"--config", "/no/such/file"}, "/no/such/file"},
        {{"--colour"}, "colour"},
        {{"frobnicate"}, "frobnicate"}};
    for (const auto& [words, named] : rows) {
        const CommandLine line = line_of(words);
        ASSERT_TRUE(line.exit_status.has_value()) << named;
        EXPECT_EQ(line.exit_status, 2) << named;
        EXPECT_NE(line.text.find(named), std::string::npos) << line.text;
    }
}

TEST(DaemonOptions, tcp_addresses) {
    const auto six = parse_tcp_address("[::1]:10809");
    ASSERT_TRUE(six.ok());
    EXPECT_EQ(six->address, "::1");
    EXPECT_EQ(six->port, 10809);
    const auto four = parse_tcp_address("0.0.0.0:1");
    ASSERT_TRUE(four.ok());
    EXPECT_EQ(four->address, "0.0.0.0");
}

TEST(DaemonOptions, help_names_every_setting) {
    const CommandLine line = line_of({"--help"});
    EXPECT_EQ(line.exit_status, 0);
    for (const Setting& setting : settings()) {
        EXPECT_NE(line.text.find("--" + std::string(setting.key)), std::string::npos);
    }
}

TEST(DaemonOptions, the_demo_is_another_program) {
    const CommandLine line = line_of({"demo", "--directory", "here"});
    EXPECT_FALSE(line.exit_status.has_value());
    ASSERT_TRUE(line.demo.has_value());
    EXPECT_EQ(line.demo->directory, "here");
    EXPECT_FALSE(line_of({}).demo.has_value());
}

}  // namespace

}  // namespace warpraid::daemon
