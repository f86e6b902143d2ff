// Reading the daemon's JSON for people: a missing or odd field is an empty text or a 0, since an
// older tool may meet a newer daemon.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace warpraid::cli {

using Json = nlohmann::json;

/// The field, or a null.
const Json& at(const Json& object, const char* key);
std::string text(const Json& object, const char* key);
std::uint64_t number(const Json& object, const char* key);
bool flag(const Json& object, const char* key);
/// Nothing when the field is null or no number.
std::optional<std::uint64_t> optional_number(const Json& object, const char* key);
/// As text, empty when null.
std::string number_text(const Json& object, const char* key);
/// "1.5 GiB".
std::string size_text(const Json& object, const char* key);

}  // namespace warpraid::cli
