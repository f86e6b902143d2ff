// The CRC-32 of GPT (ISO 3309, reflected polynomial 0xedb88320): crc32("123456789") is 0xcbf43926.
// Tables are small and rarely written, so it is plain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace warpraid::format {

std::uint32_t crc32(std::span<const std::byte> bytes);

}  // namespace warpraid::format
