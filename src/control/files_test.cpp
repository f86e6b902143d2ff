// The state directory: state.json and events.jsonl.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "control/control_test_support.h"
#include "control/durable_file.h"

namespace warpraid::control {
namespace {

class FilesTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "warpraid-files-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        directory = name;
    }
    void TearDown() override { std::filesystem::remove_all(directory); }

    std::string directory;
    SystemClock clock;
};

TEST_F(FilesTest, StateIsReadBackAsItWasSaved) {
    SavedState state;
    state.drives.push_back({3, "/dev/x", "S1", "M", "w", 123, {"/dev/w"}});
    state.groups.push_back({7, "u", "g", 99});
    state.exports.push_back({"u", "v", "data", true});
    StateFile file(directory);
    ASSERT_TRUE(file.save(state).ok());
    std::string warning;
    const auto loaded = file.load(warning);
    ASSERT_TRUE(loaded.ok());
    EXPECT_TRUE(warning.empty());
    ASSERT_EQ(loaded->drives.size(), 1u);
    EXPECT_EQ(loaded->drives[0].id, 3u);
    EXPECT_EQ(loaded->drives[0].serial, "S1");
    EXPECT_EQ(loaded->drives[0].size_bytes, 123u);
    EXPECT_EQ(loaded->drives[0].former_paths, std::vector<std::string>{"/dev/w"});
    ASSERT_EQ(loaded->groups.size(), 1u);
    EXPECT_EQ(loaded->groups[0].rebuild_bytes_per_second_max, 99u);
    ASSERT_EQ(loaded->exports.size(), 1u);
    EXPECT_TRUE(loaded->exports[0].read_only);
}

/// Anything that something else may have left in the place of state.json.
class BrokenState : public FilesTest, public testing::WithParamInterface<const char*> {};

TEST_P(BrokenState, IsKeptAsideAndTheCopyIsUsed) {
    SavedState state;
    state.drives.push_back({3, "/dev/x", "S1", "M", "w", 123, {"/dev/w"}});
    StateFile file(directory);
    ASSERT_TRUE(file.save(state).ok());
    for (const char* aside : {"/state.json.broken", "/state.json.broken.2"}) {
        ASSERT_TRUE(replace_file(directory + "/state.json", GetParam()).ok());
        std::string warning;
        const auto loaded = file.load(warning);
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        ASSERT_EQ(loaded->drives.size(), 1u);
        EXPECT_EQ(loaded->drives[0].path, "/dev/x");
        EXPECT_NE(warning.find(aside), std::string::npos) << warning;
        EXPECT_EQ(read_file(directory + aside, kMiB).value(), GetParam());
        ASSERT_TRUE(file.save(*loaded).ok());
    }
    EXPECT_EQ(file.files_aside().size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, BrokenState,
    testing::Values(
        "", "{", "[1,2]", R"({"version": 99})", "\xff\xfe",
        R"({"version":1,"drives":[{"id":"x","path":5},7],"groups":3,"exports":[]})",
        R"({"version":1,"drives":[7],"groups":[],"exports":[]})",
        R"({"version":1,"groups":[],"exports":[]})",
        R"({"version":1,"drives":[{"id":-1,"path":"","serial":"","model":"","wwid":"",
            "size_bytes":1}],"groups":[],"exports":[]})",
        R"({"version":1,"drives":[{"id":4294967296,"path":"","serial":"","model":"","wwid":"",
            "size_bytes":1}],"groups":[],"exports":[]})",
        R"({"version":1,"drives":[
            {"id":1,"path":"/a","serial":"a","model":"","wwid":"","size_bytes":1},
            {"id":1,"path":"/b","serial":"b","model":"","wwid":"","size_bytes":1}],
            "groups":[],"exports":[]})"));

TEST_F(FilesTest, WhatIsNoPlainFileIsMovedAsideToo) {
    SavedState state;
    state.drives.push_back({3, "/dev/x", "S1", "M", "w", 123, {"/dev/w"}});
    StateFile file(directory);
    const std::string path = directory + "/state.json";
    const std::vector<std::function<void()>> makers = {
        [&] { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); },
        [&] { std::filesystem::create_directory(path); },
        [&] {
            std::ofstream(path) << "{";
            std::filesystem::resize_file(path, kGiB);
        },
        [] {},  // nothing at all
    };
    for (const auto& make : makers) {
        ASSERT_TRUE(file.save(state).ok());
        std::filesystem::remove(path);
        make();
        std::string warning;
        const auto loaded = file.load(warning);
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        EXPECT_EQ(loaded->drives.size(), 1u);
        EXPECT_FALSE(warning.empty());
    }
    EXPECT_EQ(file.files_aside().size(), 3u);
}

