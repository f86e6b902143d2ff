#include "cli/run.h"

#include <gtest/gtest.h>

namespace warpraid::cli {

namespace {

struct CliRun : testing::Test {
    Result<api::Reply> reply = api::Reply{200, "{\"schema_version\":1}\n"};
    std::vector<Request> sent;
    std::string output, problem;
    std::optional<bool> answer;  // of who is asked; nothing: nobody is there
    int again = 0;

    int run_with(const Options& options) {
        Outside outside;
        outside.send = [this](const Request& request) {
            sent.push_back(request);
            return reply;
        };
        outside.output = [this](const std::string& text) { output += text; };
        outside.problem = [this](const std::string& text) { problem += text; };
        if (answer) outside.ask = [this](const std::string&) { return *answer; };
        outside.again = [this] { return again-- > 0; };
        return run(options, outside);
    }
    static Options with(Command command, bool json = false) {
        Options options;
        options.command = command;
        options.json = json;
        options.group = "g";
        options.volume = "v";
        options.drives = {"1"};
        return options;
    }
};

TEST_F(CliRun, json_is_what_the_daemon_said) {
    reply = api::Reply{200, "{\"schema_version\":1,\"drives\":[],\"new\":7}\n"};
    EXPECT_EQ(run_with(with(Command::kListDrives, true)), 0);
    EXPECT_EQ(output, reply->body);
    EXPECT_EQ(problem, "");
}

TEST_F(CliRun, a_refusal_is_one_line_or_json) {
    reply = api::Reply{409, "{\"error\":{\"code\":\"in-use\",\"message\":\"busy\"}}\n"};
    EXPECT_EQ(run_with(with(Command::kVerify)), 1);
    EXPECT_EQ(problem, "error: busy [in-use]\n");
    EXPECT_EQ(output, "");
    problem.clear();
    const api::Reply plain = *reply;
    reply =
        api::Reply{404, "{\"error\":{\"code\":\"not-found\",\"message\":\"no a\\nb\\u001b[m\"}}\n"};
    EXPECT_EQ(run_with(with(Command::kVerify)), 1);
    EXPECT_EQ(problem, "error: no a?b?[m [not-found]\n");
    problem.clear();
    reply = plain;
    EXPECT_EQ(run_with(with(Command::kVerify, true)), 1);
    EXPECT_EQ(output, reply->body);
    EXPECT_EQ(problem, "");
}

TEST_F(CliRun, an_unreachable_daemon_is_reported_alike) {
    reply = Error{ErrorCode::kDaemonUnreachable, "nobody"};
    EXPECT_EQ(run_with(with(Command::kStatus)), 1);
    EXPECT_EQ(problem, "error: nobody [daemon-unreachable]\n");
    EXPECT_EQ(run_with(with(Command::kStatus, true)), 1);
    EXPECT_EQ(output, "{\"error\":{\"code\":\"daemon-unreachable\",\"message\":\"nobody\"}}\n");
    EXPECT_EQ(run_with(with(Command::kHealth)), 2);
}

TEST_F(CliRun, what_destroys_is_not_sent_unconfirmed) {
    EXPECT_EQ(run_with(with(Command::kDeleteGroup)), 1);
    EXPECT_NE(problem.find("[not-confirmed]"), std::string::npos);
    answer = false;
    EXPECT_EQ(run_with(with(Command::kDeleteGroup)), 1);
    EXPECT_TRUE(sent.empty());
    answer = true;
    EXPECT_EQ(run_with(with(Command::kDeleteGroup)), 0);
    answer.reset();
    Options options = with(Command::kDeleteGroup);
    options.yes = true;
    EXPECT_EQ(run_with(options), 0);
    EXPECT_EQ(sent.size(), 2u);
}

TEST_F(CliRun, health_is_its_level) {
    for (int level = 0; level <= 2; ++level) {
        reply = api::Reply{
            200, "{\"health\":{\"level\":" + std::to_string(level) + ",\"findings\":[]}}"};
        EXPECT_EQ(run_with(with(Command::kHealth)), level);
        EXPECT_EQ(run_with(with(Command::kHealth, true)), level);
    }
}

TEST_F(CliRun, assembly_is_as_good_as_its_worst_group) {
    const auto status_with = [&](const std::string& outcomes) {
        reply = api::Reply{200, "{\"outcomes\":[" + outcomes + "]}"};
        return run_with(with(Command::kAssemble, true));
    };
    const std::string started = R"({"outcome":"started"})";
    const std::string running = R"({"outcome":"already-running"})";
    const std::string incomplete = R"({"outcome":"incomplete"})";
    EXPECT_EQ(status_with(""), 0);
    EXPECT_EQ(status_with(started + "," + running), 0);
    EXPECT_EQ(status_with(started + "," + incomplete), 3);
    EXPECT_EQ(status_with(R"({"outcome":"refused"},)" + incomplete), 4);
    EXPECT_EQ(status_with(R"({"outcome":"corrupt"})"), 4);
}

TEST_F(CliRun, watching_goes_on_until_it_fails_or_nobody_looks) {
    Options options = with(Command::kStatus, true);
    options.watch = true;
    again = 3;
    EXPECT_EQ(run_with(options), 0);
    EXPECT_EQ(sent.size(), 4u);
    reply = Error{ErrorCode::kDaemonUnreachable, "gone"};
    again = 3;
    EXPECT_EQ(run_with(options), 1);
    EXPECT_EQ(sent.size(), 5u);
}

TEST_F(CliRun, an_answer_that_is_not_json_is_an_error) {
    reply = api::Reply{200, "<html>"};
    EXPECT_EQ(run_with(with(Command::kStatus)), 1);
    EXPECT_NE(problem.find("[protocol-error]"), std::string::npos);
}

}  // namespace

}  // namespace warpraid::cli
