#include "api/routes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/service_test_support.h"

namespace warpraid::api {

namespace {

struct Routes : testing::Test {
    FakeService service;

    Answer call(std::string_view method, std::string_view target, std::string_view body = {}) {
        return handle(service, Request{method, target, body});
    }
    /// The one key besides the schema version.
    std::string key_of(const Answer& answer) {
        const auto json = nlohmann::json::parse(answer.body);
        EXPECT_EQ(json.at("schema_version"), 1);
        for (const auto& [key, value] : json.items()) {
            if (key != "schema_version") return key;
        }
        return "";
    }
    std::string error_of(const Answer& answer) {
        return nlohmann::json::parse(answer.body).at("error").at("code");
    }
};

TEST_F(Routes, every_query_answers_under_its_key) {
    const std::vector<std::pair<std::string, std::string>> queries = {
        {"drives", "drives"},         {"drives/3", "drive"},
        {"drives/S3", "drive"},       {"groups", "groups"},
        {"groups/0", "group"},        {"groups/data", "group"},
        {"volumes", "volumes"},       {"volumes/data/1", "volume"},
        {"volumes/0/vol1", "volume"}, {"spares", "spares"},
        {"exports", "exports"},       {"events", "events"},
        {"health", "health"},         {"version", "version"},
        {"examine", "drives"},        {"drives/%2Fdev%2Fnvme3n1", "drive"}};
    for (const auto& [path, key] : queries) {
        const Answer answer = call("GET", "/api/v1/" + path);
        EXPECT_EQ(answer.http_status, 200) << path << answer.body;
        EXPECT_EQ(key_of(answer), key) << path;
    }
    const auto status = nlohmann::json::parse(call("GET", "/api/v1/status").body);
    for (const char* key :
         {"version", "health", "drives", "groups", "volumes", "spares", "exports"}) {
        EXPECT_TRUE(status.contains(key)) << key;
    }
}

TEST_F(Routes, one_spare_export_or_event_is_found_by_its_name) {
    service.spare_list[0].drive_id = 3;
    for (const char* name : {"3", "S3", "%2Fdev%2Fnvme3n1"}) {
        const Answer answer = call("GET", "/api/v1/spares/" + std::string(name));
        EXPECT_EQ(answer.http_status, 200) << name << answer.body;
        EXPECT_EQ(key_of(answer), "spare") << name;
    }
    EXPECT_EQ(key_of(call("GET", "/api/v1/exports/vol1")), "export");
    EXPECT_EQ(key_of(call("GET", "/api/v1/events/41")), "event");
    EXPECT_EQ(service.calls, std::vector<std::string>{"events after=40 limit=1"});
    service.spare_list[0].drive_id = 4;  // the drive that is named is no spare
    for (const char* target : {"spares/3", "spares/99", "exports/vol", "events/40", "events/42",
                               "events/0", "events/x", "events/-1"}) {
        EXPECT_EQ(error_of(call("GET", "/api/v1/" + std::string(target))), "not-found") << target;
    }
    EXPECT_EQ(call("GET", "/api/v1/events/41?limit=1").http_status, 400);
}

TEST_F(Routes, every_command_reaches_the_service) {
    struct Row {
        const char* method;
        const char* target;
        const char* body;
        const char* called;
    };
    const Row rows[] = {
        {"POST", "drives", R"({"paths":["a","b"],"file_bytes":7})",
         "create_drive paths=a,b file_bytes=7"},
        {"DELETE", "drives/%2Fdev%2Fsda", "", "delete_drive drive=/dev/sda"},
        {"POST", "groups", R"({"level":"6","drives":["0","1","2","3"],"name":"n"})",
         "create_group name=n level=raid6 drives=0,1,2,3 chunk=0 copies=2 block=0 exact=false "
         "force=false"},
        {"DELETE", "groups/data", "", "delete_group group=data clear=false"},
        {"DELETE", "groups/data?clear=true", "", "delete_group group=data clear=true"},
        {"PATCH", "groups/data", R"({"name":"new"})", "edit_group group=data name=new rate=-"},
        {"PATCH", "groups/data", R"({"rebuild_bytes_per_second_max":5})",
         "edit_group group=data name=- rate=5"},
        {"POST", "volumes", R"({"group":"0","size_bytes":9,"count":3})",
         "create_volume group=0 name= size=9 count=3"},
        {"DELETE", "volumes/data/a%20b", "", "delete_volume group=data volume=a b"},
        {"PATCH", "volumes/data/1", R"({"name":"x"})", "rename_volume group=data volume=1 name=x"},
        {"POST", "spares", R"({"drives":["7"],"group":"data"})",
         "create_spare drives=7 group=data force=false"},
        {"DELETE", "spares/7", "", "delete_spare drive=7"},
        {"POST", "drives/1/reset-identity", "", "reset_identity drive=1"},
        {"POST", "drives/1/fail", "", "fail_drive drive=1 generation=-"},
        {"POST", "drives/1/fail", R"({"generation":9})", "fail_drive drive=1 generation=9"},
        {"POST", "drives/data%3A1/replace", R"({"new_drive":"5"})",
         "replace_drive old=data:1 new=5 force=false generation=-"},
        {"POST", "drives/1/replace", R"({"new_drive":"5","generation":9})",
         "replace_drive old=1 new=5 force=false generation=9"},
        {"POST", "exports", R"({"group":"data","volume":"1","read_only":true})",
         "export_volume group=data volume=1 read_only=true"},
        {"DELETE", "exports/data/1", "", "unexport_volume group=data volume=1"},
        {"POST", "groups/data/verify", "", "verify_group group=data"},
        {"DELETE", "groups/data/verify", "", "stop_verify group=data"},
        {"POST", "groups/data/undo", "", "undo_group group=data"},
        {"DELETE", "groups/data/undo", "", "abandon_undo group=data"},
        {"POST", "assemble", "", "assemble group= force=false destroyed=false preferred="},
        {"POST", "assemble", R"({"group":"g","force":true,"destroyed":true,"preferred_drive":"2"})",
         "assemble group=g force=true destroyed=true preferred=2"},
        {"GET", "events?after=5&limit=7", "", "events after=5 limit=7"},
    };
    for (const Row& row : rows) {
        service.calls.clear();
        const Answer answer = call(row.method, "/api/v1/" + std::string(row.target), row.body);
        EXPECT_EQ(answer.http_status, 200) << row.called << answer.body;
        EXPECT_EQ(service.calls, std::vector<std::string>{row.called});
    }
}

TEST_F(Routes, a_refusal_keeps_its_code_and_takes_its_status_from_the_table) {
    const std::pair<ErrorCode, int> rows[] = {{ErrorCode::kNotFound, 404},
                                              {ErrorCode::kInUse, 409},
                                              {ErrorCode::kBadSize, 400},
                                              {ErrorCode::kIo, 500}};
    for (const auto& [code, status] : rows) {
        service.failure = Error{code, "because"};
        const Answer answer = call("DELETE", "/api/v1/groups/data");
        EXPECT_EQ(answer.http_status, status);
        EXPECT_EQ(error_of(answer), to_text(code));
    }
}

TEST_F(Routes, what_does_not_exist_is_not_found) {
    for (const char* target :
         {"/", "/api", "/api/v1", "/api/v2/drives", "/api/v1/nothing", "/api/v1/drives/99",
          "/api/v1/groups/none", "/api/v1/volumes/data/none", "/api/v1/volumes/none/1"}) {
        EXPECT_NE(call("GET", target).http_status, 200) << target;
    }
    EXPECT_EQ(error_of(call("GET", "/api/v1/groups/none")), "not-found");
    EXPECT_EQ(error_of(call("PUT", "/api/v1/groups")), "not-found");
    EXPECT_EQ(error_of(call("POST", "/api/v1/health")), "not-found");
}

TEST_F(Routes, two_groups_of_one_name_are_not_guessed) {
    service.group_list.push_back(sample_group());
    EXPECT_EQ(error_of(call("GET", "/api/v1/groups/data")), "invalid-argument");
}

TEST_F(Routes, parameters_are_checked) {
    for (const char* target :
         {"events?after=x", "events?after=-1", "events?limit=0", "events?limit=1001",
          "events?limit=", "events?colour=1", "drives?x=1", "health?x"}) {
        EXPECT_EQ(call("GET", "/api/v1/" + std::string(target)).http_status, 400) << target;
    }
    EXPECT_EQ(call("DELETE", "/api/v1/groups/data?clear=1").http_status, 400);
    EXPECT_EQ(call("DELETE", "/api/v1/groups/data?Clear=true").http_status, 400);
    EXPECT_EQ(call("POST", "/api/v1/drives/1/fail?generation=9").http_status, 400);
    EXPECT_EQ(call("DELETE", "/api/v1/drives/1", R"({"force":true})").http_status, 400);
    EXPECT_TRUE(service.calls.empty());
}

}  // namespace

}  // namespace warpraid::api
