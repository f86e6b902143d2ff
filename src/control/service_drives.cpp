// Registering drives, and making files that serve as drives.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/unique_fd.h"
#include "control/service_impl.h"
#include "meta/apart.h"

namespace warpraid::control {

namespace {

constexpr std::uint64_t kFileSizeUnit = 4096;

bool exists(const std::string& path) {
    struct stat status{};
    return ::lstat(path.c_str(), &status) == 0;
}

Status check_file_size(const std::string& path, std::uint64_t bytes) {
    if (bytes < limits::kDriveBytesMin || bytes > limits::kDriveBytesMax ||
        bytes % kFileSizeUnit != 0) {
        return Error{ErrorCode::kBadSize,
                     fmt::format("a file of {} bytes was asked for at {}: a drive has {} to {} "
                                 "bytes, a multiple of {}",
                                 bytes, path, limits::kDriveBytesMin, limits::kDriveBytesMax,
                                 kFileSizeUnit)};
    }
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return success();
    const auto found = static_cast<std::uint64_t>(status.st_size);
    if (!S_ISREG(status.st_mode) || found == bytes) return success();
    return Error{ErrorCode::kAlreadyExists,
                 fmt::format("{} exists with {} bytes, {} were asked for: leave the size out to "
                             "use it as it is, or choose another path",
                             path, found, bytes)};
}

Status make_sparse_file(const std::string& path, std::uint64_t bytes) {
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode_t{0660}));
    if (!file) return system_error(ErrorCode::kDriveOpen, "cannot create " + path, errno);
    if (::ftruncate(file.get(), static_cast<off_t>(bytes)) == 0 && ::fsync(file.get()) == 0) {
        return success();
    }
    const int error = errno;
    ::unlink(path.c_str());
    return system_error(ErrorCode::kDriveOpen, "cannot give " + path + " its size", error);
}

// Their files have sizes and contents that the kernel makes up.
Status check_file_system(const std::string& path) {
    struct statfs found{};
    if (::statfs(path.c_str(), &found) != 0) return success();
    for (const auto magic : {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
                             SECURITYFS_MAGIC, CGROUP2_SUPER_MAGIC}) {
        if (static_cast<std::uint32_t>(found.f_type) != static_cast<std::uint32_t>(magic)) continue;
        return Error{ErrorCode::kDriveOpen,
                     path +
                         " shows something of the kernel and stores nothing: a drive is a block "
                         "device or a file on a disk"};
    }
    return success();
}

// The daemon's directory is nothing an operator should have to know.
std::string absolute_path(const std::string& path, bool is_file) {
    if (!is_file && !exists(path)) return path;
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    return error ? path : absolute.lexically_normal().string();
}

}  // namespace

Status ServiceImpl::check_new_drive(const std::string& path) {
    WARPRAID_TRY(check_file_system(path));
    WARPRAID_TRY_ASSIGN(const auto drive, provider_.open(path, io::OpenMode::kReadOnly));
    WARPRAID_TRY(check_size(drive->identity(), drive->limits()));
    const std::string key = identity_key(drive->identity());
    const RegisteredDrive* known = registry_.find_key(key);
    if (known == nullptr || known->identity.path == path) return success();
    const auto there = provider_.open(known->identity.path, io::OpenMode::kReadOnly);
    // A drive that has moved is found at its new path from now on.
    if (!there.ok() || identity_key((*there)->identity()) != key) return success();
    return Error{
        ErrorCode::kAlreadyExists,
        fmt::format("{} is drive {} already, as {}: use that, or delete drive {} first to "
                    "register it under the other name",
                    drive_text(drive->identity()), known->id, known->identity.path, known->id)};
}

