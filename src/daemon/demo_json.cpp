#include <nlohmann/json.hpp>

#include "daemon/demo_tools.h"

namespace warpraid::demo {

namespace {

using Json = nlohmann::json;

Json parse(const std::string& text) {
    // fio may print notes before its JSON.
    const std::size_t start = text.find('{');
    if (start == std::string::npos) return Json();
    return Json::parse(text.substr(start), nullptr, false);
}

std::uint64_t number(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<std::uint64_t>() : 0;
}

std::string text(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::optional<GroupStatus> parse_group_status(const std::string& json, const std::string& group) {
    const Json root = parse(json);
    if (!root.is_object() || !root.contains("groups")) return std::nullopt;
    for (const Json& entry : root["groups"]) {
        if (text(entry, "name") != group) continue;
        GroupStatus status;
        status.state = text(entry, "state");
        if (entry.contains("task") && entry["task"].is_object()) {
            const Json& task = entry["task"];
            const Json& progress = task.contains("progress") ? task["progress"] : task;
            status.work = text(progress, "work");
            status.done_bytes = number(progress, "done_bytes");
            status.total_bytes = number(progress, "total_bytes");
        }
        if (entry.contains("counters") && entry["counters"].is_object()) {
            status.written_bytes = number(entry["counters"], "written_bytes");
        }
        if (entry.contains("last_verify") && entry["last_verify"].is_object()) {
            const Json& verify = entry["last_verify"];
            status.verify_finished = verify.value("finished", false);
            status.verified_done = number(verify, "done_bytes");
            status.verified_total = number(verify, "total_bytes");
            status.verified_mismatches = number(verify, "mismatches");
            status.verified_unreadable = number(verify, "unreadable");
        }
        return status;
    }
    return std::nullopt;
}

std::optional<double> parse_fio_rate(const std::string& json, const std::string& direction) {
    const Json root = parse(json);
    if (!root.is_object() || !root.contains("jobs") || root["jobs"].empty()) return std::nullopt;
    const Json& job = root["jobs"][0];
    if (number(job, "error") != 0 || !job.contains(direction)) return std::nullopt;
    const Json& side = job[direction];
    if (!side.contains("bw_bytes") || number(side, "io_bytes") == 0) return std::nullopt;
    return side["bw_bytes"].get<double>();
}

}  // namespace warpraid::demo
