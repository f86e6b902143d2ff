#include "daemon/demo_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace warpraid::demo {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kMeasureSize = "256M";   // each figure of the table
constexpr const char* kMeasureOffset = "2G";   // away from the pattern
constexpr std::chrono::seconds kNextWork(10);  // between the ends of one rebuild and the next
constexpr std::chrono::minutes kWorkMax(5);

bool is_over(const GroupStatus& status, const std::string& work) {
    if (work == "verify") return status.verify_finished && status.work != work;
    return status.state == "optimal";
}

}  // namespace

std::string shell_text(const std::vector<std::string>& arguments) {
    std::string text = "$";
    for (const std::string& argument : arguments) {
        const bool plain = argument.find_first_of(" ?&") == std::string::npos;
        text += plain ? " " + argument : " '" + argument + "'";
    }
    return text;
}

bool Session::fail(const std::string& text) const {
    fmt::print("demo: FAIL: {}\n", text);
    return false;
}

void Session::heading(const std::string& text) const {
    fmt::print("\n== {}\n", text);
    std::fflush(stdout);
}

std::string Session::drive(int number) const {
    return file(fmt::format("drive-{}.img", number));
}

std::string Session::uri(const std::string& volume) const {
    return "nbd+unix:///" + volume + "?socket=" + file("nbd.sock");
}

bool Session::start_daemon() {
    const std::vector<std::string> arguments = {
        "warpraidd",          "--state-dir",  file("state"),   "--socket",
        file("control.sock"), "--nbd-socket", file("nbd.sock")};
    fmt::print("{}\n", shell_text(arguments));
    std::vector<std::string> actual = arguments;
    actual[0] = (programs_ / "warpraidd").string();
    Result<Process> process = Process::start(actual, file("warpraidd.log"));
    if (!process.ok()) return fail(process.error().message);
    daemon_.emplace(std::move(process).value());
    const std::optional<std::string> line = daemon_->read_line(10'000);
    if (!line || line->find("ready") == std::string::npos) {
        return fail("the daemon did not become ready; see " + file("warpraidd.log"));
    }
    return true;
}

bool Session::stop_daemon() {
    if (!daemon_) return true;
    daemon_->terminate();
    const Finished finished = daemon_->wait();
    daemon_.reset();
    return finished.status == 0 ||
           fail(fmt::format("the daemon ended with status {}", finished.status));
}

bool Session::warpraid(const std::vector<std::string>& arguments) {
    std::vector<std::string> shown = {"warpraid", "--socket", file("control.sock")};
    shown.insert(shown.end(), arguments.begin(), arguments.end());
    fmt::print("{}\n", shell_text(shown));
    std::fflush(stdout);
    std::vector<std::string> actual = shown;
    actual[0] = (programs_ / "warpraid").string();
    Result<Process> process = Process::start(actual);
    if (!process.ok()) return fail(process.error().message);
    const Finished finished = process.value().wait();
    fmt::print("{}", finished.output);
    if (finished.status != 0) return fail("that command ended with an error");
    return true;
}

std::optional<GroupStatus> Session::group_status(const std::string& group) const {
    Result<Process> process =
        Process::start({(programs_ / "warpraid").string(), "--socket", file("control.sock"),
                        "--format", "json", "list", "group"});
    if (!process.ok()) return std::nullopt;
    return parse_group_status(process.value().wait().output, group);
}

bool Session::is_in(const std::string& group, const std::string& state) const {
    const auto deadline = Clock::now() + kNextWork;
    while (true) {
        const std::optional<GroupStatus> status = group_status(group);
        if (!status) return false;
        if (state != kRebuild) return status->state == state && status->work.empty();
        if (status->work == kRebuild) return true;
        if (status->state == "optimal" || Clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

bool Session::measure(const std::string& name, const std::string& group, const std::string& volume,
                      const std::string& state, Rates& rates) {
    const auto figure = [&](const char* direction) -> std::optional<Rate> {
        const std::vector<std::string> command = {"fio",
                                                  "--name=measure",
                                                  "--ioengine=nbd",
                                                  "--uri=" + uri(volume),
                                                  "--rw=" + std::string(direction),
                                                  "--bs=1M",
                                                  "--iodepth=16",
                                                  "--size=" + std::string(kMeasureSize),
                                                  "--offset=" + std::string(kMeasureOffset),
                                                  "--output-format=json"};
        fmt::print("{}\n", shell_text(command));
        std::fflush(stdout);
        const bool before = is_in(group, state);
        Result<Process> process = Process::start(command);
        if (!process.ok()) return std::nullopt;
        const std::optional<double> value =
            parse_fio_rate(process.value().wait().output, direction);
        if (!value) return std::nullopt;
        return Rate{*value, before && is_in(group, state)};
    };
    const std::optional<Rate> write = figure("write");
    const std::optional<Rate> read = figure("read");
    if (!write || !read) return fail("fio could not measure " + name);
    rates = Rates{*write, *read};
    fmt::print("{}: write {:.0f} MB/s, read {:.0f} MB/s\n", name, write->value / 1e6,
               read->value / 1e6);
    return true;
}

bool Session::wait_for_work(const std::string& label, const std::string& group,
                            const std::string& work) {
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    int shown = -1;
    const auto deadline = Clock::now() + kWorkMax;
    while (true) {
        const std::optional<GroupStatus> status = group_status(group);
        if (!status) return fail("the daemon does not answer");
        if (is_over(*status, work)) break;
        if (Clock::now() > deadline) {
            return fail(fmt::format("{} did not end within {} minutes", label, kWorkMax.count()));
        }
        if (status->total_bytes != 0 && status->work == work) {
            const int percent = static_cast<int>(status->done_bytes * 100 / status->total_bytes);
            if (terminal || percent / 25 != shown / 25) {
                const std::string bar(static_cast<std::size_t>(percent) * 40 / 100, '#');
                fmt::print("{}{} [{:<40}] {:3d} %{}", terminal ? "\r" : "", label, bar, percent,
                           terminal ? "" : "\n");
                std::fflush(stdout);
                shown = percent;
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    fmt::print("{}{} [{:#<40}] 100 %\n", terminal ? "\r" : "", label, "");
    return true;
}

}  // namespace warpraid::demo
