// What the API answers: plain values of the control service as JSON text. Every body is one object
// that starts with "schema_version"; field names are the struct members of control/service.h, in
// their order (docs/api.md lists them all, and a test compares). Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/service.h"

namespace warpraid::api {

inline constexpr int kSchemaVersion = 1;

std::string drives_body(const std::vector<control::DriveInfo>& drives);
std::string drive_body(const control::DriveInfo& drive);
std::string groups_body(const std::vector<control::GroupInfo>& groups);
std::string group_body(const control::GroupInfo& group);
std::string volumes_body(const std::vector<control::VolumeInfo>& volumes);
std::string volume_body(const control::VolumeInfo& volume);
std::string spares_body(const std::vector<control::SpareInfo>& spares);
std::string spare_body(const control::SpareInfo& spare);
std::string exports_body(const std::vector<control::ExportRecord>& exports);
std::string export_body(const control::ExportRecord& record);
std::string events_body(const std::vector<control::Event>& events);
std::string event_body(const control::Event& event);
std::string health_body(const control::Health& health);
std::string member_body(const control::MemberInfo& member);
std::string outcomes_body(const std::vector<control::AssembleOutcome>& outcomes);
std::string version_body();
/// Nothing but the schema version: the answer of a command that returns nothing.
std::string done_body();
/// {"error":{"code","message"}}; the one body without a schema version.
std::string error_body(const Error& error);

/// Everything at once, one query after the other.
struct Everything {
    std::vector<control::DriveInfo> drives;
    std::vector<control::GroupInfo> groups;
    std::vector<control::VolumeInfo> volumes;
    std::vector<control::SpareInfo> spares;
    std::vector<control::ExportRecord> exports;
    control::Health health;
};
std::string status_body(const Everything& everything);

}  // namespace warpraid::api
