// What is shown of the state. Nothing here changes anything.
#include <fmt/format.h>

#include <algorithm>

#include "control/service_impl.h"

namespace warpraid::control {

using format::MemberState;

// ---- drives -------------------------------------------------------------------------------------

DriveInfo ServiceImpl::describe(const RegisteredDrive& drive) const {
    DriveInfo info;
    info.id = drive.id;
    info.path = drive.identity.path;
    info.serial = drive.identity.serial;
    info.model = drive.identity.model;
    info.wwid = drive.identity.wwid;
    info.size_bytes = drive.limits.size_bytes;
    info.logical_block_bytes = drive.limits.logical_block_bytes;
    info.physical_block_bytes = drive.limits.physical_block_bytes;
    info.detail = drive.finding;
    for (const auto& running : running_) {
        const Group& group = *running->group;
        for (std::uint32_t index = 0; index < group.layout().members(); ++index) {
            const Slot slot(static_cast<std::uint8_t>(index));
            const format::Member& member = group.record().members[index];
            const io::BlockingDrive* held = group.drive(slot);
            const bool is_held = held != nullptr && identity_key(held->identity()) == drive.key();
            const bool is_awaited = member.state == MemberState::kMissing &&
                                    !member.drive.is_nil() &&
                                    has_serial(member, drive.identity.serial);
            if (!is_held && !is_awaited) continue;
            info.use = is_held ? DriveUse::kMember : DriveUse::kMissing;
            info.group = running->name;
            info.slot = index;
            info.detail =
                fmt::format("{} member of group {}", format::to_text(member.state), running->name);
            if (is_held) return info;
        }
    }
    if (info.use == DriveUse::kMissing) return info;
    for (const Spare& spare : spares_) {
        if (identity_key(spare.drive->identity()) != drive.key()) continue;
        info.use = DriveUse::kSpare;
        for (const auto& running : running_) {
            if (running->group->record().uuid == spare.record.group) info.group = running->name;
        }
        info.detail = info.group.empty() ? "spare for any group" : "spare for " + info.group;
        return info;
    }
    if (!drive.present) {
        info.use = DriveUse::kMissing;
        info.detail = "not found at its path";
        return info;
    }
    const format::GroupRecord* record =
        drive.superblock ? std::get_if<format::GroupRecord>(&drive.superblock->content) : nullptr;
    if (record != nullptr && !record->destroyed) {
        info.use = DriveUse::kForeign;
        info.detail = fmt::format("superblock of group {} ({}), slot {}", record->name,
                                  record->uuid.to_text(), drive.superblock->slot.get());
    } else if (record == nullptr && drive.superblock) {
        info.use = DriveUse::kForeign;
        info.detail = "superblock of a spare that is not in use here";
    } else if (!drive.finding.empty()) {
        info.use = DriveUse::kForeign;
    }
    return info;
}

std::vector<DriveInfo> ServiceImpl::drives() {
    const Lock lock(mutex_);
    std::vector<DriveInfo> infos;
    for (const auto& [id, drive] : registry_.drives()) infos.push_back(describe(drive));
    return infos;
}

std::vector<DriveInfo> ServiceImpl::examine() {
    const Lock lock(mutex_);
    scan_all();
    std::vector<DriveInfo> infos;
    for (const auto& [id, drive] : registry_.drives()) infos.push_back(describe(drive));
    return infos;
}

SpareInfo ServiceImpl::describe(const Spare& spare) {
    const io::DriveIdentity& identity = spare.drive->identity();
    SpareInfo info;
    const RegisteredDrive* registered = registry_.find_key(identity_key(identity));
    if (registered != nullptr) info.drive_id = registered->id;
    info.serial = identity.serial;
    info.path = identity.path;
    info.drive_bytes = spare.drive->limits().size_bytes;
    if (spare.record.group.is_nil()) return info;
    const Running* running = find_running(spare.record.group);
    info.group = running != nullptr ? running->name : spare.record.group.to_text();
    return info;
}

std::vector<SpareInfo> ServiceImpl::spares() {
    const Lock lock(mutex_);
    std::vector<SpareInfo> infos;
    for (const Spare& spare : spares_) infos.push_back(describe(spare));
    std::sort(infos.begin(), infos.end(), [](const SpareInfo& left, const SpareInfo& right) {
        return left.drive_id < right.drive_id;
    });
    return infos;
}

// ---- groups -------------------------------------------------------------------------------------

MemberInfo ServiceImpl::describe_member(const Group& group, Slot slot) const {
    const format::Member& member = group.record().members[slot.get()];
    const Group::MemberStatus& status = group.member_status(slot);
    MemberInfo info;
    info.slot = slot.get();
    info.serial = member.serial;
    info.path = member.path;
    info.model = member.model;
    info.drive_uuid = member.drive.is_nil() ? "" : member.drive.to_text();
    info.drive_bytes = member.drive_bytes;
    const std::uint64_t used =
        member.data_offset + group.record().shape.member_data_bytes + limits::kTailReserveBytes;
    info.unused_tail_bytes = member.drive_bytes > used ? member.drive_bytes - used : 0;
    info.state = member.state;
    info.reason = member.reason;
    info.since_ns = member.since_ns;
    info.read_errors = status.read_errors;
    info.write_errors = status.write_errors;
    if (const io::BlockingDrive* drive = group.drive(slot)) info.path = drive->identity().path;
    if (status.lost) {
        const bool is_gone = *status.lost == format::LeaveReason::kAbsent;
        info.state = is_gone ? MemberState::kMissing : MemberState::kFailed;
        info.reason = *status.lost;
    }
    return info;
}

namespace {

GroupState state_of(const Group& group, const GroupSample& now) {
    if (group.failed()) return GroupState::kFailed;
    bool is_degraded = false;
    for (const format::Member& member : group.record().members) {
        if (member.state == MemberState::kRebuilding) return GroupState::kRebuilding;
        is_degraded = is_degraded || member.state != MemberState::kInSync;
    }
    if (is_degraded) return GroupState::kDegraded;
    if (group.is_held()) return GroupState::kHeld;
    return now.suspect ? GroupState::kResyncing : GroupState::kOptimal;
}

void fill_geometry(GroupInfo& info, const geometry::Layout& layout) {
    info.shape = layout.shape();
    info.capacity_bytes = layout.capacity_bytes();
    info.stripe_bytes = layout.stripe_data_bytes();
}

}  // namespace

GroupInfo ServiceImpl::describe(Running& running) {
    Group& group = *running.group;
    const GroupSample now = group.sample();
    GroupInfo info;
    info.id = running.id;
    info.uuid = running.uuid();
    info.name = running.name;
    info.state = state_of(group, now);
    info.held = group.is_held();
    info.undoable = info.held && check_undoable(group.record().uuid).ok();
    if (group.failed()) {
        info.reason = group.failure();
        info.reason_code = to_text(ErrorCode::kGroupFailed);
    }
    fill_geometry(info, group.layout());
    info.free_bytes = group.volumes().free_bytes();
    info.generation = group.record().generation.get();
    for (std::uint32_t index = 0; index < group.layout().members(); ++index) {
        info.members.push_back(describe_member(group, Slot(static_cast<std::uint8_t>(index))));
    }
    if (!now.recovery_idle) {
        TaskInfo task;
        task.progress = now.progress;
        task.bytes_per_second = group.work_bytes_per_second();
        if (task.bytes_per_second != 0) {
            task.eta_seconds = (now.progress.total_bytes -
                                std::min(now.progress.done_bytes, now.progress.total_bytes)) /
                               task.bytes_per_second;
        }
        info.task = task;
    }
    info.last_verify = group.last_verify();
    info.dirty_regions = now.dirty_regions;
    info.missed_regions = now.missed_regions;
    info.regions = group.region_count();
    info.resynced_bytes = group.resynced_bytes(now);
    info.rebuild_bytes_per_second_max = group.rebuild_rate();
    info.counters = now.counters;
    return info;
}

GroupInfo ServiceImpl::describe(const Offline& offline) const {
    GroupInfo info;
    info.id = offline.id;
    info.uuid = offline.uuid.to_text();
    info.name = offline.name;
    info.state = GroupState::kOffline;
    info.reason = offline.problem.message;
    info.reason_code = to_text(offline.problem.code);
    if (!offline.record) return info;
    info.shape = offline.record->shape;
    info.generation = offline.record->generation.get();
    const Result<geometry::Layout> layout = geometry::Layout::make(offline.record->shape);
    if (layout.ok()) fill_geometry(info, *layout);
    for (std::size_t index = 0; index < offline.record->members.size(); ++index) {
        const format::Member& member = offline.record->members[index];
        MemberInfo entry;
        entry.slot = static_cast<std::uint32_t>(index);
        entry.serial = member.serial;
        entry.path = member.path;
        entry.model = member.model;
        entry.drive_uuid = member.drive.is_nil() ? "" : member.drive.to_text();
        entry.drive_bytes = member.drive_bytes;
        entry.state = member.state;
        entry.reason = member.reason;
        entry.since_ns = member.since_ns;
        info.members.push_back(std::move(entry));
    }
    return info;
}

std::vector<GroupInfo> ServiceImpl::groups() {
    const Lock lock(mutex_);
    std::vector<GroupInfo> infos;
    for (const auto& running : running_) infos.push_back(describe(*running));
    for (const Offline& offline : offline_) infos.push_back(describe(offline));
    std::sort(infos.begin(), infos.end(),
              [](const GroupInfo& left, const GroupInfo& right) { return left.id < right.id; });
    return infos;
}

// ---- volumes and the rest -----------------------------------------------------------------------

VolumeInfo ServiceImpl::describe(const Running& running, const format::Partition& volume) const {
    VolumeInfo info;
    info.group_id = running.id;
    info.id = volume.index;
    info.group = running.name;
    info.name = volume.name;
    info.uuid = volume.uuid.to_text();
    info.start = volume.start;
    info.size_bytes = volume.size_bytes;
    info.block_bytes = running.group->layout().block_bytes();
    info.exported = is_exported(volume.uuid);
    return info;
}

std::vector<VolumeInfo> ServiceImpl::volumes() {
    const Lock lock(mutex_);
    std::vector<VolumeInfo> infos;
    for (const auto& running : running_) {
        for (const format::Partition& volume : running->group->volumes().list()) {
            infos.push_back(describe(*running, volume));
        }
    }
    return infos;
}

ExportRecord ServiceImpl::describe(const Export& entry) {
    ExportRecord record;
    for (const auto& running : running_) {
        if (running->uuid() == entry.group_uuid) record.group = running->name;
    }
    record.volume = entry.volume.name;
    record.name = entry.name;
    record.uri = "nbd+unix:///" + entry.name + "?socket=" + options_.nbd_socket_path;
    record.read_only = entry.read_only;
    shard_.run([&] { record.connections = shard_.nbd_server->connections_of(entry.name); });
    return record;
}

std::vector<ExportRecord> ServiceImpl::exports() {
    const Lock lock(mutex_);
    std::vector<ExportRecord> records;
    for (const auto& entry : exports_) records.push_back(describe(*entry));
    std::sort(
        records.begin(), records.end(),
        [](const ExportRecord& left, const ExportRecord& right) { return left.name < right.name; });
    return records;
}

std::vector<Event> ServiceImpl::events(std::uint64_t after, std::size_t limit) {
    const Lock lock(mutex_);
    return events_.list(after, limit);
}

void ServiceImpl::find_file_problems(Health& health) {
    const Lock lock(mutex_);
    const auto find = [&](const std::string& text) {
        health.level = std::max(health.level, 1);
        health.findings.push_back(text);
    };
    if (!unsaved_.empty()) {
        find(
            "what is known of drives and exports cannot be stored, a restart may forget the "
            "latest changes: " +
            unsaved_);
    }
    for (const Uuid& group : undo_.groups()) {
        const Result<UndoRecord> record = undo_.record(group);
        if (record.ok()) continue;
        find("what is kept for undo cannot be read: " + record.error().message + "; 'undo group " +
             group.to_text() + " --abandon' forgets it");
    }
    for (const auto& [group, problem] : undo_problems_) find("undo is not finished: " + problem);
    if (!events_.problem().empty()) find("events cannot be stored: " + events_.problem());
    for (const std::string& path : state_file_.files_aside()) {
        find(path + " was broken and moved aside: see list event, check drives and exports, then " +
             "take the file away");
    }
}

void ServiceImpl::find_copies(Health& health) {
    const Lock lock(mutex_);
    for (const auto& [key, copy] : copies_) {
        const std::optional<MemberPlace> original = find_live_member(copy.drive);
        if (!original || !check_not_held(copy.identity).ok()) continue;
        health.level = std::max(health.level, 1);
        health.findings.push_back(copy_text(copy.identity, *original));
    }
}

Health ServiceImpl::health() {
    Health health;
    find_file_problems(health);
    find_copies(health);
    const auto find = [&](int level, const std::string& text) {
        health.level = std::max(health.level, level);
        health.findings.push_back(text);
    };
    for (const GroupInfo& group : groups()) {
        switch (group.state) {
            case GroupState::kOptimal:
                break;
            case GroupState::kResyncing:
                find(1, "group " + group.name + " is being resynchronised");
                break;
            case GroupState::kHeld:
                break;  // told below, whatever the state is
            case GroupState::kDegraded:
                find(1, "group " + group.name + " lacks members: replace them or add spares");
                break;
            case GroupState::kRebuilding:
                find(1, "group " + group.name + " is being rebuilt");
                break;
            case GroupState::kFailed:
                find(2, "group " + group.name + " is failed: " + group.reason);
                break;
            case GroupState::kOffline:
                if (group.reason_code == to_text(ErrorCode::kDestroyed)) {
                    find(1, group.reason);
                    break;
                }
                find(2, "group " + group.name + " is not running: " + group.reason);
                break;
        }
        if (group.held) {
            const std::string text =
                "group " + group.name + " is held until its first volume is made: ";
            const Uuid uuid = Uuid::parse(group.uuid).value_or(Uuid{});
            const Status undoable = check_undoable(uuid);
            find(1, text + (undoable.ok() ? "until then 'undo group " + group.name +
                                                "' gives its drives back what they held before"
                                          : "what its drives held before cannot be given back, " +
                                                undoable.error().message));
        }
        if (group.last_verify && group.last_verify->mismatches != 0) {
            find(1, fmt::format("group {}: the last verify found {} stripes that disagree",
                                group.name, group.last_verify->mismatches));
        }
    }
    return health;
}

}  // namespace warpraid::control
