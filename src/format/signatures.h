// Signatures of other systems on a drive: what a create command must not silently overwrite. Looks
// at the first and the last MiB only, at untrusted bytes. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace warpraid::format {

inline constexpr std::size_t kEdgeBytes = 1 * kMiB;

/// The edges of a drive: `head` from byte 0, `tail` up to the last byte; each up to kEdgeBytes,
/// less on a drive that is smaller.
struct DriveEdges {
    std::span<const std::byte> head;
    std::span<const std::byte> tail;
    std::uint64_t drive_bytes = 0;
};

struct Signature {
    std::string text;   // "ext4 file system"
    bool ours = false;  // a superblock or the protective MD superblock of Warpraid
};

/// Everything recognised, in order of likelihood that it is in use: at most one entry a kind.
std::vector<Signature> find_signatures(const DriveEdges& edges);

}  // namespace warpraid::format
