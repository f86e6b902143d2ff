#include "control/volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/number_text.h"
#include "base/size_text.h"

namespace warpraid::control {

namespace {

bool is_name_letter(unsigned char letter) {
    return letter < 0x80 && (std::isalnum(letter) != 0 || std::strchr("._-:+@", letter) != nullptr);
}

/// Empty when there is none. The name itself may be anything, so it is not repeated.
std::string flaw_of(const std::string& name, std::size_t bytes_max) {
    if (name.empty() || name.size() > bytes_max) return ",";
    for (std::size_t at = 0; at < name.size(); ++at) {
        const auto letter = static_cast<unsigned char>(name[at]);
        if (!is_name_letter(letter)) return fmt::format(" with 0x{:02x} at place {}", letter, at);
    }
    if (name.front() == '-' || name.front() == '.') {
        return fmt::format(" that starts with '{}'", name.front());
    }
    return is_whole_number(name) ? " that are all digits" : "";
}

std::uint32_t free_index(const format::PartitionTable& table) {
    std::uint32_t index = 0;
    for (const format::Partition& partition : table.partitions) {
        if (partition.index != index) break;
        ++index;
    }
    return index;
}

bool has_table_magic(std::span<const std::byte> primary, std::uint32_t block_bytes) {
    return std::memcmp(primary.data() + block_bytes, "EFI PART", 8) == 0;
}

}  // namespace

Status check_name(const std::string& name, std::size_t bytes_max) {
    const std::string flaw = flaw_of(name, bytes_max);
    if (flaw.empty()) return success();
    return Error{ErrorCode::kBadName,
                 fmt::format("a name of {} bytes{} cannot be used: take 1 to {} of the letters "
                             "a-z A-Z 0-9 . _ - : + @, not starting with '-' or '.', and not a "
                             "number alone",
                             name.size(), flaw, bytes_max)};
}

bool is_called(const format::Partition& volume, const std::string& name) {
    const bool fits =
        is_whole_number(name) ? std::to_string(volume.index) == name : volume.name == name;
    return fits || volume.uuid.to_text() == name;
}

Volumes::Volumes(const geometry::Layout& layout, DeviceIo io, Random& random)
    : layout_(layout),
      disk_{layout.capacity_bytes(), layout.block_bytes()},
      alignment_(format::volume_alignment(layout)),
      io_(std::move(io)),
      random_(random) {
    table_.disk = Uuid::make(random_);
    table_.first_usable = alignment_;
}

Status Volumes::load() {
    std::vector<std::byte> primary(format::gpt_primary_bytes(disk_.block_bytes));
    std::vector<std::byte> backup(format::gpt_backup_bytes(disk_.block_bytes));
    Status read = io_.read(0, primary);
    if (read.ok()) read = io_.read(disk_.size_bytes - backup.size(), backup);
    if (!read.ok()) {
        problem_ = read.error();
        return read;
    }
    Result<format::DecodedTable> decoded = format::decode_gpt(disk_, primary, backup);
    if (!decoded.ok()) {
        if (!has_table_magic(primary, disk_.block_bytes)) return success();
        problem_ = Error{decoded.error().code,
                         "the group's table of volumes is damaged (" + decoded.error().message +
                             "): no command mends it; put its blocks back and start warpraidd "
                             "again, or delete the group"};
        return *problem_;
    }
    problem_.reset();
    table_ = decoded->table;
    return decoded->needs_repair ? store(table_) : success();
}

Status Volumes::format() {
    return store(table_);
}

Status Volumes::check_usable() const {
    if (problem_) return *problem_;
    return success();
}

Status Volumes::store(const format::PartitionTable& table) {
    WARPRAID_TRY(format::check_table(table, disk_));
    std::vector<std::byte> primary(format::gpt_primary_bytes(disk_.block_bytes));
    std::vector<std::byte> backup(format::gpt_backup_bytes(disk_.block_bytes));
    format::encode_gpt(table, disk_, primary, backup);
    WARPRAID_TRY(io_.write(0, primary));
    WARPRAID_TRY(io_.flush());
    WARPRAID_TRY(io_.write(disk_.size_bytes - backup.size(), backup));
    WARPRAID_TRY(io_.flush());
    table_ = table;
    return success();
}

Result<format::Partition> Volumes::find(const std::string& name) const {
    WARPRAID_TRY(check_usable());
    const format::Partition* found = nullptr;
    for (const format::Partition& partition : table_.partitions) {
        if (!is_called(partition, name)) continue;
        if (found != nullptr) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("'{}' names volumes {} and {} of this group: use the number",
                                     name, found->index, partition.index)};
        }
        found = &partition;
    }
    if (found != nullptr) return *found;
    return Error{ErrorCode::kNotFound,
                 "there is no volume '" + name + "' in this group: see list volume"};
}

Result<format::Partition> Volumes::find_uuid(const std::string& uuid) const {
    WARPRAID_TRY(check_usable());
    for (const format::Partition& partition : table_.partitions) {
        if (partition.uuid.to_text() == uuid) return partition;
    }
    return Error{ErrorCode::kNotFound,
                 "there is no volume with the uuid " + uuid + " in this group: see list volume"};
}

std::uint64_t Volumes::used_bytes() const {
    std::uint64_t used = 0;
    for (const format::Partition& partition : table_.partitions) used += partition.size_bytes;
    return used;
}

