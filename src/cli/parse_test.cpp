#include "cli/parse.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace warpraid::cli {

namespace {

Parsed parse_words(const std::vector<std::string>& words) {
    std::vector<const char*> argv = {"warpraid"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    return parse(static_cast<int>(argv.size()), argv.data());
}

Options options_of(const std::vector<std::string>& words) {
    const Parsed parsed = parse_words(words);
    EXPECT_TRUE(parsed.options.has_value()) << parsed.problem;
    return parsed.options.value_or(Options{});
}

TEST(CliParse, every_command_of_the_grammar) {
    const std::pair<std::vector<std::string>, Command> rows[] = {
        {{"list", "drive"}, Command::kListDrives},
        {{"list", "pd"}, Command::kListDrives},
        {{"list", "dg"}, Command::kListGroups},
        {{"list", "vd"}, Command::kListVolumes},
        {{"list", "spare"}, Command::kListSpares},
        {{"list", "export"}, Command::kListExports},
        {{"list", "event"}, Command::kListEvents},
        {{"describe", "pd", "0"}, Command::kDescribeDrive},
        {{"describe", "dg", "0"}, Command::kDescribeGroup},
        {{"describe", "vd", "0", "1"}, Command::kDescribeVolume},
        {{"describe", "spare", "7"}, Command::kDescribeSpare},
        {{"describe", "export", "vol1"}, Command::kDescribeExport},
        {{"describe", "event", "17"}, Command::kDescribeEvent},
        {{"create", "pd", "a"}, Command::kCreateDrive},
        {{"create", "dg", "raid1", "0-1"}, Command::kCreateGroup},
        {{"create", "vd", "0"}, Command::kCreateVolume},
        {{"create", "spare", "7"}, Command::kCreateSpare},
        {{"delete", "pd", "0"}, Command::kDeleteDrive},
        {{"delete", "dg", "0"}, Command::kDeleteGroup},
        {{"undo", "group", "data"}, Command::kUndo},
        {{"delete", "vd", "0", "1"}, Command::kDeleteVolume},
        {{"delete", "spare", "7"}, Command::kDeleteSpare},
        {{"edit", "dg", "0", "--name", "x"}, Command::kEditGroup},
        {{"edit", "vd", "0", "1", "--name", "x"}, Command::kEditVolume},
        {{"fail", "pd", "0"}, Command::kFail},
        {{"replace", "pd", "0", "1"}, Command::kReplace},
        {{"export", "vd", "0", "1"}, Command::kExport},
        {{"unexport", "vd", "0", "1"}, Command::kUnexport},
        {{"verify", "dg", "0"}, Command::kVerify},
        {{"verify", "dg", "0", "--stop"}, Command::kStopVerify},
        {{"assemble"}, Command::kAssemble},
        {{"examine"}, Command::kExamine},
        {{"status"}, Command::kStatus},
        {{"health"}, Command::kHealth},
        {{"version"}, Command::kVersion},
    };
    for (const auto& [words, command] : rows) {
        EXPECT_EQ(options_of(words).command, command)
            << words[0] << (words.size() > 1 ? words[1] : "");
    }
}

TEST(CliParse, a_whole_group) {
    const Options options =
        options_of({"--socket", "/s",           "--format", "json",         "--yes",  "--wait",
                    "3",        "create",       "group",    "raid10",       "0-2",    "SER-9",
                    "/dev/sdb", "--name",       "n",        "--chunk",      "64K",    "--copies",
                    "3",        "--block-size", "4096",     "--exact-size", "--force"});
    EXPECT_EQ(options.socket_path, "/s");
    EXPECT_TRUE(options.json && options.yes && options.exact_size && options.force);
    EXPECT_EQ(options.wait_seconds, 3u);
    EXPECT_EQ(options.level, "raid10");
    EXPECT_EQ(options.drives, (std::vector<std::string>{"0", "1", "2", "SER-9", "/dev/sdb"}));
    EXPECT_EQ(options.name, "n");
    EXPECT_EQ(options.chunk_bytes, 65536u);
    EXPECT_EQ(options.copies, 3u);
    EXPECT_EQ(options.block_bytes, 4096u);
}

TEST(CliParse, global_options_work_after_the_verb_too) {
    const Options options =
        options_of({"delete", "group", "data", "--clear", "--yes", "--format", "json"});
    EXPECT_TRUE(options.yes && options.json && options.clear);
    EXPECT_EQ(options.group, "data");
}

TEST(CliParse, odd_names_arrive_as_they_are) {
    EXPECT_EQ(options_of({"edit", "group", "g", "--name=-x"}).name, "-x");
    EXPECT_EQ(options_of({"edit", "group", "g", "--name=a b"}).name, "a b");
    EXPECT_EQ(options_of({"edit", "group", "g", "--name=$(x)"}).name, "$(x)");
    EXPECT_EQ(options_of({"create", "group", "raid1", "0", "1", "--name=7"}).name, "7");
    EXPECT_EQ(options_of({"edit", "group", "g", "--name", "a\nb"}).name, "a\nb");
}

TEST(CliParse, an_empty_name_is_no_absent_one) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"edit", "group", "g", "--name="},
             {"edit", "group", "g", "--name", ""},
             {"create", "group", "--name=", "raid1", "0", "1"},
             {"create", "volume", "g", "1M", "--name=", "--count", "2"}}) {
        EXPECT_EQ(options_of(words).name, "");
    }
    for (const std::string& name : {std::string("g"), std::string()}) {
        EXPECT_EQ(options_of({"create", "spare", "0", "--group=" + name}).only_group, name);
        EXPECT_EQ(options_of({"create", "spare", "0", "--group", name}).only_group, name);
        EXPECT_EQ(options_of({"assemble", name}).only_group, name);
        EXPECT_EQ(options_of({"assemble", "--prefer=" + name}).preferred_drive, name);
        EXPECT_EQ(options_of({"assemble", "--prefer", name}).preferred_drive, name);
    }
    EXPECT_FALSE(options_of({"assemble"}).only_group);
    EXPECT_FALSE(options_of({"assemble"}).preferred_drive);
    // What follows is not taken for the value.
    EXPECT_TRUE(options_of({"assemble", "--prefer=", "--force"}).force);
    EXPECT_EQ(options_of({"describe", "volume", "--", "g", "--name="}).volume, "--name=");
}