Result<std::vector<DriveInfo>> ServiceImpl::create_drive(const CreateDrive& command) {
    const Lock lock(mutex_);
    if (command.paths.empty()) {
        return Error{ErrorCode::kInvalidArgument, "no path was given: name at least one drive"};
    }
    if (registry_.drives().size() + command.paths.size() > limits::kDrivesMax) {
        return Error{
            ErrorCode::kLimitReached,
            fmt::format("{} drives are registered and {} more were given; {} is the most: "
                        "delete drives that are not used",
                        registry_.drives().size(), command.paths.size(), limits::kDrivesMax)};
    }
    std::vector<std::string> paths;
    for (const std::string& path : command.paths) {
        const bool may_make = command.file_bytes != 0;
        paths.push_back(absolute_path(path, may_make));
        if (may_make) WARPRAID_TRY(check_file_size(paths.back(), command.file_bytes));
        if (may_make && !exists(paths.back())) continue;
        WARPRAID_TRY(check_new_drive(paths.back()));
    }
    std::vector<std::string> new_files;
    const Known before = known();
    Result<std::vector<DriveInfo>> made = register_drives(paths, command.file_bytes, new_files);
    if (made.ok()) {
        if (Status saved = save_state(); !saved.ok()) made = std::move(saved).error();
    }
    if (!made.ok()) {
        restore(before);
        for (const std::string& path : new_files) ::unlink(path.c_str());
        return made;
    }
    for (const DriveInfo& drive : *made) {
        if (before.registry.drives().contains(drive.id)) continue;
        report(Severity::kInfo, "drive-registered",
               fmt::format("drive {} ({}) is now drive {}", drive.serial, drive.path, drive.id), {},
               drive.serial);
        note_registered_copy(drive.id);
    }
    return made;
}

void ServiceImpl::note_registered_copy(std::uint32_t id) {
    const RegisteredDrive& drive = registry_.drives().at(id);
    if (!drive.superblock) return;
    ScanEntry entry;
    entry.drive.identity = drive.identity;
    entry.drive.superblock = drive.superblock;
    if (const auto original = find_original(entry)) note_copy(entry, *original);
}

Result<std::vector<DriveInfo>> ServiceImpl::register_drives(std::span<const std::string> paths,
                                                            std::uint64_t file_bytes,
                                                            std::vector<std::string>& new_files) {
    std::vector<DriveInfo> made;
    for (const std::string& path : paths) {
        if (file_bytes != 0 && !exists(path)) {
            WARPRAID_TRY(make_sparse_file(path, file_bytes));
            new_files.push_back(path);
        }
        WARPRAID_TRY_ASSIGN(const auto drive, provider_.open(path, io::OpenMode::kReadOnly));
        WARPRAID_TRY_ASSIGN(RegisteredDrive * registered,
                            registry_.add(drive->identity(), drive->limits()));
        if (check_not_held(drive->identity()).ok()) registry_.note(look_at(*drive));
        made.push_back(describe(*registered));
    }
    return made;
}

Status ServiceImpl::delete_drive(const std::string& name) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(const RegisteredDrive* drive, registry_.find(name));
    if (drive == nullptr) {
        return Error{ErrorCode::kNotFound,
                     "no registered drive is called '" + name + "': see list drive"};
    }
    WARPRAID_TRY(check_not_held(drive->identity));
    ScanEntry entry;
    entry.drive.identity = drive->identity;
    WARPRAID_TRY(check_not_to_be_restored(entry));
    const Result<MemberPlace> place = find_member(drive->identity.serial);
    if (place.ok()) {
        const format::Member& member = place->running->group->record().members[place->slot.get()];
        if (member.state == format::MemberState::kMissing) {
            return Error{
                ErrorCode::kInUse,
                fmt::format("{} is awaited in slot {} of group {}: replace it there "
                            "first",
                            drive_text(drive->identity), place->slot.get(), place->running->name)};
        }
    }
    const io::DriveIdentity identity = drive->identity;
    Known before = known();
    registry_.remove(drive->id);
    WARPRAID_TRY(save_or_restore(std::move(before)));
    report(Severity::kInfo, "drive-deleted", drive_text(identity) + " is no longer registered", {},
           identity.serial);
    return success();
}

