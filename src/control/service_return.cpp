// Drives that turn up: spares of earlier times, and members that were away.
#include <fmt/format.h>

#include "control/service_impl.h"

namespace warpraid::control {

namespace {

constexpr std::uint64_t kLookNs = 2 * kNanosecondsPerSecond;
constexpr std::uint64_t kIdleScanNs = 30 * kNanosecondsPerSecond;

bool belongs_to(const meta::FoundDrive& drive, const Uuid& group) {
    const format::GroupRecord* record = record_of(drive);
    return record != nullptr && record->uuid == group;
}

}  // namespace

void ServiceImpl::adopt_spares(std::span<const ScanEntry> entries) {
    for (const ScanEntry& entry : entries) {
        if (!entry.drive.superblock) continue;
        const auto* record = std::get_if<format::SpareRecord>(&entry.drive.superblock->content);
        if (record == nullptr) continue;
        // It would be overwritten when it is needed.
        if (entry.has_signature) {
            warn_once("spare-unusable",
                      fmt::format("{} was a spare and holds {} now: it is left alone; if that is "
                                  "not needed, make it a spare again with 'create spare --force'",
                                  drive_text(entry.drive.identity), entry.finding),
                      {}, entry.drive.identity.serial);
            continue;
        }
        auto drive = provider_.open(entry.drive.identity.path, io::OpenMode::kExclusive);
        if (!drive.ok()) {
            warn_once("spare-unusable", drive.error().message, {}, entry.drive.identity.serial);
            continue;
        }
        const auto added = registry_.add(entry.drive.identity, entry.drive.limits);
        if (added.ok()) spares_.push_back({*record, std::move(drive).value()});
    }
}

void ServiceImpl::take_back_members(std::span<const ScanEntry> entries) {
    for (const auto& running : running_) {
        if (!running->group->failed()) take_back(*running, entries);
    }
}

std::optional<ServiceImpl::MemberPlace> ServiceImpl::find_original(const ScanEntry& entry) const {
    if (record_of(entry.drive) == nullptr || !check_not_held(entry.drive.identity).ok()) {
        return std::nullopt;
    }
    return find_live_member(entry.drive.superblock->drive);
}

void ServiceImpl::note_copies(std::span<const ScanEntry> entries) {
    for (const ScanEntry& entry : entries) {
        if (const auto original = find_original(entry)) note_copy(entry, *original);
    }
}

void ServiceImpl::forget_copies(std::span<const ScanEntry> entries) {
    std::set<std::string> seen;
    for (const ScanEntry& entry : entries) {
        if (find_original(entry)) seen.insert(identity_key(entry.drive.identity));
    }
    std::erase_if(copies_, [&](const auto& copy) { return !seen.contains(copy.first); });
}

void ServiceImpl::note_copy(const ScanEntry& entry, const MemberPlace& original) {
    const io::DriveIdentity& identity = entry.drive.identity;
    MemberCopy& copy = copies_[identity_key(identity)];
    const bool is_new = copy.drive != entry.drive.superblock->drive;
    copy = {identity, entry.drive.superblock->drive};
    if (!is_new) return;
    report(Severity::kWarning, "member-copy-found", copy_text(identity, original),
           original.running->name, identity.serial);
}

void ServiceImpl::report_reused(const ScanEntry& entry, const std::string& group) {
    warn_once("member-not-returned",
              fmt::format("{} was a member of group {} and holds {} now: it is left alone; if that "
                          "is not needed, give it to the group with 'replace --force'",
                          drive_text(entry.drive.identity), group, entry.finding),
              group, entry.drive.identity.serial);
}

// Assembly knows which drives may return: it is asked with the live members as they are now and the
// drives that were found.
void ServiceImpl::take_back(Running& running, std::span<const ScanEntry> entries) {
    Group& group = *running.group;
    const format::GroupRecord record = group.record();
    std::vector<meta::FoundDrive> found;
    for (const ScanEntry& entry : entries) {
        // What was scanned before the group started, or took the drive, is the same drive once
        // more.
        const bool is_used = !check_not_held(entry.drive.identity).ok() || find_original(entry);
        if (is_used || !belongs_to(entry.drive, record.uuid)) continue;
        // What it missed would be written over what somebody else keeps there now.
        if (entry.has_signature) {
            report_reused(entry, record.name);
        } else {
            found.push_back(entry.drive);
        }
    }
    if (found.empty()) return;
    for (std::uint32_t index = 0; index < record.members.size(); ++index) {
        const Slot slot(static_cast<std::uint8_t>(index));
        if (!group.is_live(slot)) continue;
        meta::FoundDrive live;
        live.identity = group.drive(slot)->identity();
        live.limits = group.drive(slot)->limits();
        live.superblock = format::Superblock{record.members[index].drive, 0, record, slot};
        found.push_back(std::move(live));
    }
    meta::AssemblyOptions options;
    options.force = true;
    options.now_ns = clock_.wall_ns();
    for (const meta::Candidate& candidate : meta::assemble(found, options)) {
        if (candidate.group != record.uuid) continue;
        if (!candidate.assembly) {
            if (candidate.problem) {
                warn_once("member-not-returned", candidate.problem->message, running.name);
            }
            continue;
        }
        const auto return_all = [&](const std::vector<Slot>& slots, bool by_bitmap) {
            for (const Slot slot : slots) {
                const format::Member& member = group.record().members[slot.get()];
                const std::optional<std::size_t> index = candidate.assembly->drives[slot.get()];
                if (member.state != format::MemberState::kMissing || !index) continue;
                auto drive = provider_.open(found[*index].identity.path, io::OpenMode::kExclusive);
                // Another drive with its superblock is a copy: it lacks what was written between
                // the copying and the loss, and no bitmap knows of that.
                const bool is_same = has_serial(member, found[*index].identity.serial);
                Status status = drive.ok()
                                    ? group.take_back(slot, std::move(drive).value(),
                                                      by_bitmap && member.by_bitmap && is_same)
                                    : Status(drive.error());
                if (status.ok()) continue;
                warn_once("member-not-returned", status.error().message, running.name,
                          member.serial);
            }
        };
        return_all(candidate.assembly->returning, true);
        return_all(candidate.assembly->outdated, false);
    }
}

bool ServiceImpl::is_drive_wanted() const {
    // Whether it is gone is to be known soon, too.
    if (!copies_.empty() || !offline_.empty() || !undo_.groups_in(UndoState::kRestoring).empty())
        return true;
    for (const auto& running : running_) {
        if (running->group->failed_by_absence()) return true;
        for (const format::Member& member : running->group->record().members) {
            if (member.state == format::MemberState::kMissing) return true;
        }
    }
    return false;
}

void ServiceImpl::look_for_drives() {
    for (const auto& running : running_) running->group->probe_members();
    const std::uint64_t now_ns = clock_.monotonic_ns();
    next_look_ns_ = now_ns + kLookNs;
    if (!is_drive_wanted() && now_ns < next_scan_ns_) return;
    next_scan_ns_ = now_ns + kIdleScanNs;
    const std::vector<ScanEntry> entries = finish_undos(scan_all());
    adopt_spares(entries);
    const std::size_t groups_before = running_.size();
    assemble_found(entries, AssembleOptions{}, true);
    if (running_.size() != groups_before) try_to_save_state();
    take_back_members(entries);
}

}  // namespace warpraid::control
