#include "cli/request.h"

#include <gtest/gtest.h>

namespace warpraid::cli {

namespace {

Request request_of(const Options& options) {
    const Result<Request> request = make_request(options);
    EXPECT_TRUE(request.ok());
    return request.ok() ? request.value() : Request{};
}

std::string line_of(const Options& options) {
    const Request request = request_of(options);
    return request.method + " " + request.target + (request.body.empty() ? "" : " ") + request.body;
}

Options with(Command command) {
    Options options;
    options.command = command;
    return options;
}

TEST(CliRequest, names_become_pieces_of_the_address) {
    Options options = with(Command::kDescribeDrive);
    options.drives = {"/dev/nvme0n1"};
    EXPECT_EQ(line_of(options), "GET /api/v1/drives/%2Fdev%2Fnvme0n1");
    options = with(Command::kDescribeSpare);
    options.drives = {"7"};
    EXPECT_EQ(line_of(options), "GET /api/v1/spares/7");
    options = with(Command::kDescribeExport);
    options.export_name = "vol@1";
    EXPECT_EQ(line_of(options), "GET /api/v1/exports/vol%401");
    options = with(Command::kDescribeEvent);
    options.event = 17;
    EXPECT_EQ(line_of(options), "GET /api/v1/events/17");
    options = with(Command::kDeleteVolume);
    options.group = "a b";
    options.volume = "../x?";
    EXPECT_EQ(line_of(options), "DELETE /api/v1/volumes/a%20b/..%2Fx%3F");
}

TEST(CliRequest, sizes_of_0_are_no_absent_ones) {
    Options options = with(Command::kCreateDrive);
    options.size_bytes = 0;
    EXPECT_EQ(make_request(options).error().code, ErrorCode::kBadSize);
    options = with(Command::kCreateGroup);
    options.block_bytes = 0;
    EXPECT_EQ(make_request(options).error().code, ErrorCode::kInvalidArgument);
}

TEST(CliRequest, only_what_was_said_is_sent) {
    Options options = with(Command::kCreateGroup);
    options.level = "raid5";
    options.drives = {"0", "1", "2"};
    EXPECT_EQ(line_of(options), R"(POST /api/v1/groups {"level":"raid5","drives":["0","1","2"]})");
    options.name = "";
    options.chunk_bytes = 4096;
    options.copies = 2;
    options.block_bytes = 512;
    options.exact_size = true;
    options.force = true;
    EXPECT_EQ(line_of(options),
              R"(POST /api/v1/groups {"name":"","level":"raid5","drives":["0","1","2"],)"
              R"("chunk_bytes":4096,"copies":2,"block_bytes":512,"exact_size":true,"force":true})");
    options = with(Command::kCreateVolume);
    options.group = "g";
    EXPECT_EQ(line_of(options), R"(POST /api/v1/volumes {"group":"g"})");
    options = with(Command::kAssemble);
    EXPECT_EQ(line_of(options), "POST /api/v1/assemble");
    options.preferred_drive = "3";
    EXPECT_EQ(line_of(options), R"(POST /api/v1/assemble {"preferred_drive":"3"})");
    options.preferred_drive.reset();
    options.only_group = "";
    EXPECT_EQ(line_of(options), R"(POST /api/v1/assemble {"group":""})");
    options = with(Command::kCreateSpare);
    options.drives = {"3"};
    EXPECT_EQ(line_of(options), R"(POST /api/v1/spares {"drives":["3"]})");
    options.only_group = "";
    EXPECT_EQ(line_of(options), R"(POST /api/v1/spares {"drives":["3"],"group":""})");
    options = with(Command::kListEvents);
    options.limit = 5;
    EXPECT_EQ(line_of(options), "GET /api/v1/events?newest=true&limit=5");
    options.after = 9;
    EXPECT_EQ(line_of(options), "GET /api/v1/events?after=9&limit=5");
    options = with(Command::kFail);
    options.drives = {"1"};
    options.generation = 7;
    EXPECT_EQ(line_of(options), R"(POST /api/v1/drives/1/fail {"generation":7})");
    options.command = Command::kReplace;
    options.new_drive = "2";
    EXPECT_EQ(line_of(options),
              R"(POST /api/v1/drives/1/replace {"new_drive":"2","generation":7})");
}

TEST(CliRequest, a_chunk_means_nothing_to_a_mirror) {
    for (const char* level : {"raid1", "RAID1", "1"}) {
        Options options = with(Command::kCreateGroup);
        options.level = level;
        options.chunk_bytes = 65536;
        const Request request = request_of(options);
        EXPECT_NE(request.warning.find("chunk"), std::string::npos);
        EXPECT_EQ(request.body.find("chunk"), std::string::npos);
    }
    Options options = with(Command::kCreateGroup);
    options.level = "raid10";
    options.chunk_bytes = 65536;
    EXPECT_TRUE(request_of(options).warning.empty());
    EXPECT_NE(request_of(options).body.find("chunk"), std::string::npos);
    options.chunk_bytes = 0;
    EXPECT_EQ(make_request(options).error().code, ErrorCode::kBadChunk);
}

TEST(CliRequest, what_destroys_asks) {
    for (const Command command :
         {Command::kDeleteGroup, Command::kUndo, Command::kDeleteVolume, Command::kDeleteDrive,
          Command::kDeleteSpare, Command::kUnexport, Command::kEditDrive, Command::kFail}) {
        Options options = with(command);
        options.drives = {"1"};
        EXPECT_FALSE(request_of(options).question.empty());
    }
    for (const Command command :
         {Command::kCreateGroup, Command::kReplace, Command::kAssemble, Command::kCreateSpare}) {
        Options options = with(command);
        options.drives = {"1"};
        EXPECT_TRUE(request_of(options).question.empty());
        options.force = true;
        EXPECT_FALSE(request_of(options).question.empty());
    }
}

TEST(CliRequest, every_command_has_one) {
    for (int command = 0; command <= static_cast<int>(Command::kVersion); ++command) {
        Options options = with(static_cast<Command>(command));
        options.drives = {"1"};
        EXPECT_TRUE(make_request(options).ok()) << command;
    }
}

TEST(CliRequest, what_chooses_between_histories_asks) {
    Options options = with(Command::kAssemble);
    options.destroyed = true;
    const std::string brings_back = request_of(options).question;
    EXPECT_NE(brings_back.find("deleted"), std::string::npos) << brings_back;
    options.force = true;
    EXPECT_NE(request_of(options).question.find("force"), std::string::npos);
    options.preferred_drive = "SER-3";
    EXPECT_NE(request_of(options).question.find("SER-3"), std::string::npos);
    options = with(Command::kAssemble);
    options.preferred_drive = "SER-3";
    EXPECT_FALSE(request_of(options).question.empty());
}

TEST(CliRequest, text_that_is_not_utf8_is_refused) {
    Options options = with(Command::kCreateDrive);
    options.drives = {"/tmp/\xff"};
    EXPECT_EQ(make_request(options).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace

}  // namespace warpraid::cli
