#include "api/json_in.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/limits.h"

namespace warpraid::api {

namespace {

using Json = nlohmann::json;

Error bad_json(std::string message) {
    return Error{ErrorCode::kBadJson, std::move(message)};
}
Error bad_field(std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

/// Counted before parsing, so that a deep body costs nothing. Brackets in strings do not count.
bool is_too_deep(std::string_view text) {
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') ++i;
            if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > limits::kJsonDepthMax) return true;
        } else if ((c == '}' || c == ']') && depth > 0) {
            --depth;
        }
    }
    return false;
}

/// The fields of a request, taken out one by one; what is left over is unknown. The first error is
/// kept, so that a parser reads as a list of its fields.
class Fields {
  public:
    static Result<Fields> parse(std::string_view body);

    bool has(const char* name) const { return object_.contains(name); }
    void take(const char* name, std::string& into);
    void take(const char* name, bool& into);
    void take(const char* name, std::uint64_t& into);
    void take(const char* name, std::uint32_t& into);
    void take(const char* name, std::vector<std::string>& into);
    void take(const char* name, geometry::Level& into);
    template <typename T>
    void take(const char* name, std::optional<T>& into) {
        if (!has(name)) return;
        T value{};
        take(name, value);
        into = std::move(value);
    }
    /// The field must be there.
    template <typename T>
    void require(const char* name, T& into) {
        if (!has(name)) {
            refuse(bad_field(std::string("the field '") + name + "' is missing"));
            return;
        }
        take(name, into);
    }
    void refuse(Error error) {
        if (status_.ok()) status_ = std::move(error);
    }
    /// The first error, or the first unknown field.
    Status finish() const;

  private:
    explicit Fields(Json object) : object_(std::move(object)) {}
    std::optional<Json> extract(const char* name);
    void take_text(const char* name, std::string& into);
    /// Every string but a level names something, and an empty one means "any" or "make one up" to
    /// the service: a script's empty variable must not.
    void check_name(const char* name, const std::string& given);
    void refuse_type(const char* name, const Json& found, const char* needed) {
        refuse(bad_field(std::string("the field '") + name + "' must be " + needed + ", not " +
                         found.type_name()));
    }

    Json object_;
    Status status_ = success();
};

Result<Fields> Fields::parse(std::string_view body) {
    if (body.empty()) return Fields(Json::object());
    if (body.size() > limits::kHttpBodyBytesMax) {
        return bad_field("the body is larger than " + std::to_string(limits::kHttpBodyBytesMax) +
                         " bytes");
    }
    if (is_too_deep(body)) {
        return bad_json("the body is nested deeper than " + std::to_string(limits::kJsonDepthMax) +
                        " levels: send one of fewer");
    }
    // The parser keeps the last of two equal fields; a request must not be able to say two things.
    std::vector<std::set<std::string>> names;
    std::optional<std::string> twice;
    const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::object_start) names.emplace_back();
        if (event == Json::parse_event_t::object_end && !names.empty()) names.pop_back();
        if (event == Json::parse_event_t::key && !names.empty()) {
            std::string name = parsed.get<std::string>();
            if (!names.back().insert(name).second) twice = std::move(name);
        }
        return true;
    };
    Json json = Json::parse(body, watch, false);
    if (json.is_discarded()) {
        return bad_json("the body of " + std::to_string(body.size()) +
                        " bytes is not JSON: send a JSON object");
    }
    if (!json.is_object()) {
        return bad_json(std::string("the body must be a JSON object, not ") + json.type_name());
    }
    if (twice) return bad_field("the field '" + *twice + "' is given twice");
    return Fields(std::move(json));
}

std::optional<Json> Fields::extract(const char* name) {
    const auto found = object_.find(name);
    if (found == object_.end()) return std::nullopt;
    Json value = std::move(*found);
    object_.erase(found);
    return value;
}

void Fields::take_text(const char* name, std::string& into) {
    const std::optional<Json> value = extract(name);
    if (!value) return;
    if (!value->is_string()) return refuse_type(name, *value, "a string");
    into = value->get<std::string>();
    if (into.find('\0') != std::string::npos) {
        refuse(bad_field(std::string("the field '") + name + "' holds a zero byte"));
    }
}

