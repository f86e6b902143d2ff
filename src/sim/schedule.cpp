#include "sim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/assert.h"
#include "base/limits.h"
#include "base/units.h"
#include "sim/host.h"
#include "sim/world.h"

namespace warpraid::sim {

namespace {

using control::GroupInfo;
using control::GroupState;
using format::MemberState;
using geometry::Level;

constexpr std::uint64_t kDriveBytes = limits::kDriveBytesMin;
constexpr std::uint64_t kHealNs = 60 * kNanosecondsPerSecond;
constexpr std::uint64_t kWindowBlocks = 1024;
constexpr std::uint64_t kReadErrorNs = kNanosecondsPerSecond;
constexpr std::uint64_t kFaultsMax = 16;
constexpr std::uint64_t kCrashesMax = 4;

enum class Fault : std::uint8_t {
    kKill,
    kPowerCut,
    kPull,
    kReturn,
    kReplace,
    kFail,
    kReadErrors,
    kWriteErrors
};
constexpr std::uint64_t kFaultKinds = 8;

class Schedule {
  public:
    explicit Schedule(const ScheduleOptions& options)
        : options_(options), world_(options.seed, options.directory), random_(world_.random()) {}

    ScheduleResult run();

  private:
    void choose();
    bool make_group();
    void use_and_hurt();
    void heal();
    void check_all();

    void hurt();
    bool crash(bool power_cut);
    bool start_again();
    bool pull();
    bool give_back();
    bool replace();
    bool fail();
    bool read_errors();
    bool write_errors();

    GroupInfo group();
    bool is_whole(const GroupInfo& info);
    /// Whether a member more may be lost now: never one more than the level survives, and none
    /// while stripes are in doubt.
    bool may_lose(const GroupInfo& info);
    /// A member that may be hurt now; null when none may.
    DriveState* choose_victim();
    bool has_redundancy() const { return shape_.level != Level::kRaid0; }
    std::string spare_serial();
    void tell(const std::string& text);
    void fail_with(const std::string& text) {
        if (!result_.problem) result_.problem = text;
    }
    bool is_over() const { return result_.problem.has_value(); }
    void attach();

