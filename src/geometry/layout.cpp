#include "geometry/layout.h"

#include <fmt/format.h>

#include <bit>
#include <cctype>
#include <numeric>
#include <string>

namespace warpraid::geometry {

namespace {

std::uint32_t count_bits(std::uint32_t mask) {
    return static_cast<std::uint32_t>(std::popcount(mask));
}

Status check_chunk(const Shape& shape) {
    if (is_power_of_two(shape.chunk_bytes) && shape.chunk_bytes >= limits::kChunkBytesMin &&
        shape.chunk_bytes <= limits::kChunkBytesMax) {
        return success();
    }
    return Error{ErrorCode::kBadChunk,
                 fmt::format("chunk of {} bytes: it must be a power of two from {} to {} bytes",
                             shape.chunk_bytes, limits::kChunkBytesMin, limits::kChunkBytesMax)};
}

Status check_members(const Shape& shape) {
    const std::uint32_t least = members_min(shape.level);
    const std::uint32_t most = members_max(shape.level);
    if (shape.members < least || shape.members > most) {
        return Error{ErrorCode::kMemberCount,
                     fmt::format("{} members: {} needs {} to {}", shape.members,
                                 to_text(shape.level), least, most)};
    }
    if (shape.level == Level::kRaid10 && (shape.copies < 2 || shape.copies > shape.members)) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} copies: raid10 over {} members needs 2 to {}", shape.copies,
                                 shape.members, shape.members)};
    }
    return success();
}

Status check_level(Level level) {
    switch (level) {
        case Level::kRaid0:
        case Level::kRaid1:
        case Level::kRaid5:
        case Level::kRaid6:
        case Level::kRaid10:
            return success();
    }
    return Error{ErrorCode::kBadLevel, fmt::format("level {}: it must be 0, 1, 5, 6 or 10",
                                                   static_cast<unsigned>(level))};
}

}  // namespace

std::string_view to_text(Level level) {
    switch (level) {
        case Level::kRaid0:
            return "raid0";
        case Level::kRaid1:
            return "raid1";
        case Level::kRaid5:
            return "raid5";
        case Level::kRaid6:
            return "raid6";
        case Level::kRaid10:
            return "raid10";
    }
    return "unknown";
}

Result<Level> parse_level(std::string_view text) {
    std::string lower;
    for (char c : text.substr(0, 16)) {
        lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    if (lower.starts_with("raid")) lower.erase(0, 4);
    if (lower == "0") return Level::kRaid0;
    if (lower == "1") return Level::kRaid1;
    if (lower == "5") return Level::kRaid5;
    if (lower == "6") return Level::kRaid6;
    if (lower == "10") return Level::kRaid10;
    return Error{ErrorCode::kBadLevel,
                 fmt::format("'{}' is not a RAID level: write raid0, raid1, raid5, raid6 or raid10",
                             text.substr(0, 16))};
}

std::uint32_t members_min(Level level) {
    switch (level) {
        case Level::kRaid0:
        case Level::kRaid1:
            return 2;
        case Level::kRaid5:
        case Level::kRaid10:
            return 3;
        case Level::kRaid6:
            return 4;
    }
    return 2;
}

std::uint32_t members_max(Level) {
    return limits::kMembersMax;
}

Result<Layout> Layout::make(const Shape& shape) {
    WARPRAID_TRY(check_level(shape.level));
    WARPRAID_TRY(check_members(shape));
    WARPRAID_TRY(check_chunk(shape));
    if (shape.block_bytes != 512 && shape.block_bytes != 4096) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("logical block of {} bytes: it must be 512 or 4096", shape.block_bytes)};
    }
    Layout layout;
    layout.shape_ = shape;
    std::uint32_t depth_chunks = 1;
    switch (shape.level) {
        case Level::kRaid0:
            layout.data_columns_ = shape.members;
            break;
        case Level::kRaid1:
            layout.data_columns_ = 1;
            layout.copies_ = shape.members;
            break;
        case Level::kRaid5:
        case Level::kRaid6:
            layout.parity_columns_ = shape.level == Level::kRaid5 ? 1 : 2;
            layout.data_columns_ = shape.members - layout.parity_columns_;
            break;
        case Level::kRaid10: {
            const std::uint32_t common = std::gcd(shape.members, shape.copies);
            layout.copies_ = shape.copies;
            layout.data_columns_ = shape.members / common;
            depth_chunks = shape.copies / common;
            break;
        }
    }
    layout.stripe_data_bytes_ = std::uint64_t{layout.data_columns_} * shape.chunk_bytes;
    layout.stripe_depth_bytes_ = std::uint64_t{depth_chunks} * shape.chunk_bytes;
    if (shape.member_data_bytes < layout.stripe_depth_bytes_ ||
        shape.member_data_bytes > limits::kDriveBytesMax) {
        return Error{ErrorCode::kBadSize,
                     fmt::format("{} data bytes per member: it must be from {} to {}",
                                 shape.member_data_bytes, layout.stripe_depth_bytes_,
                                 limits::kDriveBytesMax)};
    }
    layout.stripes_ = shape.member_data_bytes / layout.stripe_depth_bytes_;
    return layout;
}

