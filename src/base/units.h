// Numbers with a meaning. There is one unit for sizes and addresses everywhere: bytes, in names
// that end in _bytes (or _offset for addresses). Sectors appear only inside format/ where a foreign
// format counts them. The types below keep small integers of different meaning apart.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace warpraid {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;
inline constexpr std::uint64_t kTiB = 1024 * kGiB;

/// An integer that converts to and from its representation only by name.
template <typename Tag, typename Rep>
class Number {
  public:
    using rep = Rep;
    constexpr Number() = default;
    constexpr explicit Number(Rep value) : value_(value) {}
    constexpr Rep get() const { return value_; }
    friend constexpr auto operator<=>(Number, Number) = default;
    constexpr Number next() const { return Number(static_cast<Rep>(value_ + 1)); }

  private:
    Rep value_ = 0;
};

/// Position of a member in its group, 0-based; stable for the group's life.
using Slot = Number<struct SlotTag, std::uint8_t>;
/// Number of a stripe in a group, 0-based.
using Stripe = Number<struct StripeTag, std::uint64_t>;
/// Number of a write-intent region, 0-based.
using Region = Number<struct RegionTag, std::uint32_t>;
/// Count of superblock commits of a group; only grows.
using Generation = Number<struct GenerationTag, std::uint64_t>;

constexpr std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) {
    return (value + by - 1) / by;
}
constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t to) {
    return value / to * to;
}
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
    return divide_up(value, to) * to;
}
constexpr bool is_power_of_two(std::uint64_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

}  // namespace warpraid
