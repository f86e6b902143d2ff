// The decision at the heart of the parity levels, as a pure function: given what a slab of a stripe
// needs and who can be read and written, which columns to read, compute and write.
//
// A *slab* is a horizontal cut [low, high) of a stripe's chunks in which every data column is
// either touched (wanted or overwritten) as a whole or not at all.
#pragma once

#include <cstdint>

namespace warpraid::array {

/// Bits by column: data columns from bit 0, then P, then Q.
using ColumnMask = std::uint32_t;

/// A column that there is not is in no mask: Q of a RAID 5 would be the 33rd of 32 members.
constexpr bool has(ColumnMask mask, std::uint32_t column) {
    return (std::uint64_t{mask} >> column & 1) != 0;
}

enum class SlabMode : std::uint8_t {
    kDirect,           // read: every wanted column can be read
    kReconstructRead,  // read: missing columns are computed from the others
    kPlainWrite,       // write: no parity member is there to be kept right
    kEncode,        // write: parity from all data; reads the untouched columns (none: full stripe)
    kUpdate,        // write: parity from old parity and the change (read-modify-write)
    kRecoverWrite,  // write: missing columns are computed first, then as kEncode
    kLost,          // more is missing than redundancy covers
};

struct SlabInput {
    bool write = false;
    std::uint32_t columns = 0;   // data columns
    std::uint32_t parities = 0;  // 1 or 2
    ColumnMask touched = 0;      // data columns wanted or overwritten; not empty
    ColumnMask readable = 0;     // data and parity
    ColumnMask writable = 0;     // data and parity
    /// The region awaits resync: old parity must not be used while data can be read instead.
    bool distrust_parity = false;
};

struct SlabPlan {
    SlabMode mode = SlabMode::kLost;
    ColumnMask reads = 0;
    ColumnMask writes = 0;
    std::uint32_t missing[2] = {0, 0};  // data columns to compute, ascending
    std::uint32_t missing_count = 0;
};

SlabPlan plan_slab(const SlabInput& input);

/// The reads that recover all unreadable data columns, or kLost. Mode is kReconstructRead.
SlabPlan plan_recovery(const SlabInput& input);

}  // namespace warpraid::array
