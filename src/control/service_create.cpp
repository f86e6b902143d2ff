// Commands on whole groups.
#include <fmt/format.h>

#include <algorithm>

#include "control/service_impl.h"

namespace warpraid::control {

namespace {

constexpr std::uint64_t kDefaultChunkBytes = 64 * kKiB;
// Small regions keep a resync short; more than this many would only make the bitmap long.
constexpr std::uint64_t kRegionBytesMin = 4 * kMiB;
constexpr std::uint64_t kRegionsWanted = 65'536;
constexpr std::size_t kDeletedGroupsMax = 256;

std::uint64_t choose_region_stripes(const geometry::Layout& layout) {
    const std::uint64_t depth = layout.stripe_depth_bytes();
    const std::uint64_t member_bytes = layout.stripes() * depth;
    std::uint64_t region_bytes = kRegionBytesMin;
    while (region_bytes * kRegionsWanted < member_bytes) region_bytes *= 2;
    return divide_up(region_bytes, depth);
}

std::vector<std::uint64_t> all_bits(std::uint32_t regions) {
    std::vector<std::uint64_t> bits(divide_up(regions, 64), ~std::uint64_t{0});
    if (regions % 64 != 0) bits.back() = (std::uint64_t{1} << (regions % 64)) - 1;
    return bits;
}

Result<std::uint32_t> choose_block(const CreateGroup& command,
                                   const std::vector<io::BlockingDrive*>& drives) {
    std::uint32_t largest = 0;
    std::uint32_t smallest = ~std::uint32_t{0};
    std::string largest_drive;
    for (const io::BlockingDrive* drive : drives) {
        const std::uint32_t block = drive->limits().logical_block_bytes;
        smallest = std::min(smallest, block);
        if (block <= largest) continue;
        largest = block;
        largest_drive = drive_text(drive->identity());
    }
    if (command.block_bytes == 0) {
        if (smallest == largest) return largest;
        return Error{ErrorCode::kBlockSizeMismatch,
                     fmt::format("{} has logical blocks of {} bytes, others have {}: use drives "
                                 "of one kind, or give the group --block-size {}",
                                 largest_drive, largest, smallest, largest)};
    }
    if (command.block_bytes != 512 && command.block_bytes != 4096) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("a block size of {} was asked for: 512 and 4096 are supported",
                                 command.block_bytes)};
    }
    if (command.block_bytes >= largest) return command.block_bytes;
    return Error{ErrorCode::kBlockSizeMismatch,
                 fmt::format("{} has logical blocks of {} bytes, a block size of {} was asked "
                             "for: ask for --block-size {} or use other drives",
                             largest_drive, largest, command.block_bytes, largest)};
}

}  // namespace

Status ServiceImpl::check_group_name(const std::string& name, const Uuid* except) const {
    WARPRAID_TRY(check_name(name, limits::kGroupNameBytesMax));
    const Error taken{ErrorCode::kAlreadyExists,
                      "there is a group named '" + name + "' already: choose another name"};
    for (const auto& running : running_) {
        const bool is_it = except != nullptr && running->group->record().uuid == *except;
        if (!is_it && running->name == name) return taken;
    }
    for (const Offline& offline : offline_) {
        const bool was_deleted = offline.problem.code == ErrorCode::kDestroyed;
        if (!was_deleted && offline.name == name) return taken;
    }
    for (const Uuid& group : undos_called(name)) {
        if (find_running(group) != nullptr || (except != nullptr && group == *except)) continue;
        return Error{ErrorCode::kAlreadyExists,
                     fmt::format("drives are to get back what they held before a group named '{}' "
                                 "was made: choose another name, or end that with 'undo group {}'",
                                 name, name)};
    }
    return success();
}

Result<format::GroupRecord> ServiceImpl::plan_group(const CreateGroup& command,
                                                    const std::string& name,
                                                    std::span<const OpenedDrive> opened) {
    std::vector<io::BlockingDrive*> drives;
    std::uint64_t smallest = ~std::uint64_t{0};
    for (const OpenedDrive& drive : opened) {
        drives.push_back(drive.drive.get());
        smallest = std::min(smallest, drive.drive->limits().size_bytes);
    }
    format::GroupRecord record;
    record.uuid = Uuid::make(random_);
    record.name = name;
    record.created_ns = clock_.wall_ns();
    geometry::Shape& shape = record.shape;
    shape.level = command.level;
    shape.members = static_cast<std::uint32_t>(opened.size());
    if (command.level == geometry::Level::kRaid10) shape.copies = command.copies;
    shape.chunk_bytes = static_cast<std::uint32_t>(command.chunk_bytes == 0 ? kDefaultChunkBytes
                                                                            : command.chunk_bytes);
    WARPRAID_TRY_ASSIGN(shape.block_bytes, choose_block(command, drives));
    const std::uint64_t data_offset = format::default_data_offset(smallest);
    // The slack lets a replacement be a little smaller than the members of today.
    const std::uint64_t reserved =
        data_offset + limits::kTailReserveBytes + (command.exact_size ? 0 : limits::kSlackBytes);
    shape.member_data_bytes = round_down(smallest - reserved, shape.chunk_bytes);
    WARPRAID_TRY_ASSIGN(const geometry::Layout layout, geometry::Layout::make(shape));
    record.region_stripes = choose_region_stripes(layout);
    for (const io::BlockingDrive* drive : drives) {
        format::Member member;
        member.drive = Uuid::make(random_);
        member.serial = drive->identity().serial.substr(0, format::kSerialBytesMax);
        member.model = drive->identity().model.substr(0, format::kModelBytesMax);
        member.path = drive->identity().path.substr(0, format::kPathBytesMax);
        member.drive_bytes = drive->limits().size_bytes;
        member.data_offset = data_offset;
        member.since_ns = record.created_ns;
        record.members.push_back(std::move(member));
    }
    return record;
}

