// How the superblocks of one group's drives relate to each other: which record is in force, and
// what every other drive is to it. Pure. Part of assembly.
//
// Store::commit() gives the facts that this rests on. A drive that is live in a record is found
// with that commit or its predecessor. A record remembers of every drive that left the last commit
// it took part in. So whatever a drive holds besides is either a commit that a crash cut short
// before all its drives had it, which was never in force; or the drive was started without the
// others and has a history of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/record.h"
#include "meta/assembly.h"

namespace warpraid::meta {

/// A drive that says it belongs to the group.
struct Claim {
    std::size_t index = 0;  // into the scan
    const FoundDrive* found = nullptr;
    Uuid drive;
    Slot slot;  // by its own record
    const format::GroupRecord* record = nullptr;
};

/// What a drive is to a record.
enum class Relation : std::uint8_t {
    kCurrent,   // live in it, and holds it or its predecessor (a crash came in between)
    kKnown,     // left; found as the record remembers it
    kOutdated,  // left; found behind that, or with a commit that was never in force
    kFormer,    // its slot has another drive now
    kDiverged,  // has a history that the record does not know
};

/// Position of `drive` among the record's members.
std::optional<std::size_t> slot_of(const format::GroupRecord& record, const Uuid& drive);

Relation relate(const Claim& claim, const format::GroupRecord& record,
                std::span<const Claim> claims);

/// The record in force: the newest one that no drive contradicts. `preferred` (serial or uuid text)
/// decides when there is none. kSplitBrain, with the histories.
Result<const format::GroupRecord*> choose_record(std::span<const Claim> claims,
                                                 const std::string& preferred);

}  // namespace warpraid::meta
