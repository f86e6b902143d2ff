#include "control/scan.h"

#include <set>

#include "meta/store.h"

namespace warpraid::control {

std::string identity_key(const std::string& wwid, const std::string& serial,
                         const std::string& path) {
    if (wwid.empty() && serial.empty()) return path;
    return wwid + "|" + serial;
}

std::string identity_key(const io::DriveIdentity& identity) {
    return identity_key(identity.wwid, identity.serial, identity.path);
}

std::string drive_text(const io::DriveIdentity& identity) {
    return "drive " + identity.serial + " (" + identity.path + ")";
}

const format::GroupRecord* record_of(const meta::FoundDrive& drive) {
    if (!drive.superblock) return nullptr;
    return std::get_if<format::GroupRecord>(&drive.superblock->content);
}

ScanEntry look_at(io::BlockingDrive& drive) {
    ScanEntry entry;
    entry.drive = meta::examine(drive);
    if (auto mark = meta::read_mark(drive); mark.ok()) entry.mark = *mark;
    Result<std::vector<std::string>> signatures = meta::foreign_signatures(drive);
    if (!signatures.ok()) {
        entry.finding = signatures.error().message;
        return entry;
    }
    for (const std::string& text : *signatures) {
        entry.finding += (entry.finding.empty() ? "" : ", ") + text;
        entry.has_signature = true;
    }
    const std::optional<Error>& problem = entry.drive.problem;
    if (!entry.has_signature && problem && problem->code != ErrorCode::kNoSuperblock) {
        entry.finding = problem->message;
    }
    return entry;
}

std::vector<ScanEntry> scan(io::DriveProvider& provider, std::span<const std::string> paths,
                            std::span<io::BlockingDrive* const> held) {
    std::vector<ScanEntry> entries;
    std::set<std::string> keys;
    std::set<std::string> paths_seen;
    for (io::BlockingDrive* drive : held) {
        keys.insert(identity_key(drive->identity()));
        paths_seen.insert(drive->identity().path);
        ScanEntry entry;
        entry.drive.identity = drive->identity();
        entry.drive.limits = drive->limits();
        entries.push_back(std::move(entry));
    }
    for (const std::string& path : paths) {
        if (!paths_seen.insert(path).second) continue;
        auto drive = provider.open(path, io::OpenMode::kReadOnly);
        if (!drive.ok() || !keys.insert(identity_key((*drive)->identity())).second) continue;
        entries.push_back(look_at(**drive));
    }
    return entries;
}

}  // namespace warpraid::control