// A failure leaves drives that are blank to every scan, or those of a held group to be given back.
Status ServiceImpl::prepare_members(const format::GroupRecord& record,
                                    std::span<OpenedDrive> opened,
                                    std::span<const std::uint64_t> dirty) {
    for (std::size_t index = 0; index < opened.size(); ++index) {
        io::BlockingDrive& drive = *opened[index].drive;
        const Slot slot(static_cast<std::uint8_t>(index));
        Status status = store_.claim(drive, record, slot);
        if (status.ok()) status = store_.prepare_member(drive, record, slot, dirty);
        if (status.ok()) continue;
        // What a drive held is given back only to one that is still marked.
        if (record.table == format::Table::kHeld) return status;
        for (std::size_t undone = 0; undone <= index; ++undone) {
            static_cast<void>(store_.clear(*opened[undone].drive).ok());
        }
        return status;
    }
    return success();
}

Status ServiceImpl::check_command(const CreateGroup& command) const {
    if (running_.size() >= limits::kGroupsMax) {
        return Error{
            ErrorCode::kLimitReached,
            fmt::format("{} groups are running, which is the most there can be: delete one first",
                        running_.size())};
    }
    const std::uint32_t count_min = geometry::members_min(command.level);
    const std::uint32_t count_max = geometry::members_max(command.level);
    if (command.drives.size() < count_min || command.drives.size() > count_max) {
        return Error{ErrorCode::kMemberCount,
                     fmt::format("{} drives were given, {} takes {} to {}", command.drives.size(),
                                 geometry::to_text(command.level), count_min, count_max)};
    }
    if (command.chunk_bytes > limits::kChunkBytesMax) {
        return Error{ErrorCode::kBadChunk,
                     fmt::format("a chunk of {} bytes was asked for, {} is the largest",
                                 command.chunk_bytes, limits::kChunkBytesMax)};
    }
    if (!command.name.empty()) WARPRAID_TRY(check_group_name(command.name, nullptr));
    return success();
}

bool ServiceImpl::overwrites_something(std::span<const OpenedDrive> opened) const {
    return std::any_of(opened.begin(), opened.end(), [&](const OpenedDrive& drive) {
        return !check_content(drive.look, false).ok();
    });
}

Result<std::unique_ptr<Group>> ServiceImpl::start_new_group(const format::GroupRecord& record,
                                                            std::vector<OpenedDrive> opened) {
    Group::Start start;
    const geometry::Layout layout = geometry::Layout::make(record.shape).value();
    if (layout.level() != geometry::Level::kRaid0) {
        // What fresh drives hold does not agree, whatever it is.
        start.resync = true;
        start.bitmap.dirty = all_bits(
            static_cast<std::uint32_t>(divide_up(layout.stripes(), record.region_stripes)));
    }
    WARPRAID_TRY(prepare_members(record, opened, start.bitmap.dirty));
    start.record = record;
    start.rebuild_bytes_per_second_max = options_.rebuild_bytes_per_second_max;
    for (OpenedDrive& drive : opened) start.drives.push_back(std::move(drive.drive));
    return Group::start(environment_, std::move(start));
}

