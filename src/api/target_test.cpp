#include "api/target.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "api/percent.h"

namespace warpraid::api {

namespace {

TEST(Target, cuts_path_and_query) {
    const auto target = parse_target("/api/v1/groups/data?clear=true&x=");
    ASSERT_TRUE(target.ok());
    EXPECT_EQ(target->pieces, (std::vector<std::string>{"api", "v1", "groups", "data"}));
    EXPECT_EQ(target->query, (std::map<std::string, std::string>{{"clear", "true"}, {"x", ""}}));
}

TEST(Target, a_path_is_one_piece_when_encoded) {
    const auto target = parse_target("/drives/%2Fdev%2fsda/fail");
    ASSERT_TRUE(target.ok());
    EXPECT_EQ(target->pieces, (std::vector<std::string>{"drives", "/dev/sda", "fail"}));
}

TEST(Target, a_plus_is_a_plus) {
    const auto target = parse_target("/a+b?c=d+e");
    ASSERT_TRUE(target.ok());
    EXPECT_EQ(target->pieces[0], "a+b");
    EXPECT_EQ(target->query.at("c"), "d+e");
}

TEST(Target, what_makes_no_sense_is_refused) {
    for (const char* text :
         {"", "api", "?a=b", "/%", "/%2", "/%zz", "/a%00b", "/a?b=1&b=2", "/a?b=%4"}) {
        const auto target = parse_target(text);
        ASSERT_FALSE(target.ok()) << text;
        EXPECT_EQ(target.error().code, ErrorCode::kInvalidArgument) << text;
    }
    EXPECT_FALSE(parse_target("/" + std::string(kTargetBytesMax, 'a')).ok());
    EXPECT_TRUE(parse_target("/" + std::string(kTargetBytesMax - 1, 'a')).ok());
}

TEST(Target, an_empty_piece_is_an_empty_name) {
    for (const char* text : {"/", "/a/", "//a", "/a//b", "/a/?b=1"}) {
        const auto target = parse_target(text);
        ASSERT_FALSE(target.ok()) << text;
        EXPECT_EQ(target.error().code, ErrorCode::kBadName) << text;
    }
}

RC_GTEST_PROP(Target, any_bytes_survive_as_a_piece, (const std::string& text)) {
    RC_PRE(!text.empty() && text.find('\0') == std::string::npos);
    RC_PRE(text.size() < 1000);
    const auto target = parse_target("/x/" + percent_encode(text) + "?k=" + percent_encode(text));
    RC_ASSERT(target.ok());
    RC_ASSERT(target->pieces == (std::vector<std::string>{"x", text}));
    RC_ASSERT(target->query.at("k") == text);
}

}  // namespace

}  // namespace warpraid::api
