#include "control/undo_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/assert.h"
#include "base/crc32c.h"
#include "control/json_fields.h"
#include "control/scan.h"
#include "format/superblock.h"

namespace warpraid::control {

namespace {

constexpr std::uint32_t kUndoVersion = 1;
constexpr std::array<std::string_view, 2> kStateNames{"restoring", "kept"};

std::string checksum_line(std::string_view text) {
    return fmt::format("{:08x}\n", crc32c(std::as_bytes(std::span(text))));
}

Error wrong(const std::string& what) {
    return {ErrorCode::kInvalidArgument, what};
}

UndoDrive parse_drive(Fields& fields, std::string& problem) {
    UndoDrive drive;
    drive.identity.path = fields.text("path");
    drive.identity.serial = fields.text("serial");
    drive.identity.model = fields.text("model");
    drive.key = fields.text("key");
    const std::optional<Uuid> member = Uuid::parse(fields.text("member"));
    if (member) drive.member = *member;
    if (problem.empty() && drive.member.is_nil()) problem = "a drive has no identity";
    const std::optional<Uuid> former = Uuid::parse(fields.text("former"));
    if (former) drive.former = *former;
    drive.size_bytes = fields.number("size_bytes", limits::kDriveBytesMax);
    if (problem.empty() && drive.size_bytes < limits::kDriveBytesMin) {
        problem = "a drive is too small";
    }
    drive.checksum = static_cast<std::uint32_t>(fields.number("checksum", ~std::uint32_t{0}));
    return drive;
}

UndoRecord parse_record(std::string_view line, std::string& problem) {
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
    if (problem.empty() && record.group.is_nil()) problem = "it names no group";
    record.name = root.text("name");
    const std::string state = root.text("state");
    const auto* const named = std::find(kStateNames.begin(), kStateNames.end(), state);
    if (named != kStateNames.end()) {
        record.state = static_cast<UndoState>(named - kStateNames.begin());
    } else if (problem.empty()) {
        problem = "its state is '" + state + "'";
    }
    for_each(root, "drives", problem,
             [&](Fields& drive) { record.drives.push_back(parse_drive(drive, problem)); });
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
    root["state"] = kStateNames[static_cast<std::size_t>(record.state)];
    root["drives"] = Json::array();
    for (const UndoDrive& drive : record.drives) {
        root["drives"].push_back({{"path", drive.identity.path},
                                  {"serial", drive.identity.serial},
                                  {"model", drive.identity.model},
                                  {"key", drive.key},
                                  {"member", drive.member.to_text()},
                                  {"former", drive.former.to_text()},
                                  {"size_bytes", drive.size_bytes},
                                  {"checksum", drive.checksum}});
    }
    const std::string text = root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    return text + checksum_line(text);
}

Result<UndoRecord> decode_undo(std::string_view text) {
    const std::size_t end = text.substr(0, kUndoRecordBytesMax).find('\n');
    if (end == std::string_view::npos) return wrong("it has no first line");
    const std::string_view line = text.substr(0, end + 1);
    if (text.substr(line.size()) != checksum_line(line)) return wrong("its checksum is wrong");
    std::string problem;
    UndoRecord record = parse_record(line, problem);
    if (!problem.empty()) return wrong(problem);
    return record;
}

std::uint32_t checksum_of(const UndoImage& image) {
    return crc32c(image.tail, crc32c(image.head));
}

std::string undo_key(const io::DriveIdentity& identity) {
    std::string hex;
    for (const char byte : identity_key(identity)) {
        hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    return hex;
}

}  // namespace warpraid::control