TEST(CliParse, relative_paths_are_made_whole) {
    const std::string here = std::filesystem::current_path().string();
    EXPECT_EQ(options_of({"create", "drive", "a", "./b", "/c", "--size", "1G"}).drives,
              (std::vector<std::string>{here + "/a", here + "/b", "/c"}));
    EXPECT_EQ(options_of({"fail", "drive", "d/e"}).drives[0], here + "/d/e");
    EXPECT_EQ(options_of({"fail", "drive", "3"}).drives[0], "3");
    // A file that lies here is meant, not one of that name in the daemon's directory.
    const std::string name = "warpraid-parse-test-" + std::to_string(getpid());
    EXPECT_EQ(options_of({"create", "spare", name}).drives[0], name);
    std::ofstream(name).put('x');
    EXPECT_EQ(options_of({"create", "spare", name}).drives[0], here + "/" + name);
    std::filesystem::remove(name);
    const Options options = options_of({"replace", "drive", "g:1", "./new"});
    EXPECT_EQ(options.drives[0], "g:1");
    EXPECT_EQ(options.new_drive, here + "/new");
}

TEST(CliParse, usage_errors_end_with_2_and_say_why) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {},
             {"frobnicate"},
             {"list"},
             {"list", "nothing"},
             {"create", "group"},
             {"create", "group", "raid5", "0", "--no-such-option"},
             {"create", "group", "raid5", "7-3"},
             {"create", "group", "raid5", "0-99999"},
             {"create", "group", "raid5", "0-99999999999999999999999"},
             {"create", "volume", "g", "12Q"},
             {"create", "volume", "g", "1G", "2G"},
             {"create", "volume", "g", "--count", "-1"},
             {"create", "volume", "g", "--count", "1.5"},
             {"edit", "group", "g"},
             {"edit", "volume", "g", "v"},
             {"describe", "volume", "g"},
             {"replace", "drive", "1"},
             {"fail", "drive", "1", "2"},
             {"--format", "xml", "status"},
             {"--wait", "-1", "status"}}) {
        const Parsed parsed = parse_words(words);
        EXPECT_FALSE(parsed.options.has_value());
        EXPECT_EQ(parsed.exit_status, kUsageStatus);
        EXPECT_FALSE(parsed.problem.empty());
        EXPECT_TRUE(parsed.output.empty());
    }
}

TEST(CliParse, an_unknown_word_is_named) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"frobnicate"},
             {"list", "frobnicate"},
             {"create", "frobnicate", "1"},
             {"create", "group", "frobnicate", "1", "--frobnicate"},
             {"create", "group", "--frobnicate"},
             {"status", "frobnicate"}}) {
        const Parsed parsed = parse_words(words);
        EXPECT_EQ(parsed.exit_status, kUsageStatus);
        EXPECT_NE(parsed.problem.find("frobnicate"), std::string::npos) << parsed.problem;
    }
}

TEST(CliParse, help_is_asked_for_and_answered) {
    const Parsed top = parse_words({"--help"});
    EXPECT_EQ(top.exit_status, 0);
    for (const char* word :
         {"list", "describe", "create", "delete", "edit", "fail", "replace", "export", "unexport",
          "verify", "assemble", "examine", "status", "health", "version", "--socket", "--yes"}) {
        EXPECT_NE(top.output.find(word), std::string::npos) << word;
    }
    const Parsed group = parse_words({"create", "group", "--help"});
    EXPECT_EQ(group.exit_status, 0);
    for (const char* word : {"raid10", "--chunk", "--copies", "--block-size", "--exact-size",
                             "--force", "--name", "0-7"}) {
        EXPECT_NE(group.output.find(word), std::string::npos) << word;
    }
}

}  // namespace

}  // namespace warpraid::cli
