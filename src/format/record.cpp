#include "format/record.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/superblock.h"

namespace warpraid::format {
namespace {

Error bad(std::string message) {
    return Error{ErrorCode::kBadSuperblock, std::move(message)};
}

Status check_shape(const GroupRecord& record) {
    const auto layout = geometry::Layout::make(record.shape);
    if (!layout.ok()) {
        const bool unknown_level = layout.error().code == ErrorCode::kBadLevel;
        if (!unknown_level) return bad(layout.error().message);
        return Error{ErrorCode::kUnsupportedLayout,
                     layout.error().message + ": use the program that made it"};
    }
    if (record.shape.copies > limits::kMembersMax) {
        return bad(fmt::format("{} copies: at most {}", record.shape.copies, limits::kMembersMax));
    }
    if (record.region_stripes == 0 ||
        (layout->stripes() - 1) / record.region_stripes >= limits::kRegionsMax) {
        return bad(fmt::format("regions of {} stripes: {} stripes must make at most {} regions",
                               record.region_stripes, layout->stripes(), limits::kRegionsMax));
    }
    return success();
}

Status check_texts(const Member& member, std::size_t slot) {
    if (member.serial.size() <= kSerialBytesMax && member.model.size() <= kModelBytesMax &&
        member.path.size() <= kPathBytesMax) {
        return success();
    }
    return bad(
        fmt::format("slot {}: serial, model and path of {}, {} and {} bytes: at most {}, {} "
                    "and {}",
                    slot, member.serial.size(), member.model.size(), member.path.size(),
                    kSerialBytesMax, kModelBytesMax, kPathBytesMax));
}

Status check_member(const GroupRecord& record, std::size_t slot) {
    const Member& member = record.members[slot];
    WARPRAID_TRY(check_texts(member, slot));
    if (static_cast<std::uint8_t>(member.state) > static_cast<std::uint8_t>(MemberState::kFailed)) {
        return bad(fmt::format("slot {}: member state {}", slot, static_cast<int>(member.state)));
    }
    if (static_cast<std::uint8_t>(member.reason) >
        static_cast<std::uint8_t>(LeaveReason::kDiverged)) {
        return bad(fmt::format("slot {}: reason {}", slot, static_cast<int>(member.reason)));
    }
    if (member.drive.is_nil()) {
        if (!is_live(member)) return success();
        return bad(fmt::format("slot {}: a live member without a drive", slot));
    }
    if (member.data_offset < limits::kHeadReserveBytesMin || member.data_offset % 512 != 0 ||
        member.drive_bytes > limits::kDriveBytesMax ||
        member.data_offset > limits::kDriveBytesMax) {
        return bad(fmt::format("slot {}: data from byte {} of a drive of {} bytes", slot,
                               member.data_offset, member.drive_bytes));
    }
    const std::uint64_t needed =
        member.data_offset + record.shape.member_data_bytes + limits::kTailReserveBytes;
    if (member.drive_bytes < needed) {
        return bad(fmt::format("slot {}: a drive of {} bytes, but {} are needed", slot,
                               member.drive_bytes, needed));
    }
    if (member.rebuilt_bytes > record.shape.member_data_bytes) {
        return bad(fmt::format("slot {}: {} bytes rebuilt of {}", slot, member.rebuilt_bytes,
                               record.shape.member_data_bytes));
    }
    return success();
}

}  // namespace

std::string_view to_text(MemberState state) {
    switch (state) {
        case MemberState::kInSync:
            return "in-sync";
        case MemberState::kRebuilding:
            return "rebuilding";
        case MemberState::kMissing:
            return "missing";
        case MemberState::kFailed:
            return "failed";
    }
    return "unknown";
}

std::string_view to_text(LeaveReason reason) {
    switch (reason) {
        case LeaveReason::kNone:
            return "none";
        case LeaveReason::kAbsent:
            return "absent";
        case LeaveReason::kWriteError:
            return "write-error";
        case LeaveReason::kReadErrors:
            return "read-errors";
        case LeaveReason::kTimeout:
            return "timeout";
        case LeaveReason::kOperator:
            return "operator";
        case LeaveReason::kStale:
            return "stale";
        case LeaveReason::kDiverged:
            return "diverged";
    }
    return "unknown";
}

bool has_serial(const Member& member, std::string_view serial) {
    return member.serial == serial.substr(0, kSerialBytesMax);
}

bool is_live(const Member& member) {
    return member.state == MemberState::kInSync || member.state == MemberState::kRebuilding;
}

void leave(Member& member, MemberState state, LeaveReason reason, std::uint64_t now_ns) {
    WARPRAID_ASSERT(state == MemberState::kMissing || state == MemberState::kFailed);
    if (member.state == MemberState::kInSync) member.by_bitmap = true;
    member.state = state;
    member.reason = reason;
    member.since_ns = now_ns;
}

Status check_record(const GroupRecord& record) {
    if (record.uuid.is_nil()) return bad("a group without an identity");
    if (record.name.size() > limits::kGroupNameBytesMax) {
        return bad(fmt::format("a group name of {} bytes: at most {}", record.name.size(),
                               limits::kGroupNameBytesMax));
    }
    WARPRAID_TRY(check_shape(record));
    if (static_cast<std::uint8_t>(record.table) > static_cast<std::uint8_t>(Table::kToBeWritten)) {
        return bad(fmt::format("table {}: 0 to 2 are known", static_cast<int>(record.table)));
    }
    if (record.members.size() != record.shape.members) {
        return bad(fmt::format("{} members recorded for {} slots", record.members.size(),
                               record.shape.members));
    }
    for (std::size_t slot = 0; slot < record.members.size(); ++slot) {
        WARPRAID_TRY(check_member(record, slot));
        for (std::size_t other = 0; other < slot; ++other) {
            const Uuid& drive = record.members[slot].drive;
            if (!drive.is_nil() && drive == record.members[other].drive) {
                return bad(fmt::format("slots {} and {} name the same drive", other, slot));
            }
        }
    }
    return success();
}

std::uint64_t default_region_stripes(const geometry::Layout& layout) {
    const std::uint64_t by_size = divide_up(limits::kRegionBytesMin, layout.stripe_depth_bytes());
    const std::uint64_t by_count = divide_up(layout.stripes(), limits::kRegionsMax);
    return std::max(by_size, by_count);
}

}  // namespace warpraid::format