TEST_F(FilesTest, WithBothFilesBrokenTheStateIsEmptyAndSaysSo) {
    ASSERT_TRUE(replace_file(directory + "/state.json", "{").ok());
    ASSERT_TRUE(replace_file(directory + "/state.json.copy", "}").ok());
    StateFile file(directory);
    std::string warning;
    const auto loaded = file.load(warning);
    ASSERT_TRUE(loaded.ok());
    EXPECT_TRUE(loaded->drives.empty());
    EXPECT_NE(warning.find("make them again"), std::string::npos) << warning;
    EXPECT_EQ(file.files_aside().size(), 2u);
}

TEST_F(FilesTest, AStateThatCannotBeSavedLeavesTheOldOne) {
    SavedState state;
    StateFile file(directory);
    state.drives.push_back({3, "/dev/x", "S1", "M", "w", 123, {"/dev/w"}});
    ASSERT_TRUE(file.save(state).ok());
    const std::string blocker = directory + "/state.json.new";
    std::filesystem::create_directory(blocker);
    EXPECT_FALSE(file.save(SavedState{}).ok());
    std::string warning;
    EXPECT_EQ(file.load(warning)->drives.size(), 1u);
    EXPECT_TRUE(warning.empty());
}

TEST_F(FilesTest, AChangeThatIsRefusedHalfWayIsNotFoundLater) {
    SavedState state;
    StateFile file(directory);
    state.drives.push_back({3, "/dev/x", "S1", "M", "w", 123, {"/dev/w"}});
    ASSERT_TRUE(file.save(state).ok());
    // The copy can be renamed, the file itself cannot.
    std::filesystem::remove(directory + "/state.json");
    std::filesystem::create_directories(directory + "/state.json/in the way");
    EXPECT_FALSE(file.save(SavedState{}).ok());
    std::string warning;
    EXPECT_EQ(file.load(warning)->drives.size(), 1u) << warning;
}

TEST_F(FilesTest, AFileThatWasNotThereIsNotAfterAFailureEither) {
    const std::vector<std::string> paths{directory + "/first", directory + "/second"};
    std::filesystem::create_directories(paths[1] + "/in the way");
    EXPECT_FALSE(replace_files(paths, "text").ok());
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        left.push_back(entry.path().filename().string());
    }
    EXPECT_EQ(left, std::vector<std::string>{"second"});
}

/// No more files can be opened while it lives.
class NoDescriptors {
  public:
    NoDescriptors() {
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &usual_), 0);
        const rlimit none{0, usual_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &usual_); }

  private:
    rlimit usual_{};
};

TEST_F(FilesTest, AStateThatCannotBeReadNowIsNotBroken) {
    SavedState state;
    StateFile file(directory);
    state.drives.push_back({3, "/dev/x", "S1", "M", "w", 123, {"/dev/w"}});
    ASSERT_TRUE(file.save(state).ok());
    std::string warning;
    {
        const NoDescriptors none;
        const auto loaded = file.load(warning);
        ASSERT_FALSE(loaded.ok());
        EXPECT_EQ(loaded.error().code, ErrorCode::kSystem);
        EXPECT_NE(loaded.error().message.find("state.json"), std::string::npos);
    }
    EXPECT_TRUE(file.files_aside().empty());
    EXPECT_EQ(file.load(warning)->drives.size(), 1u);
    EXPECT_TRUE(warning.empty()) << warning;
}

TEST_F(FilesTest, NumbersOfEventsAreNotUsedAgainWhenTheLogIsLost) {
    const std::string path = directory + "/events.jsonl";
    // As if their processes had been killed: what they would do in the end comes too late.
    std::vector<std::unique_ptr<EventLog>> killed;
    const auto lose_by = [&](const std::function<void()>& lose) {
        std::string warning;
        std::uint64_t last = 0;
        {
            EventLog& log = *killed.emplace_back(std::make_unique<EventLog>(directory, clock));
            ASSERT_TRUE(log.load(warning).ok()) << warning;
            for (int i = 0; i < 3; ++i) log.add({Severity::kInfo, "tick", "", "", "", ""});
            last = log.list(0, 100).back().id;
            std::filesystem::remove(path);
            lose();
            EventLog after_crash(directory, clock);
            ASSERT_TRUE(after_crash.load(warning).ok());
            after_crash.add({Severity::kInfo, "next", "", "", "", ""});
            EXPECT_GT(after_crash.list(0, 100).back().id, last);
            last = after_crash.list(0, 100).back().id;
        }
        std::filesystem::remove(path);
        lose();
        EventLog after_stop(directory, clock);
        ASSERT_TRUE(after_stop.load(warning).ok());
        after_stop.add({Severity::kInfo, "next", "", "", "", ""});
        EXPECT_GT(after_stop.list(0, 100).back().id, last);
    };
    lose_by([] {});
    lose_by([&] { std::ofstream(path) << "no event\n"; });
    lose_by([&] { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); });
}

