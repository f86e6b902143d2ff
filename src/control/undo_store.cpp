#include "control/undo_store.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "control/durable_file.h"

namespace warpraid::control {

namespace {

constexpr std::string_view kRecordEnding = ".undo";
constexpr std::string_view kCopyEnding = ".copy";
constexpr std::string_view kImageEnding = ".image";
constexpr std::size_t kUuidTextBytes = 36;

/// "<group>-<member>".
std::optional<std::pair<Uuid, Uuid>> parse_image_name(const std::string& stem) {
    if (stem.size() != 2 * kUuidTextBytes + 1 || stem[kUuidTextBytes] != '-') return std::nullopt;
    const std::optional<Uuid> group = Uuid::parse(stem.substr(0, kUuidTextBytes));
    const std::optional<Uuid> member = Uuid::parse(stem.substr(kUuidTextBytes + 1));
    if (!group || !member) return std::nullopt;
    return std::pair{*group, *member};
}

std::string text_of(const UndoImage& image) {
    std::string text;
    for (const auto* bytes : {&image.head, &image.tail}) {
        text.append(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    }
    return text;
}

UndoImage image_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    const auto head = bytes.first(undo_head_bytes());
    const auto tail = bytes.subspan(undo_head_bytes());
    return {{head.begin(), head.end()}, {tail.begin(), tail.end()}};
}

}  // namespace

UndoStore::UndoStore(const std::string& state_directory) : directory_(state_directory + "/undo") {}

const UndoStore::Entry& UndoStore::entry_of(const Uuid& group) const {
    const auto found = entries_.find(group);
    WARPRAID_ASSERT(found != entries_.end());
    return found->second;
}

std::array<std::string, 2> UndoStore::record_paths(const Uuid& group) const {
    const std::string path = directory_ + "/" + group.to_text() + std::string(kRecordEnding);
    return {path, path + std::string(kCopyEnding)};
}

std::string UndoStore::image_path(const Uuid& group, const Uuid& member) const {
    return directory_ + "/" + group.to_text() + "-" + member.to_text() + std::string(kImageEnding);
}

Result<UndoRecord> UndoStore::read_record(const Uuid& group) const {
    const auto read = [&](const std::string& path) -> Result<UndoRecord> {
        WARPRAID_TRY_ASSIGN(const std::string text, read_file(path, kUndoRecordBytesMax));
        Result<UndoRecord> record = decode_undo(text);
        if (record.ok() && record->group != group) {
            return Error{ErrorCode::kInvalidArgument, path + " is that of another group"};
        }
        if (record.ok()) return record;
        return Error{record.error().code, path + " is damaged: " + record.error().message};
    };
    const auto [first, second] = record_paths(group);
    Result<UndoRecord> record = read(first);
    if (record.ok()) return record;
    Result<UndoRecord> copy = read(second);
    if (copy.ok() || record.error().code == ErrorCode::kNotFound) return copy;
    return record;
}

Status UndoStore::load() {
    entries_.clear();
    std::vector<std::pair<Uuid, Uuid>> images;
    std::vector<std::string> leftovers;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(directory_, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (is_leftover(name)) leftovers.push_back(entry->path().string());
        const std::size_t dot = std::min(name.find('.'), name.size());
        const std::string stem = name.substr(0, dot);
        const std::string ending = name.substr(dot);
        const std::optional<Uuid> group = Uuid::parse(stem);
        const bool is_record = ending == kRecordEnding ||
                               ending == std::string(kRecordEnding) + std::string(kCopyEnding);
        if (is_record && group) entries_.insert({*group, Entry{read_record(*group), {}}});
        const auto image = parse_image_name(stem);
        if (ending == kImageEnding && image) images.push_back(*image);
    }
    if (error && error != std::errc::no_such_file_or_directory) {
        return system_error(ErrorCode::kSystem, "cannot look into " + directory_, error.value());
    }
    for (const std::string& path : leftovers) WARPRAID_TRY(remove_file(path));
    for (const auto& [group, member] : images) {
        const auto found = entries_.find(group);
        if (found != entries_.end()) {
            found->second.images.insert(member);
        } else {
            WARPRAID_TRY(remove_file(image_path(group, member)));
        }
    }
    return success();
}

std::optional<UndoState> UndoStore::state(const Uuid& group) const {
    const auto found = entries_.find(group);
    if (found == entries_.end()) return std::nullopt;
    const Result<UndoRecord>& record = found->second.record;
    return record.ok() ? record->state : UndoState::kKept;
}

std::vector<Uuid> UndoStore::groups() const {
    std::vector<Uuid> groups;
    for (const auto& entry : entries_) groups.push_back(entry.first);
    return groups;
}

std::vector<Uuid> UndoStore::groups_in(UndoState wanted) const {
    std::vector<Uuid> groups;
    for (const auto& entry : entries_) {
        if (state(entry.first) == wanted) groups.push_back(entry.first);
    }
    return groups;
}

Result<UndoRecord> UndoStore::record(const Uuid& group) const {
    return entry_of(group).record;
}

Status UndoStore::check(const Uuid& group) const {
    WARPRAID_TRY_ASSIGN(const UndoRecord found, record(group));
    for (const UndoDrive& drive : found.drives) {
        if (is_waiting(group, drive.member)) continue;
        return Error{ErrorCode::kNotFound, image_path(group, drive.member) + " is missing"};
    }
    return success();
}

bool UndoStore::is_waiting(const Uuid& group, const Uuid& member) const {
    return entry_of(group).images.contains(member);
}

Result<UndoImage> UndoStore::read(const Uuid& group, const UndoDrive& drive) const {
    const std::string path = image_path(group, drive.member);
    const std::size_t bytes = undo_head_bytes() + undo_tail_bytes(drive.size_bytes);
    WARPRAID_TRY_ASSIGN(const std::string text, read_file(path, bytes));
    if (text.size() == bytes) {
        UndoImage image = image_of(text);
        if (checksum_of(image) == drive.checksum) return image;
    }
    return Error{ErrorCode::kInvalidArgument, path + " is damaged: its checksum is wrong"};
}

Status UndoStore::keep(const UndoRecord& record, std::span<const UndoImage> images) {
    WARPRAID_ASSERT(record.state == UndoState::kRestoring);
    WARPRAID_ASSERT(images.size() == record.drives.size());
    WARPRAID_TRY(make_directories(directory_));
    Entry entry{record, {}};
    Status status = success();
    for (std::size_t index = 0; status.ok() && index < images.size(); ++index) {
        const Uuid& member = record.drives[index].member;
        entry.images.insert(member);
        status = replace_file(image_path(record.group, member), text_of(images[index]));
    }
    if (status.ok()) status = replace_files(record_paths(record.group), encode_undo(record));
    if (status.ok()) {
        entries_.insert({record.group, std::move(entry)});
        return success();
    }
    // Whatever cannot be removed either harms nobody: the drives hold what the images say.
    for (const std::string& path : record_paths(record.group)) {
        static_cast<void>(remove_file(path).ok());
    }
    for (const Uuid& member : entry.images) {
        static_cast<void>(remove_file(image_path(record.group, member)).ok());
    }
    return status;
}

Status UndoStore::change(const Uuid& group, UndoState state, const std::string& name) {
    WARPRAID_TRY_ASSIGN(UndoRecord changed, record(group));
    changed.state = state;
    changed.name = name;
    WARPRAID_TRY(replace_files(record_paths(group), encode_undo(changed)));
    entries_.at(group).record = std::move(changed);
    return success();
}

Status UndoStore::remove_image(const Uuid& group, const Uuid& member) {
    WARPRAID_ASSERT(is_waiting(group, member));
    const std::string path = image_path(group, member);
    Status removed = remove_file(path);
    std::error_code unknown;
    if (removed.ok() || !std::filesystem::exists(path, unknown)) {
        entries_.at(group).images.erase(member);
    }
    return removed;
}

Status UndoStore::remove(const Uuid& group) {
    // Without the record the images mean nothing.
    for (const std::string& path : record_paths(group)) WARPRAID_TRY(remove_file(path));
    const auto found = entries_.find(group);
    if (found == entries_.end()) return success();
    const std::set<Uuid> images = std::move(found->second.images);
    entries_.erase(found);
    for (const Uuid& member : images) WARPRAID_TRY(remove_file(image_path(group, member)));
    return success();
}

}  // namespace warpraid::control
