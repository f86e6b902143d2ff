#include "cli/request.h"

#include <nlohmann/json.hpp>

#include "api/percent.h"

namespace warpraid::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRoot = "/api/v1/";

std::string under(const char* collection) {
    return std::string(kRoot) + collection;
}

std::string under(const char* collection, const std::string& piece) {
    return under(collection) + "/" + api::percent_encode(piece);
}

std::string under(const char* collection, const std::string& first, const std::string& second) {
    return under(collection, first) + "/" + api::percent_encode(second);
}

template <typename T>
void put(Json& body, const char* key, const std::optional<T>& value) {
    if (value) body[key] = *value;
}

/// A flag that is not given is left out: the daemon's own default holds.
void put_flag(Json& body, const char* key, bool value) {
    if (value) body[key] = true;
}

Request get(std::string target) {
    return Request{
        .method = "GET", .target = std::move(target), .body = {}, .question = {}, .warning = {}};
}

Result<Request> send(const char* method, std::string target, const Json& body) {
    Request request{
        .method = method, .target = std::move(target), .body = {}, .question = {}, .warning = {}};
    try {
        if (!body.empty()) request.body = body.dump();
    } catch (const Json::exception&) {
        return Error{ErrorCode::kInvalidArgument, "an argument is not UTF-8 text"};
    }
    return request;
}

Result<Request> asking(Result<Request> request, bool is_destructive, std::string question) {
    if (request.ok() && is_destructive) request->question = std::move(question);
    return request;
}

bool is_mirror(const std::string& level) {
    return level == "1" ||
           (level.size() == 5 && (level[0] | 0x20) == 'r' && (level[1] | 0x20) == 'a' &&
            (level[2] | 0x20) == 'i' && (level[3] | 0x20) == 'd' && level[4] == '1');
}

Result<Request> create_drive(const Options& options) {
    if (options.size_bytes == 0) {
        return Error{ErrorCode::kBadSize, "a size of 0 bytes: a drive has at least 64M"};
    }
    Json body;
    body["paths"] = options.drives;
    put(body, "file_bytes", options.size_bytes);
    return send("POST", under("drives"), body);
}

Result<Request> create_group(const Options& options) {
    const bool has_useless_chunk = options.chunk_bytes && is_mirror(options.level);
    if (options.chunk_bytes == 0) {
        return Error{ErrorCode::kBadChunk,
                     "a chunk of 0 bytes: it must be a power of two from 4K to 1M"};
    }
    if (options.block_bytes == 0) {
        return Error{ErrorCode::kInvalidArgument,
                     "a block size of 0 bytes: 512 and 4096 are supported"};
    }
    Json body;
    put(body, "name", options.name);
    body["level"] = options.level;
    body["drives"] = options.drives;
    if (!has_useless_chunk) put(body, "chunk_bytes", options.chunk_bytes);
    put(body, "copies", options.copies);
    put(body, "block_bytes", options.block_bytes);
    put_flag(body, "exact_size", options.exact_size);
    put_flag(body, "force", options.force);
    Result<Request> request =
        asking(send("POST", under("groups"), body), options.force,
               "What is on the drives is lost when the new group takes them.");
    if (request.ok() && has_useless_chunk)
        request->warning = "raid1 has no chunk: --chunk is ignored";
    return request;
}

Result<Request> create_volume(const Options& options) {
    Json body;
    body["group"] = options.group;
    put(body, "name", options.name);
    put(body, "size_bytes", options.size_bytes);
    put(body, "count", options.count);
    return send("POST", under("volumes"), body);
}

Result<Request> create_spare(const Options& options) {
    Json body;
    body["drives"] = options.drives;
    put(body, "group", options.only_group);
    put_flag(body, "force", options.force);
    return asking(send("POST", under("spares"), body), options.force,
                  "What is on the drives is lost when they become spares.");
}

Result<Request> edit_group(const Options& options) {
    Json body;
    put(body, "name", options.name);
    put(body, "rebuild_bytes_per_second_max", options.rate_bytes_per_second);
    return send("PATCH", under("groups", options.group), body);
}

Result<Request> edit_volume(const Options& options) {
    Json body;
    put(body, "name", options.name);
    return send("PATCH", under("volumes", options.group, options.volume), body);
}

Result<Request> fail(const Options& options) {
    Json body;
    put(body, "generation", options.generation);
    return asking(send("POST", under("drives", options.drives[0]) + "/fail", body), true,
                  "The group goes on without drive " + options.drives[0] + ".");
}

Result<Request> replace(const Options& options) {
    Json body;
    body["new_drive"] = options.new_drive;
    put_flag(body, "force", options.force);
    put(body, "generation", options.generation);
    return asking(send("POST", under("drives", options.drives[0]) + "/replace", body),
                  options.force, "What is on drive " + options.new_drive + " is lost.");
}

Result<Request> export_volume(const Options& options) {
    Json body;
    body["group"] = options.group;
    body["volume"] = options.volume;
    put_flag(body, "read_only", options.read_only);
    return send("POST", under("exports"), body);
}