TEST_F(FilesTest, AnEventLogThatCannotBeReadNowIsNotBroken) {
    std::string warning;
    {
        EventLog log(directory, clock);
        ASSERT_TRUE(log.load(warning).ok());
        log.add({Severity::kInfo, "one", "", "", "", ""});
    }
    {
        const NoDescriptors none;
        EventLog log(directory, clock);
        EXPECT_FALSE(log.load(warning).ok());
    }
    EventLog log(directory, clock);
    ASSERT_TRUE(log.load(warning).ok());
    EXPECT_EQ(log.list(0, 10).size(), 1u);
    EXPECT_TRUE(warning.empty()) << warning;
}

TEST_F(FilesTest, AnEventThatIsWrittenInPartIsTakenBackAndStoredLater) {
    EventLog log(directory, clock);
    std::string warning;
    ASSERT_TRUE(log.load(warning).ok());
    log.add({Severity::kInfo, "one", "", "", "", ""});
    const std::string path = directory + "/events.jsonl";
    const std::string before = read_file(path, kMiB).value();
    // Some of the next line fits, as on a disk that fills up.
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit usual{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
    const rlimit small{before.size() + 10, usual.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    log.add({Severity::kInfo, "two", "", "", "", ""});
    const std::string cut = read_file(path, kMiB).value();
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
    EXPECT_EQ(cut, before);
    EXPECT_FALSE(log.problem().empty());
    log.catch_up();
    EXPECT_TRUE(log.problem().empty());
    EventLog again(directory, clock);
    ASSERT_TRUE(again.load(warning).ok());
    EXPECT_EQ(again.list(0, 10).size(), 2u);
    EXPECT_TRUE(warning.empty());
}

TEST_F(FilesTest, ABrokenEventLogIsKeptAsideAndNumbersGoOn) {
    std::ofstream(directory + "/events.jsonl")
        << R"({"id":7,"time_ns":1,"kind":"good"})" << "\n"
        << R"({"id":18446744073709551615,"time_ns":1,"kind":"bad"})" << "\n";
    EventLog log(directory, clock);
    std::string warning;
    ASSERT_TRUE(log.load(warning).ok());
    EXPECT_NE(warning.find("events.jsonl.broken"), std::string::npos) << warning;
    log.add({Severity::kInfo, "next", "", "", "", ""});
    ASSERT_EQ(log.list(0, 10).size(), 2u);
    EXPECT_EQ(log.list(0, 10).back().id, 8u);
    std::filesystem::remove(directory + "/events.jsonl");
    ASSERT_EQ(::mkfifo((directory + "/events.jsonl").c_str(), 0600), 0);
    EventLog third(directory, clock);
    warning.clear();
    ASSERT_TRUE(third.load(warning).ok());
    EXPECT_FALSE(warning.empty());
}

TEST_F(FilesTest, EventsKeepTheirNumbersOverRestartsAndTornLines) {
    std::string warning;
    {
        EventLog log(directory, clock);
        ASSERT_TRUE(log.load(warning).ok());
        log.add({Severity::kWarning, "one", "g", "", "S", "first \"quoted\"\n"});
        log.add({Severity::kError, "two", "", "", "", "\xff"});
    }
    std::ofstream(directory + "/events.jsonl", std::ios::app) << "{\"id\": 3, \"ki";
    EventLog log(directory, clock);
    ASSERT_TRUE(log.load(warning).ok());
    log.add({Severity::kInfo, "three", "", "", "", ""});
    const std::vector<Event> events = log.list(0, 10);
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0].text, "first \"quoted\"\n");
    EXPECT_EQ(events[0].severity, Severity::kWarning);
    EXPECT_EQ(events[2].id, 3u);
    EXPECT_EQ(log.list(1, 1).front().kind, "two");
    EXPECT_TRUE(log.list(3, 10).empty());
}

TEST_F(FilesTest, EventsAreBounded) {
    std::string warning;
    EventLog log(directory, clock, 10);
    ASSERT_TRUE(log.load(warning).ok());
    for (int i = 0; i < 55; ++i) log.add({Severity::kInfo, "tick", "", "", "", ""});
    EXPECT_EQ(log.list(0, 100).size(), 10u);
    const std::string text = read_file(directory + "/events.jsonl", kMiB).value();
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 20);
    EventLog again(directory, clock, 10);
    ASSERT_TRUE(again.load(warning).ok());
    EXPECT_EQ(again.list(0, 100).back().id, 55u);
}