std::uint64_t Volumes::free_bytes() const {
    std::uint64_t free = 0;
    for (const format::FreeExtent& extent : format::free_extents(table_, disk_, alignment_)) {
        free += extent.size_bytes;
    }
    return free;
}

Result<std::uint64_t> Volumes::size_of_each(const Request& request) const {
    if (request.size_bytes != 0) {
        if (request.size_bytes > disk_.size_bytes) {
            return Error{
                ErrorCode::kNoSpace,
                fmt::format("the group has {} bytes in all, {} were asked for: ask for less",
                            disk_.size_bytes, request.size_bytes)};
        }
        return round_up(request.size_bytes, disk_.block_bytes);
    }
    std::uint64_t largest = 0;
    for (const format::FreeExtent& extent : format::free_extents(table_, disk_, alignment_)) {
        largest = std::max(largest, extent.size_bytes);
    }
    const std::uint64_t each = request.count == 1 ? round_down(largest, disk_.block_bytes)
                                                  : round_down(largest / request.count, alignment_);
    if (each != 0) return each;
    return Error{ErrorCode::kNoSpace,
                 fmt::format("the largest free stretch has {} bytes, too few for {} volumes that "
                             "start at multiples of {}: ask for fewer, or delete a volume",
                             largest, request.count, alignment_)};
}

Status Volumes::place(format::PartitionTable& table, std::uint64_t size_bytes,
                      std::string name) const {
    if (table.partitions.size() >= limits::kVolumesPerGroupMax) {
        return Error{ErrorCode::kLimitReached,
                     fmt::format("the group has {} volumes, and {} is the most: delete one first",
                                 table_.partitions.size(), limits::kVolumesPerGroupMax)};
    }
    std::uint64_t largest = 0;
    for (const format::FreeExtent& extent : format::free_extents(table, disk_, alignment_)) {
        largest = std::max(largest, extent.size_bytes);
        if (extent.size_bytes < size_bytes) continue;
        format::Partition partition;
        partition.index = free_index(table);
        partition.type = format::linux_data_type();
        partition.uuid = Uuid::make(random_);
        partition.name = name.empty() ? fmt::format("vd{}", partition.index) : std::move(name);
        partition.start = extent.start;
        partition.size_bytes = size_bytes;
        for (const format::Partition& other : table.partitions) {
            if (other.name != partition.name) continue;
            return Error{ErrorCode::kAlreadyExists, "the group already has a volume named '" +
                                                        partition.name + "': choose another name"};
        }
        const auto behind = std::find_if(
            table.partitions.begin(), table.partitions.end(),
            [&](const format::Partition& other) { return other.index > partition.index; });
        table.partitions.insert(behind, std::move(partition));
        return success();
    }
    return Error{ErrorCode::kNoSpace,
                 fmt::format("{} bytes ({}) were asked for, the largest free stretch has {} ({}): "
                             "ask for less or delete a volume",
                             size_bytes, format_size(size_bytes), largest, format_size(largest))};
}

Result<format::PartitionTable> Volumes::plan(const Request& request) const {
    WARPRAID_TRY(check_usable());
    if (request.count == 0 || request.count > limits::kVolumesPerGroupMax) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} volumes were asked for: 1 to {} can be made at once",
                                 request.count, limits::kVolumesPerGroupMax)};
    }
    if (!request.name.empty()) {
        WARPRAID_TRY(check_name(request.name, limits::kVolumeNameCharsMax));
    }
    WARPRAID_TRY_ASSIGN(const std::uint64_t each, size_of_each(request));
    format::PartitionTable table = table_;
    for (std::uint32_t i = 0; i < request.count; ++i) {
        const bool numbered = !request.name.empty() && request.count > 1;
        const std::string name = numbered ? request.name + std::to_string(i) : request.name;
        if (!name.empty()) WARPRAID_TRY(check_name(name, limits::kVolumeNameCharsMax));
        WARPRAID_TRY(place(table, each, name));
    }
    WARPRAID_TRY(format::check_table(table, disk_));
    return table;
}

Status Volumes::check(const Request& request) const {
    WARPRAID_TRY(plan(request));
    return success();
}

Result<std::vector<format::Partition>> Volumes::create(const Request& request) {
    WARPRAID_TRY_ASSIGN(const format::PartitionTable table, plan(request));
    std::vector<Uuid> known;
    for (const format::Partition& partition : table_.partitions) known.push_back(partition.uuid);
    WARPRAID_TRY(store(table));
    std::vector<format::Partition> made;
    for (const format::Partition& partition : table_.partitions) {
        const bool old = std::find(known.begin(), known.end(), partition.uuid) != known.end();
        if (!old) made.push_back(partition);
    }
    return made;
}

Status Volumes::remove(std::uint32_t index) {
    WARPRAID_TRY(check_usable());
    format::PartitionTable table = table_;
    std::erase_if(table.partitions,
                  [&](const format::Partition& partition) { return partition.index == index; });
    return store(table);
}

Status Volumes::rename(std::uint32_t index, const std::string& name) {
    WARPRAID_TRY(check_usable());
    WARPRAID_TRY(check_name(name, limits::kVolumeNameCharsMax));
    format::PartitionTable table = table_;
    for (format::Partition& partition : table.partitions) {
        if (partition.index == index) {
            partition.name = name;
        } else if (partition.name == name) {
            return Error{ErrorCode::kAlreadyExists, "the group already has a volume named '" +
                                                        name + "': choose another name"};
        }
    }
    return store(table);
}

}  // namespace warpraid::control
