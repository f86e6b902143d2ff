// CRC-32C (Castagnoli): reflected polynomial 0x82f63b78, initial value and final inversion of all
// ones, as iSCSI and ext4 compute it. crc32c("123456789") is 0xe3069283.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace warpraid {

/// `previous` continues an earlier checksum over the bytes before these.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0);

}  // namespace warpraid
