#include "daemon/demo.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "daemon/demo_session.h"

namespace warpraid::demo {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kDrives = 8;  // six members, two spares
constexpr int kMembers = 6;
constexpr const char* kDriveSize = "1G";
constexpr const char* kVolumeSize = "3G";
constexpr std::uint64_t kPatternMib = 1024;  // written once, verified twice
/// The fastest that the pattern is written: the drives must fail before its end on any machine.
constexpr const char* kPatternRate = "400M";
constexpr std::chrono::minutes kPatternMax(2);

class Demo {
  public:
    explicit Demo(const Options& options)
        : session_(options.directory, options.program_directory) {}

    bool run();

  private:
    bool prepare();
    bool make_drives();
    bool measure_raid0();
    bool create_group();
    bool write_and_lose_drives();
    bool read_degraded();
    bool rebuild();
    bool verify_parity();
    void print_table() const;

    std::vector<std::string> pattern(const std::string& direction) const;
    bool lose_in_mid_write(const Process& writer, int drive, std::uint64_t mib);
    std::optional<std::uint64_t> pattern_mib() const;
    bool check_pattern(const std::string& when);

    Session session_;
    std::uint64_t written_before_ = 0;  // bytes that the group had counted before the pattern
    Rates raid0_, healthy_, degraded_, rebuilding_;
};

std::vector<std::string> Demo::pattern(const std::string& direction) const {
    std::vector<std::string> arguments = {"fio",
                                          "--name=pattern",
                                          "--ioengine=nbd",
                                          "--uri=" + session_.uri("data"),
                                          "--rw=" + direction,
                                          "--bs=1M",
                                          "--iodepth=16",
                                          fmt::format("--size={}M", kPatternMib),
                                          "--verify=crc32c",
                                          "--verify_state_save=0"};
    if (direction == "write") {
        arguments.insert(arguments.end(), {"--do_verify=0", "--rate=" + std::string(kPatternRate)});
    }
    arguments.push_back("--output-format=json");
    return arguments;
}

bool Demo::check_pattern(const std::string& when) {
    const std::vector<std::string> command = pattern("read");
    fmt::print("{}\n", shell_text(command));
    std::fflush(stdout);
    Result<Process> process = Process::start(command);
    if (!process.ok()) return session_.fail(process.error().message);
    const Finished finished = process.value().wait();
    if (finished.status != 0 || !parse_fio_rate(finished.output, "read")) {
        return session_.fail("the pattern did not read back " + when + ":\n" + finished.output);
    }
    fmt::print("every block of {} MiB reads back right {}\n", kPatternMib, when);
    return true;
}

// Only what an earlier demo left is removed.
bool Demo::prepare() {
    std::error_code error;
    fs::create_directories(session_.directory(), error);
    if (error) {
        return session_.fail("cannot make " + session_.directory().string() + ": " +
                             error.message());
    }
    for (int drive = 0; drive < kDrives; ++drive) fs::remove(session_.drive(drive), error);
    for (const char* name : {"control.sock", "control-ro.sock", "nbd.sock", "warpraidd.log"}) {
        fs::remove(session_.file(name), error);
    }
    fs::remove_all(session_.file("state"), error);
    Result<Process> probe = Process::start({"fio", "--version"});
    if (!probe.ok() || probe.value().wait().status != 0) {
        return session_.fail("fio is needed as the client: install it with: apt-get install fio");
    }
    return true;
}

bool Demo::make_drives() {
    session_.heading("A daemon of its own");
    std::vector<std::string> create = {"create", "drive", "--size", kDriveSize};
    for (int drive = 0; drive < kDrives; ++drive) create.push_back(session_.drive(drive));
    return session_.start_daemon() && session_.warpraid(create);
}

bool Demo::measure_raid0() {
    session_.heading("What the files can do: RAID 0 over the same six, for comparison");
    return session_.warpraid({"create", "group", "raid0", fmt::format("0-{}", kMembers - 1),
                              "--chunk", "64K", "--name", "stripes"}) &&
           session_.warpraid({"create", "volume", "stripes", kVolumeSize, "--name", "scratch"}) &&
           session_.warpraid({"export", "volume", "stripes", "scratch"}) &&
           session_.measure("RAID 0", "stripes", "scratch", "optimal", raid0_) &&
           session_.warpraid({"--yes", "unexport", "volume", "stripes", "scratch"}) &&
           session_.warpraid({"--yes", "delete", "volume", "stripes", "scratch"}) &&
           session_.warpraid({"--yes", "delete", "group", "stripes", "--clear"});
}

bool Demo::create_group() {
    session_.heading("A RAID 6 group and a volume on it");
    return session_.warpraid({"create", "group", "raid6", fmt::format("0-{}", kMembers - 1),
                              "--chunk", "64K", "--name", "demo"}) &&
           session_.warpraid({"create", "volume", "demo", kVolumeSize, "--name", "data"}) &&
           session_.warpraid({"export", "volume", "demo", "data"}) &&
           session_.wait_for_work("first resync", "demo", "resync") &&
           session_.measure("RAID 6 healthy", "demo", "data", "optimal", healthy_);
}

/// How much of the pattern the daemon has counted as written.
std::optional<std::uint64_t> Demo::pattern_mib() const {
    const std::optional<GroupStatus> status = session_.group_status("demo");
    if (!status) return std::nullopt;
    return (status->written_bytes - written_before_) >> 20U;
}

/// Fails a drive once `mib` of the pattern are written; the writer must still be at it afterwards.
bool Demo::lose_in_mid_write(const Process& writer, int drive, std::uint64_t mib) {
    const auto deadline = Clock::now() + kPatternMax;
    for (std::optional<std::uint64_t> written; !written || *written < mib;) {
        written = pattern_mib();
        if (!written) return session_.fail("the daemon does not answer");
        if (!writer.running()) return session_.fail("fio ended before its drives were failed");
        if (Clock::now() > deadline) return session_.fail("fio does not get on with its writes");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (!session_.warpraid({"--yes", "fail", "drive", session_.drive(drive)})) return false;
    const std::optional<std::uint64_t> written = pattern_mib();
    if (!written || *written >= kPatternMib || !writer.running()) {
        return session_.fail("fio had ended when its drive was failed: that was not in mid-write");
    }
    fmt::print("{} is gone; fio has written {} of {} MiB and goes on\n", session_.drive(drive),
               *written, kPatternMib);
    return true;
}

bool Demo::write_and_lose_drives() {
    session_.heading("Write a pattern, and lose two drives in mid-write");
    const std::optional<GroupStatus> before = session_.group_status("demo");
    if (!before) return session_.fail("the daemon does not answer");
    written_before_ = before->written_bytes;
    const std::vector<std::string> command = pattern("write");
    fmt::print("{} &\n", shell_text(command));
    std::fflush(stdout);
    Result<Process> writer = Process::start(command);
    if (!writer.ok()) return session_.fail(writer.error().message);
    if (!lose_in_mid_write(writer.value(), 1, kPatternMib / 8) ||
        !lose_in_mid_write(writer.value(), 4, kPatternMib / 4)) {
        return false;
    }
    const Finished written = writer.value().wait();
    if (written.status != 0 || !parse_fio_rate(written.output, "write")) {
        return session_.fail("the write did not survive:\n" + written.output);
    }
    fmt::print("the write went on to its end\n");
    return true;
}

bool Demo::read_degraded() {
    session_.heading("Read it back without the two drives");
    return session_.warpraid({"status"}) && check_pattern("with two drives lost") &&
           session_.measure("RAID 6 degraded", "demo", "data", "degraded", degraded_);
}

bool Demo::rebuild() {
    session_.heading("Two spares take the places of the lost drives");
    return session_.warpraid({"create", "spare", "6", "7", "--group", "demo"}) &&
           session_.measure("RAID 6 rebuilding", "demo", "data", kRebuild, rebuilding_) &&
           session_.wait_for_work("rebuild", "demo", kRebuild) && session_.warpraid({"status"}) &&
           check_pattern("after the rebuild");
}

bool Demo::verify_parity() {
    session_.heading("Verify the parity of every stripe");
    if (!session_.warpraid({"verify", "group", "demo"}) ||
        !session_.wait_for_work("verify", "demo", "verify")) {
        return false;
    }
    const std::optional<GroupStatus> status = session_.group_status("demo");
    if (!status || status->verified_mismatches != 0 || status->verified_unreadable != 0) {
        return session_.fail("parity does not match the data");
    }
    if (status->verified_total == 0 || status->verified_done != status->verified_total) {
        return session_.fail("not every stripe was verified");
    }
    fmt::print("every stripe's P and Q match its data\n");
    return true;
}

void Demo::print_table() const {
    session_.heading("Throughput, fio 1 MiB sequential, depth 16, over NBD on a Unix socket");
    fmt::print("{:<20} {:>12} {:>11} {:>12} {:>11}\n", "", "write MB/s", "of RAID 0", "read MB/s",
               "of RAID 0");
    bool all_held = true;
    const auto figure = [&](const Rate& rate, const Rate& base) {
        all_held = all_held && rate.held;
        return fmt::format("{:>12} {:>9.0f} %",
                           fmt::format("{}{:.0f}", rate.held ? "" : "*", rate.value / 1e6),
                           100 * rate.value / base.value);
    };
    const auto row = [&](const char* name, const Rates& rates) {
        fmt::print("{:<20} {} {}\n", name, figure(rates.write, raid0_.write),
                   figure(rates.read, raid0_.read));
    };
    row("RAID 0", raid0_);
    row("RAID 6 healthy", healthy_);
    row("RAID 6 two lost", degraded_);
    row("RAID 6 rebuilding", rebuilding_);
    if (!all_held) {
        fmt::print(
            "* not a figure of that state: the group was not in it all the time, such as "
            "when the rebuild ended first\n");
    }
}

bool Demo::run() {
    const auto started = Clock::now();
    const bool passed = prepare() && make_drives() && measure_raid0() && create_group() &&
                        write_and_lose_drives() && read_degraded() && rebuild() && verify_parity();
    if (!passed || !session_.stop_daemon()) return false;
    print_table();
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started).count();
    fmt::print("\n{} s; the files are in {}\ndemo: PASS\n", seconds, session_.directory().string());
    return true;
}

}  // namespace

int run(const Options& options) {
    return Demo(options).run() ? 0 : 1;
}

}  // namespace warpraid::demo