std::uint32_t Layout::losses_always_survived() const {
    return has_parity() ? parity_columns_ : copies_ - 1;
}

Position Layout::locate(std::uint64_t group_offset) const {
    WARPRAID_ASSERT(group_offset < capacity_bytes());
    const std::uint64_t in_stripe = group_offset % stripe_data_bytes_;
    Position position;
    position.stripe = Stripe(group_offset / stripe_data_bytes_);
    position.column = static_cast<std::uint32_t>(in_stripe / shape_.chunk_bytes);
    position.offset_in_chunk = static_cast<std::uint32_t>(in_stripe % shape_.chunk_bytes);
    return position;
}

std::uint64_t Layout::group_offset_of(const Position& position) const {
    WARPRAID_ASSERT(position.column < data_columns_);
    WARPRAID_ASSERT(position.offset_in_chunk < shape_.chunk_bytes);
    return position.stripe.get() * stripe_data_bytes_ +
           std::uint64_t{position.column} * shape_.chunk_bytes + position.offset_in_chunk;
}

Placement Layout::data_placement(Stripe stripe, std::uint32_t column, std::uint32_t copy) const {
    WARPRAID_ASSERT(stripe.get() < stripes_ && column < data_columns_ && copy < copies_);
    const std::uint32_t members = shape_.members;
    std::uint64_t slot = 0;
    std::uint64_t row = 0;
    switch (shape_.level) {
        case Level::kRaid0:
            slot = column;
            break;
        case Level::kRaid1:
            slot = copy;
            break;
        case Level::kRaid5:
        case Level::kRaid6: {
            // Left-symmetric: P moves one member to the left each stripe, Q (if any) and the data
            // columns follow behind it.
            const std::uint64_t p = members - 1 - stripe.get() % members;
            slot = (p + parity_columns_ + column) % members;
            break;
        }
        case Level::kRaid10: {
            // Near copies: laid out one behind the other, member by member, row by row.
            const std::uint64_t place = std::uint64_t{column} * copies_ + copy;
            slot = place % members;
            row = place / members;
            break;
        }
    }
    return Placement{Slot(static_cast<std::uint8_t>(slot)),
                     stripe.get() * stripe_depth_bytes_ + row * shape_.chunk_bytes};
}

Placement Layout::parity_placement(Stripe stripe, std::uint32_t parity) const {
    WARPRAID_ASSERT(stripe.get() < stripes_ && parity < parity_columns_);
    const std::uint64_t members = shape_.members;
    const std::uint64_t p = members - 1 - stripe.get() % members;
    return Placement{Slot(static_cast<std::uint8_t>((p + parity) % members)),
                     stripe.get() * stripe_depth_bytes_};
}

ChunkRole Layout::role_of(Slot slot, std::uint64_t chunk_index) const {
    WARPRAID_ASSERT(slot.get() < shape_.members);
    const std::uint64_t depth_chunks = stripe_depth_bytes_ / shape_.chunk_bytes;
    WARPRAID_ASSERT(chunk_index < stripes_ * depth_chunks);
    ChunkRole role;
    role.stripe = Stripe(chunk_index / depth_chunks);
    const std::uint64_t members = shape_.members;
    switch (shape_.level) {
        case Level::kRaid0:
            role.column = slot.get();
            break;
        case Level::kRaid1:
            role.copy = slot.get();
            break;
        case Level::kRaid5:
        case Level::kRaid6: {
            const std::uint64_t p = members - 1 - role.stripe.get() % members;
            const std::uint64_t behind = (slot.get() + members - p) % members;
            if (behind < parity_columns_) {
                role.kind = behind == 0 ? ChunkRole::Kind::kP : ChunkRole::Kind::kQ;
            } else {
                role.column = static_cast<std::uint32_t>(behind - parity_columns_);
            }
            break;
        }
        case Level::kRaid10: {
            const std::uint64_t place = chunk_index % depth_chunks * members + slot.get();
            role.column = static_cast<std::uint32_t>(place / copies_);
            role.copy = static_cast<std::uint32_t>(place % copies_);
            break;
        }
    }
    return role;
}

bool Layout::survives(std::uint32_t missing_slots) const {
    if (missing_slots == 0) return true;
    if (has_parity()) return count_bits(missing_slots) <= parity_columns_;
    for (std::uint32_t column = 0; column < data_columns_; ++column) {
        bool live = false;
        for (std::uint32_t copy = 0; copy < copies_ && !live; ++copy) {
            const Slot slot = data_placement(Stripe(0), column, copy).slot;
            live = (missing_slots >> slot.get() & 1) == 0;
        }
        if (!live) return false;
    }
    return true;
}

}  // namespace warpraid::geometry
