// What the user asked for, as plain values: the grammar's outcome, before anything is sent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace warpraid::cli {

enum class Command {
    kListDrives,
    kListGroups,
    kListVolumes,
    kListSpares,
    kListExports,
    kListEvents,
    kDescribeDrive,
    kDescribeGroup,
    kDescribeVolume,
    kDescribeSpare,
    kDescribeExport,
    kDescribeEvent,
    kCreateDrive,
    kCreateGroup,
    kCreateVolume,
    kCreateSpare,
    kDeleteDrive,
    kDeleteGroup,
    kDeleteVolume,
    kDeleteSpare,
    kEditDrive,
    kEditGroup,
    kEditVolume,
    kFail,
    kReplace,
    kExport,
    kUnexport,
    kUndo,
    kVerify,
    kStopVerify,
    kAssemble,
    kExamine,
    kStatus,
    kHealth,
    kVersion,
};

struct Options {
    Command command = Command::kStatus;

    // Everywhere.
    std::string socket_path;
    bool json = false;
    bool yes = false;
    std::uint64_t wait_seconds = 0;

    // Which of these count depends on the command.
    std::vector<std::string> drives;  // ranges expanded, relative paths made absolute
    std::string group, volume, export_name, new_drive, level;
    std::optional<std::string> name, only_group, preferred_drive;
    std::optional<std::uint64_t> size_bytes, chunk_bytes, block_bytes, rate_bytes_per_second;
    std::optional<std::uint64_t> copies, count, generation, after, limit, event;
    bool exact_size = false, force = false, clear = false, read_only = false, destroyed = false;
    bool watch = false;
};

}  // namespace warpraid::cli
