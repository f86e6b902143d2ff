// Reading the JSON that this program saved itself, and believing none of it that it would not have
// saved. For the sources of this folder that read and write files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace warpraid::control {

using Json = nlohmann::json;

/// One object of a file. A field that is missing or has another type than it was saved with means
/// that something else wrote the file, or part of it: the first such field is told in `problem`,
/// and nothing of the file is to be believed then.
class Fields {
  public:
    Fields(const Json& object, std::string& problem) : object_(object), problem_(problem) {}

    std::string text(const char* key) {
        const Json* value = find(key, &Json::is_string);
        return value != nullptr ? value->get<std::string>() : std::string();
    }
    std::uint64_t number(const char* key, std::uint64_t most = ~std::uint64_t{0}) {
        const Json* value = find(key, &Json::is_number_unsigned);
        const auto number = value != nullptr ? value->get<std::uint64_t>() : 0;
        if (number > most) note(key, "is too large");
        return number;
    }
    std::uint32_t id() { return static_cast<std::uint32_t>(number("id", ~std::uint32_t{0})); }
    bool flag(const char* key) {
        const Json* value = find(key, &Json::is_boolean);
        return value != nullptr && value->get<bool>();
    }
    const Json& list(const char* key) {
        static const Json none = Json::array();
        const Json* value = find(key, &Json::is_array);
        return value != nullptr ? *value : none;
    }
    /// A list that files of earlier versions do not have.
    std::vector<std::string> texts(const char* key) {
        std::vector<std::string> found;
        if (!object_.contains(key)) return found;
        for (const Json& text : list(key)) {
            if (text.is_string()) found.push_back(text.get<std::string>());
        }
        return found;
    }

  private:
    const Json* find(const char* key, bool (Json::*is_right)() const noexcept) {
        const auto found = object_.find(key);
        if (found != object_.end() && ((*found).*is_right)()) return &*found;
        note(key, found == object_.end() ? "is missing" : "has the wrong type");
        return nullptr;
    }
    void note(const char* key, const char* what) {
        if (problem_.empty()) problem_ = std::string("'") + key + "' " + what;
    }

    const Json& object_;
    std::string& problem_;
};

/// Calls `take` with each object of the list `key`.
template <typename Take>
void for_each(Fields& root, const char* key, std::string& problem, const Take& take) {
    for (const Json& entry : root.list(key)) {
        if (!entry.is_object()) {
            problem = std::string("'") + key + "' holds something else than objects";
            return;
        }
        Fields fields(entry, problem);
        take(fields);
    }
}

}  // namespace warpraid::control