    ScheduleOptions options_;
    World world_;
    SeededRandom& random_;
    ScheduleResult result_;
    geometry::Shape shape_;
    std::uint32_t faults_allowed_ = 0;  // a bit for each kind: a swarm
    std::uint32_t depth_ = 1;
    std::uint32_t next_drive_ = 0;
    std::vector<std::string> pulled_;
    std::unique_ptr<Host> host_;
};

void Schedule::tell(const std::string& text) {
    if (!options_.verbose) return;
    std::fprintf(stderr, "%10.3f ms  %s\n", static_cast<double>(world_.time().monotonic_ns()) / 1e6,
                 text.c_str());
}

void Schedule::choose() {
    constexpr Level kLevels[] = {Level::kRaid0, Level::kRaid1, Level::kRaid5, Level::kRaid6,
                                 Level::kRaid10};
    shape_.level = options_.level ? *options_.level : kLevels[random_.below(std::size(kLevels))];
    const bool is_striped_mirror = shape_.level == Level::kRaid10;
    const std::uint64_t least = shape_.level == Level::kRaid6                        ? 4
                                : shape_.level == Level::kRaid5 || is_striped_mirror ? 3
                                                                                     : 2;
    shape_.members = static_cast<std::uint32_t>(least + random_.below(4));
    shape_.chunk_bytes = 4096u << random_.below(5);
    shape_.block_bytes = random_.below(2) == 0 ? 512 : 4096;
    shape_.copies = 2;
    faults_allowed_ = static_cast<std::uint32_t>(random_.next());
    depth_ = static_cast<std::uint32_t>(1 + random_.below(8));
}

bool Schedule::make_group() {
    control::CreateDrive drives;
    control::CreateGroup command;
    for (; next_drive_ < shape_.members; ++next_drive_) {
        const std::string serial = spare_serial();
        world_.drives().add(serial, kDriveBytes, shape_.block_bytes).latency_ns =
            1000 + random_.below(200'000);
        drives.paths.push_back(Drives::path_of(serial));
        command.drives.push_back(serial);
    }
    const Status started = world_.start();
    if (!started.ok()) return fail_with(fmt::format("start: {}", started.error().message)), false;
    const auto known = world_.service().create_drive(drives);
    if (!known.ok())
        return fail_with(fmt::format("create drive: {}", known.error().message)), false;
    command.name = std::string("g");
    command.level = shape_.level;
    command.chunk_bytes = shape_.chunk_bytes;
    command.copies = shape_.copies;
    const auto made = world_.service().create_group(command);
    if (!made.ok()) return fail_with(fmt::format("create group: {}", made.error().message)), false;
    tell(fmt::format("{} of {} drives, chunk {}, block {}", geometry::to_text(shape_.level),
                     shape_.members, shape_.chunk_bytes, shape_.block_bytes));
    // Behind the table of volumes, somewhere.
    const std::uint64_t blocks = made->capacity_bytes / shape_.block_bytes;
    const std::uint64_t first = 2 * kMiB / shape_.block_bytes;
    const std::uint64_t start = first + random_.below(blocks - 2 * first - kWindowBlocks);
    host_ = std::make_unique<Host>(random_, start * shape_.block_bytes, kWindowBlocks,
                                   shape_.block_bytes);
    attach();
    return !is_over();
}

void Schedule::attach() {
    const auto device = world_.service().device("g");
    if (!device.ok())
        return fail_with(fmt::format("the group does not run: {}", device.error().message));
    host_->use(*device);
}

std::string Schedule::spare_serial() {
    return fmt::format("d{}", next_drive_);
}

GroupInfo Schedule::group() {
    for (GroupInfo& info : world_.service().groups()) {
        if (info.name == "g") return std::move(info);
    }
    return {};
}

bool Schedule::is_whole(const GroupInfo& info) {
    return info.state == GroupState::kOptimal;
}

bool Schedule::may_lose(const GroupInfo& info) {
    // What was done to a member may not have shown yet.
    const bool is_hurt = std::any_of(
        info.members.begin(), info.members.end(), [&](const control::MemberInfo& member) {
            const DriveState& drive = world_.drives().drive(member.serial);
            // A read that failed is answered from the others, which takes its time.
            const std::uint64_t since_ns = world_.time().monotonic_ns() - drive.failed_read_ns;
            const bool fails_reads =
                drive.read_errors > 0 || (drive.failed_read_ns > 0 && since_ns < kReadErrorNs);
            return drive.gone || drive.fails_writes || fails_reads;
        });
    return has_redundancy() && is_whole(info) && !info.task && !is_hurt;
}

DriveState* Schedule::choose_victim() {
    const GroupInfo info = group();
    if (!may_lose(info)) return nullptr;
    return &world_.drives().drive(info.members[random_.below(info.members.size())].serial);
}

// ---- faults -------------------------------------------------------------------------------------

void Schedule::hurt() {
    const auto kind = static_cast<Fault>(random_.below(kFaultKinds));
    if ((faults_allowed_ >> static_cast<std::uint32_t>(kind) & 1) == 0) return;
    if (result_.faults >= kFaultsMax) return;
    bool done = false;
    switch (kind) {
        case Fault::kKill:
            done = crash(false);
            break;
        case Fault::kPowerCut:
            done = crash(true);
            break;
        case Fault::kPull:
            done = pull();
            break;
        case Fault::kReturn:
            done = give_back();
            break;
        case Fault::kReplace:
            done = replace();
            break;
        case Fault::kFail:
            done = fail();
            break;
        case Fault::kReadErrors:
            done = read_errors();
            break;
        case Fault::kWriteErrors:
            done = write_errors();
            break;
    }
    if (done) ++result_.faults;
}

// A parity group that lacks a member when it stops has a write hole, and one that lacks the latest
// half of its members does not start by itself: neither is promised yet.
bool Schedule::crash(bool power_cut) {
    const GroupInfo info = group();
    const bool lacks_some = std::any_of(
        info.members.begin(), info.members.end(), [&](const control::MemberInfo& member) {
            const DriveState& drive = world_.drives().drive(member.serial);
            return member.state != MemberState::kInSync || drive.gone || drive.fails_writes;
        });
    if (lacks_some || result_.crashes >= kCrashesMax) return false;
    tell(fmt::format("{}", power_cut ? "power cut" : "kill"));
    ++result_.crashes;
    host_->stop();
    world_.crash(power_cut);
    if (!world_.run_until([&] { return host_->in_flight() == 0; }, kHealNs)) {
        return fail_with("requests of a host that stopped do not end"), false;
    }
    host_->come_back();
    return start_again();
}

bool Schedule::start_again() {
    const Status started = world_.start();
    if (!started.ok()) return fail_with(fmt::format("start: {}", started.error().message)), false;
    attach();
    if (is_over()) {
        const GroupInfo info = group();
        result_.problem = fmt::format("after a crash: {} [{}]", info.reason, info.reason_code);
    }
    return !is_over();
}

bool Schedule::pull() {
    DriveState* const drive = choose_victim();
    if (drive == nullptr) return false;
    tell(fmt::format("pull {}", drive->serial));
    drive->gone = true;
    pulled_.push_back(drive->serial);
    return true;
}

bool Schedule::give_back() {
    if (pulled_.empty()) return false;
    tell(fmt::format("give back {}", pulled_.back()));
    world_.drives().drive(pulled_.back()).gone = false;
    pulled_.pop_back();
    return true;
}

bool Schedule::replace() {
    const GroupInfo info = group();
    for (const control::MemberInfo& member : info.members) {
        if (member.state != MemberState::kMissing && member.state != MemberState::kFailed) continue;
        const std::string serial = spare_serial();
        ++next_drive_;
        world_.drives().add(serial, kDriveBytes, shape_.block_bytes);
        const auto known = world_.service().create_drive({{Drives::path_of(serial)}, 0});
        if (!known.ok())
            return fail_with(fmt::format("create drive: {}", known.error().message)), false;
        tell(fmt::format("replace {} by {}", member.serial, serial));
        const auto replaced =
            world_.service().replace_drive({fmt::format("g:{}", member.slot), serial, false});
        if (!replaced.ok())
            return fail_with(fmt::format("replace: {}", replaced.error().message)), false;
        std::erase(pulled_, member.serial);
        return true;
    }
    return false;
}

bool Schedule::fail() {
    const DriveState* const drive = choose_victim();
    if (drive == nullptr) return false;
    tell(fmt::format("fail {}", drive->serial));
    const auto failed = world_.service().fail_drive({drive->serial, std::nullopt});
    // It may have become needed since it was looked at.
    return failed.ok();
}

bool Schedule::read_errors() {
    DriveState* const drive = choose_victim();
    if (drive == nullptr) return false;
    tell(fmt::format("read errors of {}", drive->serial));
    drive->read_errors = static_cast<std::uint32_t>(1 + random_.below(3));
    return true;
}

bool Schedule::write_errors() {
    DriveState* const drive = choose_victim();
    if (drive == nullptr) return false;
    tell(fmt::format("write errors of {}", drive->serial));
    drive->fails_writes = true;
    world_.time().after(random_.below(200 * kNanosecondsPerMillisecond),
                        [drive] { drive->fails_writes = false; });
    return true;
}

// ---- the run ------------------------------------------------------------------------------------

void Schedule::use_and_hurt() {
    // Bursts of work with pauses between, in which rebuilds and bitmaps come to their end or not.
    std::uint64_t pause_until_ns = 0;
    while (!is_over() && host_->sent() < options_.operations) {
        const std::uint64_t now_ns = world_.time().monotonic_ns();
        if (now_ns >= pause_until_ns) host_->send(depth_);
        if (random_.below(200) == 0) {
            pause_until_ns = now_ns + random_.below(4 * kNanosecondsPerSecond);
        }
        world_.step();
        if (random_.below(100) == 0) hurt();
        if (host_->problem()) fail_with(*host_->problem());
    }
}

void Schedule::heal() {
    if (is_over()) return;
    if (result_.crashes == 0) crash(random_.below(2) == 0);
    if (is_over()) return;
    tell("heal");
    while (give_back()) {
    }
    const bool rested = world_.run_until([&] { return host_->in_flight() == 0; }, kHealNs);
    if (!rested) return fail_with("requests do not end");
    if (host_->problem()) return fail_with(*host_->problem());
    const auto is_optimal = [&] {
        const GroupInfo info = group();
        if (is_whole(info) && !info.task && info.dirty_regions == 0) return true;
        const bool waits = std::any_of(
            info.members.begin(), info.members.end(),
            [](const control::MemberInfo& member) { return member.state == MemberState::kFailed; });
        if (waits && !info.task) replace();
        return is_over();
    };
    std::uint64_t looks = 0;
    const bool healed =
        world_.run_until([&] { return ++looks % 64 == 0 && is_optimal(); }, kHealNs);
    if (!healed && !is_over()) {
        const GroupInfo info = group();
        fail_with(
            fmt::format("not optimal after all faults were taken away: state {}, {} dirty "
                        "regions, {}",
                        static_cast<int>(info.state), info.dirty_regions, info.reason));
    }
}

void Schedule::check_all() {
    if (is_over()) return;
    const bool read = world_.run_until([&] { return host_->read_all(); }, kHealNs);
    if (!read) return fail_with("reading everything does not end");
    if (host_->problem()) return fail_with(fmt::format("at the end: {}", *host_->problem()));
    if (!has_redundancy()) return;
    const Status started = world_.service().verify_group("g");
    if (!started.ok()) return fail_with(fmt::format("verify: {}", started.error().message));
    std::uint64_t looks = 0;
    const bool verified = world_.run_until(
        [&] {
            if (++looks % 64 != 0) return false;
            const GroupInfo info = group();
            return !info.task && info.last_verify && info.last_verify->finished;
        },
        kHealNs);
    if (!verified) return fail_with("verify does not end");
    const std::uint64_t mismatches = group().last_verify->mismatches;
    if (mismatches != 0) fail_with(fmt::format("{} stripes disagree at the end", mismatches));
}

ScheduleResult Schedule::run() {
    choose();
    if (make_group()) {
        use_and_hurt();
        heal();
        check_all();
    }
    result_.operations = host_ ? host_->sent() : 0;
    if (host_) host_->stop();
    if (world_.is_running()) world_.crash(false);
    if (host_ && !world_.run_until([&] { return host_->in_flight() == 0; }, kHealNs)) {
        WARPRAID_ASSERT(!"requests of a host that stopped do not end");
    }
    result_.digest = world_.drives().digest() ^ world_.time().monotonic_ns();
    return result_;
}

}  // namespace

ScheduleResult run_schedule(const ScheduleOptions& options) {
    return Schedule(options).run();
}

}  // namespace warpraid::sim
