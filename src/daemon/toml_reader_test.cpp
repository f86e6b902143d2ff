#include "daemon/toml_reader.h"

#include <gtest/gtest.h>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace warpraid::daemon {

namespace {

std::string text_of(const toml::node& node) {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* number = node.as_integer()) return std::to_string(number->get());
    if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
    return "something else";
}

/// What we accept means the same to somebody else's parser.
TEST(TomlReader, agrees_with_another_parser) {
    for (const char* text :
         {"", "\n\n", "# only a comment", "a = 1", "a=1 # c\r\nb = -7\r\n", "a = +5\nb = 0\n",
          "  a\t=\ttrue  \n\tb-c_D9 = false", "a = \"\"\nb = ''",
          "a = \"x # \\\" \\\\ \\t \\n \\u00e4 \\U0001F600 [[\" # [[", "a = '\\x \" # [['",
          "a = \"\xc3\xa4\" # \xc3\xa4", "a = []", "a = [1, 2,]",
          "a = [ # c\n  \"x\", # [[\n\n 'y'\n]", "a = [\"/dev/[[:alpha:]]*\"]",
          "\xef\xbb\xbf"
          "a = 1",
          "1 = 2\ntrue = 3", "a = 9223372036854775807"}) {
        const auto ours = read_toml(text);
        ASSERT_TRUE(ours.ok()) << text << "\n" << ours.error().message;
        const toml::parse_result theirs = toml::parse(std::string_view(text));
        ASSERT_TRUE(theirs) << text;
        EXPECT_EQ(ours->size(), theirs.table().size()) << text;
        for (const TomlEntry& entry : ours.value()) {
            const toml::node* node = theirs.table().get(entry.key);
            ASSERT_NE(node, nullptr) << text;
            std::vector<std::string> values;
            if (const toml::array* list = node->as_array()) {
                for (const toml::node& item : *list) values.push_back(text_of(item));
            } else {
                values.push_back(text_of(*node));
            }
            EXPECT_EQ(entry.values, values) << text;
        }
    }
}

TEST(TomlReader, everything_else_is_refused_with_its_line) {
    const std::pair<std::string, const char*> rows[] = {
        {"[a]\nb = 1", "line 1"},
        {"a = 1\n[[=", "line 2"},
        {"a", "line 1: a"},
        {"a =", "line 1: a"},
        {"a = \nb = 1", "line 1: a"},
        {"= 1", "line 1"},
        {"\"a\" = 1", "line 1"},
        {"a.b = 1", "line 1: a"},
        {"a = 1 b = 2", "line 1: a"},
        {"a = 1 2", "line 1: a"},
        {"a = 1.5", "line 1: a"},
        {"a = 0x10", "line 1: a"},
        {"a = 1_000", "line 1: a"},
        {"a = 007", "line 1: a"},
        {"a = -", "line 1: a"},
        {"a = True", "line 1: a"},
        {"a = x", "line 1: a"},
        {"a = 2024-01-01", "line 1: a"},
        {"a = {b = 1}", "line 1: a"},
        {"a = \"x", "line 1: a"},
        {"a = 'x\n'", "line 1: a"},
        {"a = \"x\\\n\"", "line 1: a"},
        {"a = \"\\", "line 1: a"},
        {"a = \"\\q\"", "line 1: a"},
        {"a = \"\\u12\"", "line 1: a"},
        {"a = \"\\u0000\"", "line 1: a"},
        {"a = \"\\uD800\"", "line 1: a"},
        {"a = \"\\U00110000\"", "line 1: a"},
        {"a = \"\"\"x\"\"\"", "line 1: a"},
        {"a = '''x'''", "line 1: a"},
        {"a = [1", "line 1: a"},
        {"a = [1\n2]", "line 2: a"},
        {"a = [,]", "line 1: a"},
        {"a = [[1]]", "line 1: a"},
        {"a = 1\n\n# c\na = 2", "line 4: a"},
        {"\xc3\xa4 = 1", "line 1"},
        {"a = \xc3\xa4", "line 1: a"},
        {"a = 1\rb = 2", "line 1: a"},
        {"a = 1 # \x01", "line 1: a"},
        {std::string("a = 1\0", 6), "line 1"},
    };
    for (const auto& [text, named] : rows) {
        const auto entries = read_toml(text);
        ASSERT_FALSE(entries.ok()) << text;
        EXPECT_EQ(entries.error().code, ErrorCode::kBadConfig);
        EXPECT_TRUE(entries.error().message.starts_with(named)) << text << "\n"
                                                                << entries.error().message;
    }
}

}  // namespace

}  // namespace warpraid::daemon