void Fields::check_name(const char* name, const std::string& given) {
    if (!given.empty()) return;
    refuse(Error{ErrorCode::kBadName, std::string("the field '") + name +
                                          "' has an empty name: give one of a letter at least, or "
                                          "leave the field out where that is possible"});
}

void Fields::take(const char* name, std::string& into) {
    if (!has(name)) return;
    take_text(name, into);
    if (status_.ok()) check_name(name, into);
}

void Fields::take(const char* name, bool& into) {
    const std::optional<Json> value = extract(name);
    if (!value) return;
    if (!value->is_boolean()) return refuse_type(name, *value, "true or false");
    into = value->get<bool>();
}

void Fields::take(const char* name, std::uint64_t& into) {
    const std::optional<Json> value = extract(name);
    if (!value) return;
    if (!value->is_number()) return refuse_type(name, *value, "a whole number");
    // Negative numbers, fractions and what does not fit in 64 bits are parsed as other types.
    if (!value->is_number_unsigned()) {
        return refuse(bad_field(std::string("the field '") + name +
                                "' must be a whole number from 0 to 2^64 - 1, not " +
                                value->dump()));
    }
    into = value->get<std::uint64_t>();
}

void Fields::take(const char* name, std::uint32_t& into) {
    if (!has(name)) return;
    std::uint64_t wide = 0;
    take(name, wide);
    if (wide > std::numeric_limits<std::uint32_t>::max()) {
        return refuse(bad_field(std::string("the field '") + name +
                                "' is too large: " + std::to_string(wide)));
    }
    into = static_cast<std::uint32_t>(wide);
}

void Fields::take(const char* name, std::vector<std::string>& into) {
    const std::optional<Json> value = extract(name);
    if (!value) return;
    if (!value->is_array()) return refuse_type(name, *value, "a list of strings");
    if (value->size() > limits::kDrivesMax) {
        return refuse(bad_field(std::string("the field '") + name + "' lists more than " +
                                std::to_string(limits::kDrivesMax) + " drives"));
    }
    for (const Json& item : *value) {
        if (!item.is_string()) return refuse_type(name, item, "a list of strings");
        into.push_back(item.get<std::string>());
        if (into.back().find('\0') != std::string::npos) {
            return refuse(bad_field(std::string("the field '") + name + "' holds a zero byte"));
        }
        check_name(name, into.back());
    }
}

void Fields::take(const char* name, geometry::Level& into) {
    if (!has(name)) return;
    std::string text;
    take_text(name, text);
    if (!status_.ok()) return;
    Result<geometry::Level> level = geometry::parse_level(text);
    if (!level.ok()) {
        return refuse(Error{level.error().code,
                            std::string("the field '") + name + "': " + level.error().message});
    }
    into = level.value();
}

Status Fields::finish() const {
    if (!status_.ok()) return status_;
    if (!object_.empty()) {
        return bad_field("unknown field '" + object_.begin().key() + "'");
    }
    return success();
}

}  // namespace

Result<control::CreateDrive> parse_create_drive(std::string_view body) {
    WARPRAID_TRY_ASSIGN(Fields fields, Fields::parse(body));
    control::CreateDrive command;
    fields.require("paths", command.paths);
    std::optional<std::uint64_t> file_bytes;
    fields.take("file_bytes", file_bytes);
    WARPRAID_TRY(fields.finish());
    if (file_bytes == 0) {
        return Error{ErrorCode::kBadSize,
                     "the field 'file_bytes' is 0: leave it out to use files as they are"};
    }
    command.file_bytes = file_bytes.value_or(0);
    return command;
}

Result<control::CreateGroup> parse_create_group(std::string_view body) {
    WARPRAID_TRY_ASSIGN(Fields fields, Fields::parse(body));
    control::CreateGroup command;
    fields.take("name", command.name);
    fields.require("level", command.level);
    fields.require("drives", command.drives);
    fields.take("chunk_bytes", command.chunk_bytes);
    fields.take("copies", command.copies);
    std::optional<std::uint32_t> block_bytes;
    fields.take("block_bytes", block_bytes);
    fields.take("exact_size", command.exact_size);
    fields.take("force", command.force);
    WARPRAID_TRY(fields.finish());
    if (block_bytes == 0) {
        return bad_field("'block_bytes' is 0: give 512 or 4096, or leave it out");
    }
    command.block_bytes = block_bytes.value_or(0);
    return command;
}

