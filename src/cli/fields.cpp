#include "cli/fields.h"

#include "base/size_text.h"

namespace warpraid::cli {

const Json& at(const Json& object, const char* key) {
    static const Json kNull;
    if (!object.is_object()) return kNull;
    const auto found = object.find(key);
    return found == object.end() ? kNull : *found;
}

std::string text(const Json& object, const char* key) {
    const Json& value = at(object, key);
    return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<std::uint64_t> optional_number(const Json& object, const char* key) {
    const Json& value = at(object, key);
    if (!value.is_number_integer() || value < 0) return std::nullopt;
    return value.get<std::uint64_t>();
}

std::uint64_t number(const Json& object, const char* key) {
    return optional_number(object, key).value_or(0);
}

bool flag(const Json& object, const char* key) {
    const Json& value = at(object, key);
    return value.is_boolean() && value.get<bool>();
}

std::string number_text(const Json& object, const char* key) {
    const std::optional<std::uint64_t> value = optional_number(object, key);
    return value ? std::to_string(*value) : std::string();
}

std::string size_text(const Json& object, const char* key) {
    const std::optional<std::uint64_t> value = optional_number(object, key);
    return value ? format_size(*value) : std::string();
}

}  // namespace warpraid::cli
