// What superblocks cannot carry: which drives the operator registered, the small numbers of drives
// and groups, exports, and settings. Kept in state.json of the state directory, and once more in
// state.json.copy, which is used when something has broken the first. Losing both loses no data:
// groups are found by their superblocks, where their drives are looked for.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace warpraid::control {

struct SavedDrive {
    std::uint32_t id = 0;
    std::string path, serial, model, wwid;
    std::uint64_t size_bytes = 0;
    std::vector<std::string> former_paths;  // files of earlier versions have none
};

struct SavedGroup {
    std::uint32_t id = 0;
    std::string uuid, name;
    std::uint64_t rebuild_bytes_per_second_max = 0;
};

struct SavedExport {
    std::string group_uuid, volume_uuid;
    std::string name;
    bool read_only = false;
};

struct SavedState {
    std::vector<SavedDrive> drives;
    std::vector<SavedGroup> groups;
    std::vector<SavedExport> exports;
    std::vector<std::string> deleted_groups;  // uuids; files of earlier versions have none
};

/// One thread at a time.
class StateFile {
  public:
    explicit StateFile(const std::string& directory);

    /// Without any file the state is empty. A file that is not wholly understood is moved aside,
    /// never overwritten, and the other one is used; without another the state is empty. All of
    /// that is told in `warning`. A file that cannot be read is left alone and fails the load.
    Result<SavedState> load(std::string& warning);
    /// Both files; when it fails, the next load finds what was saved before.
    Status save(const SavedState& state);
    /// What was moved aside, in this run or earlier, and not taken away since.
    std::vector<std::string> files_aside() const;

  private:
    std::string directory_;
    std::array<std::string, 2> paths_;  // in the order in which they are believed
};

}  // namespace warpraid::control
