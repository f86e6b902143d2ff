// What the API accepts: strict parsing of request bodies. Refused, naming the field: unknown
// fields, fields given twice, wrong types, negative, fractional or too large numbers, missing
// fields. An empty body is an empty object. kBadJson: not JSON, nested deeper than
// limits::kJsonDepthMax, or not an object; kInvalidArgument and the codes of level and size for the
// rest. Any thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "control/service.h"

namespace warpraid::api {

Result<control::CreateDrive> parse_create_drive(std::string_view body);
Result<control::CreateGroup> parse_create_group(std::string_view body);
/// `group` comes from the address.
Result<control::EditGroup> parse_edit_group(std::string_view body, std::string_view group);
Result<control::CreateVolume> parse_create_volume(std::string_view body);
/// The new name.
Result<std::string> parse_edit_volume(std::string_view body);
Result<control::CreateSpare> parse_create_spare(std::string_view body);
/// `drive` comes from the address.
Result<control::FailDrive> parse_fail_drive(std::string_view body, std::string_view drive);
Result<control::ReplaceDrive> parse_replace_drive(std::string_view body, std::string_view drive);
Result<control::AssembleOptions> parse_assemble(std::string_view body);

struct ExportRequest {
    std::string group, volume;
    bool read_only = false;
};
Result<ExportRequest> parse_export(std::string_view body);
/// For commands without fields: the body must be empty or an empty object.
Status parse_nothing(std::string_view body);

}  // namespace warpraid::api
