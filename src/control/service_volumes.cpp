// Volumes and their exports.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "control/service_impl.h"

namespace warpraid::control {

namespace {

// A stored name may be anything; on the wire and in an address it must not be.
std::string safe_name(const format::Partition& volume) {
    std::string name = volume.name;
    for (char& letter : name) {
        const auto byte = static_cast<unsigned char>(letter);
        const bool is_plain = byte < 0x80 && (std::isalnum(byte) != 0 || letter == '.' ||
                                              letter == '_' || letter == '-' || letter == ':');
        if (!is_plain) letter = '_';
    }
    if (name.empty()) return fmt::format("vd{}", volume.index);
    // To others it may be a piece of a path, or an option.
    if (name.front() == '.' || name.front() == '-') name.front() = '_';
    return name;
}

}  // namespace

Result<std::vector<VolumeInfo>> ServiceImpl::create_volume(const CreateVolume& command) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(Running * running, find_working_group(command.group));
    Volumes& volumes = running->group->volumes();
    const Volumes::Request request{command.name, command.size_bytes, command.count};
    if (!running->group->has_table()) {
        WARPRAID_TRY(volumes.check(request));
        if (running->group->is_held()) WARPRAID_TRY(running->group->end_hold());
        // Before the first byte is written that it does not keep.
        end_undo(*running);
        WARPRAID_TRY(running->group->write_table());
    }
    WARPRAID_TRY_ASSIGN(const std::vector<format::Partition> made, volumes.create(request));
    std::vector<VolumeInfo> infos;
    for (const format::Partition& volume : made) {
        infos.push_back(describe(*running, volume));
        report(Severity::kInfo, "volume-created",
               fmt::format("volume {} of {} bytes was made in group {}", volume.name,
                           volume.size_bytes, running->name),
               running->name, {}, volume.name);
    }
    return infos;
}

bool ServiceImpl::is_exported(const Uuid& volume) const {
    return std::any_of(exports_.begin(), exports_.end(),
                       [&](const auto& entry) { return entry->volume.uuid == volume; });
}

Status ServiceImpl::delete_volume(const std::string& group, const std::string& name) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(Running * running, find_working_group(group));
    WARPRAID_TRY_ASSIGN(const format::Partition volume, running->group->volumes().find(name));
    if (is_exported(volume.uuid)) {
        return Error{ErrorCode::kInUse,
                     fmt::format("volume {} of group {} is exported: unexport it first",
                                 volume.name, running->name)};
    }
    WARPRAID_TRY(running->group->volumes().remove(volume.index));
    report(Severity::kInfo, "volume-deleted",
           fmt::format("volume {} of group {} was deleted", volume.name, running->name),
           running->name, {}, volume.name);
    return success();
}

Status ServiceImpl::rename_volume(const std::string& group, const std::string& name,
                                  const std::string& new_name) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(Running * running, find_working_group(group));
    WARPRAID_TRY_ASSIGN(const format::Partition volume, running->group->volumes().find(name));
    if (is_exported(volume.uuid)) {
        return Error{ErrorCode::kInUse,
                     fmt::format("volume {} of group {} is exported under its name: unexport it "
                                 "first",
                                 volume.name, running->name)};
    }
    WARPRAID_TRY(running->group->volumes().rename(volume.index, new_name));
    report(
        Severity::kInfo, "volume-renamed",
        fmt::format("volume {} of group {} is now called {}", volume.name, running->name, new_name),
        running->name, {}, new_name);
    return success();
}

// ---- exports ------------------------------------------------------------------------------------

std::string ServiceImpl::choose_export_name(const Running& running,
                                            const format::Partition& volume) const {
    const auto is_taken = [&](const std::string& name) {
        return std::any_of(exports_.begin(), exports_.end(),
                           [&](const auto& entry) { return entry->name == name; });
    };
    const std::string name = safe_name(volume);
    if (!is_taken(name)) return name;
    const std::string longer = fmt::format("dg{}-{}", running.id, name);
    return is_taken(longer) ? volume.uuid.to_text() : longer;
}

const ServiceImpl::Export& ServiceImpl::start_export(Running& running,
                                                     const format::Partition& volume,
                                                     const std::string& name, bool read_only) {
    auto made = std::make_unique<Export>();
    made->group_uuid = running.uuid();
    made->volume = volume;
    made->name = name;
    made->read_only = read_only;
    Export& entry = *made;
    exports_.push_back(std::move(made));
    shard_.run([&] {
        entry.slice = std::make_unique<block::Slice>(running.group->device(), volume.start,
                                                     volume.size_bytes);
        shard_.nbd_server->add_export(
            {name, fmt::format("volume {} of group {}", volume.name, running.name), read_only,
             entry.slice.get()});
    });
    return entry;
}

