#include "api/json_in.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace warpraid::api {

namespace {

template <typename T>
void expect_refused(const Result<T>& result, ErrorCode code, const std::string& named) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_NE(result.error().message.find(named), std::string::npos) << result.error().message;
}

TEST(JsonIn, a_whole_group_request) {
    const auto command = parse_create_group(
        R"({"name":"data","level":"raid10","drives":["0","/dev/sdb"],"chunk_bytes":131072,
            "copies":3,"block_bytes":512,"exact_size":true,"force":true})");
    ASSERT_TRUE(command.ok()) << command.error().message;
    EXPECT_EQ(command->name, "data");
    EXPECT_EQ(command->level, geometry::Level::kRaid10);
    EXPECT_EQ(command->drives, (std::vector<std::string>{"0", "/dev/sdb"}));
    EXPECT_EQ(command->chunk_bytes, 131072u);
    EXPECT_EQ(command->copies, 3u);
    EXPECT_EQ(command->block_bytes, 512u);
    EXPECT_TRUE(command->exact_size);
    EXPECT_TRUE(command->force);
}

TEST(JsonIn, defaults_are_those_of_the_service) {
    const auto command = parse_create_group(R"({"level":"raid5","drives":[]})");
    ASSERT_TRUE(command.ok());
    const control::CreateGroup defaults;
    EXPECT_EQ(command->copies, defaults.copies);
    EXPECT_FALSE(command->force);
    const auto fail = parse_fail_drive("", "3");
    ASSERT_TRUE(fail.ok());
    EXPECT_EQ(fail->drive, "3");
    EXPECT_FALSE(fail->generation.has_value());
}

TEST(JsonIn, the_offending_field_is_named) {
    const auto group = [](const std::string& rest) {
        return parse_create_group(R"({"level":"raid5","drives":["0"],)" + rest + "}");
    };
    constexpr ErrorCode kBad = ErrorCode::kInvalidArgument;
    expect_refused(group(R"("colour":1)"), kBad, "'colour'");
    expect_refused(group(R"("name":1)"), kBad, "'name'");
    expect_refused(group(R"("name":null)"), kBad, "'name'");
    expect_refused(group(R"("name":"a\u0000b")"), kBad, "'name'");
    expect_refused(group(R"("chunk_bytes":-1)"), kBad, "'chunk_bytes'");
    expect_refused(group(R"("chunk_bytes":1.0)"), kBad, "'chunk_bytes'");
    expect_refused(group(R"("chunk_bytes":"64K")"), kBad, "'chunk_bytes'");
    expect_refused(group(R"("chunk_bytes":18446744073709551616)"), kBad, "'chunk_bytes'");
    expect_refused(group(R"("copies":4294967296)"), kBad, "'copies'");
    expect_refused(group(R"("force":1)"), kBad, "'force'");
    expect_refused(group(R"("force":true,"force":false)"), kBad, "'force'");
    expect_refused(parse_create_group(R"({"drives":["0"]})"), kBad, "'level'");
    expect_refused(parse_create_group(R"({"level":"raid5"})"), kBad, "'drives'");
    expect_refused(parse_create_group(R"({"level":5,"drives":["0"]})"), kBad, "'level'");
    expect_refused(parse_create_group(R"({"level":"raid7","drives":["0"]})"), ErrorCode::kBadLevel,
                   "'level'");
    expect_refused(parse_create_group(R"({"level":"raid5","drives":"0"})"), kBad, "'drives'");
    expect_refused(parse_create_group(R"({"level":"raid5","drives":[0]})"), kBad, "'drives'");
    expect_refused(parse_edit_group("{}", "data"), kBad, "nothing to change");
    expect_refused(parse_replace_drive("{}", "1"), kBad, "'new_drive'");
    expect_refused(parse_fail_drive(R"({"generation":"9"})", "1"), kBad, "'generation'");
    expect_refused(parse_nothing(R"({"a":1})"), kBad, "'a'");
}

