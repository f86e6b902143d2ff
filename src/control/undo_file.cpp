#include "control/undo_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "base/assert.h"
#include "base/crc32c.h"
#include "control/json_fields.h"
#include "format/superblock.h"

namespace warpraid::control {

namespace {

constexpr std::uint32_t kUndoVersion = 1;
// Names and texts of 32 drives are far shorter.
constexpr std::size_t kHeaderBytesMax = 512 * kKiB;
constexpr std::size_t kChecksumBytes = 4;

void append(std::string& text, std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::array<char, kChecksumBytes> checksum_of(std::string_view text) {
    const std::uint32_t sum = crc32c(std::as_bytes(std::span(text)));
    std::array<char, kChecksumBytes> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(sum >> (8 * i));
    return bytes;
}

Error wrong(const std::string& what) {
    return {ErrorCode::kInvalidArgument, what};
}

/// Takes `size` bytes off the front.
std::optional<std::vector<std::byte>> take(std::string_view& text, std::size_t size) {
    if (text.size() < size) return std::nullopt;
    const std::span<const std::byte> bytes = std::as_bytes(std::span(text.substr(0, size)));
    text.remove_prefix(size);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
}

/// Everything but the bytes of the drives.
UndoRecord parse_header(std::string_view line, std::string& problem) {
    UndoRecord record;
    const Json object = Json::parse(line, nullptr, false);
    if (!object.is_object()) {
        problem = "its first line is no JSON object";
        return record;
    }
    Fields root(object, problem);
    const std::uint64_t version = root.number("version");
    if (problem.empty() && version != kUndoVersion) {
        problem = "its version is " + std::to_string(version);
    }
    const std::optional<Uuid> group = Uuid::parse(root.text("group"));
    if (group) record.group = *group;
    record.name = root.text("name");
    for_each(root, "drives", problem, [&](Fields& drive) {
        UndoDrive& entry = record.drives.emplace_back();
        entry.identity.path = drive.text("path");
        entry.identity.serial = drive.text("serial");
        entry.identity.model = drive.text("model");
        entry.identity.wwid = drive.text("wwid");
        const std::optional<Uuid> member = Uuid::parse(drive.text("member"));
        if (member) entry.member = *member;
        if (problem.empty() && entry.member.is_nil()) problem = "a drive has no identity";
        entry.size_bytes = drive.number("size_bytes", limits::kDriveBytesMax);
        if (problem.empty() && entry.size_bytes < limits::kDriveBytesMin) {
            problem = "a drive is too small";
        }
    });
    if (problem.empty() && record.group.is_nil()) problem = "it names no group";
    const bool fits = !record.drives.empty() && record.drives.size() <= limits::kMembersMax;
    if (problem.empty() && !fits) {
        problem = "it names " + std::to_string(record.drives.size()) + " drives";
    }
    return record;
}

}  // namespace

std::uint64_t undo_tail_offset(std::uint64_t drive_bytes) {
    return format::superblock_copy_offset(drive_bytes);
}

std::size_t undo_tail_bytes(std::uint64_t drive_bytes) {
    return static_cast<std::size_t>(drive_bytes - undo_tail_offset(drive_bytes));
}

std::string encode_undo(const UndoRecord& record) {
    Json root;
    root["version"] = kUndoVersion;
    root["group"] = record.group.to_text();
    root["name"] = record.name;
    root["drives"] = Json::array();
    for (const UndoDrive& drive : record.drives) {
        WARPRAID_ASSERT(drive.head.size() == undo_head_bytes());
        WARPRAID_ASSERT(drive.tail.size() == undo_tail_bytes(drive.size_bytes));
        root["drives"].push_back({{"path", drive.identity.path},
                                  {"serial", drive.identity.serial},
                                  {"model", drive.identity.model},
                                  {"wwid", drive.identity.wwid},
                                  {"member", drive.member.to_text()},
                                  {"size_bytes", drive.size_bytes}});
    }
    std::string text = root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    for (const UndoDrive& drive : record.drives) {
        append(text, drive.head);
        append(text, drive.tail);
    }
    const auto sum = checksum_of(text);
    text.append(sum.data(), sum.size());
    return text;
}

Result<UndoRecord> decode_undo(std::string_view text) {
    if (text.size() < kChecksumBytes) return wrong("it is too short");
    const std::string_view covered = text.substr(0, text.size() - kChecksumBytes);
    const auto sum = checksum_of(covered);
    if (text.substr(covered.size()) != std::string_view(sum.data(), sum.size())) {
        return wrong("its checksum is wrong");
    }
    const std::size_t end = covered.substr(0, kHeaderBytesMax).find('\n');
    if (end == std::string_view::npos) return wrong("it has no first line");
    std::string problem;
    UndoRecord record = parse_header(covered.substr(0, end), problem);
    if (!problem.empty()) return wrong(problem);
    std::string_view rest = covered.substr(end + 1);
    for (UndoDrive& drive : record.drives) {
        auto head = take(rest, undo_head_bytes());
        auto tail = take(rest, undo_tail_bytes(drive.size_bytes));
        if (!head || !tail) return wrong("it is too short");
        drive.head = std::move(*head);
        drive.tail = std::move(*tail);
    }
    if (!rest.empty()) return wrong("it is too long");
    return record;
}

}  // namespace warpraid::control
