// Every maximum of the product, in one place, with the relations between them checked at compile
// time. Sizes in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace warpraid::limits {

// Groups and drives.
inline constexpr std::size_t kMembersMax = 32;
inline constexpr std::size_t kGroupsMax = 64;
inline constexpr std::size_t kDrivesMax = 256;
inline constexpr std::size_t kVolumesPerGroupMax = 128;
inline constexpr std::uint64_t kChunkBytesMin = 4 * kKiB;
inline constexpr std::uint64_t kChunkBytesMax = 1 * kMiB;
inline constexpr std::uint64_t kDriveBytesMin = 64 * kMiB;
inline constexpr std::uint64_t kDriveBytesMax = 128 * kTiB;
inline constexpr std::size_t kGroupNameBytesMax = 32;
inline constexpr std::size_t kVolumeNameCharsMax = 36;  // a GPT entry's name field

// On-disk reserves (docs/on-disk-format.md).
inline constexpr std::uint64_t kHeadReserveBytesMin = 1 * kMiB;
inline constexpr std::uint64_t kHeadReserveBytesMax = 64 * kMiB;
inline constexpr std::uint64_t kTailReserveBytes = 1 * kMiB;
inline constexpr std::uint64_t kSlackBytes = 1 * kMiB;

// Write-intent bitmap.
inline constexpr std::uint32_t kRegionsMax = 1u << 18;
inline constexpr std::uint64_t kRegionBytesMin = 1 * kMiB;  // per member

// Data path.
inline constexpr std::uint64_t kBufferAlignment = 4 * kKiB;
inline constexpr std::uint64_t kRequestBytesMax = 32 * kMiB;
inline constexpr std::size_t kSegmentsPerCommandMax = 1024;  // the kernel's IOV_MAX

// NBD.
inline constexpr std::size_t kNbdConnectionsMax = 1024;
inline constexpr std::size_t kNbdExportNameBytesMax = 256;

// Control plane.
inline constexpr std::size_t kHttpBodyBytesMax = 1 * kMiB;
inline constexpr std::size_t kJsonDepthMax = 16;
inline constexpr std::size_t kEventsKept = 10'000;

static_assert(kChunkBytesMin % kBufferAlignment == 0);
static_assert(kHeadReserveBytesMin >= 1 * kMiB && kTailReserveBytes >= 1 * kMiB);

}  // namespace warpraid::limits