/// A state directory in which nothing can be stored.
class FullStateDirectory : public testing::Test {
  protected:
    void SetUp() override {
        world.add_drives(5);
        world.make_group(geometry::Level::kRaid5, 3);
        ASSERT_TRUE(world.service().create_volume({"g", "v", 4 * kMiB, 1}).ok());
        ASSERT_TRUE(world.service().create_volume({"g", "w", 4 * kMiB, 1}).ok());
        ASSERT_TRUE(world.service().export_volume("g", "w", false).ok());
        world.provider.add("late", 80 * kMiB);
        ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
        blocker = world.options.state_directory + "/state.json.new";
        std::filesystem::create_directories(blocker);
    }
    template <typename T>
    void expect_not_saved(const Result<T>& result) {
        ASSERT_FALSE(result.ok());
        EXPECT_EQ(result.error().code, ErrorCode::kStateNotSaved) << result.error().message;
        EXPECT_EQ(world.service().drives().size(), 5u);
        EXPECT_EQ(world.service().exports().size(), 1u);
        EXPECT_EQ(world.service().groups().size(), 1u);
        EXPECT_TRUE(world.service().spares().empty());
        EXPECT_EQ(world.service().health().level, 1);
    }

    World world;
    std::filesystem::path blocker;
};

TEST_F(FullStateDirectory, RefusesEveryCommandThatARestartWouldForget) {
    Service& service = world.service();
    const std::uint64_t writes = world.provider.drive("d3").writes;
    expect_not_saved(service.create_drive({{"/ram/late"}, 0}));
    expect_not_saved(service.delete_drive("d4"));
    expect_not_saved(service.export_volume("g", "v", false));
    expect_not_saved(service.unexport_volume("g", "w"));
    CreateGroup group;
    group.name = "other";
    group.level = geometry::Level::kRaid1;
    group.drives = {"d3", "/ram/late"};
    expect_not_saved(service.create_group(group));
    expect_not_saved(service.create_spare({{"/ram/late"}, "", false}));
    expect_not_saved(service.edit_group({"g", "h", std::nullopt}));
    EXPECT_EQ(world.group("g").name, "g");
    expect_not_saved(service.replace_drive({"d0", "/ram/late", false}));
    const std::string file = (blocker.parent_path() / "made.img").string();
    EXPECT_FALSE(service.create_drive({{file}, 64 * kMiB}).ok());
    EXPECT_FALSE(std::filesystem::exists(file));
    EXPECT_EQ(world.provider.drive("d3").writes, writes);
    EXPECT_EQ(world.provider.drive("late").writes, 0u);
}

TEST_F(FullStateDirectory, IsWrittenByItselfWhenThatWorksAgain) {
    expect_not_saved(world.service().export_volume("g", "v", false));
    std::filesystem::remove(blocker);
    ASSERT_TRUE(world.wait_for([&] { return world.service().health().level == 0; }));
    EXPECT_TRUE(world.has_event("state-saved"));
    ASSERT_TRUE(world.service().export_volume("g", "v", false).ok());
    world.stop();
    world.start();
    EXPECT_EQ(world.service().exports().size(), 2u);
}

TEST(BrokenStateDirectory, LosesNoDriveAndHealthSaysSo) {
    World world;
    world.add_drives(3);
    world.make_group(geometry::Level::kRaid1, 2);
    ASSERT_TRUE(world.wait_for_state(GroupState::kOptimal));
    world.stop();
    const std::string path = world.options.state_directory + "/state.json";
    std::ofstream(path) << "{\"version\":1,";
    world.start();
    EXPECT_EQ(world.service().drives().size(), 3u);
    EXPECT_EQ(world.group().state, GroupState::kOptimal);
    EXPECT_TRUE(world.has_event("state-file-broken"));
    EXPECT_EQ(world.service().health().level, 1);
    world.stop();
    world.start();
    EXPECT_EQ(world.service().health().level, 1) << "nobody has looked at it yet";
    std::filesystem::remove(path + ".broken");
    EXPECT_EQ(world.service().health().level, 0);
}

TEST_F(FilesTest, FilesOfAnotherSizeAreLeftAlone) {
    World world;
    const std::string path = directory + "/drive.img";
    CreateDrive command;
    command.paths = {path};
    command.file_bytes = 10 * kMiB;
    EXPECT_EQ(world.service().create_drive(command).error().code, ErrorCode::kBadSize);
    EXPECT_FALSE(std::filesystem::exists(path));
    std::ofstream(path) << "something";
    command.file_bytes = 64 * kMiB;
    EXPECT_EQ(world.service().create_drive(command).error().code, ErrorCode::kAlreadyExists);
    EXPECT_EQ(std::filesystem::file_size(path), 9u);
}

}  // namespace
}  // namespace warpraid::control
