// Pure stripe arithmetic: where a byte of a group lies on its members. The byte layout is Linux
// MD's: RAID 5/6 left-symmetric, RAID 10 near, RAID 0 one zone capped at the smallest member,
// RAID 1 n-way (docs/on-disk-format.md). No I/O, no allocation, no state; total functions with
// asserted preconditions. Any thread.
//
// Words. A *column* is one chunk's worth of user data of a stripe (0-based, in address order).
// A *stripe* is the smallest unit that repeats the layout and starts on a chunk boundary of every
// member it touches:
//   RAID 0     n columns, one chunk deep on every member
//   RAID 1     one column, one chunk deep on every member (the chunk is the mirror's I/O unit)
//   RAID 5/6   n - 1 / n - 2 columns and P / P, Q, one chunk deep on every member
//   RAID 10    n / g columns, copies / g chunks deep, g = gcd(n, copies)
// Addresses: a *group offset* counts user bytes of the group; a *data offset* counts bytes from the
// start of a member's data area (the superblock says where on the drive that area starts).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/limits.h"
#include "base/result.h"
#include "base/units.h"

namespace warpraid::geometry {

enum class Level : std::uint8_t { kRaid0 = 0, kRaid1 = 1, kRaid5 = 5, kRaid6 = 6, kRaid10 = 10 };

/// "raid6". Parsing also accepts "6" and any case; fails with kBadLevel.
std::string_view to_text(Level level);
Result<Level> parse_level(std::string_view text);

/// What an operator chooses. `member_data_bytes` is the usable bytes of each member.
struct Shape {
    Level level = Level::kRaid5;
    std::uint32_t members = 0;
    std::uint32_t copies = 1;  // RAID 10: near copies, 2..members; RAID 1: ignored (= members)
    std::uint32_t chunk_bytes = 0;
    std::uint32_t block_bytes = 0;  // logical block, 512 or 4096
    std::uint64_t member_data_bytes = 0;
};

/// Fewest and most members of a level (RAID 0: 2, 1: 2, 5: 3, 6: 4, 10: 3; most 32).
std::uint32_t members_min(Level level);
std::uint32_t members_max(Level level);

/// Where a chunk lies on one member.
struct Placement {
    Slot slot;
    std::uint64_t data_offset = 0;  // of the chunk's first byte
    friend bool operator==(const Placement&, const Placement&) = default;
};

/// Where a group offset lies in its stripe.
struct Position {
    Stripe stripe;
    std::uint32_t column = 0;
    std::uint32_t offset_in_chunk = 0;
    friend bool operator==(const Position&, const Position&) = default;
};

/// What a chunk of a member holds.
struct ChunkRole {
    enum class Kind : std::uint8_t { kData, kP, kQ };
    Kind kind = Kind::kData;
    Stripe stripe;
    std::uint32_t column = 0;  // kData only
    std::uint32_t copy = 0;    // mirrored levels only
    friend bool operator==(const ChunkRole&, const ChunkRole&) = default;
};

class Layout {
  public:
    /// Checks every field (kBadLevel, kMemberCount, kBadChunk, kInvalidArgument, kBadSize with
    /// found and needed values in the message) and rounds the capacity down to whole stripes.
    static Result<Layout> make(const Shape& shape);

    const Shape& shape() const { return shape_; }
    Level level() const { return shape_.level; }
    std::uint32_t members() const { return shape_.members; }
    std::uint32_t chunk_bytes() const { return shape_.chunk_bytes; }
    std::uint32_t block_bytes() const { return shape_.block_bytes; }

    /// True for RAID 5 and 6.
    bool has_parity() const { return parity_columns_ != 0; }
    /// User columns of a stripe.
    std::uint32_t data_columns() const { return data_columns_; }
    /// 0, 1 (P) or 2 (P, Q).
    std::uint32_t parity_columns() const { return parity_columns_; }
    /// Copies of each data chunk: 1 for RAID 0/5/6, n for RAID 1, `copies` for RAID 10.
    std::uint32_t copies() const { return copies_; }
    /// Any this many members may be lost, whichever they are.
    std::uint32_t losses_always_survived() const;

    /// User bytes of a stripe / depth of a stripe on each member.
    std::uint64_t stripe_data_bytes() const { return stripe_data_bytes_; }
    std::uint64_t stripe_depth_bytes() const { return stripe_depth_bytes_; }
    std::uint64_t stripes() const { return stripes_; }
    /// User bytes of the group: stripes() * stripe_data_bytes().
    std::uint64_t capacity_bytes() const { return stripes_ * stripe_data_bytes_; }

    Position locate(std::uint64_t group_offset) const;
    std::uint64_t group_offset_of(const Position& position) const;

    /// Copy `copy` (< copies()) of data column `column` of `stripe`.
    Placement data_placement(Stripe stripe, std::uint32_t column, std::uint32_t copy) const;
    /// `parity` 0 is P, 1 is Q.
    Placement parity_placement(Stripe stripe, std::uint32_t parity) const;
    /// What the chunk at `chunk_index` (data_offset / chunk) of `slot` holds; inverse of the two.
    ChunkRole role_of(Slot slot, std::uint64_t chunk_index) const;

    /// Whether the group can still answer everything when the members whose bit is set in
    /// `missing_slots` are gone (RAID 10: no column with all its copies missing).
    bool survives(std::uint32_t missing_slots) const;

  private:
    Layout() = default;

    Shape shape_;
    std::uint32_t data_columns_ = 0;
    std::uint32_t parity_columns_ = 0;
    std::uint32_t copies_ = 1;
    std::uint64_t stripe_data_bytes_ = 0;
    std::uint64_t stripe_depth_bytes_ = 0;
    std::uint64_t stripes_ = 0;
};

}  // namespace warpraid::geometry
