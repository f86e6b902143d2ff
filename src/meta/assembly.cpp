#include "meta/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/assert.h"
#include "meta/history.h"
#include "meta/superblock_io.h"

namespace warpraid::meta {
namespace {

using format::GroupRecord;
using format::LeaveReason;
using format::Member;
using format::MemberState;

/// One group's way from claims to a candidate.
class GroupAssembler {
  public:
    GroupAssembler(std::vector<Claim> claims, const AssemblyOptions& options)
        : claims_(std::move(claims)), options_(options) {}

    Candidate run() {
        Candidate candidate;
        candidate.group = claims_.front().record->uuid;
        for (const Claim& claim : claims_) candidate.drives.push_back(claim.index);
        candidate.name = newest()->name;
        auto status = decide();
        if (status.ok()) {
            candidate.assembly = std::move(assembly_);
        } else {
            candidate.problem = std::move(status).error();
        }
        return candidate;
    }
    /// The record that decides about name and destruction when nothing better is known.
    const GroupRecord* newest() const {
        const auto claim =
            std::max_element(claims_.begin(), claims_.end(), [](const Claim& a, const Claim& b) {
                return a.record->generation < b.record->generation;
            });
        return claim->record;
    }

  private:
    Status decide() {
        WARPRAID_TRY(drop_copies());
        WARPRAID_TRY_ASSIGN(found_, choose_record(claims_, options_.preferred_drive));
        assembly_.record = *found_;
        assembly_.record.destroyed = false;
        assembly_.drives.resize(found_->members.size());
        for (const Claim& claim : claims_) place(claim);
        drop_absent();
        WARPRAID_TRY(check_complete());
        WARPRAID_TRY(check_known());
        return check_quorum();
    }

    Status drop_copies();
    Status drop_copies_of(const Uuid& drive);
    void place(const Claim& claim);
    bool is_older_copy(const Claim& claim) const;
    void place_current(const Claim& claim, std::size_t slot);
    void place_outdated(const Claim& claim, std::size_t slot, Relation relation);
    bool fits(const Claim& claim, std::size_t slot);
    void note_identity(const Claim& claim, Member& member);
    void drop_absent();
    Status check_complete() const;
    Status check_known() const;
    Status check_quorum() const;
    /// Slots that were in sync and are not now, and their drives for a message.
    std::vector<std::size_t> lost_slots() const;
    std::string lost_text() const;
    void warn(std::string text) { assembly_.warnings.push_back(std::move(text)); }

