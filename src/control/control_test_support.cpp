#include "control/control_test_support.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "base/limits.h"
#include "format/bitmap_page.h"
#include "parity/cpu/isal_coder.h"

namespace warpraid::control {

namespace {

constexpr std::size_t kPieceBytes = 256 * kKiB;

class TestBlockingDrive final : public io::BlockingDrive {
  public:
    TestBlockingDrive(std::shared_ptr<TestDrive> drive, const std::string& path, bool exclusive)
        : state(std::move(drive)),
          identity_{path, state->anonymous ? "" : state->serial, "ram", ""},
          inner_(io::make_ram_blocking_drive(state->store)),
          limits_(inner_->limits()),
          exclusive_(exclusive) {
        limits_.read_only = state->read_only;
    }
    ~TestBlockingDrive() override {
        if (exclusive_) state->held = false;
    }
    const io::DriveIdentity& identity() const override { return identity_; }
    const io::DriveLimits& limits() const override { return limits_; }
    Status read(std::uint64_t offset, std::span<std::byte> to) override {
        WARPRAID_TRY(probe());
        if (state->fail_reads) return Error{ErrorCode::kIo, "cannot read " + state->serial};
        return inner_->read(offset, to);
    }
    Status write(std::uint64_t offset, std::span<const std::byte> from) override {
        if (state->superblock_writes_left-- == 0) state->gone = true;
        WARPRAID_TRY(probe());
        const bool was_frozen = *state->frozen;
        if (state->before_write) state->before_write();
        if (*state->frozen && !was_frozen && *state->tear_seed != 0) tear(offset, from);
        if (state->fail_writes || *state->frozen) {
            return Error{ErrorCode::kIo, "cannot write " + state->serial};
        }
        EXPECT_TRUE(exclusive_) << "written through a read-only opening";
        ++state->writes;
        return inner_->write(offset, from);
    }
    Status flush() override { return probe(); }
    Status probe() override {
        if (state->shrunk) return Error{ErrorCode::kMemberTooSmall, state->serial + " shrank"};
        if (!state->gone) return success();
        return Error{ErrorCode::kDriveMissing, "drive " + state->serial + " is gone"};
    }

    std::shared_ptr<TestDrive> state;

  private:
    void tear(std::uint64_t offset, std::span<const std::byte> from) {
        SeededRandom random(*state->tear_seed);
        const std::size_t block = limits_.logical_block_bytes;
        for (std::size_t at = 0; at < from.size(); at += block) {
            if (random.below(2) == 0) continue;
            EXPECT_TRUE(inner_->write(offset + at, from.subspan(at, block)).ok());
        }
    }

    io::DriveIdentity identity_;
    std::unique_ptr<io::BlockingDrive> inner_;
    io::DriveLimits limits_;
    bool exclusive_;
};

/// Keeps writes of the bitmap under way for as long as the test wants.
class HoldingDrive final : public io::Drive, private io::Poller {
  public:
    HoldingDrive(std::shared_ptr<TestDrive> drive, std::unique_ptr<io::Drive> inner,
                 io::Reactor& reactor)
        : state_(std::move(drive)), inner_(std::move(inner)), reactor_(reactor) {
        reactor_.add_poller(*this);
    }
    ~HoldingDrive() override { reactor_.remove_poller(*this); }
    const io::DriveLimits& limits() const override { return inner_->limits(); }
    std::uint32_t in_flight() const override {
        return inner_->in_flight() + static_cast<std::uint32_t>(held_.size());
    }
    void submit(io::Command& command) override {
        const bool is_bitmap = command.opcode == io::Opcode::kWrite &&
                               command.offset >= format::kBitmapOffset &&
                               command.offset < limits::kHeadReserveBytesMin;
        if (!is_bitmap || !state_->hold_bitmap) return inner_->submit(command);
        held_.push_back(&command);
        ++state_->bitmap_writes_held;
    }

  private:
    bool poll(std::uint64_t) override {
        if (state_->hold_bitmap || held_.empty()) return false;
        state_->fail_writes = true;
        for (io::Command* command : std::exchange(held_, {})) {
            inner_->submit(*command);
            --state_->bitmap_writes_held;
        }
        state_->fail_writes = false;
        return true;
    }