Result<GroupInfo> ServiceImpl::create_group(const CreateGroup& command) {
    const Lock lock(mutex_);
    WARPRAID_TRY(check_command(command));
    WARPRAID_TRY_ASSIGN(std::vector<OpenedDrive> opened,
                        open_free_drives(command.drives, command.force));
    WARPRAID_TRY_ASSIGN(format::GroupRecord record, plan_group(command, command.name, opened));
    const std::string uuid = record.uuid.to_text();
    const Known before = known();
    const std::uint32_t id = group_id(uuid);
    if (record.name.empty()) record.name = fmt::format("dg{}", id);
    const auto forget = [&] {
        restore(before);
        try_to_save_state();
    };
    if (Status name = check_group_name(record.name, nullptr); !name.ok()) {
        restore(before);
        return std::move(name).error();
    }
    saved_group(uuid).name = record.name;
    for (const OpenedDrive& drive : opened) {
        const auto added = registry_.add(drive.drive->identity(), drive.drive->limits());
        if (added.ok()) continue;
        restore(before);
        return added.error();
    }
    // Before the first byte is written: a restart has to know where the members are.
    WARPRAID_TRY(save_or_restore(before));

    const bool held = overwrites_something(opened);
    record.table = held ? format::Table::kHeld : format::Table::kToBeWritten;
    if (held) {
        if (Status kept = keep_for_undo(record, opened); !kept.ok()) {
            forget();
            return std::move(kept).error();
        }
    }
    Result<std::unique_ptr<Group>> group = start_new_group(record, std::move(opened));
    if (group.ok() && held) {
        const Status kept = undo_.change(record.uuid, UndoState::kKept, record.name);
        if (!kept.ok()) group = Error{ErrorCode::kStateNotSaved, kept.error().message};
    }
    if (!group.ok()) {
        // Where the drives are must be known for as long as they wait for what they held.
        const bool is_undone = !held || finish_undo(record.uuid, scan_all()).ok();
        if (is_undone) forget();
        return std::move(group).error();
    }
    auto running = std::make_unique<Running>();
    running->id = id;
    running->name = record.name;
    running->group = std::move(group).value();
    Running& made = add_running(std::move(running));
    report(
        Severity::kInfo, "group-created",
        fmt::format("group {} was made: {} over {} drives{}", made.name,
                    geometry::to_text(record.shape.level), record.shape.members,
                    held ? "; what they held before is kept until its first volume is made" : ""),
        made.name);
    if (!held) WARPRAID_TRY(made.group->write_table());
    return describe(made);
}

void ServiceImpl::release_spares_of(const Uuid& group) {
    for (Spare& spare : spares_) {
        if (spare.record.group != group) continue;
        const Status cleared = store_.clear(*spare.drive);
        if (!cleared.ok()) report(Severity::kWarning, "spare-not-cleared", cleared.error().message);
    }
    std::erase_if(spares_, [&](const Spare& spare) { return spare.record.group == group; });
}

Status ServiceImpl::delete_group(const std::string& name, bool clear) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(Running * running, find_group(name));
    const std::string uuid = running->uuid();
    for (const auto& entry : exports_) {
        if (entry->group_uuid != uuid) continue;
        return Error{ErrorCode::kInUse,
                     fmt::format("volume {} of group {} is exported: unexport it first",
                                 entry->volume.name, running->name)};
    }
    if (!clear) WARPRAID_TRY(check_released(*running));
    // Whether it can be stored at all is asked before anything is gone.
    WARPRAID_TRY(save_state());
    const std::string group_name = running->name;
    const Uuid group_uuid = running->group->record().uuid;
    if (undo_.state(group_uuid)) WARPRAID_TRY(forget_undo(group_uuid));
    Status destroyed = running->group->destroy(clear);
    std::erase_if(running_, [&](const auto& other) { return other.get() == running; });
    release_spares_of(group_uuid);
    std::erase_if(saved_groups_, [&](const SavedGroup& saved) { return saved.uuid == uuid; });
    std::erase_if(saved_exports_,
                  [&](const SavedExport& saved) { return saved.group_uuid == uuid; });
    report(Severity::kInfo, "group-deleted", "group " + group_name + " was deleted", group_name);
    if (deleted_groups_.size() >= kDeletedGroupsMax) deleted_groups_.erase(deleted_groups_.begin());
    deleted_groups_.push_back(uuid);
    // What is left of it on drives that had been put out shows at once.
    assemble_found(scan_usable(), AssembleOptions{}, true);
    try_to_save_state();
    return destroyed;
}

Status ServiceImpl::edit_group(const EditGroup& command) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(Running * running, find_group(command.group));
    const Uuid uuid = running->group->record().uuid;
    if (command.name) {
        WARPRAID_TRY(find_working_group(command.group));
        WARPRAID_TRY(check_group_name(*command.name, &uuid));
    }
    const Known before = known();
    SavedGroup& saved = saved_group(uuid.to_text());
    if (command.name) saved.name = *command.name;
    if (command.rebuild_bytes_per_second_max) {
        saved.rebuild_bytes_per_second_max = *command.rebuild_bytes_per_second_max;
    }
    WARPRAID_TRY(save_or_restore(before));
    if (command.name) {
        const std::string old_name = running->name;
        if (Status renamed = running->group->rename(*command.name); !renamed.ok()) {
            restore(before);
            try_to_save_state();
            return renamed;
        }
        running->name = *command.name;
        report(Severity::kInfo, "group-renamed",
               "group " + old_name + " is now called " + running->name, running->name);
    }
    if (command.rebuild_bytes_per_second_max) {
        const std::uint64_t rate = *command.rebuild_bytes_per_second_max;
        running->group->set_rebuild_rate(rate);
        report(Severity::kInfo, "group-edited",
               fmt::format("group {} is rebuilt at {} bytes a second at most", running->name, rate),
               running->name);
    }
    return success();
}

Status ServiceImpl::verify_group(const std::string& group) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(Running * running, find_working_group(group));
    WARPRAID_TRY(check_released(*running));
    return running->group->start_verify();
}

Status ServiceImpl::stop_verify(const std::string& group) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(Running * running, find_working_group(group));
    return running->group->stop_verify();
}

}  // namespace warpraid::control