Result<Request> assemble(const Options& options) {
    Json body;
    put(body, "group", options.only_group);
    put_flag(body, "force", options.force);
    put_flag(body, "destroyed", options.destroyed);
    put(body, "preferred_drive", options.preferred_drive);
    std::string question;
    if (options.preferred_drive) {
        question = "Where members lived apart, the history of drive " + *options.preferred_drive +
                   " is kept and every other one is lost.";
    } else if (options.force) {
        question = "Starting a group by force may make its latest writes unreadable or wrong.";
    } else if (options.destroyed) {
        question = "A group that was deleted comes back and takes its drives again.";
    }
    return asking(send("POST", under("assemble"), body), !question.empty(), question);
}

Result<Request> delete_group(const Options& options) {
    const std::string target =
        under("groups", options.group) + (options.clear ? "?clear=true" : "");
    return asking(send("DELETE", target, {}), true,
                  options.clear ? "Group " + options.group + " and everything on it is lost."
                                : "Group " + options.group + " and its volumes are given up.");
}

Result<Request> undo(const Options& options) {
    const std::string target = under("groups", options.group) + "/undo";
    if (options.clear) {
        return asking(send("DELETE", target, {}), true,
                      "What the drives of group " + options.group +
                          " held before is given up, and they stay as they are.");
    }
    return asking(
        send("POST", target, {}), true,
        "Group " + options.group + " is given up, and its drives get back what they held before.");
}

Result<Request> delete_volume(const Options& options) {
    return asking(send("DELETE", under("volumes", options.group, options.volume), {}), true,
                  "Volume " + options.volume + " and everything on it is lost.");
}

Result<Request> delete_drive(const Options& options) {
    return asking(send("DELETE", under("drives", options.drives[0]), {}), true,
                  "Drive " + options.drives[0] + " is forgotten.");
}

Result<Request> delete_spare(const Options& options) {
    return asking(send("DELETE", under("spares", options.drives[0]), {}), true,
                  "Drive " + options.drives[0] + " waits for no lost member any more.");
}

Result<Request> edit_drive(const Options& options) {
    return asking(send("POST", under("drives", options.drives[0]) + "/reset-identity", {}), true,
                  "Drive " + options.drives[0] + " forgets that it is a member, and its content.");
}

Result<Request> unexport_volume(const Options& options) {
    return asking(send("DELETE", under("exports", options.group, options.volume), {}), true,
                  "Clients of volume " + options.volume + " are disconnected.");
}

std::string events_target(const Options& options) {
    std::string target = under("events");
    target += options.after ? "?after=" + std::to_string(*options.after) : "?newest=true";
    if (options.limit) target += "&limit=" + std::to_string(*options.limit);
    return target;
}

/// Of commands that only ask; empty for the others.
std::string query_target(const Options& options) {
    switch (options.command) {
        case Command::kListDrives:
            return under("drives");
        case Command::kListGroups:
            return under("groups");
        case Command::kListVolumes:
            return under("volumes");
        case Command::kListSpares:
            return under("spares");
        case Command::kListExports:
            return under("exports");
        case Command::kListEvents:
            return events_target(options);
        case Command::kDescribeDrive:
            return under("drives", options.drives[0]);
        case Command::kDescribeGroup:
            return under("groups", options.group);
        case Command::kDescribeVolume:
            return under("volumes", options.group, options.volume);
        case Command::kDescribeSpare:
            return under("spares", options.drives[0]);
        case Command::kDescribeExport:
            return under("exports", options.export_name);
        case Command::kDescribeEvent:
            return under("events", std::to_string(options.event.value_or(0)));
        case Command::kExamine:
            return under("examine");
        case Command::kStatus:
            return under("status");
        case Command::kHealth:
            return under("health");
        case Command::kVersion:
            return under("version");
        default:
            return {};
    }
}

}  // namespace

Result<Request> make_request(const Options& options) {
    const std::string target = query_target(options);
    if (!target.empty()) return get(target);
    switch (options.command) {
        case Command::kCreateDrive:
            return create_drive(options);
        case Command::kCreateGroup:
            return create_group(options);
        case Command::kCreateVolume:
            return create_volume(options);
        case Command::kCreateSpare:
            return create_spare(options);
        case Command::kDeleteDrive:
            return delete_drive(options);
        case Command::kDeleteGroup:
            return delete_group(options);
        case Command::kDeleteVolume:
            return delete_volume(options);
        case Command::kDeleteSpare:
            return delete_spare(options);
        case Command::kEditDrive:
            return edit_drive(options);
        case Command::kEditGroup:
            return edit_group(options);
        case Command::kEditVolume:
            return edit_volume(options);
        case Command::kFail:
            return fail(options);
        case Command::kReplace:
            return replace(options);
        case Command::kExport:
            return export_volume(options);
        case Command::kUnexport:
            return unexport_volume(options);
        case Command::kUndo:
            return undo(options);
        case Command::kVerify:
        case Command::kStopVerify:
            return send(options.command == Command::kVerify ? "POST" : "DELETE",
                        under("groups", options.group) + "/verify", {});
        case Command::kAssemble:
            return assemble(options);
        default:
            return Error{ErrorCode::kInternal, "a command without a request"};
    }
}

}  // namespace warpraid::cli