Result<control::EditGroup> parse_edit_group(std::string_view body, std::string_view group) {
    WARPRAID_TRY_ASSIGN(Fields fields, Fields::parse(body));
    control::EditGroup command;
    command.group = group;
    fields.take("name", command.name);
    fields.take("rebuild_bytes_per_second_max", command.rebuild_bytes_per_second_max);
    WARPRAID_TRY(fields.finish());
    if (!command.name && !command.rebuild_bytes_per_second_max) {
        return bad_field("nothing to change: give 'name' or 'rebuild_bytes_per_second_max'");
    }
    return command;
}

Result<control::CreateVolume> parse_create_volume(std::string_view body) {
    WARPRAID_TRY_ASSIGN(Fields fields, Fields::parse(body));
    control::CreateVolume command;
    fields.require("group", command.group);
    fields.take("name", command.name);
    std::optional<std::uint64_t> size_bytes;
    fields.take("size_bytes", size_bytes);
    fields.take("count", command.count);
    WARPRAID_TRY(fields.finish());
    // 0 means "all that is free" to the service: a script's empty sum must not.
    if (size_bytes == 0) {
        return Error{ErrorCode::kBadSize,
                     "the field 'size_bytes' is 0: leave it out to use all that is free"};
    }
    command.size_bytes = size_bytes.value_or(0);
    return command;
}

Result<std::string> parse_edit_volume(std::string_view body) {
    WARPRAID_TRY_ASSIGN(Fields fields, Fields::parse(body));
    std::string name;
    fields.require("name", name);
    WARPRAID_TRY(fields.finish());
    return name;
}

Result<control::CreateSpare> parse_create_spare(std::string_view body) {
    WARPRAID_TRY_ASSIGN(Fields fields, Fields::parse(body));
    control::CreateSpare command;
    fields.require("drives", command.drives);
    fields.take("group", command.group);
    fields.take("force", command.force);
    WARPRAID_TRY(fields.finish());
    return command;
}

Result<control::FailDrive> parse_fail_drive(std::string_view body, std::string_view drive) {
    WARPRAID_TRY_ASSIGN(Fields fields, Fields::parse(body));
    control::FailDrive command;
    command.drive = drive;
    fields.take("generation", command.generation);
    WARPRAID_TRY(fields.finish());
    return command;
}

Result<control::ReplaceDrive> parse_replace_drive(std::string_view body, std::string_view drive) {
    WARPRAID_TRY_ASSIGN(Fields fields, Fields::parse(body));
    control::ReplaceDrive command;
    command.old_drive = drive;
    fields.require("new_drive", command.new_drive);
    fields.take("force", command.force);
    fields.take("generation", command.generation);
    WARPRAID_TRY(fields.finish());
    return command;
}

Result<control::AssembleOptions> parse_assemble(std::string_view body) {
    WARPRAID_TRY_ASSIGN(Fields fields, Fields::parse(body));
    control::AssembleOptions command;
    fields.take("group", command.group);
    fields.take("force", command.force);
    fields.take("destroyed", command.destroyed);
    fields.take("preferred_drive", command.preferred_drive);
    WARPRAID_TRY(fields.finish());
    return command;
}

Result<ExportRequest> parse_export(std::string_view body) {
    WARPRAID_TRY_ASSIGN(Fields fields, Fields::parse(body));
    ExportRequest request;
    fields.require("group", request.group);
    fields.require("volume", request.volume);
    fields.take("read_only", request.read_only);
    WARPRAID_TRY(fields.finish());
    return request;
}

Status parse_nothing(std::string_view body) {
    WARPRAID_TRY_ASSIGN(const Fields fields, Fields::parse(body));
    return fields.finish();
}

}  // namespace warpraid::api
