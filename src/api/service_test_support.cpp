#include "api/service_test_support.h"

#include <concepts>

namespace warpraid::api {

namespace {

std::string text_of(bool value) {
    return value ? "true" : "false";
}
std::string text_of(const std::string& value) {
    return value;
}
template <std::unsigned_integral T>
std::string text_of(T value) {
    return std::to_string(value);
}
std::string text_of(const std::vector<std::string>& items) {
    std::string text;
    for (const std::string& item : items) text += (text.empty() ? "" : ",") + item;
    return text;
}
template <typename T>
std::string text_of(const std::optional<T>& value) {
    return value ? text_of(*value) : "-";
}

template <typename T>
std::string field(const char* name, const T& value) {
    return std::string(" ") + name + "=" + text_of(value);
}

control::MemberInfo sample_member(std::uint32_t slot) {
    control::MemberInfo member;
    member.slot = slot;
    member.serial = "S" + std::to_string(slot);
    member.path = "/dev/nvme" + std::to_string(slot) + "n1";
    member.model = "Fast";
    member.drive_uuid = "11111111-1111-4111-8111-111111111111";
    member.drive_bytes = std::uint64_t{1} << 30;
    member.unused_tail_bytes = 4096;
    member.since_ns = 1'764'590'430'123'000'000;
    return member;
}

}  // namespace

control::DriveInfo sample_drive() {
    return control::DriveInfo{.id = 3,
                              .path = "/dev/nvme3n1",
                              .serial = "S3",
                              .model = "Fast",
                              .wwid = "eui.3",
                              .size_bytes = std::uint64_t{1} << 30,
                              .logical_block_bytes = 512,
                              .physical_block_bytes = 4096,
                              .use = control::DriveUse::kMember,
                              .group = "data",
                              .slot = 3,
                              .detail = "in use by group data"};
}

control::GroupInfo sample_group() {
    control::GroupInfo group;
    group.id = 0;
    group.uuid = "22222222-2222-4222-8222-222222222222";
    group.name = "data";
    group.state = control::GroupState::kRebuilding;
    group.shape = geometry::Shape{.level = geometry::Level::kRaid6,
                                  .members = 4,
                                  .copies = 1,
                                  .chunk_bytes = 65536,
                                  .block_bytes = 4096,
                                  .member_data_bytes = 1'000'013'824};
    group.capacity_bytes = 2'000'027'648;
    group.free_bytes = 926'285'824;
    group.stripe_bytes = 131072;
    group.generation = 9;
    for (std::uint32_t slot = 0; slot < 4; ++slot) group.members.push_back(sample_member(slot));
    group.members[1].state = format::MemberState::kFailed;
    group.members[1].reason = format::LeaveReason::kWriteError;
    group.members[1].write_errors = 1;
    group.members[3].state = format::MemberState::kRebuilding;
    group.task = control::TaskInfo{.progress = {.work = tasks::Work::kRebuild,
                                                .done_bytes = 250'003'456,
                                                .total_bytes = 1'000'013'824,
                                                .mismatches = 0,
                                                .unreadable = 0,
                                                .finished = false},
                                   .bytes_per_second = 100'000'000,
                                   .eta_seconds = 8};
    group.last_verify = tasks::Progress{.work = tasks::Work::kVerify,
                                        .done_bytes = 4'000'055'296,
                                        .total_bytes = 4'000'055'296,
                                        .mismatches = 2,
                                        .unreadable = 1,
                                        .finished = true};
    group.dirty_regions = 5;
    group.missed_regions = 3;
    group.regions = 1000;
    group.resynced_bytes = 1048576;
    group.rebuild_bytes_per_second_max = 209'715'200;
    group.counters.reads = 17;
    group.counters.degraded_reads = 3;
    return group;
}

control::VolumeInfo sample_volume() {
    return control::VolumeInfo{.group_id = 0,
                               .id = 1,
                               .group = "data",
                               .name = "vol1",
                               .uuid = "33333333-3333-4333-8333-333333333333",
                               .start = 1048576,
                               .size_bytes = std::uint64_t{1} << 30,
                               .block_bytes = 4096,
                               .exported = true};
}

control::SpareInfo sample_spare() {
    return control::SpareInfo{.drive_id = 7,
                              .serial = "S7",
                              .path = "/dev/nvme7n1",
                              .drive_bytes = std::uint64_t{1} << 30,
                              .group = ""};
}

control::ExportRecord sample_export() {
    return control::ExportRecord{.group = "data",
                                 .volume = "vol1",
                                 .name = "vol1",
                                 .uri = "nbd+unix:///vol1?socket=/run/warpraid/nbd.sock",
                                 .read_only = false,
                                 .connections = 2};
}

control::Event sample_event() {
    return control::Event{.id = 41,
                          .time_ns = 1'764'590'430'123'000'000,
                          .severity = control::Severity::kError,
                          .kind = "member-failed",
                          .group = "data",
                          .volume = "",
                          .drive_serial = "S1",
                          .text = "slot 1 failed a write"};
}

Status FakeService::note(std::string call) {
    calls.push_back(std::move(call));
    if (failure) return *failure;
    return success();
}

std::vector<control::Event> FakeService::events(std::uint64_t after, std::size_t limit) {
    calls.push_back("events" + field("after", after) + field("limit", limit));
    return event_list;
}

Result<std::vector<control::DriveInfo>> FakeService::create_drive(
    const control::CreateDrive& command) {
    WARPRAID_TRY(note("create_drive" + field("paths", command.paths) +
                      field("file_bytes", command.file_bytes)));
    return drive_list;
}

Status FakeService::delete_drive(const std::string& drive) {
    return note("delete_drive" + field("drive", drive));
}

Result<control::GroupInfo> FakeService::create_group(const control::CreateGroup& command) {
    WARPRAID_TRY(note("create_group" + field("name", command.name) +
                      field("level", std::string(geometry::to_text(command.level))) +
                      field("drives", command.drives) + field("chunk", command.chunk_bytes) +
                      field("copies", command.copies) + field("block", command.block_bytes) +
                      field("exact", command.exact_size) + field("force", command.force)));
    return group_list.front();
}

Status FakeService::delete_group(const std::string& group, bool clear) {
    return note("delete_group" + field("group", group) + field("clear", clear));
}

Status FakeService::edit_group(const control::EditGroup& command) {
    return note("edit_group" + field("group", command.group) + field("name", command.name) +
                field("rate", command.rebuild_bytes_per_second_max));
}

Result<std::vector<control::VolumeInfo>> FakeService::create_volume(
    const control::CreateVolume& command) {
    WARPRAID_TRY(note("create_volume" + field("group", command.group) +
                      field("name", command.name) + field("size", command.size_bytes) +
                      field("count", command.count)));
    return volume_list;
}

Status FakeService::reset_identity(const std::string& drive) {
    return note("reset_identity" + field("drive", drive));
}

Status FakeService::delete_volume(const std::string& group, const std::string& volume) {
    return note("delete_volume" + field("group", group) + field("volume", volume));
}

Status FakeService::rename_volume(const std::string& group, const std::string& volume,
                                  const std::string& name) {
    return note("rename_volume" + field("group", group) + field("volume", volume) +
                field("name", name));
}

Result<std::vector<control::SpareInfo>> FakeService::create_spare(
    const control::CreateSpare& command) {
    WARPRAID_TRY(note("create_spare" + field("drives", command.drives) +
                      field("group", command.group) + field("force", command.force)));
    return spare_list;
}

Status FakeService::delete_spare(const std::string& drive) {
    return note("delete_spare" + field("drive", drive));
}

Result<control::MemberInfo> FakeService::fail_drive(const control::FailDrive& command) {
    WARPRAID_TRY(note("fail_drive" + field("drive", command.drive) +
                      field("generation", command.generation)));
    return group_list.front().members[1];
}

Result<control::MemberInfo> FakeService::replace_drive(const control::ReplaceDrive& command) {
    WARPRAID_TRY(note("replace_drive" + field("old", command.old_drive) +
                      field("new", command.new_drive) + field("force", command.force) +
                      field("generation", command.generation)));
    return group_list.front().members[3];
}

Result<control::ExportRecord> FakeService::export_volume(const std::string& group,
                                                         const std::string& volume,
                                                         bool read_only) {
    WARPRAID_TRY(note("export_volume" + field("group", group) + field("volume", volume) +
                      field("read_only", read_only)));
    return export_list.front();
}

Status FakeService::unexport_volume(const std::string& group, const std::string& volume) {
    return note("unexport_volume" + field("group", group) + field("volume", volume));
}

Status FakeService::undo_group(const std::string& group) {
    return note("undo_group" + field("group", group));
}

Status FakeService::abandon_undo(const std::string& group) {
    return note("abandon_undo" + field("group", group));
}

Status FakeService::verify_group(const std::string& group) {
    return note("verify_group" + field("group", group));
}

Status FakeService::stop_verify(const std::string& group) {
    return note("stop_verify" + field("group", group));
}

Result<std::vector<control::AssembleOutcome>> FakeService::assemble(
    const control::AssembleOptions& options) {
    WARPRAID_TRY(note("assemble" + field("group", options.group) + field("force", options.force) +
                      field("destroyed", options.destroyed) +
                      field("preferred", options.preferred_drive)));
    return outcomes;
}

}  // namespace warpraid::api
