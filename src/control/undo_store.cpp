#include "control/undo_store.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "base/assert.h"
#include "control/durable_file.h"

namespace warpraid::control {

namespace {

constexpr std::array<std::string_view, 2> kEndings{".restoring", ".kept"};

std::string_view ending_of(UndoState state) {
    return kEndings[static_cast<std::size_t>(state)];
}

}  // namespace

UndoStore::UndoStore(const std::string& state_directory) : directory_(state_directory + "/undo") {}

Status UndoStore::load() {
    states_.clear();
    std::error_code error;
    for (std::filesystem::directory_iterator entry(directory_, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string ending = entry->path().extension().string();
        const std::optional<Uuid> group = Uuid::parse(entry->path().stem().string());
        for (std::size_t index = 0; group && index < kEndings.size(); ++index) {
            if (ending == kEndings[index]) states_[*group] = static_cast<UndoState>(index);
        }
    }
    if (!error || error == std::errc::no_such_file_or_directory) return success();
    return system_error(ErrorCode::kSystem, "cannot look into " + directory_, error.value());
}

std::optional<UndoState> UndoStore::state(const Uuid& group) const {
    const auto found = states_.find(group);
    if (found == states_.end()) return std::nullopt;
    return found->second;
}

std::vector<Uuid> UndoStore::groups() const {
    std::vector<Uuid> groups;
    for (const auto& entry : states_) groups.push_back(entry.first);
    return groups;
}

std::vector<Uuid> UndoStore::groups_in(UndoState state) const {
    std::vector<Uuid> groups;
    for (const auto& [group, other] : states_) {
        if (other == state) groups.push_back(group);
    }
    return groups;
}

std::string UndoStore::path(const Uuid& group, UndoState state) const {
    return directory_ + "/" + group.to_text() + std::string(ending_of(state));
}

std::string UndoStore::path(const Uuid& group) const {
    WARPRAID_ASSERT(states_.contains(group));
    return path(group, states_.at(group));
}

Status UndoStore::keep(const UndoRecord& record) {
    WARPRAID_TRY(make_directories(directory_));
    WARPRAID_TRY(replace_file(path(record.group, UndoState::kRestoring), encode_undo(record)));
    states_[record.group] = UndoState::kRestoring;
    return success();
}

Status UndoStore::change(const Uuid& group, UndoState state) {
    WARPRAID_ASSERT(states_.contains(group));
    if (states_.at(group) == state) return success();
    const std::string before = path(group);
    const std::string after = path(group, state);
    Status renamed = rename_file(before, after);
    std::error_code error;
    // A rename that could be neither stored nor taken back has happened all the same.
    const bool has_moved =
        std::filesystem::exists(after, error) && !std::filesystem::exists(before, error);
    if (renamed.ok() || has_moved) states_.at(group) = state;
    return renamed;
}

Status UndoStore::remove(const Uuid& group) {
    // Whichever name a rename that failed has left.
    for (std::size_t index = 0; index < kEndings.size(); ++index) {
        WARPRAID_TRY(remove_file(path(group, static_cast<UndoState>(index))));
    }
    states_.erase(group);
    return success();
}

Result<UndoRecord> UndoStore::read(const Uuid& group) const {
    WARPRAID_TRY_ASSIGN(const std::string text, read_file(path(group), kUndoBytesMax));
    Result<UndoRecord> record = decode_undo(text);
    if (record.ok() && record->group != group) {
        return Error{ErrorCode::kInvalidArgument, path(group) + " is that of another group"};
    }
    if (record.ok()) return record;
    return Error{record.error().code, path(group) + " is damaged: " + record.error().message};
}

}  // namespace warpraid::control
