#include "control/service_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/number_text.h"
#include "control/durable_file.h"

namespace warpraid::control {

namespace {

constexpr std::chrono::milliseconds kTurn{100};
constexpr std::chrono::milliseconds kBusyPause{50};
constexpr std::uint64_t kBusyNs = 5 * kNanosecondsPerSecond;
constexpr std::uint64_t kSaveAgainNs = 2 * kNanosecondsPerSecond;
constexpr std::uint64_t kAdvanceNs = 200 * kNanosecondsPerMillisecond;

Error name_in_doubt(const std::string& name, const std::string& one, const std::string& other) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("'{}' names more than one group: give the uuid of the one that is "
                             "meant, {} or {}",
                             name, one, other)};
}

}  // namespace

Result<std::unique_ptr<Service>> make_service(const ServiceOptions& options,
                                              io::DriveProvider& provider, Shard& shard,
                                              const Clock& clock, Random& random) {
    auto service = std::make_unique<ServiceImpl>(options, provider, shard, clock, random);
    WARPRAID_TRY(service->open());
    return std::unique_ptr<Service>(std::move(service));
}

ServiceImpl::ServiceImpl(const ServiceOptions& options, io::DriveProvider& provider, Shard& shard,
                         const Clock& clock, Random& random)
    : options_(options),
      provider_(provider),
      shard_(shard),
      clock_(clock),
      random_(random),
      events_(options.state_directory, clock),
      state_file_(options.state_directory),
      undo_(options.state_directory),
      environment_{provider,
                   shard,
                   clock,
                   random,
                   options_,
                   events_,
                   [this] {
                       const std::lock_guard lock(wake_mutex_);
                       woken_ = true;
                       wake_changed_.notify_one();
                   },
                   [this] { look_after_faults(); }},
      store_(random) {}

ServiceImpl::~ServiceImpl() {
    shut_down();
}

Status ServiceImpl::open() {
    const Lock lock(mutex_);
    WARPRAID_TRY(make_directories(options_.state_directory));
    std::string warning;
    WARPRAID_TRY(events_.load(warning));
    if (!warning.empty()) report(Severity::kError, "event-log-broken", warning);
    warning.clear();
    WARPRAID_TRY_ASSIGN(SavedState state, state_file_.load(warning));
    if (!warning.empty()) report(Severity::kError, "state-file-broken", warning);
    registry_ = Registry(state.drives);
    saved_groups_ = std::move(state.groups);
    saved_exports_ = std::move(state.exports);
    deleted_groups_ = std::move(state.deleted_groups);
    WARPRAID_TRY(undo_.load());
    wait_for_busy_drives();
    // Looked at again: until they were let go of, something may have been written to them.
    const std::vector<ScanEntry> entries = finish_undos(scan_all());
    adopt_spares(entries);
    assemble_found(entries, AssembleOptions{}, false);
    try_to_save_state();
    if (options_.has_worker) worker_ = std::thread([this] { work(); });
    return success();
}

// The kernel lets go of the drives of a daemon that was killed only some time after it is gone.
void ServiceImpl::wait_for_busy_drives() {
    const auto is_any_busy = [&] {
        const std::vector<ScanEntry> entries = scan_all();
        return std::any_of(entries.begin(), entries.end(), [&](const ScanEntry& entry) {
            if (!entry.drive.superblock) return false;
            const auto drive = provider_.open(entry.drive.identity.path, io::OpenMode::kExclusive);
            return !drive.ok() && drive.error().code == ErrorCode::kDriveBusy;
        });
    };
    const std::uint64_t until_ns = clock_.monotonic_ns() + kBusyNs;
    while (clock_.monotonic_ns() < until_ns && is_any_busy()) {
        std::this_thread::sleep_for(kBusyPause);
    }
}

void ServiceImpl::shut_down() {
    {
        const std::lock_guard lock(wake_mutex_);
        stopping_ = true;
        wake_changed_.notify_one();
    }
    if (worker_.joinable()) worker_.join();
    const Lock lock(mutex_);
    if (is_shut_down_) return;
    is_shut_down_ = true;
    for (const auto& running : running_) {
        stop_exports(running->uuid());
        running->group->stop();
    }
    running_.clear();
    spares_.clear();
}

// ---- the worker ---------------------------------------------------------------------------------

void ServiceImpl::work() {
    for (;;) {
        {
            std::unique_lock lock(wake_mutex_);
            wake_changed_.wait_for(lock, kTurn, [&] { return woken_ || stopping_; });
            if (stopping_) return;
            woken_ = false;
        }
        const Lock lock(mutex_);
        look_after_everything();
    }
}

void ServiceImpl::look_after() {
    WARPRAID_ASSERT(!options_.has_worker);
    const Lock lock(mutex_);
    look_after_everything();
}

Result<block::Device*> ServiceImpl::device(const std::string& group) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(Running * running, find_group(group));
    return &running->group->device();
}

void ServiceImpl::look_after_faults() {
    for (const auto& running : running_) running->group->look_after_faults();
}

void ServiceImpl::look_after_everything() {
    look_after_faults();
    const std::uint64_t now_ns = clock_.monotonic_ns();
    if (now_ns >= next_advance_ns_) {
        next_advance_ns_ = now_ns + kAdvanceNs;
        use_spares();
        for (const auto& running : running_) running->group->advance();
    }
    if (now_ns >= next_look_ns_) look_for_drives();
    if (now_ns >= next_save_ns_) look_after_files();
}

