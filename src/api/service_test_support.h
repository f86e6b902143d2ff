// A control service that only remembers: what the tests of the API and the command line talk to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/service.h"

namespace warpraid::api {

/// One of each thing, with every field set and every optional present.
control::DriveInfo sample_drive();
control::GroupInfo sample_group();
control::VolumeInfo sample_volume();
control::SpareInfo sample_spare();
control::ExportRecord sample_export();
control::Event sample_event();

class FakeService final : public control::Service {
  public:
    /// What was called, with its arguments: "create_group name=data level=raid6 drives=0,1 ...".
    std::vector<std::string> calls;
    /// Every command answers this, when set.
    std::optional<Error> failure;
    /// Health throws what libraries throw.
    bool throws = false;

    std::vector<control::DriveInfo> drive_list = {sample_drive()};
    std::vector<control::GroupInfo> group_list = {sample_group()};
    std::vector<control::VolumeInfo> volume_list = {sample_volume()};
    std::vector<control::SpareInfo> spare_list = {sample_spare()};
    std::vector<control::ExportRecord> export_list = {sample_export()};
    std::vector<control::Event> event_list = {sample_event()};
    std::vector<control::AssembleOutcome> outcomes = {
        {.group = "data", .uuid = "u", .outcome = "started", .code = "", .message = ""}};
    control::Health health_value{.level = 1, .findings = {"group data is degraded"}};

    std::vector<control::DriveInfo> drives() override { return drive_list; }
    std::vector<control::GroupInfo> groups() override { return group_list; }
    std::vector<control::VolumeInfo> volumes() override { return volume_list; }
    std::vector<control::SpareInfo> spares() override { return spare_list; }
    std::vector<control::ExportRecord> exports() override { return export_list; }
    std::vector<control::Event> events(std::uint64_t after, std::size_t limit) override;
    control::Health health() override {
        if (throws) static_cast<void>(std::string().at(77));
        return health_value;
    }
    Result<std::vector<control::DriveInfo>> create_drive(
        const control::CreateDrive& command) override;
    Status delete_drive(const std::string& drive) override;
    Status reset_identity(const std::string& drive) override;
    Result<control::GroupInfo> create_group(const control::CreateGroup& command) override;
    Status delete_group(const std::string& group, bool clear) override;
    Status edit_group(const control::EditGroup& command) override;
    Result<std::vector<control::VolumeInfo>> create_volume(
        const control::CreateVolume& command) override;
    Status delete_volume(const std::string& group, const std::string& volume) override;
    Status rename_volume(const std::string& group, const std::string& volume,
                         const std::string& name) override;
    Result<std::vector<control::SpareInfo>> create_spare(
        const control::CreateSpare& command) override;
    Status delete_spare(const std::string& drive) override;
    Result<control::MemberInfo> fail_drive(const control::FailDrive& command) override;
    Result<control::MemberInfo> replace_drive(const control::ReplaceDrive& command) override;
    Result<control::ExportRecord> export_volume(const std::string& group, const std::string& volume,
                                                bool read_only) override;
    Status unexport_volume(const std::string& group, const std::string& volume) override;
    Status undo_group(const std::string& group) override;
    Status abandon_undo(const std::string& group) override;
    Status verify_group(const std::string& group) override;
    Status stop_verify(const std::string& group) override;
    Result<std::vector<control::AssembleOutcome>> assemble(
        const control::AssembleOptions& options) override;
    std::vector<control::DriveInfo> examine() override { return drive_list; }
    void shut_down() override { calls.push_back("shut_down"); }

  private:
    Status note(std::string call);
};

}  // namespace warpraid::api
