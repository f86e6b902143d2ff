// What is known about a group, as plain values: the truth that superblocks carry. No I/O. Texts are
// bytes as stored: a superblock may hold names that no create command would accept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/uuid.h"
#include "geometry/layout.h"

namespace warpraid::format {

inline constexpr std::size_t kSerialBytesMax = 64;
inline constexpr std::size_t kModelBytesMax = 64;
inline constexpr std::size_t kPathBytesMax = 128;

enum class MemberState : std::uint8_t {
    kInSync = 0,      // holds everything
    kRebuilding = 1,  // holds what lies below its checkpoint, or all but the dirty regions
    kMissing = 2,     // gone, or out of date; may come back
    kFailed = 3,      // put out by an error or by the operator; must not come back by itself
};
std::string_view to_text(MemberState state);

/// Why a member left.
enum class LeaveReason : std::uint8_t {
    kNone = 0,
    kAbsent = 1,  // not found at assembly, or vanished
    kWriteError = 2,
    kReadErrors = 3,  // over the threshold
    kTimeout = 4,
    kOperator = 5,
    kStale = 6,     // found, but the group went on without it
    kDiverged = 7,  // lived a life of its own, and the operator chose the other history
};
std::string_view to_text(LeaveReason reason);

/// Whether the group's user bytes begin with a table of volumes that Warpraid wrote.
enum class Table : std::uint8_t {
    kWritten = 0,
    kHeld = 1,  // not yet, and no byte of the data areas either: what the drives held before may be
                // wanted back
    kToBeWritten = 2,  // not yet, and the next one who starts the group writes an empty one
};

/// A slot of a group, with the memory of the drive that fills it or filled it last.
struct Member {
    Uuid drive;          // identity written at join time; nil: the slot was never filled
    std::string serial;  // hardware identity, at most kSerialBytesMax bytes
    std::string model;   // at most kModelBytesMax bytes
    std::string path;    // last seen at; at most kPathBytesMax bytes
    std::uint64_t drive_bytes = 0;
    std::uint64_t data_offset = 0;  // where its data area starts
    MemberState state = MemberState::kInSync;
    LeaveReason reason = LeaveReason::kNone;
    std::uint64_t since_ns = 0;  // wall time of the last state change
    /// kRebuilding: data bytes from the start that are valid. kRebuilding or kMissing with
    /// `by_bitmap`: only regions dirty in the bitmap are invalid. See leave().
    std::uint64_t rebuilt_bytes = 0;
    bool by_bitmap = false;
    /// The last commit in which this drive took part; frozen when it leaves. A returning drive
    /// whose own superblock carries another id at that generation has lived a life of its own.
    Generation last_generation;
    std::uint64_t last_commit_id = 0;
};

/// Marks a member as gone (`state` kMissing or kFailed), and remembers by `by_bitmap` whether it
/// was in sync until now, so that the bitmap knows everything it will miss. Every departure goes
/// through here: a member that left without it needs a full rebuild when it returns.
void leave(Member& member, MemberState state, LeaveReason reason, std::uint64_t now_ns);

/// A group.
struct GroupRecord {
    Uuid uuid;
    std::string name;  // at most limits::kGroupNameBytesMax bytes of UTF-8
    geometry::Shape shape;
    std::uint64_t region_stripes = 0;  // stripes per write-intent region
    std::uint64_t created_ns = 0;
    Generation generation;
    std::uint64_t commit_id = 0;           // random, new at each commit
    std::uint64_t previous_commit_id = 0;  // of generation - 1
    bool destroyed = false;
    /// Set by an orderly stop and cleared before the first write after it: dirty regions then only
    /// say what missing members missed, and every stripe agrees.
    bool clean = false;
    Table table = Table::kWritten;
    std::vector<Member> members;  // shape.members entries, by slot
};

/// Takes part in the group now: kInSync or kRebuilding.
bool is_live(const Member& member);
/// Whether the drive of that serial number, of any length, is the one that the record knows.
bool has_serial(const Member& member, std::string_view serial);

/// Whether every field can be stored and makes sense with the others; what a decoder refuses, an
/// encoder is never given. kBadSuperblock or kUnsupportedLayout, naming the field.
Status check_record(const GroupRecord& record);

/// Stripes per write-intent region for a new group: regions of at least limits::kRegionBytesMin per
/// member, and no more of them than limits::kRegionsMax.
std::uint64_t default_region_stripes(const geometry::Layout& layout);

/// A drive that waits to replace a member.
struct SpareRecord {
    Uuid drive;
    Uuid group;  // nil: global
    std::string serial;
    std::uint64_t drive_bytes = 0;
};

}  // namespace warpraid::format
