// Big-endian integers in byte ranges whose length was checked before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/assert.h"

namespace warpraid::nbd {

template <typename T>
T swap_to_big_endian(T value) {
    static_assert(std::is_unsigned_v<T> && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

/// Takes values off the front of a byte range. Reading beyond the end gives zeroes and makes ok()
/// false, so that a parser may check once at its end.
class WireReader {
  public:
    explicit WireReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    template <typename T>
    T take() {
        T value = 0;
        if (!need(sizeof(T))) return 0;
        std::memcpy(&value, bytes_.data(), sizeof(T));
        bytes_ = bytes_.subspan(sizeof(T));
        return swap_to_big_endian(value);
    }
    std::string_view take_text(std::size_t length) {
        if (!need(length)) return {};
        const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), length);
        bytes_ = bytes_.subspan(length);
        return text;
    }
    std::size_t left() const { return bytes_.size(); }
    bool ok() const { return ok_; }

  private:
    bool need(std::size_t length) {
        if (bytes_.size() >= length) return true;
        ok_ = false;
        bytes_ = {};
        return false;
    }

    std::span<const std::byte> bytes_;
    bool ok_ = true;
};

/// Fills a range that is known to be large enough.
class WireWriter {
  public:
    explicit WireWriter(std::span<std::byte> bytes) : bytes_(bytes) {}

    template <typename T>
    void put(T value) {
        WARPRAID_ASSERT(bytes_.size() - written_ >= sizeof(T));
        const T swapped = swap_to_big_endian(value);
        std::memcpy(bytes_.data() + written_, &swapped, sizeof(T));
        written_ += sizeof(T);
    }
    std::size_t written() const { return written_; }

  private:
    std::span<std::byte> bytes_;
    std::size_t written_ = 0;
};

}  // namespace warpraid::nbd