    std::vector<Claim> claims_;
    const AssemblyOptions& options_;
    const GroupRecord* found_ = nullptr;
    Assembly assembly_;
    /// Why a drive that is there cannot be used.
    std::map<std::size_t, std::string> unfit_;
};

Status GroupAssembler::drop_copies() {
    std::vector<Uuid> drives;
    for (const Claim& claim : claims_) drives.push_back(claim.drive);
    std::sort(drives.begin(), drives.end());
    drives.erase(std::unique(drives.begin(), drives.end()), drives.end());
    for (const Uuid& drive : drives) WARPRAID_TRY(drop_copies_of(drive));
    return success();
}

Status GroupAssembler::drop_copies_of(const Uuid& drive) {
    const auto is_twin = [&](const Claim& claim) { return claim.drive == drive; };
    const auto is_original = [&](const Claim& claim) {
        const std::string& serial = claim.found->identity.serial;
        return is_twin(claim) && !serial.empty() &&
               claim.record->members[claim.slot.get()].serial == serial;
    };
    if (std::count_if(claims_.begin(), claims_.end(), is_twin) < 2) return success();
    std::string twins;
    for (const Claim& claim : claims_) {
        if (!is_twin(claim)) continue;
        twins += fmt::format("{}{} ({})", twins.empty() ? "" : " and ",
                             claim.found->identity.serial, claim.found->identity.path);
    }
    if (std::count_if(claims_.begin(), claims_.end(), is_original) != 1) {
        return Error{ErrorCode::kDuplicateMember,
                     fmt::format("drives {} carry the same superblock ({}) and none is the one it "
                                 "was written to: take away all but one, or make a copy a blank "
                                 "drive with edit drive DRIVE --reset-identity",
                                 twins, drive.to_text())};
    }
    const auto original = *std::find_if(claims_.begin(), claims_.end(), is_original);
    warn(
        fmt::format("drives {} carry the same superblock: {} is used, for it was written there; "
                    "the rest are left alone",
                    twins, describe(original.found->identity)));
    std::erase_if(claims_, [&](const Claim& claim) {
        return is_twin(claim) && claim.index != original.index;
    });
    return success();
}

void GroupAssembler::place(const Claim& claim) {
    const Relation relation = relate(claim, *found_, claims_);
    // A preferred record may be older than what it was preferred to; the next commit must not be.
    assembly_.record.generation = std::max(assembly_.record.generation, claim.record->generation);
    if (relation == Relation::kFormer) {
        warn(fmt::format("{} was a member of group {}; its slot has another drive now",
                         describe(claim.found->identity), found_->name));
        return;
    }
    const std::size_t slot = slot_of(*found_, claim.drive).value();
    if (!fits(claim, slot)) return;
    if (relation == Relation::kCurrent && is_older_copy(claim)) {
        leave(assembly_.record.members[slot], MemberState::kMissing, LeaveReason::kStale,
              options_.now_ns);
        place_outdated(claim, slot, Relation::kOutdated);
    } else if (relation == Relation::kCurrent) {
        place_current(claim, slot);
    } else {
        place_outdated(claim, slot, relation);
    }
}

// A drive may be one commit behind because a crash came in between, and has the data then. One that
// the superblock was not written to, while others are where theirs was, is a copy from before the
// group was stopped in order: it lacks what was written since, and no bitmap knows of that.
bool GroupAssembler::is_older_copy(const Claim& claim) const {
    const auto is_in_place = [&](const Claim& other) {
        const auto at = slot_of(*found_, other.drive);
        return at && has_serial(found_->members[*at], other.found->identity.serial);
    };
    const bool is_behind = claim.record->commit_id != found_->commit_id;
    return is_behind && found_->clean && !is_in_place(claim) &&
           found_->shape.level != geometry::Level::kRaid0 &&
           std::any_of(claims_.begin(), claims_.end(), is_in_place);
}

bool GroupAssembler::fits(const Claim& claim, std::size_t slot) {
    const Member& member = found_->members[slot];
    const io::DriveLimits& limits = claim.found->limits;
    if (limits.size_bytes < member.drive_bytes) {
        unfit_[slot] =
            fmt::format("has {} bytes and had {}", limits.size_bytes, member.drive_bytes);
    } else if (limits.logical_block_bytes > found_->shape.block_bytes) {
        unfit_[slot] = fmt::format("has blocks of {} bytes, the group's are {}",
                                   limits.logical_block_bytes, found_->shape.block_bytes);
    } else {
        return true;
    }
    warn(fmt::format("{} is not used: it {}", describe(claim.found->identity), unfit_[slot]));
    return false;
}

void GroupAssembler::note_identity(const Claim& claim, Member& member) {
    const io::DriveIdentity& identity = claim.found->identity;
    if (!has_serial(member, identity.serial)) {
        warn(fmt::format("{} was known as drive {} before: the superblock was moved or copied",
                         describe(identity), member.serial));
    }
    member.serial = identity.serial.substr(0, format::kSerialBytesMax);
    member.model = identity.model.substr(0, format::kModelBytesMax);
    member.path = identity.path.substr(0, format::kPathBytesMax);
    member.drive_bytes = std::min(claim.found->limits.size_bytes, limits::kDriveBytesMax);
}

void GroupAssembler::place_current(const Claim& claim, std::size_t slot) {
    Member& member = assembly_.record.members[slot];
    note_identity(claim, member);
    assembly_.drives[slot] = claim.index;
    const bool is_behind = claim.record->commit_id != found_->commit_id;
    if (claim.found->damaged_copy || is_behind) {
        assembly_.damaged.push_back(Slot(static_cast<std::uint8_t>(slot)));
    }
}

void GroupAssembler::place_outdated(const Claim& claim, std::size_t slot, Relation relation) {
    Member& member = assembly_.record.members[slot];
    if (member.state == MemberState::kFailed && relation != Relation::kDiverged) {
        warn(
            fmt::format("{} was put out of group {} ({}) and stays out until it is replaced or "
                        "added again",
                        describe(claim.found->identity), found_->name, to_text(member.reason)));
        return;
    }
    const bool is_known = relation == Relation::kKnown;
    const bool by_bitmap = is_known && member.by_bitmap && member.reason != LeaveReason::kDiverged;
    if (relation == Relation::kDiverged) {
        // The operator chose: from now on this history is known, and not worth a question.
        leave(member, MemberState::kMissing, LeaveReason::kDiverged, options_.now_ns);
        member.last_generation = claim.record->generation;
        member.last_commit_id = claim.record->commit_id;
        warn(fmt::format("{} has a history of its own that is given up: it needs a full rebuild",
                         describe(claim.found->identity)));
    } else if (member.reason != LeaveReason::kDiverged) {
        member.reason = LeaveReason::kStale;
    }
    member.by_bitmap = by_bitmap;
    note_identity(claim, member);
    assembly_.drives[slot] = claim.index;
    auto& list = by_bitmap ? assembly_.returning : assembly_.outdated;
    list.push_back(Slot(static_cast<std::uint8_t>(slot)));
}

void GroupAssembler::drop_absent() {
    for (std::size_t slot = 0; slot < found_->members.size(); ++slot) {
        Member& member = assembly_.record.members[slot];
        if (is_live(member) && !assembly_.drives[slot]) {
            leave(member, MemberState::kMissing, LeaveReason::kAbsent, options_.now_ns);
            // A drive that shrank and grows back has holes that no bitmap knows of.
            if (unfit_.contains(slot)) member.by_bitmap = false;
        }
    }
    const auto by_slot = [](Slot a, Slot b) { return a < b; };
    std::sort(assembly_.returning.begin(), assembly_.returning.end(), by_slot);
    std::sort(assembly_.outdated.begin(), assembly_.outdated.end(), by_slot);
    std::sort(assembly_.damaged.begin(), assembly_.damaged.end(), by_slot);
}

std::vector<std::size_t> GroupAssembler::lost_slots() const {
    std::vector<std::size_t> lost;
    for (std::size_t slot = 0; slot < found_->members.size(); ++slot) {
        if (found_->members[slot].state == MemberState::kInSync &&
            assembly_.record.members[slot].state != MemberState::kInSync) {
            lost.push_back(slot);
        }
    }
    return lost;
}

std::string GroupAssembler::lost_text() const {
    std::string text;
    for (std::size_t slot = 0; slot < found_->members.size(); ++slot) {
        if (assembly_.record.members[slot].state == MemberState::kInSync) continue;
        const Member& member = assembly_.record.members[slot];
        const auto unfit = unfit_.find(slot);
        text +=
            fmt::format("{}slot {}: {} ({})", text.empty() ? "" : ", ", slot,
                        member.serial.empty() ? "never filled" : "drive " + member.serial,
                        unfit != unfit_.end() ? unfit->second : std::string(to_text(member.state)));
    }
    return text;
}

Status GroupAssembler::check_complete() const {
    std::uint32_t missing = 0;
    std::size_t in_sync = 0;
    for (std::size_t slot = 0; slot < found_->members.size(); ++slot) {
        const bool is_in_sync = assembly_.record.members[slot].state == MemberState::kInSync;
        if (!is_in_sync) missing |= 1u << slot;
        in_sync += is_in_sync ? 1 : 0;
    }
    const auto layout = geometry::Layout::make(found_->shape);
    WARPRAID_ASSERT(layout.ok());
    if (layout->survives(missing)) return success();
    return Error{
        ErrorCode::kIncomplete,
        fmt::format("group {} has {} of its {} drives in sync, too few for {}; without {}: "
                    "bring these drives back",
                    found_->name, in_sync, found_->members.size(), to_text(found_->shape.level),
                    lost_text())};
}

// Drives that left together before others agree with each other, and may be the majority of what
// they know.
Status GroupAssembler::check_known() const {
    const auto known = options_.known.find(found_->uuid);
    if (options_.force || known == options_.known.end() ||
        found_->generation >= known->second.generation) {
        return success();
    }
    return Error{ErrorCode::kQuorumLost,
                 fmt::format("group {} came to generation {} here, and the drives that are here "
                             "know of {} only, so they lack what was written since: bring back {}, "
                             "or give that up with 'assemble {} --force'",
                             found_->name, known->second.generation.get(), found_->generation.get(),
                             known->second.drives, found_->name)};
}

Status GroupAssembler::check_quorum() const {
    std::size_t in_sync = 0;
    for (const Member& member : found_->members) {
        if (member.state == MemberState::kInSync) ++in_sync;
    }
    const std::size_t lost = lost_slots().size();
    if (options_.force || lost == 0 || 2 * lost < in_sync) return success();
    return Error{
        ErrorCode::kQuorumLost,
        fmt::format("group {} would start without {} of its {} drives in sync, which may "
                    "be in use elsewhere: {}; bring them back, or start it with 'assemble {} "
                    "--force'",
                    found_->name, lost, in_sync, lost_text(), found_->name)};
}

/// Of several groups with one name all but the one that runs, or else the oldest, get a part of
/// their uuid appended.
void distinguish_names(std::vector<Candidate>& candidates,
                       const std::map<Uuid, std::uint64_t>& created,
                       const std::map<std::string, Uuid>& taken) {
    std::map<std::string, std::vector<Candidate*>> by_name;
    for (Candidate& candidate : candidates) by_name[candidate.name].push_back(&candidate);
    for (auto& [name, same] : by_name) {
        std::sort(same.begin(), same.end(), [&](const Candidate* a, const Candidate* b) {
            return std::pair(created.at(a->group), a->group) <
                   std::pair(created.at(b->group), b->group);
        });
        const auto owner = taken.find(name);
        const Uuid keeper = owner == taken.end() ? same.front()->group : owner->second;
        for (Candidate* candidate : same) {
            if (candidate->group == keeper) continue;
            candidate->name = name + "-" + candidate->group.to_text().substr(0, 8);
            if (!candidate->assembly) continue;
            candidate->assembly->warnings.push_back(
                fmt::format("another group is named {} too: this one is called {} until it is "
                            "renamed",
                            name, candidate->name));
        }
    }
}

}  // namespace

std::vector<Candidate> assemble(std::span<const FoundDrive> scan, const AssemblyOptions& options) {
    std::map<Uuid, std::vector<Claim>> groups;
    for (std::size_t index = 0; index < scan.size(); ++index) {
        if (!scan[index].superblock) continue;
        const format::Superblock& superblock = *scan[index].superblock;
        const auto* record = std::get_if<GroupRecord>(&superblock.content);
        if (record == nullptr) continue;
        groups[record->uuid].push_back(
            {index, &scan[index], superblock.drive, superblock.slot, record});
    }
    std::vector<Candidate> candidates;
    std::map<Uuid, std::uint64_t> created;
    for (auto& [uuid, claims] : groups) {
        GroupAssembler assembler(std::move(claims), options);
        if (assembler.newest()->destroyed && !options.destroyed) continue;
        created[uuid] = assembler.newest()->created_ns;
        candidates.push_back(assembler.run());
    }
    distinguish_names(candidates, created, options.taken_names);
    return candidates;
}

Status check_dirty_start(const Assembly& assembly, std::span<const std::uint64_t> dirty,
                         const AssemblyOptions& options) {
    const GroupRecord& record = assembly.record;
    const bool has_parity = record.shape.level == geometry::Level::kRaid5 ||
                            record.shape.level == geometry::Level::kRaid6;
    const bool is_degraded =
        std::any_of(record.members.begin(), record.members.end(),
                    [](const Member& member) { return member.state != MemberState::kInSync; });
    const bool is_dirty =
        std::any_of(dirty.begin(), dirty.end(), [](std::uint64_t word) { return word != 0; });
    // Before the first volume nobody has written anything.
    const bool is_unused = record.table != format::Table::kWritten;
    if (options.force || !has_parity || !is_degraded || record.clean || !is_dirty || is_unused) {
        return success();
    }
    std::string missing;
    for (const Member& member : record.members) {
        if (member.state == MemberState::kInSync) continue;
        missing += (missing.empty() ? "" : ", ") +
                   (member.serial.empty() ? std::string("a slot never filled") : member.serial);
    }
    return Error{ErrorCode::kDirtyDegraded,
                 fmt::format("group {} was not stopped in order and lacks members in sync ({}): "
                             "blocks that were being written to then may be wrong where they have "
                             "to be computed; bring the drives back, or start it with 'assemble {} "
                             "--force'",
                             record.name, missing, record.name)};
}

}  // namespace warpraid::meta
