#include "daemon/config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "daemon/command_line.h"

namespace warpraid::daemon {

namespace {

Status configure(Options& options, std::string_view text) {
    return apply_config(options, text, "test.toml");
}

TEST(Config, keys_are_those_of_the_flags) {
    Options options;
    const Status status = configure(options,
                                    "state-dir = \"/s\"\n"
                                    "drives = [\"/dev/a*\", \"/dev/b*\"]\n"
                                    "engine-arena = \"1G\"\n"
                                    "nbd-arena = 134217728\n"
                                    "register-buffers = true\n"
                                    "command-timeout = 7  # seconds\n");
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(options.state_directory, "/s");
    EXPECT_EQ(options.drive_patterns, (std::vector<std::string>{"/dev/a*", "/dev/b*"}));
    EXPECT_EQ(options.engine_arena_bytes, kGiB);
    EXPECT_EQ(options.nbd_arena_bytes, 128 * kMiB);
    EXPECT_TRUE(options.register_buffers);
    EXPECT_EQ(options.command_timeout_seconds, 7u);
}

TEST(Config, what_makes_no_sense_is_refused_by_name) {
    const std::pair<const char*, const char*> rows[] = {
        {"colour = \"red\"", "'colour'"},
        {"state_dir = \"/s\"", "'state_dir'"},
        {"shards = 1\n\t [socket]\npath = \"/s\"", "line 2"},
        {"[[=", "line 1"},
        {"shards = \xc3\xa4", "line 1"},
        {"shards\xc3\xa4 = 1", "line 1"},
        {"socket = \"\"\"a\n\"\"\"", "line 1"},
        {"socket = \'\'\'a\'\'\'", "line 1"},
        {"socket = \"a\\\"\"\xc3\xa4", "line 1"},
        {"\xef\xbb\xbf[[[1]]]", "line 1"},
        {"drives = [\n  [\"a\"]]", "line 2"},
        {"socket = \n", "line 1"},
        {"\n\nsocket = \"a\"\nsocket = \"b\"", "line 4"},
        {"socket = 1.5", "socket"},
        {"socket = [\"a\", \"b\"]", "socket"},
        {"socket = []", "socket"},
        {"drives = [[\"a\"]]", "drives"},
        {"drives = [\"\"]", "drives"},
        {"engine-arena = \"12Q\"", "engine-arena"},
        {"command-timeout = -1", "command-timeout"},
        {"bitmap-delay = 0", "bitmap-delay"},
        {"command-timeout = 2024-01-01", "command-timeout"},
        {"config = \"other\"", "'config'"},
    };
    for (const auto& [text, named] : rows) {
        Options options;
        const Status status = configure(options, text);
        ASSERT_FALSE(status.ok()) << text;
        EXPECT_EQ(status.error().code, ErrorCode::kBadConfig);
        EXPECT_NE(status.error().message.find(named), std::string::npos) << status.error().message;
        EXPECT_NE(status.error().message.find("test.toml"), std::string::npos)
            << status.error().message;
    }
}

TEST(Config, strings_and_comments_may_hold_any_text) {
    Options options;
    const Status status = apply_config(options,
                                       "# \xc3\xa4 [[ \"\n"
                                       "state-dir = \"/\xc3\xa4 # \\\" [[\"  # \xc3\xa4\n"
                                       "socket = '/\xc3\xa4\"'\r\n"
                                       "drives = [\n  \"/dev/[[:alpha:]]*\", # \xc3\xa4\n]\n",
                                       "test.toml");
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(options.state_directory, "/\xc3\xa4 # \" [[");
    EXPECT_EQ(options.socket_path, "/\xc3\xa4\"");
    EXPECT_EQ(options.drive_patterns, std::vector<std::string>{"/dev/[[:alpha:]]*"});
}

TEST(Config, flags_override_the_file) {
    const std::string path = testing::TempDir() + "warpraidd-config-test.toml";
    std::ofstream(path) << "command-timeout = 7\nabsent-grace = 8\n";
    const char* const argv[] = {"warpraidd", "--absent-grace", "9", "--config", path.c_str()};
    const CommandLine line = parse_command_line(5, argv);
    ASSERT_FALSE(line.exit_status.has_value()) << line.text;
    EXPECT_EQ(line.options.command_timeout_seconds, 7u);
    EXPECT_EQ(line.options.absent_grace_seconds, 9u);
}

TEST(Config, a_directory_or_a_huge_file_is_no_configuration) {
    Options options;
    EXPECT_FALSE(apply_config_file(options, testing::TempDir()).ok());
    const std::string path = testing::TempDir() + "warpraidd-huge-test.toml";
    std::ofstream(path) << std::string((1 << 20) + 1, '#');
    EXPECT_FALSE(apply_config_file(options, path).ok());
}

/// The packaged file as it is, and with every line of it that is commented out brought in.
TEST(Config, the_packaged_example_is_right) {
    std::ifstream file(std::string(WARPRAID_SOURCE_DIRECTORY) + "/packaging/warpraidd.toml");
    ASSERT_TRUE(file.is_open());
    std::string all;
    std::string active;
    for (std::string line; std::getline(file, line);) {
        active += line + "\n";
        const bool is_setting = line.starts_with("#") && !line.starts_with("# ") && line != "#";
        all += (is_setting ? line.substr(1) : line) + "\n";
    }
    Options options;
    Status status = configure(options, active);
    ASSERT_TRUE(status.ok()) << status.error().message;
    status = configure(options, all);
    ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_TRUE(fill_in(options).ok());
    for (const Setting& setting : settings()) {
        EXPECT_NE(all.find("\n" + std::string(setting.key) + " = "), std::string::npos)
            << setting.key << " is missing";
    }
}

}  // namespace

}  // namespace warpraid::daemon