TEST(JsonIn, an_empty_name_is_no_absent_one) {
    constexpr ErrorCode kBad = ErrorCode::kBadName;
    expect_refused(parse_create_drive(R"({"paths":["a",""]})"), kBad, "'paths'");
    expect_refused(parse_create_group(R"({"level":"raid5","drives":["0"],"name":""})"), kBad,
                   "'name'");
    expect_refused(parse_create_group(R"({"level":"raid5","drives":["0",""]})"), kBad, "'drives'");
    expect_refused(parse_create_group(R"({"level":"","drives":["0"]})"), ErrorCode::kBadLevel,
                   "'level'");
    expect_refused(parse_edit_group(R"({"name":""})", "data"), kBad, "'name'");
    expect_refused(parse_create_volume(R"({"group":""})"), kBad, "'group'");
    expect_refused(parse_create_volume(R"({"group":"g","name":""})"), kBad, "'name'");
    expect_refused(parse_edit_volume(R"({"name":""})"), kBad, "'name'");
    expect_refused(parse_create_spare(R"({"drives":["0"],"group":""})"), kBad, "'group'");
    expect_refused(parse_replace_drive(R"({"new_drive":""})", "1"), kBad, "'new_drive'");
    expect_refused(parse_export(R"({"group":"g","volume":""})"), kBad, "'volume'");
    expect_refused(parse_assemble(R"({"group":""})"), kBad, "'group'");
    expect_refused(parse_assemble(R"({"preferred_drive":""})"), kBad, "'preferred_drive'");
    EXPECT_TRUE(parse_assemble("").ok());
}

TEST(JsonIn, a_volume_of_no_bytes_is_not_all_that_is_free) {
    const auto none = parse_create_volume(R"({"group":"g","size_bytes":0})");
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::kBadSize);
    EXPECT_TRUE(parse_create_volume(R"({"group":"g"})").ok());
}

TEST(JsonIn, what_is_not_an_object_is_not_json_to_us) {
    for (const char* body : {"[]", "1", "null", "{", "{}x", "{\"a\":}", "\xff", "{\"a\":\"\xff\"}",
                             " ", "{'a':1}", "{\"a\":1,}"}) {
        expect_refused(parse_nothing(body), ErrorCode::kBadJson, "body");
    }
    EXPECT_TRUE(parse_nothing("").ok());
    EXPECT_TRUE(parse_nothing(" {} ").ok());
}

TEST(JsonIn, depth_and_size_are_bounded) {
    const std::string deep(limits::kJsonDepthMax, '[');
    const std::string end(limits::kJsonDepthMax, ']');
    expect_refused(parse_nothing("{\"a\":" + deep + end + "}"), ErrorCode::kBadJson, "nested");
    expect_refused(parse_nothing(std::string(1 << 20, '[')), ErrorCode::kBadJson, "nested");
    // One level less is judged by its field; brackets in strings are text.
    expect_refused(parse_nothing("{\"a\":" + deep.substr(1) + end.substr(1) + "}"),
                   ErrorCode::kInvalidArgument, "'a'");
    expect_refused(parse_nothing("{\"a\":\"" + deep + "\\\"" + deep + "\"}"),
                   ErrorCode::kInvalidArgument, "'a'");
    expect_refused(parse_nothing("{" + std::string(limits::kHttpBodyBytesMax, ' ') + "}"),
                   ErrorCode::kInvalidArgument, "larger");
    std::string many = R"({"paths":["a")";
    for (std::size_t i = 0; i < limits::kDrivesMax; ++i) many += R"(,"a")";
    expect_refused(parse_create_drive(many + "]}"), ErrorCode::kInvalidArgument, "'paths'");
}

TEST(JsonIn, numbers_reach_their_whole_range) {
    const auto command =
        parse_edit_group(R"({"rebuild_bytes_per_second_max":18446744073709551615})", "g");
    ASSERT_TRUE(command.ok());
    EXPECT_EQ(command->rebuild_bytes_per_second_max, UINT64_MAX);
    EXPECT_FALSE(command->name.has_value());
}

}  // namespace

}  // namespace warpraid::api
