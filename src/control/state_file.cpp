#include "control/state_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <type_traits>

#include "base/units.h"
#include "control/durable_file.h"
#include "control/json_fields.h"

namespace warpraid::control {

namespace {

constexpr std::uint32_t kStateVersion = 1;
// Far more than the most drives, groups and exports need.
constexpr std::uint64_t kStateBytesMax = 16 * kMiB;

template <typename Entry, typename Key>
bool has_twice(const std::vector<Entry>& entries, const Key& key) {
    std::set<std::decay_t<decltype(key(entries.front()))>> seen;
    return std::any_of(entries.begin(), entries.end(),
                       [&](const Entry& entry) { return !seen.insert(key(entry)).second; });
}

/// The state, or what is wrong with the text.
SavedState parse(const std::string& text, std::string& problem) {
    SavedState state;
    const Json root_object = Json::parse(text, nullptr, false);
    if (!root_object.is_object()) {
        problem = text.empty() ? "it is empty" : "it is no JSON object";
        return state;
    }
    Fields root(root_object, problem);
    const std::uint64_t version = root.number("version");
    if (problem.empty() && version != kStateVersion) {
        problem = "its version is " + std::to_string(version);
    }
    for_each(root, "drives", problem, [&](Fields& drive) {
        state.drives.push_back({drive.id(), drive.text("path"), drive.text("serial"),
                                drive.text("model"), drive.text("wwid"), drive.number("size_bytes"),
                                drive.texts("former_paths")});
    });
    for_each(root, "groups", problem, [&](Fields& group) {
        state.groups.push_back({group.id(), group.text("uuid"), group.text("name"),
                                group.number("rebuild_bytes_per_second_max")});
    });
    for_each(root, "exports", problem, [&](Fields& entry) {
        state.exports.push_back({entry.text("group_uuid"), entry.text("volume_uuid"),
                                 entry.text("name"), entry.flag("read_only")});
    });
    state.deleted_groups = root.texts("deleted_groups");
    if (!problem.empty()) return state;
    const auto id_of = [](const auto& entry) { return entry.id; };
    if (has_twice(state.drives, id_of)) problem = "two drives have one number";
    if (has_twice(state.groups, id_of)) problem = "two groups have one number";
    if (has_twice(state.groups, [](const SavedGroup& group) { return group.uuid; })) {
        problem = "two groups have one uuid";
    }
    return state;
}

void add_sentence(std::string& text, const std::string& sentence) {
    text += (text.empty() ? "" : "; ") + sentence;
}

}  // namespace

StateFile::StateFile(const std::string& directory)
    : directory_(directory), paths_{directory + "/state.json", directory + "/state.json.copy"} {}

Result<SavedState> StateFile::load(std::string& warning) {
    std::optional<SavedState> state;
    bool was_any = false;
    for (const std::string& path : paths_) {
        const Result<std::string> text = read_file(path, kStateBytesMax);
        if (!text.ok() && text.error().code == ErrorCode::kNotFound) continue;
        // What was not read is not known to be broken.
        if (!text.ok() && text.error().code != ErrorCode::kInvalidArgument) {
            return Error{text.error().code,
                         text.error().message +
                             ": it was left as it is; put that right and start again, or move the "
                             "file away to go on without it"};
        }
        std::string problem = text.ok() ? std::string() : text.error().message;
        SavedState found;
        if (text.ok()) found = parse(*text, problem);
        was_any = true;
        if (problem.empty()) {
            if (!state && path != paths_.front()) {
                if (warning.empty()) warning = paths_.front() + " is gone";
                add_sentence(warning, path + " was used instead");
            }
            if (!state) state = std::move(found);
            continue;
        }
        WARPRAID_TRY_ASSIGN(const std::string aside, move_aside(path));
        add_sentence(warning,
                     path + " is broken (" + problem + ") and was moved aside to " + aside);
    }
    if (state) return *std::move(state);
    if (was_any) {
        add_sentence(warning,
                     "drives and exports that were known are not any more: make them again with "
                     "create drive, assemble and export volume");
    }
    return SavedState{};
}

std::vector<std::string> StateFile::files_aside() const {
    std::vector<std::string> found;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(directory_, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().filename().string().find(kAsideEnding) == std::string::npos) continue;
        found.push_back(entry->path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
}

Status StateFile::save(const SavedState& state) {
    Json root;
    root["version"] = kStateVersion;
    root["drives"] = Json::array();
    for (const SavedDrive& drive : state.drives) {
        root["drives"].push_back({{"id", drive.id},
                                  {"path", drive.path},
                                  {"serial", drive.serial},
                                  {"model", drive.model},
                                  {"wwid", drive.wwid},
                                  {"size_bytes", drive.size_bytes},
                                  {"former_paths", drive.former_paths}});
    }
    root["groups"] = Json::array();
    for (const SavedGroup& group : state.groups) {
        root["groups"].push_back(
            {{"id", group.id},
             {"uuid", group.uuid},
             {"name", group.name},
             {"rebuild_bytes_per_second_max", group.rebuild_bytes_per_second_max}});
    }
    root["exports"] = Json::array();
    for (const SavedExport& entry : state.exports) {
        root["exports"].push_back({{"group_uuid", entry.group_uuid},
                                   {"volume_uuid", entry.volume_uuid},
                                   {"name", entry.name},
                                   {"read_only", entry.read_only}});
    }
    root["deleted_groups"] = state.deleted_groups;
    // The first file is renamed last: what it says is what is in force.
    const std::array<std::string, 2> order{paths_[1], paths_[0]};
    return replace_files(order, root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace warpraid::control
