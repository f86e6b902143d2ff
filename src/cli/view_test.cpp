#include "cli/view.h"

#include <gtest/gtest.h>

#include "cli/table.h"

namespace warpraid::cli {

namespace {

const char* const kGroup = R"({"id":0,"uuid":"u","name":"data","state":"rebuilding","reason":"",
    "reason_code":"","shape":{"level":"raid6","members":4,"copies":1,"chunk_bytes":65536,
    "block_bytes":4096,"member_data_bytes":1073741824},"capacity_bytes":2147483648,
    "free_bytes":1073741824,"stripe_bytes":131072,"generation":9,"members":[
    {"slot":0,"serial":"S0","path":"/dev/a","model":"M","drive_uuid":"d","drive_bytes":1073741824,
     "unused_tail_bytes":0,"state":"in-sync","reason":"none","since":null,"read_errors":0,
     "write_errors":0},
    {"slot":1,"serial":"S1","path":"/dev/b","model":"M","drive_uuid":"d","drive_bytes":1073741824,
     "unused_tail_bytes":0,"state":"failed","reason":"write-error",
     "since":"2026-01-02T03:04:05.000Z","read_errors":2,"write_errors":1}],
    "task":{"progress":{"work":"rebuild","done_bytes":256,"total_bytes":1024,"mismatches":0,
    "unreadable":0,"finished":false},"bytes_per_second":104857600,"eta_seconds":200},
    "last_verify":{"work":"verify","done_bytes":1024,"total_bytes":1024,"mismatches":2,
    "unreadable":1,"finished":true},"dirty_regions":5,"missed_regions":3,"regions":1000,"resynced_bytes":1048576,
    "rebuild_bytes_per_second_max":0,"counters":{"reads":17,"degraded_reads":3}})";

void expect_parts(const std::string& shown, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) {
        EXPECT_NE(shown.find(part), std::string::npos) << part << "\nis not in\n" << shown;
    }
}

TEST(CliTable, columns_are_as_wide_as_their_widest_cell) {
    Table table({{"ID", Table::Align::kRight}, {"NAME"}, {"X"}});
    table.add({"1", "long name", ""});
    table.add({"100", "\xc3\xa9", "y"});
    EXPECT_EQ(table.to_text(1),
              "  ID  NAME       X\n"
              "   1  long name  -\n"
              " 100  \xc3\xa9          y\n");
}

TEST(CliTable, nothing_moves_the_cursor) {
    Table table({{"A"}});
    table.add({"\x1b[2Jx\n"});
    EXPECT_EQ(table.to_text(), "A\n?[2Jx?\n");
}

TEST(CliView, a_group_shows_all_that_matters) {
    expect_parts(view_group(Json::parse(kGroup)),
                 {"raid6 of 4 drives", "64.0 KiB", "rebuild 25 %, 100.0 MiB/s, 3m20s left",
                  "[##########                              ]", "5 of 1000",
                  "2 mismatches, 1 unreadable", "unlimited", "failed", "write-error",
                  "2026-01-02T03:04:05.000Z", "2/1", "S1", "/dev/b", "3 degraded"});
}

TEST(CliView, one_spare_export_or_event_shows_every_field) {
    expect_parts(view_spare(Json::parse(R"({"drive_id":7,"serial":"S7","path":"/dev/x",
                     "drive_bytes":1073741824,"group":""})")),
                 {"7", "S7", "/dev/x", "1.0 GiB (1073741824 bytes)", "any that it fits"});
    expect_parts(view_export(Json::parse(R"({"group":"data","volume":"vol1","name":"n",
                     "uri":"nbd+unix:///n?socket=/s","read_only":true,"connections":3})")),
                 {"data", "vol1", "nbd+unix:///n?socket=/s", "read-only", "3"});
    expect_parts(view_event(Json::parse(R"({"id":17,"time":"2026-01-02T03:04:05.000Z",
                     "severity":"error","kind":"member-failed","group":"data","volume":"",
                     "drive_serial":"S1","text":"why"})")),
                 {"17", "2026-01-02T03:04:05.000Z", "error", "member-failed", "data", "S1", "why"});
}

TEST(CliView, groups_fit_one_line_each) {
    const std::string shown = view_groups(Json::array({Json::parse(kGroup)}));
    expect_parts(shown, {"data", "rebuilding", "1/4", "2.0 GiB", "1.0 GiB"});
    EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 2);
}

TEST(CliView, why_a_group_is_offline_is_said) {
    Json group = Json::parse(kGroup);
    group["state"] = "offline";
    group["reason"] = "3 of 4 members are missing";
    group["reason_code"] = "quorum-lost";
    expect_parts(view_groups(Json::array({group})), {"data: 3 of 4 members", "[quorum-lost]"});
}

TEST(CliView, empty_lists_say_so) {
    EXPECT_EQ(view_drives(Json::array()), "no drives\n");
    EXPECT_EQ(view_events(Json::array()), "no events\n");
}

TEST(CliView, status_shows_lost_members_and_work) {
    Json status{{"health", {{"level", 1}, {"findings", {"group data is degraded"}}}},
                {"groups", Json::array({Json::parse(kGroup)})},
                {"volumes", Json::array()},
                {"exports", Json::array()},
                {"spares", Json::array()}};
    expect_parts(view_status(status), {"needs attention", "group data is degraded", "rebuild 25 %",
                                       "write-error", "no volumes"});
}

TEST(CliView, an_answer_of_another_shape_is_no_reason_to_stop) {
    for (const char* json : {"{}", "[]", "null", R"({"groups":[1,{}],"drives":3,"group":[]})"}) {
        for (int command = 0; command <= static_cast<int>(Command::kVersion); ++command) {
            Options options;
            options.command = static_cast<Command>(command);
            options.drives = {"0"};
            view(options, Json::parse(json));
        }
    }
}

}  // namespace

}  // namespace warpraid::cli
