#include "meta/history.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpraid::meta {
namespace {

using format::GroupRecord;
using format::Member;

bool holds(const Claim& claim, const GroupRecord& record) {
    return claim.record->generation == record.generation &&
           claim.record->commit_id == record.commit_id;
}

/// Whether the claim's own record was a commit of which a drive that went on with `record` was to
/// be part: then that drive never got it, and it was never in force.
bool was_never_in_force(const Claim& claim, const GroupRecord& record,
                        std::span<const Claim> claims) {
    return std::any_of(claims.begin(), claims.end(), [&](const Claim& other) {
        if (other.drive == claim.drive || !holds(other, record)) return false;
        const auto slot = slot_of(*claim.record, other.drive);
        return slot && is_live(claim.record->members[*slot]);
    });
}

/// Distinct records, newest first; equal generations in a fixed order.
std::vector<const GroupRecord*> distinct_records(std::span<const Claim> claims) {
    std::vector<const GroupRecord*> records;
    for (const Claim& claim : claims) {
        const bool known = std::any_of(records.begin(), records.end(),
                                       [&](const GroupRecord* r) { return holds(claim, *r); });
        if (!known) records.push_back(claim.record);
    }
    std::sort(records.begin(), records.end(), [](const GroupRecord* a, const GroupRecord* b) {
        if (a->generation != b->generation) return a->generation > b->generation;
        return a->commit_id < b->commit_id;
    });
    return records;
}

bool is_contradicted(const GroupRecord& record, std::span<const Claim> claims) {
    return std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) {
        return relate(claim, record, claims) == Relation::kDiverged;
    });
}

bool is_preferred(const Claim& claim, const std::string& preferred) {
    return claim.found->identity.serial == preferred || claim.drive.to_text() == preferred;
}

/// "generation 9 on S1 (/dev/a), S2 (/dev/b)".
std::string history_text(const GroupRecord& record, std::span<const Claim> claims) {
    std::string drives;
    for (const Claim& claim : claims) {
        if (!holds(claim, record)) continue;
        drives += fmt::format("{}{} ({})", drives.empty() ? "" : ", ", claim.found->identity.serial,
                              claim.found->identity.path);
    }
    return fmt::format("generation {} on {}", record.generation.get(), drives);
}

Error split_brain(std::span<const Claim> claims, const std::vector<const GroupRecord*>& records) {
    std::string histories;
    for (const GroupRecord* record : records) {
        histories += (histories.empty() ? "" : "; ") + history_text(*record, claims);
    }
    return Error{
        ErrorCode::kSplitBrain,
        fmt::format("group {} was started with different drives at different times, and "
                    "each went on without the others: {}; name the drive whose history "
                    "is to be kept with 'assemble {} --prefer SERIAL', the others are then "
                    "rebuilt from it",
                    records.front()->name, histories, records.front()->name)};
}

}  // namespace

std::optional<std::size_t> slot_of(const GroupRecord& record, const Uuid& drive) {
    for (std::size_t slot = 0; slot < record.members.size(); ++slot) {
        if (record.members[slot].drive == drive) return slot;
    }
    return std::nullopt;
}

Relation relate(const Claim& claim, const GroupRecord& record, std::span<const Claim> claims) {
    const auto slot = slot_of(record, claim.drive);
    if (!slot) return Relation::kFormer;
    const Member& member = record.members[*slot];
    const Generation generation = claim.record->generation;
    const std::uint64_t commit = claim.record->commit_id;
    if (is_live(member)) {
        const bool one_behind =
            generation < record.generation && commit == record.previous_commit_id;
        return holds(claim, record) || one_behind ? Relation::kCurrent : Relation::kDiverged;
    }
    if (generation == member.last_generation && commit == member.last_commit_id) {
        return Relation::kKnown;
    }
    if (generation < member.last_generation) return Relation::kOutdated;
    if (generation == member.last_generation.next() && was_never_in_force(claim, record, claims)) {
        return Relation::kOutdated;
    }
    return Relation::kDiverged;
}

Result<const GroupRecord*> choose_record(std::span<const Claim> claims,
                                         const std::string& preferred) {
    const std::vector<const GroupRecord*> records = distinct_records(claims);
    WARPRAID_ASSERT(!records.empty());
    for (const GroupRecord* record : records) {
        if (record->generation != records.front()->generation) break;
        if (!is_contradicted(*record, claims)) return record;
    }
    if (!preferred.empty()) {
        for (const GroupRecord* record : records) {
            for (const Claim& claim : claims) {
                if (is_preferred(claim, preferred) &&
                    relate(claim, *record, claims) == Relation::kCurrent) {
                    return record;
                }
            }
        }
    }
    return split_brain(claims, records);
}

}  // namespace warpraid::meta