// The drives that would go on carrying the superblock: the live member, or whatever else was found.
Result<std::vector<ServiceImpl::Keeper>> ServiceImpl::find_keepers(const ScanEntry& look) {
    const std::string text = drive_text(look.drive.identity);
    if (!look.drive.superblock) {
        return Error{ErrorCode::kNoSuperblock, text +
                                                   " carries no superblock of Warpraid, so there "
                                                   "is nothing to reset: use it as it is"};
    }
    const format::Superblock& superblock = *look.drive.superblock;
    std::vector<Keeper> keepers;
    if (const auto live = find_live_member(superblock.drive)) {
        keepers.push_back({live->running->group->drive(live->slot), nullptr});
        return keepers;
    }
    const auto* record = std::get_if<format::GroupRecord>(&superblock.content);
    const bool is_original =
        record != nullptr && superblock.slot.get() < record->members.size() &&
        has_serial(record->members[superblock.slot.get()], look.drive.identity.serial);
    const std::string key = identity_key(look.drive.identity);
    std::string other;
    for (const ScanEntry& entry : scan_all()) {
        const auto& theirs = entry.drive.superblock;
        const bool is_twin = theirs && theirs->drive == superblock.drive;
        if (!is_twin || identity_key(entry.drive.identity) == key) continue;
        other = drive_text(entry.drive.identity);
        WARPRAID_TRY_ASSIGN(auto drive,
                            provider_.open(entry.drive.identity.path, io::OpenMode::kReadOnly));
        keepers.push_back({drive.get(), nullptr});
        keepers.back().opened = std::move(drive);
    }
    if (keepers.empty()) {
        return Error{ErrorCode::kWrongState,
                     text +
                         " is no copy: no other drive that was found carries its superblock, "
                         "and without it what it holds would be lost: take it away, or use it with "
                         "--force if that may happen"};
    }
    if (!is_original) return keepers;
    return Error{ErrorCode::kWrongState,
                 text + " is the drive that its superblock was written to: reset the copy, " +
                     other + ", instead"};
}

// A name is no proof that there are two drives: a loop device over a member's file has one of its
// own, and so has a drive without a serial number that returned under another.
Status ServiceImpl::check_keeper(io::BlockingDrive& copy, const format::Superblock& superblock,
                                 io::BlockingDrive& keeper) {
    const std::string text = drive_text(copy.identity());
    const std::string other = drive_text(keeper.identity());
    Status answers = keeper.probe();
    if (answers.ok()) {
        const meta::FoundDrive found = meta::examine(keeper);
        if (!found.superblock || found.superblock->drive != superblock.drive) {
            answers = found.problem ? *found.problem
                                    : Error{ErrorCode::kNoSuperblock, "it has another superblock"};
        }
    }
    if (!answers.ok()) {
        return Error{
            ErrorCode::kWrongState,
            fmt::format("{} may be all that is left of {}, which does not answer ({}): "
                        "nothing was changed; bring that drive back, or take this one away",
                        text, other, answers.error().message)};
    }
    Status apart = success();
    if (provider_.share_storage(copy, keeper)) {
        apart = Error{ErrorCode::kWrongState, "one stands on the other"};
    } else {
        apart = meta::prove_apart(copy, keeper, random_);
    }
    if (apart.ok()) return success();
    return Error{ErrorCode::kWrongState,
                 fmt::format("{} is not known to be another drive than {} ({}), which would be "
                             "blank as well: nothing was changed; take {} away",
                             text, other, apart.error().message, copy.identity().path)};
}

Status ServiceImpl::reset_identity(const std::string& name) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(const RegisteredDrive* known_drive, registry_.find(name));
    if (known_drive == nullptr && !name.starts_with('/')) {
        return Error{ErrorCode::kNotFound,
                     "no registered drive is called '" + name + "': see list drive"};
    }
    const std::string path = known_drive != nullptr ? known_drive->identity.path : name;
    {
        WARPRAID_TRY_ASSIGN(const auto glance, provider_.open(path, io::OpenMode::kReadOnly));
        WARPRAID_TRY(check_not_held(glance->identity()));
    }
    WARPRAID_TRY_ASSIGN(const auto drive, provider_.open(path, io::OpenMode::kExclusive));
    if (known_drive != nullptr && identity_key(drive->identity()) != known_drive->key()) {
        return Error{ErrorCode::kDriveMissing,
                     fmt::format("{} is not at its path any more; there is now {}: register "
                                 "that one with create drive",
                                 drive_text(known_drive->identity), drive_text(drive->identity()))};
    }
    const ScanEntry look = look_at(*drive);
    WARPRAID_TRY(check_not_to_be_restored(look));
    WARPRAID_TRY_ASSIGN(const std::vector<Keeper> keepers, find_keepers(look));
    for (const Keeper& keeper : keepers) {
        WARPRAID_TRY(check_keeper(*drive, *look.drive.superblock, *keeper.drive));
    }
    WARPRAID_TRY(store_.clear(*drive));
    registry_.note(look_at(*drive));
    copies_.erase(identity_key(drive->identity()));
    report(Severity::kWarning, "identity-reset",
           drive_text(drive->identity()) + " was a copy of another drive and is blank now", {},
           drive->identity().serial);
    environment_.wake();
    return success();
}

}  // namespace warpraid::control
