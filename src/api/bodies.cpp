#include "api/bodies.h"

#include <nlohmann/json.hpp>

#include "api/names.h"
#include "base/time_text.h"

namespace warpraid::api {

namespace {

using Json = nlohmann::ordered_json;

/// A time of 0 is one that never happened.
Json time_of(std::uint64_t wall_ns) {
    return wall_ns == 0 ? Json(nullptr) : Json(format_time(wall_ns));
}

template <typename T>
Json optional_of(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json to_json(const control::DriveInfo& drive) {
    return Json{{"id", drive.id},
                {"path", drive.path},
                {"serial", drive.serial},
                {"model", drive.model},
                {"wwid", drive.wwid},
                {"size_bytes", drive.size_bytes},
                {"logical_block_bytes", drive.logical_block_bytes},
                {"physical_block_bytes", drive.physical_block_bytes},
                {"use", name_of(drive.use)},
                {"group", drive.group},
                {"slot", optional_of(drive.slot)},
                {"detail", drive.detail}};
}

Json to_json(const control::MemberInfo& member) {
    return Json{{"slot", member.slot},
                {"serial", member.serial},
                {"path", member.path},
                {"model", member.model},
                {"drive_uuid", member.drive_uuid},
                {"drive_bytes", member.drive_bytes},
                {"unused_tail_bytes", member.unused_tail_bytes},
                {"state", format::to_text(member.state)},
                {"reason", format::to_text(member.reason)},
                {"since", time_of(member.since_ns)},
                {"read_errors", member.read_errors},
                {"write_errors", member.write_errors}};
}

Json to_json(const tasks::Progress& progress) {
    return Json{{"work", name_of(progress.work)},      {"done_bytes", progress.done_bytes},
                {"total_bytes", progress.total_bytes}, {"mismatches", progress.mismatches},
                {"unreadable", progress.unreadable},   {"finished", progress.finished}};
}

Json to_json(const control::TaskInfo& task) {
    return Json{{"progress", to_json(task.progress)},
                {"bytes_per_second", task.bytes_per_second},
                {"eta_seconds", optional_of(task.eta_seconds)}};
}

Json to_json(const geometry::Shape& shape) {
    return Json{{"level", geometry::to_text(shape.level)},
                {"members", shape.members},
                {"copies", shape.copies},
                {"chunk_bytes", shape.chunk_bytes},
                {"block_bytes", shape.block_bytes},
                {"member_data_bytes", shape.member_data_bytes}};
}

Json to_json(const array::EngineCounters& counters) {
    return Json{{"reads", counters.reads},
                {"read_bytes", counters.read_bytes},
                {"writes", counters.writes},
                {"written_bytes", counters.written_bytes},
                {"full_stripes", counters.full_stripes},
                {"read_modify_writes", counters.read_modify_writes},
                {"reconstruct_writes", counters.reconstruct_writes},
                {"degraded_reads", counters.degraded_reads},
                {"replans", counters.replans},
                {"joined_writes", counters.joined_writes},
                {"member_commands", counters.member_commands},
                {"member_bytes_read", counters.member_bytes_read},
                {"member_bytes_written", counters.member_bytes_written}};
}

template <typename T>
Json list_of(const std::vector<T>& items);

Json to_json(const control::GroupInfo& group) {
    return Json{{"id", group.id},
                {"uuid", group.uuid},
                {"name", group.name},
                {"state", name_of(group.state)},
                {"held", group.held},
                {"undoable", group.undoable},
                {"reason", group.reason},
                {"reason_code", group.reason_code},
                {"shape", to_json(group.shape)},
                {"capacity_bytes", group.capacity_bytes},
                {"free_bytes", group.free_bytes},
                {"stripe_bytes", group.stripe_bytes},
                {"generation", group.generation},
                {"members", list_of(group.members)},
                {"task", group.task ? to_json(*group.task) : Json(nullptr)},
                {"last_verify", group.last_verify ? to_json(*group.last_verify) : Json(nullptr)},
                {"dirty_regions", group.dirty_regions},
                {"missed_regions", group.missed_regions},
                {"regions", group.regions},
                {"resynced_bytes", group.resynced_bytes},
                {"rebuild_bytes_per_second_max", group.rebuild_bytes_per_second_max},
                {"counters", to_json(group.counters)}};
}

Json to_json(const control::VolumeInfo& volume) {
    return Json{{"group_id", volume.group_id},
                {"id", volume.id},
                {"group", volume.group},
                {"name", volume.name},
                {"uuid", volume.uuid},
                {"start", volume.start},
                {"size_bytes", volume.size_bytes},
                {"block_bytes", volume.block_bytes},
                {"exported", volume.exported}};
}

Json to_json(const control::SpareInfo& spare) {
    return Json{{"drive_id", spare.drive_id},
                {"serial", spare.serial},
                {"path", spare.path},
                {"drive_bytes", spare.drive_bytes},
                {"group", spare.group}};
}

Json to_json(const control::ExportRecord& record) {
    return Json{{"group", record.group},         {"volume", record.volume},
                {"name", record.name},           {"uri", record.uri},
                {"read_only", record.read_only}, {"connections", record.connections}};
}

Json to_json(const control::Event& event) {
    return Json{{"id", event.id},
                {"time", time_of(event.time_ns)},
                {"severity", name_of(event.severity)},
                {"kind", event.kind},
                {"group", event.group},
                {"volume", event.volume},
                {"drive_serial", event.drive_serial},
                {"text", event.text}};
}

Json to_json(const control::Health& health) {
    return Json{{"level", health.level}, {"findings", health.findings}};
}

Json to_json(const control::AssembleOutcome& outcome) {
    return Json{{"group", outcome.group},
                {"uuid", outcome.uuid},
                {"outcome", outcome.outcome},
                {"code", outcome.code},
                {"message", outcome.message}};
}

template <typename T>
Json list_of(const std::vector<T>& items) {
    Json list = Json::array();
    for (const T& item : items) list.push_back(to_json(item));
    return list;
}

/// Serials and paths come from hardware and file systems and need not be UTF-8: such bytes are
/// shown as replacement characters instead of failing the whole answer.
std::string text_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string body_of(const char* key, Json value) {
    Json body{{"schema_version", kSchemaVersion}};
    body[key] = std::move(value);
    return text_of(body);
}

}  // namespace

std::string drives_body(const std::vector<control::DriveInfo>& drives) {
    return body_of("drives", list_of(drives));
}
std::string drive_body(const control::DriveInfo& drive) {
    return body_of("drive", to_json(drive));
}
std::string groups_body(const std::vector<control::GroupInfo>& groups) {
    return body_of("groups", list_of(groups));
}
std::string group_body(const control::GroupInfo& group) {
    return body_of("group", to_json(group));
}
std::string volumes_body(const std::vector<control::VolumeInfo>& volumes) {
    return body_of("volumes", list_of(volumes));
}
std::string volume_body(const control::VolumeInfo& volume) {
    return body_of("volume", to_json(volume));
}
std::string spares_body(const std::vector<control::SpareInfo>& spares) {
    return body_of("spares", list_of(spares));
}
std::string spare_body(const control::SpareInfo& spare) {
    return body_of("spare", to_json(spare));
}
std::string exports_body(const std::vector<control::ExportRecord>& exports) {
    return body_of("exports", list_of(exports));
}
std::string export_body(const control::ExportRecord& record) {
    return body_of("export", to_json(record));
}
std::string events_body(const std::vector<control::Event>& events) {
    return body_of("events", list_of(events));
}
std::string event_body(const control::Event& event) {
    return body_of("event", to_json(event));
}
std::string health_body(const control::Health& health) {
    return body_of("health", to_json(health));
}
std::string member_body(const control::MemberInfo& member) {
    return body_of("member", to_json(member));
}
std::string outcomes_body(const std::vector<control::AssembleOutcome>& outcomes) {
    return body_of("outcomes", list_of(outcomes));
}
std::string version_body() {
    return body_of("version", WARPRAID_VERSION);
}

std::string done_body() {
    return text_of(Json{{"schema_version", kSchemaVersion}});
}

std::string error_body(const Error& error) {
    return text_of(
        Json{{"error", Json{{"code", to_text(error.code)}, {"message", error.message}}}});
}

std::string status_body(const Everything& everything) {
    return text_of(Json{{"schema_version", kSchemaVersion},
                        {"version", WARPRAID_VERSION},
                        {"health", to_json(everything.health)},
                        {"drives", list_of(everything.drives)},
                        {"groups", list_of(everything.groups)},
                        {"volumes", list_of(everything.volumes)},
                        {"spares", list_of(everything.spares)},
                        {"exports", list_of(everything.exports)}});
}

}  // namespace warpraid::api
