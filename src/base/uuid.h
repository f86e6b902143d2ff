// 128-bit identities of groups, drives and volumes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"

namespace warpraid {

struct Uuid {
    std::array<std::uint8_t, 16> bytes{};

    /// A random (version 4) identity.
    static Uuid make(Random& random);
    /// From "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", any case; nothing for any other text.
    static std::optional<Uuid> parse(std::string_view text);
    /// 36 characters, lower case.
    std::string to_text() const;
    bool is_nil() const { return *this == Uuid{}; }
    friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

}  // namespace warpraid
