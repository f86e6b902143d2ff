// Little-endian numbers and fixed text fields in byte buffers: the one place where format/ touches
// raw bytes. Every access is bounds-checked.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/uuid.h"

namespace warpraid::format {

template <std::unsigned_integral T>
void put(std::span<std::byte> to, std::size_t at, T value) {
    WARPRAID_ASSERT(at <= to.size() && sizeof(T) <= to.size() - at);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        to[at + i] = static_cast<std::byte>(value >> (8 * i));
    }
}

template <std::unsigned_integral T>
T get(std::span<const std::byte> from, std::size_t at) {
    WARPRAID_ASSERT(at <= from.size() && sizeof(T) <= from.size() - at);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        value |= std::to_integer<std::uint64_t>(from[at + i]) << (8 * i);
    }
    return static_cast<T>(value);
}

/// Big-endian, for the formats of others.
template <std::unsigned_integral T>
T get_big_endian(std::span<const std::byte> from, std::size_t at) {
    WARPRAID_ASSERT(at <= from.size() && sizeof(T) <= from.size() - at);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        value = value << 8 | std::to_integer<std::uint64_t>(from[at + i]);
    }
    return static_cast<T>(value);
}

inline void put_text(std::span<std::byte> to, std::size_t at, std::string_view text) {
    WARPRAID_ASSERT(at <= to.size() && text.size() <= to.size() - at);
    if (!text.empty()) std::memcpy(to.data() + at, text.data(), text.size());
}

inline std::string get_text(std::span<const std::byte> from, std::size_t at, std::size_t length) {
    WARPRAID_ASSERT(at <= from.size() && length <= from.size() - at);
    std::string text(length, '\0');
    if (length != 0) std::memcpy(text.data(), from.data() + at, length);
    return text;
}

/// False, also, when the text would reach behind the end.
inline bool has_text(std::span<const std::byte> from, std::size_t at, std::string_view text) {
    return at <= from.size() && text.size() <= from.size() - at &&
           std::memcmp(from.data() + at, text.data(), text.size()) == 0;
}

inline void put_uuid(std::span<std::byte> to, std::size_t at, const Uuid& uuid) {
    WARPRAID_ASSERT(at <= to.size() && uuid.bytes.size() <= to.size() - at);
    std::memcpy(to.data() + at, uuid.bytes.data(), uuid.bytes.size());
}

inline Uuid get_uuid(std::span<const std::byte> from, std::size_t at) {
    Uuid uuid;
    WARPRAID_ASSERT(at <= from.size() && uuid.bytes.size() <= from.size() - at);
    std::memcpy(uuid.bytes.data(), from.data() + at, uuid.bytes.size());
    return uuid;
}

inline bool all_zero(std::span<const std::byte> bytes) {
    return std::all_of(bytes.begin(), bytes.end(),
                       [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace warpraid::format