    std::shared_ptr<TestDrive> state_;
    std::unique_ptr<io::Drive> inner_;
    io::Reactor& reactor_;
    std::vector<io::Command*> held_;
};

void fill_pattern(std::span<std::byte> piece, std::uint64_t offset, std::uint64_t seed) {
    for (std::size_t at = 0; at < piece.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t value = (offset + at) * 0x9e37'79b9'7f4a'7c15 ^ seed;
        std::memcpy(piece.data() + at, &value, sizeof value);
    }
}

}  // namespace

// ---- drives -------------------------------------------------------------------------------------

TestDrive& TestProvider::add(const std::string& serial, std::uint64_t size_bytes,
                             std::uint32_t block_bytes) {
    auto drive = std::make_shared<TestDrive>();
    drive->serial = serial;
    drive->size_bytes = size_bytes;
    drive->block_bytes = block_bytes;
    drive->store = io::make_ram_store(serial, size_bytes, block_bytes);
    drive->frozen = &frozen;
    drive->tear_seed = &tear_seed;
    const std::lock_guard lock(mutex_);
    return *(drives_["/ram/" + serial] = drive);
}

TestDrive& TestProvider::add_over(const std::string& serial, const std::string& upper) {
    const TestDrive& lower = drive(serial);
    TestDrive& added = add(upper, lower.size_bytes, lower.block_bytes);
    added.store = lower.store;
    return added;
}

void TestProvider::swap_paths(const std::string& first, const std::string& second) {
    const std::lock_guard lock(mutex_);
    std::swap(drives_.at("/ram/" + first), drives_.at("/ram/" + second));
}

std::vector<std::byte> TestProvider::bytes_of(const std::string& serial) {
    TestDrive& found = drive(serial);
    const std::byte* bytes = io::ram_bytes(*found.store);
    return {bytes, bytes + found.size_bytes};
}

Result<std::unique_ptr<io::BlockingDrive>> TestProvider::open(const std::string& path,
                                                              io::OpenMode mode) {
    // Like a file system whose current directory is its root.
    std::shared_ptr<TestDrive> state;
    {
        const std::lock_guard lock(mutex_);
        const auto found = drives_.find(path.starts_with('/') ? path : "/" + path);
        if (found != drives_.end()) state = found->second;
    }
    if (state == nullptr || state->gone) {
        return Error{ErrorCode::kDriveMissing, "no drive at " + path};
    }
    TestDrive& drive = *state;
    const bool exclusive = mode == io::OpenMode::kExclusive;
    if (exclusive && drive.read_only) {
        return Error{ErrorCode::kDriveReadOnly, "drive " + drive.serial + " is read-only"};
    }
    if (exclusive && drive.held.exchange(true)) {
        return Error{ErrorCode::kDriveBusy, "drive " + drive.serial + " is in use"};
    }
    return std::unique_ptr<io::BlockingDrive>(
        std::make_unique<TestBlockingDrive>(std::move(state), path, exclusive));
}

namespace {

int fate_of(const TestDrive& drive, const io::Command& command) {
    if (drive.gone) return ENODEV;
    if (command.opcode == io::Opcode::kRead) return drive.fail_reads ? EIO : 0;
    if (command.opcode == io::Opcode::kFlush) return drive.fail_flushes ? EIO : 0;
    if (*drive.frozen) return ENODEV;
    const bool in_bad_part =
        command.offset >= drive.fail_writes_from && command.offset < drive.fail_writes_below;
    return in_bad_part || drive.fail_writes ? EIO : 0;
}

}  // namespace

Result<std::unique_ptr<io::Drive>> TestProvider::bind(io::BlockingDrive& drive,
                                                      io::Reactor& reactor, std::uint64_t) {
    std::shared_ptr<TestDrive> state = dynamic_cast<TestBlockingDrive&>(drive).state;
    const auto fate = [state](const io::Command& command) {
        const int error = fate_of(*state, command);
        if (error != 0) ++state->failed_commands;
        return error;
    };
    return std::unique_ptr<io::Drive>(std::make_unique<HoldingDrive>(
        state, io::make_faulty_drive(io::make_ram_drive(state->store, reactor), reactor, fate),
        reactor));
}

bool TestProvider::share_storage(const io::BlockingDrive& first, const io::BlockingDrive& second) {
    const auto store_of = [](const io::BlockingDrive& drive) {
        return dynamic_cast<const TestBlockingDrive&>(drive).state->store;
    };
    return knows_stacking && store_of(first) == store_of(second);
}

std::vector<std::string> TestProvider::list(std::span<const std::string> patterns) {
    std::vector<std::string> paths;
    const std::lock_guard lock(mutex_);
    for (const auto& [path, drive] : drives_) {
        if (!patterns.empty() && !drive->gone) paths.push_back(path);
    }
    return paths;
}

block::Device& ServiceTestAccess::device(Service& service, const std::string& group) {
    return *dynamic_cast<ServiceImpl&>(service).device(group).value();
}

std::unique_lock<std::mutex> ServiceTestAccess::pause(Service& service) {
    return std::unique_lock(dynamic_cast<ServiceImpl&>(service).mutex_);
}

// ---- the world ----------------------------------------------------------------------------------

World::World() : random_(std::random_device{}()) {
    std::string name = (std::filesystem::temp_directory_path() / "warpraid-control-XXXXXX");
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    options.state_directory = (directory_ / "state").string();
    options.nbd_socket_path = (directory_ / "nbd.sock").string();
    options.absent_grace_ns = 200 * kNanosecondsPerMillisecond;
    options.bitmap_delay_ns = 200 * kNanosecondsPerMillisecond;
    arena_ = io::BufferArena::make(64 * kMiB).value();
    coder_ = parity::make_isal_coder();
    reactor_ = std::make_unique<io::ManualReactor>(clock_);
    shard.reactor = reactor_.get();
    shard.engine_arena = arena_.get();
    shard.coder = coder_.get();
    std::atomic<bool> ready = false;
    thread_ = std::thread([&] {
        server_ = std::make_unique<nbd::Server>(nbd::ServerOptions{}, *reactor_, *arena_);
        shard.nbd_server = server_.get();
        ready = true;
        run_shard();
        server_.reset();
    });
    while (!ready) std::this_thread::yield();
    start();
}

World::~World() {
    stop();
    stopping_ = true;
    thread_.join();
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
}

void World::run_shard() {
    while (!stopping_) {
        if (!reactor_->run_once()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

void World::start() {
    auto made = make_service(options, provider, shard, clock_, random_);
    ASSERT_TRUE(made.ok()) << made.error().message;
    service_ = std::move(made).value();
}

void World::stop() {
    service_.reset();
}

void World::crash() {
    provider.frozen = true;
    stop();
    provider.frozen = false;
}

void World::add_drives(std::uint32_t count, std::uint64_t size_bytes) {
    CreateDrive command;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::string serial = "d" + std::to_string(i);
        provider.add(serial, size_bytes);
        command.paths.push_back("/ram/" + serial);
    }
    const auto made = service_->create_drive(command);
    ASSERT_TRUE(made.ok()) << made.error().message;
}

GroupInfo World::make_group(geometry::Level level, std::uint32_t members, const std::string& name) {
    CreateGroup command;
    command.name = name;
    command.level = level;
    for (std::uint32_t i = 0; i < members; ++i) command.drives.push_back("d" + std::to_string(i));
    const auto made = service_->create_group(command);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? *made : GroupInfo{};
}

GroupInfo World::group(const std::string& name) {
    for (const GroupInfo& info : service_->groups()) {
        if (info.name == name) return info;
    }
    ADD_FAILURE() << "no group " << name;
    return {};
}

bool World::wait_for(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
}

bool World::wait_for_state(GroupState state, const std::string& name) {
    return wait_for([&] { return group(name).state == state; });
}

std::size_t World::count_events(const std::string& kind) {
    const auto events = service_->events(0, limits::kEventsKept);
    return static_cast<std::size_t>(std::count_if(
        events.begin(), events.end(), [&](const Event& event) { return event.kind == kind; }));
}

Status World::write_pattern(std::uint64_t offset, std::uint64_t bytes, std::uint64_t seed,
                            const std::string& name) {
    DeviceIo io(ServiceTestAccess::device(*service_, name), shard, {});
    std::vector<std::byte> piece(kPieceBytes);
    for (std::uint64_t done = 0; done < bytes; done += piece.size()) {
        piece.resize(std::min<std::uint64_t>(kPieceBytes, bytes - done));
        fill_pattern(piece, offset + done, seed);
        WARPRAID_TRY(io.write(offset + done, piece));
    }
    return success();
}

testing::AssertionResult World::holds_pattern(std::uint64_t offset, std::uint64_t bytes,
                                              std::uint64_t seed, const std::string& name) {
    DeviceIo io(ServiceTestAccess::device(*service_, name), shard, {});
    std::vector<std::byte> found(kPieceBytes);
    std::vector<std::byte> wanted(kPieceBytes);
    for (std::uint64_t done = 0; done < bytes; done += found.size()) {
        found.resize(std::min<std::uint64_t>(kPieceBytes, bytes - done));
        wanted.resize(found.size());
        fill_pattern(wanted, offset + done, seed);
        const Status read = io.read(offset + done, found);
        if (!read.ok()) return testing::AssertionFailure() << read.error().message;
        if (found != wanted) {
            return testing::AssertionFailure() << "wrong bytes at or behind " << offset + done;
        }
    }
    return testing::AssertionSuccess();
}

void World::set_rebuild_rate(std::uint64_t bytes_per_second) {
    EditGroup edit;
    edit.group = "g";
    edit.rebuild_bytes_per_second_max = bytes_per_second;
    const Status edited = service().edit_group(edit);
    ASSERT_TRUE(edited.ok()) << edited.error().message;
}

std::uint64_t World::count_mismatches(const std::string& name) {
    const Status started = service_->verify_group(name);
    EXPECT_TRUE(started.ok()) << started.error().message;
    EXPECT_TRUE(wait_for([&] { return group(name).last_verify.has_value(); }));
    const auto result = group(name).last_verify;
    EXPECT_TRUE(result && result->finished && result->unreadable == 0);
    return result ? result->mismatches : ~std::uint64_t{0};
}

}  // namespace warpraid::control
