// What the API answers against what docs/api.md says it answers.
#include "api/bodies.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/service_test_support.h"

namespace warpraid::api {

namespace {

using Json = nlohmann::json;
/// Field -> documented type, by the heading of its table ("Drive").
using Documented = std::map<std::string, std::map<std::string, std::string>>;

Documented read_document() {
    std::ifstream file(std::string(WARPRAID_SOURCE_DIRECTORY) + "/docs/api.md");
    EXPECT_TRUE(file.is_open());
    Documented documented;
    std::string heading;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("### ")) heading = line.substr(4);
        if (!line.starts_with("| `")) continue;
        std::istringstream cells(line);
        std::string cell;
        std::vector<std::string> row;
        while (std::getline(cells, cell, '|')) row.push_back(cell);
        if (row.size() < 3) continue;
        const std::string field = row[1].substr(2, row[1].find('`', 2) - 2);
        std::string type = row[2].substr(1);
        type.resize(type.find_last_not_of(' ') + 1);
        EXPECT_TRUE(documented[heading].emplace(field, type).second) << heading << field;
    }
    return documented;
}

std::string type_of(const Json& value) {
    if (value.is_number_integer()) return "integer";
    if (value.is_array()) return "list";
    return value.type_name();
}

void expect_documented(const Documented& documented, const std::string& heading,
                       const Json& object) {
    ASSERT_TRUE(documented.contains(heading)) << heading;
    const auto& fields = documented.at(heading);
    for (const auto& [field, type] : fields) {
        EXPECT_TRUE(object.contains(field)) << heading << "." << field << " is documented only";
    }
    for (const auto& [field, value] : object.items()) {
        const auto found = fields.find(field);
        ASSERT_TRUE(found != fields.end()) << heading << "." << field << " is not documented";
        // "integer or null" promises both; the samples have no nulls.
        const std::string promised = found->second.substr(0, found->second.find(" or null"));
        EXPECT_EQ(promised, type_of(value)) << heading << "." << field;
    }
}

TEST(Bodies, every_field_is_documented_and_none_else) {
    const Documented documented = read_document();
    const auto first = [](const std::string& body, const char* key) {
        return Json::parse(body).at(key).at(0);
    };
    expect_documented(documented, "Drive", first(drives_body({sample_drive()}), "drives"));
    const Json group = first(groups_body({sample_group()}), "groups");
    expect_documented(documented, "Group", group);
    expect_documented(documented, "Shape", group.at("shape"));
    expect_documented(documented, "Member", group.at("members").at(1));
    expect_documented(documented, "Task", group.at("task"));
    expect_documented(documented, "Progress", group.at("task").at("progress"));
    expect_documented(documented, "Progress", group.at("last_verify"));
    expect_documented(documented, "Counters", group.at("counters"));
    expect_documented(documented, "Volume", first(volumes_body({sample_volume()}), "volumes"));
    expect_documented(documented, "Spare", first(spares_body({sample_spare()}), "spares"));
    expect_documented(documented, "Export", first(exports_body({sample_export()}), "exports"));
    expect_documented(documented, "Event", first(events_body({sample_event()}), "events"));
    expect_documented(documented, "Health",
                      Json::parse(health_body({.level = 0, .findings = {}})).at("health"));
    expect_documented(documented, "Outcome",
                      first(outcomes_body({control::AssembleOutcome{}}), "outcomes"));
    expect_documented(documented, "Error",
                      Json::parse(error_body({ErrorCode::kIo, "x"})).at("error"));
    Json status = Json::parse(status_body(Everything{}));
    expect_documented(documented, "Status", status);
}

TEST(Bodies, what_is_absent_is_null) {
    control::GroupInfo group = sample_group();
    group.task.reset();
    group.last_verify.reset();
    group.members[0].since_ns = 0;
    const Json json = Json::parse(group_body(group)).at("group");
    EXPECT_TRUE(json.at("task").is_null());
    EXPECT_TRUE(json.at("last_verify").is_null());
    EXPECT_TRUE(json.at("members").at(0).at("since").is_null());
    group.task = control::TaskInfo{};
    EXPECT_TRUE(Json::parse(group_body(group)).at("group").at("task").at("eta_seconds").is_null());
    control::DriveInfo drive = sample_drive();
    drive.slot.reset();
    EXPECT_TRUE(Json::parse(drive_body(drive)).at("drive").at("slot").is_null());
}

TEST(Bodies, values_are_printed_as_the_grammar_says) {
    const Json group = Json::parse(group_body(sample_group())).at("group");
    EXPECT_EQ(group.at("state"), "rebuilding");
    EXPECT_EQ(group.at("shape").at("level"), "raid6");
    EXPECT_EQ(group.at("members").at(0).at("state"), "in-sync");
    EXPECT_EQ(group.at("members").at(1).at("reason"), "write-error");
    EXPECT_EQ(group.at("members").at(1).at("since"), "2025-12-01T12:00:30.123Z");
    EXPECT_EQ(group.at("task").at("progress").at("work"), "rebuild");
    EXPECT_EQ(Json::parse(drive_body(sample_drive())).at("drive").at("use"), "member");
    EXPECT_EQ(Json::parse(events_body({sample_event()})).at("events").at(0).at("severity"),
              "error");
}

TEST(Bodies, bytes_that_are_not_text_do_not_spoil_the_answer) {
    control::DriveInfo drive = sample_drive();
    drive.path = "/dev/\xff\xfe";
    EXPECT_TRUE(Json::accept(drive_body(drive)));
}

}  // namespace

}  // namespace warpraid::api
