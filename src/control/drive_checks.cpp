// Whether a drive may be used, all asked before its first byte is written.
#include <fmt/format.h>

#include <algorithm>

#include "base/size_text.h"
#include "control/service_impl.h"

namespace warpraid::control {

namespace {

/// What a member's drive must have so that the slot's data area and both reserves fit.
std::uint64_t bytes_needed(const format::GroupRecord& record, Slot slot) {
    return record.members[slot.get()].data_offset + record.shape.member_data_bytes +
           limits::kTailReserveBytes;
}

}  // namespace

Status ServiceImpl::check_not_held(const io::DriveIdentity& identity) const {
    const std::string key = identity_key(identity);
    for (const auto& running : running_) {
        const Group& group = *running->group;
        for (std::uint32_t index = 0; index < group.layout().members(); ++index) {
            const io::BlockingDrive* drive = group.drive(Slot(static_cast<std::uint8_t>(index)));
            if (drive == nullptr || identity_key(drive->identity()) != key) continue;
            return Error{ErrorCode::kInUse,
                         fmt::format("{} is member {} of the running group {}: it cannot be used "
                                     "for anything else, not even by force; replace it there "
                                     "first, and what it still holds then needs --force",
                                     drive_text(identity), index, running->name)};
        }
    }
    for (const Spare& spare : spares_) {
        if (identity_key(spare.drive->identity()) != key) continue;
        return Error{ErrorCode::kInUse, fmt::format("{} is a spare: delete the spare {} first",
                                                    drive_text(identity), identity.serial)};
    }
    return success();
}

std::string ServiceImpl::copy_text(const io::DriveIdentity& copy, const MemberPlace& place) {
    const Group& group = *place.running->group;
    return fmt::format(
        "{} is a copy of member {}, {}, of the running group {}: make it a blank "
        "drive with 'edit drive DRIVE --reset-identity', or take it away",
        drive_text(copy), place.slot.get(), drive_text(group.drive(place.slot)->identity()),
        place.running->name);
}

Status ServiceImpl::check_content(const ScanEntry& look, bool force) const {
    const std::string drive = drive_text(look.drive.identity);
    const auto& superblock = look.drive.superblock;
    const format::GroupRecord* record =
        superblock ? std::get_if<format::GroupRecord>(&superblock->content) : nullptr;
    const Running* was_in = nullptr;
    for (const auto& running : running_) {
        if (record == nullptr || running->group->record().uuid != record->uuid ||
            superblock->slot.get() >= running->group->layout().members()) {
            continue;
        }
        const format::Member& member = running->group->record().members[superblock->slot.get()];
        // One that somebody else has used since does not return by itself.
        const bool will_return = member.drive == superblock->drive &&
                                 member.state != format::MemberState::kFailed &&
                                 !look.has_signature;
        was_in = running.get();
        if (!will_return) continue;
        if (const auto original = find_original(look)) {
            return Error{ErrorCode::kDuplicateMember, copy_text(look.drive.identity, *original)};
        }
        return Error{ErrorCode::kInUse,
                     fmt::format("{} belongs to slot {} of the running group {} and will return to "
                                 "it: use another drive",
                                 drive, superblock->slot.get(), running->name)};
    }
    if (force) return success();
    if (was_in != nullptr && !record->destroyed) {
        return Error{ErrorCode::kHasSuperblock,
                     fmt::format("{} was in slot {} of the running group {} and still carries its "
                                 "superblock: use a blank drive, or --force to lose what it holds",
                                 drive, superblock->slot.get(), was_in->name)};
    }
    if (record != nullptr && !record->destroyed) {
        return Error{
            ErrorCode::kHasSuperblock,
            fmt::format("{} carries a superblock of group {} ({}), slot {}: start that group with "
                        "'create drive' of all its drives and 'assemble {}', use a blank drive, or "
                        "--force to lose what it holds",
                        drive, record->name, record->uuid.to_text(), superblock->slot.get(),
                        record->name)};
    }
    if (superblock && record == nullptr) {
        return Error{
            ErrorCode::kHasSuperblock,
            drive + " carries the superblock of a spare: use --force to take it all the same"};
    }
    if (look.has_signature) {
        return Error{ErrorCode::kHasSignature,
                     fmt::format("{} holds {}: use a blank drive, wipe it, or overwrite it with "
                                 "--force",
                                 drive, look.finding)};
    }
    const std::optional<Error>& problem = look.drive.problem;
    if (!problem || problem->code == ErrorCode::kNoSuperblock) return success();
    return Error{ErrorCode::kHasSuperblock,
                 fmt::format("{} may belong to a group ({}): overwrite it with --force", drive,
                             problem->message)};
}

Status ServiceImpl::check_size(const io::DriveIdentity& identity, const io::DriveLimits& limits) {
    const bool is_small = limits.size_bytes < limits::kDriveBytesMin;
    if (!is_small && limits.size_bytes <= limits::kDriveBytesMax) return success();
    return Error{is_small ? ErrorCode::kMemberTooSmall : ErrorCode::kBadSize,
                 fmt::format("{} has {} bytes; a drive needs {} to {}: use another drive",
                             drive_text(identity), limits.size_bytes, limits::kDriveBytesMin,
                             limits::kDriveBytesMax)};
}

Result<ServiceImpl::OpenedDrive> ServiceImpl::open_free_drive(const std::string& name, bool force) {
    WARPRAID_TRY_ASSIGN(const RegisteredDrive* registered, registry_.find(name));
    const std::string path = registered != nullptr ? registered->identity.path : name;
    // A relative path would mean whatever lies in the daemon's own directory, and would be
    // remembered.
    if (registered == nullptr && !name.starts_with('/')) {
        return Error{ErrorCode::kDriveMissing,
                     "no registered drive is called '" + name +
                         "': see list drive, or name it by its whole path"};
    }
    {
        auto glance = provider_.open(path, io::OpenMode::kReadOnly);
        if (!glance.ok()) {
            Error error = std::move(glance).error();
            if (registered != nullptr) {
                error.message = drive_text(registered->identity) + ": " + error.message;
            } else if (error.code == ErrorCode::kDriveMissing) {
                error.message += "; no registered drive is called that either: see list drive";
            }
            return error;
        }
        const io::DriveIdentity& identity = (*glance)->identity();
        WARPRAID_TRY(check_not_held(identity));
        if (registered != nullptr && identity_key(identity) != registered->key()) {
            return Error{ErrorCode::kDriveMissing,
                         fmt::format("{} is not at its path any more; there is now {}: register "
                                     "that one with create drive",
                                     drive_text(registered->identity), drive_text(identity))};
        }
    }
    OpenedDrive opened;
    WARPRAID_TRY_ASSIGN(opened.drive, provider_.open(path, io::OpenMode::kExclusive));
    if (force) WARPRAID_TRY(check_path_means(name, opened.drive->identity()));
    const io::DriveLimits& limits = opened.drive->limits();
    const std::string text = drive_text(opened.drive->identity());
    if (limits.read_only) {
        return Error{ErrorCode::kDriveReadOnly, text + " is read-only: use another drive"};
    }
    WARPRAID_TRY(check_size(opened.drive->identity(), limits));
    if (limits.logical_block_bytes != 512 && limits.logical_block_bytes != 4096) {
        return Error{
            ErrorCode::kBlockSizeMismatch,
            fmt::format("{} has logical blocks of {} bytes; 512 and 4096 are supported: use "
                        "another drive",
                        text, limits.logical_block_bytes)};
    }
    opened.look = look_at(*opened.drive);
    WARPRAID_TRY(check_not_to_be_restored(opened.look));
    WARPRAID_TRY(check_content(opened.look, force));
    return opened;
}

Result<std::vector<ServiceImpl::OpenedDrive>> ServiceImpl::open_free_drives(
    std::span<const std::string> names, bool force) {
    std::vector<OpenedDrive> opened;
    std::vector<std::string> keys;
    for (const std::string& name : names) {
        // A second opening of the same drive would only be called busy.
        WARPRAID_TRY_ASSIGN(const RegisteredDrive* registered, registry_.find(name));
        std::optional<io::DriveIdentity> identity;
        if (registered != nullptr) {
            identity = registered->identity;
        } else if (auto glance = provider_.open(name, io::OpenMode::kReadOnly); glance.ok()) {
            identity = (*glance)->identity();
        }
        if (identity &&
            std::find(keys.begin(), keys.end(), identity_key(*identity)) != keys.end()) {
            return Error{ErrorCode::kDuplicateMember,
                         fmt::format("{} was already given, and '{}' names it again: name each "
                                     "drive once",
                                     drive_text(*identity), name)};
        }
        WARPRAID_TRY_ASSIGN(OpenedDrive drive, open_free_drive(name, force));
        keys.push_back(identity_key(drive.drive->identity()));
        opened.push_back(std::move(drive));
    }
    return opened;
}

Status ServiceImpl::check_replacement(const Group& group, Slot slot, const OpenedDrive& opened) {
    const io::DriveLimits& limits = opened.drive->limits();
    const std::string drive = drive_text(opened.drive->identity());
    const std::uint64_t needed = bytes_needed(group.record(), slot);
    if (limits.size_bytes < needed) {
        return Error{ErrorCode::kMemberTooSmall,
                     fmt::format("{} has {} bytes ({}), a member of group {} needs {} ({}): use a "
                                 "larger drive",
                                 drive, limits.size_bytes, format_size(limits.size_bytes),
                                 group.record().name, needed, format_size(needed))};
    }
    if (limits.logical_block_bytes > group.layout().block_bytes()) {
        return Error{ErrorCode::kBlockSizeMismatch,
                     fmt::format("{} has logical blocks of {} bytes, group {} has {}: use a drive "
                                 "with blocks of {} bytes",
                                 drive, limits.logical_block_bytes, group.record().name,
                                 group.layout().block_bytes(), group.layout().block_bytes())};
    }
    return success();
}

}  // namespace warpraid::control