void ServiceImpl::stop_export(Export& entry) {
    Completion completion;
    shard_.run([&] { shard_.nbd_server->remove_export(entry.name, [&] { completion.set(); }); });
    completion.wait(shard_, environment_.look_after_faults);
    std::erase_if(exports_, [&](const auto& other) { return other.get() == &entry; });
}

void ServiceImpl::stop_exports(const std::string& group_uuid) {
    for (;;) {
        const auto found = std::find_if(exports_.begin(), exports_.end(), [&](const auto& entry) {
            return entry->group_uuid == group_uuid;
        });
        if (found == exports_.end()) return;
        stop_export(**found);
    }
}

void ServiceImpl::restore_exports(Running& running) {
    const std::string uuid = running.uuid();
    for (const SavedExport& saved : saved_exports_) {
        if (saved.group_uuid != uuid) continue;
        // Another volume's stored name may read like this one's uuid.
        const auto volume = running.group->volumes().find_uuid(saved.volume_uuid);
        Status status = success();
        if (!volume.ok()) {
            status = volume.error();
        } else {
            const bool is_free =
                std::none_of(exports_.begin(), exports_.end(),
                             [&](const auto& entry) { return entry->name == saved.name; });
            const std::string name = is_free ? saved.name : choose_export_name(running, *volume);
            start_export(running, *volume, name, saved.read_only);
        }
        if (status.ok()) continue;
        report(Severity::kError, "export-not-restored",
               "export " + saved.name + ": " + status.error().message, running.name);
    }
}

Result<ExportRecord> ServiceImpl::export_volume(const std::string& group, const std::string& name,
                                                bool read_only) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(Running * running, find_working_group(group));
    WARPRAID_TRY_ASSIGN(const format::Partition volume, running->group->volumes().find(name));
    if (is_exported(volume.uuid)) {
        return Error{ErrorCode::kAlreadyExists,
                     fmt::format("volume {} of group {} is exported already: see list export",
                                 volume.name, running->name)};
    }
    const std::string export_name = choose_export_name(*running, volume);
    const std::string volume_uuid = volume.uuid.to_text();
    const Known before = known();
    // One that could not be restored may have left its record.
    std::erase_if(saved_exports_,
                  [&](const SavedExport& saved) { return saved.volume_uuid == volume_uuid; });
    saved_exports_.push_back({running->uuid(), volume_uuid, export_name, read_only});
    WARPRAID_TRY(save_or_restore(before));
    const Export& entry = start_export(*running, volume, export_name, read_only);
    report(Severity::kInfo, "volume-exported",
           fmt::format("volume {} of group {} is exported as {}", volume.name, running->name,
                       entry.name),
           running->name, {}, volume.name);
    return describe(entry);
}

Result<ServiceImpl::Export*> ServiceImpl::find_export(const Running& running,
                                                      const std::string& name) const {
    const std::string uuid = running.uuid();
    Export* found = nullptr;
    for (const auto& entry : exports_) {
        if (entry->group_uuid != uuid || !is_called(entry->volume, name)) continue;
        if (found != nullptr) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("'{}' names volumes {} and {} of group {}: use the number",
                                     name, found->volume.index, entry->volume.index, running.name)};
        }
        found = entry.get();
    }
    for (const auto& entry : exports_) {
        if (found == nullptr && entry->group_uuid == uuid && entry->name == name) {
            found = entry.get();
        }
    }
    if (found != nullptr) return found;
    return Error{ErrorCode::kNotFound,
                 fmt::format("volume '{}' of group {} is not exported: see list export", name,
                             running.name)};
}

Status ServiceImpl::unexport_volume(const std::string& group, const std::string& name) {
    const Lock lock(mutex_);
    WARPRAID_TRY_ASSIGN(Running * running, find_group(group));
    WARPRAID_TRY_ASSIGN(Export * entry, find_export(*running, name));
    const format::Partition volume = entry->volume;
    const std::string volume_uuid = volume.uuid.to_text();
    Known before = known();
    std::erase_if(saved_exports_,
                  [&](const SavedExport& saved) { return saved.volume_uuid == volume_uuid; });
    WARPRAID_TRY(save_or_restore(std::move(before)));
    stop_export(*entry);
    report(Severity::kInfo, "volume-unexported",
           fmt::format("volume {} of group {} is no longer exported", volume.name, running->name),
           running->name, {}, volume.name);
    return success();
}

}  // namespace warpraid::control
