// What the engine believes about its members. Built by the control plane from the committed record,
// adopted by the engine on its shard: never changed in place.
#pragma once

#include <array>
#include <cstdint>

#include "base/limits.h"
#include "base/units.h"
#include "io/drive.h"

namespace warpraid::array {

enum class Access : std::uint8_t {
    kNone,        // missing or failed: neither read nor written
    kRebuilding,  // written and read where already valid
    kFull,
};

struct MemberView {
    Access access = Access::kNone;
    io::Drive* drive = nullptr;     // null with kNone
    std::uint64_t data_offset = 0;  // start of the data area on the drive
    /// kRebuilding: data bytes valid from the start (ignored when by_bitmap).
    std::uint64_t rebuilt_bytes = 0;
    /// kRebuilding: every region is valid but those dirty in the bitmap when adopted.
    bool by_bitmap = false;
    /// Its copy of the bitmap can be written. False for a last copy that must stay without.
    bool keeps_bitmap = true;
};

struct View {
    std::uint64_t version = 0;  // grows with every change
    std::array<MemberView, limits::kMembersMax> members{};
    bool failed = false;  // too few members: every request ends with EIO
};

}  // namespace warpraid::array
