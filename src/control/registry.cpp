#include "control/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "base/number_text.h"

namespace warpraid::control {

namespace {

constexpr std::size_t kFormerPathsMax = 4;

void take(RegisteredDrive& drive, const io::DriveIdentity& identity,
          const io::DriveLimits& limits) {
    const std::string former = drive.identity.path;
    drive.identity = identity;
    drive.note_former_path(former);
    drive.limits = limits;
    drive.present = true;
}

}  // namespace

bool RegisteredDrive::was_at(const std::string& path) const {
    return identity.path == path ||
           std::find(former_paths.begin(), former_paths.end(), path) != former_paths.end();
}

void RegisteredDrive::note_former_path(const std::string& path) {
    std::erase(former_paths, path);
    std::erase(former_paths, identity.path);
    if (path.empty() || path == identity.path) return;
    if (former_paths.size() >= kFormerPathsMax) former_paths.erase(former_paths.begin());
    former_paths.push_back(path);
}

Registry::Registry(std::span<const SavedDrive> saved) {
    for (const SavedDrive& entry : saved) {
        RegisteredDrive drive;
        drive.id = entry.id;
        drive.identity = {entry.path, entry.serial, entry.model, entry.wwid};
        drive.limits.size_bytes = entry.size_bytes;
        for (const std::string& path : entry.former_paths) drive.note_former_path(path);
        drives_.try_emplace(entry.id, std::move(drive));
    }
}

Result<RegisteredDrive*> Registry::add(const io::DriveIdentity& identity,
                                       const io::DriveLimits& limits) {
    RegisteredDrive* known = find_key(identity_key(identity));
    if (known == nullptr) {
        if (drives_.size() >= limits::kDrivesMax) {
            return Error{ErrorCode::kLimitReached,
                         fmt::format("{} drives are registered, which is the most there can be: "
                                     "delete one that is not used",
                                     drives_.size())};
        }
        std::uint32_t id = 0;
        while (drives_.contains(id)) ++id;
        known = &drives_[id];
        known->id = id;
    }
    take(*known, identity, limits);
    return known;
}

RegisteredDrive* Registry::find_key(const std::string& key) {
    for (auto& [id, drive] : drives_) {
        if (drive.key() == key) return &drive;
    }
    return nullptr;
}

Result<RegisteredDrive*> Registry::find(const std::string& name) {
    const auto number = parse_whole_number<std::uint32_t>(name);
    if (number) {
        const auto found = drives_.find(*number);
        if (found != drives_.end()) return &found->second;
    }
    RegisteredDrive* match = nullptr;
    if (name.empty()) return match;  // not every drive has a wwid
    for (auto& [id, drive] : drives_) {
        const io::DriveIdentity& identity = drive.identity;
        if (name != identity.serial && name != identity.path && name != identity.wwid) continue;
        if (match != nullptr) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("'{}' names drives {} and {}: use the number", name, match->id,
                                     drive.id)};
        }
        match = &drive;
    }
    return match;
}

void Registry::note(const ScanEntry& entry) {
    RegisteredDrive* drive = find_key(identity_key(entry.drive.identity));
    if (drive == nullptr) return;
    take(*drive, entry.drive.identity, entry.drive.limits);
    drive->superblock = entry.drive.superblock;
    drive->finding = entry.finding;
    drive->has_signature = entry.has_signature;
}

bool Registry::lacks_any() const {
    return std::any_of(drives_.begin(), drives_.end(),
                       [](const auto& drive) { return !drive.second.present; });
}

void Registry::note_scan(std::span<const ScanEntry> entries) {
    for (auto& [id, drive] : drives_) {
        drive.present = false;
        drive.superblock.reset();
        drive.finding.clear();
        drive.has_signature = false;
    }
    for (const ScanEntry& entry : entries) note(entry);
}

std::vector<std::string> Registry::others_at(const std::string& path,
                                             const std::string& serial) const {
    std::vector<std::string> others;
    for (const auto& [id, drive] : drives_) {
        // Records keep no more of a serial than that.
        const bool is_same = drive.identity.serial.substr(0, format::kSerialBytesMax) ==
                             serial.substr(0, format::kSerialBytesMax);
        if (!is_same && drive.was_at(path)) others.push_back(drive.identity.serial);
    }
    return others;
}

std::vector<std::string> Registry::paths() const {
    std::vector<std::string> paths;
    for (const auto& [id, drive] : drives_) paths.push_back(drive.identity.path);
    return paths;
}

std::vector<std::string> Registry::former_paths() const {
    std::vector<std::string> paths;
    for (const auto& [id, drive] : drives_) {
        paths.insert(paths.end(), drive.former_paths.begin(), drive.former_paths.end());
    }
    return paths;
}

std::vector<SavedDrive> Registry::saved() const {
    std::vector<SavedDrive> saved;
    for (const auto& [id, drive] : drives_) {
        saved.push_back({id, drive.identity.path, drive.identity.serial, drive.identity.model,
                         drive.identity.wwid, drive.limits.size_bytes, drive.former_paths});
    }
    return saved;
}

}  // namespace warpraid::control