// ---- state and names ----------------------------------------------------------------------------

Status ServiceImpl::save_state() {
    SavedState state;
    state.drives = registry_.saved();
    state.groups = saved_groups_;
    state.exports = saved_exports_;
    state.deleted_groups = deleted_groups_;
    const Status saved = state_file_.save(state);
    const bool was_unsaved = !unsaved_.empty();
    unsaved_ = saved.ok() ? std::string() : saved.error().message;
    if (saved.ok()) {
        if (was_unsaved) report(Severity::kInfo, "state-saved", "the state is stored again");
        return success();
    }
    if (!was_unsaved) report(Severity::kError, "state-not-saved", unsaved_);
    return Error{ErrorCode::kStateNotSaved,
                 "nothing was changed, because a restart would forget it: " + unsaved_ +
                     ": make room in the state directory, or make it writable, and try again"};
}

Status ServiceImpl::save_or_restore(Known before) {
    Status saved = save_state();
    if (!saved.ok()) restore(std::move(before));
    return saved;
}

void ServiceImpl::restore(Known before) {
    registry_ = std::move(before.registry);
    saved_groups_ = std::move(before.groups);
    saved_exports_ = std::move(before.exports);
}

void ServiceImpl::look_after_files() {
    next_save_ns_ = clock_.monotonic_ns() + kSaveAgainNs;
    events_.catch_up();
    if (!unsaved_.empty()) try_to_save_state();
}

void ServiceImpl::report(Severity severity, const std::string& kind, const std::string& text,
                         const std::string& group, const std::string& serial,
                         const std::string& volume) {
    events_.add({severity, kind, group, volume, serial, text});
}

void ServiceImpl::warn_once(const std::string& kind, const std::string& text,
                            const std::string& group, const std::string& serial) {
    if (said_.insert(text).second) report(Severity::kWarning, kind, text, group, serial);
}

SavedGroup& ServiceImpl::saved_group(const std::string& uuid) {
    for (SavedGroup& saved : saved_groups_) {
        if (saved.uuid == uuid) return saved;
    }
    SavedGroup saved;
    saved.uuid = uuid;
    const auto is_taken = [&](std::uint32_t id) {
        return std::any_of(saved_groups_.begin(), saved_groups_.end(),
                           [&](const SavedGroup& other) { return other.id == id; });
    };
    while (is_taken(saved.id)) ++saved.id;
    saved_groups_.push_back(std::move(saved));
    return saved_groups_.back();
}

std::uint32_t ServiceImpl::group_id(const std::string& uuid) {
    return saved_group(uuid).id;
}

ServiceImpl::Running* ServiceImpl::find_running(const Uuid& uuid) const {
    for (const auto& running : running_) {
        if (running->group->record().uuid == uuid) return running.get();
    }
    return nullptr;
}

ServiceImpl::Running& ServiceImpl::add_running(std::unique_ptr<Running> running) {
    failed_at_.erase(running->group->record().uuid);
    const auto behind = std::find_if(running_.begin(), running_.end(),
                                     [&](const auto& other) { return other->id > running->id; });
    return **running_.insert(behind, std::move(running));
}

Result<ServiceImpl::Running*> ServiceImpl::find_group(const std::string& name) {
    const auto number = parse_whole_number<std::uint32_t>(name);
    Running* found = nullptr;
    for (const auto& running : running_) {
        const bool fits =
            number ? running->id == *number : running->name == name || running->uuid() == name;
        if (!fits) continue;
        if (found != nullptr) return name_in_doubt(name, found->uuid(), running->uuid());
        found = running.get();
    }
    const Offline* offline = find_offline(name);
    if (found != nullptr) {
        // What is left of a deleted group has given its name up.
        const bool is_doubtful =
            offline != nullptr && offline->problem.code != ErrorCode::kDestroyed;
        if (is_doubtful) return name_in_doubt(name, found->uuid(), offline->uuid.to_text());
        return found;
    }
    if (offline != nullptr) {
        return Error{ErrorCode::kWrongState,
                     "group " + offline->name + " is not running: " + offline->problem.message};
    }
    return Error{ErrorCode::kNotFound, "there is no group '" + name + "': see list group"};
}

const ServiceImpl::Offline* ServiceImpl::find_offline(const std::string& name) const {
    const auto number = parse_whole_number<std::uint32_t>(name);
    for (const Offline& offline : offline_) {
        const bool fits =
            number ? offline.id == *number : offline.name == name || offline.uuid.to_text() == name;
        if (fits) return &offline;
    }
    return nullptr;
}

Result<ServiceImpl::Running*> ServiceImpl::find_working_group(const std::string& name) {
    WARPRAID_TRY_ASSIGN(Running * running, find_group(name));
    if (!running->group->failed()) return running;
    return Error{ErrorCode::kGroupFailed,
                 "group " + running->name + " is failed: " + running->group->failure()};
}

std::vector<io::BlockingDrive*> ServiceImpl::held_drives() const {
    std::vector<io::BlockingDrive*> held;
    for (const auto& running : running_) {
        const Group& group = *running->group;
        for (std::uint32_t index = 0; index < group.layout().members(); ++index) {
            io::BlockingDrive* drive = group.drive(Slot(static_cast<std::uint8_t>(index)));
            if (drive != nullptr) held.push_back(drive);
        }
    }
    for (const Spare& spare : spares_) held.push_back(spare.drive.get());
    return held;
}

}  // namespace warpraid::control
