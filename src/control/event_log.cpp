#include "control/event_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/log.h"
#include "base/number_text.h"
#include "base/units.h"
#include "control/durable_file.h"

namespace warpraid::control {

namespace {

using Json = nlohmann::json;

// No log counts so far by itself, and JSON's readers keep numbers exact up to here. A larger one
// would end the numbering.
constexpr std::uint64_t kEventIdMax = std::uint64_t{1} << 53;
constexpr std::uint64_t kLogBytesMax = 256 * kMiB;
constexpr std::uint64_t kNumberBytesMax = 32;
// As many numbers at most are left out by a crash.
constexpr std::uint64_t kIdsReserved = 256;

/// Whether what is at a path is wrong, or cannot be read; other failures say nothing about it.
bool is_broken(const Result<std::string>& text) {
    return !text.ok() && (text.error().code == ErrorCode::kInvalidArgument ||
                          text.error().code == ErrorCode::kIo);
}

std::string to_line(const Event& event) {
    const Json json = {{"id", event.id},
                       {"time_ns", event.time_ns},
                       {"severity", to_text(event.severity)},
                       {"kind", event.kind},
                       {"group", event.group},
                       {"volume", event.volume},
                       {"drive_serial", event.drive_serial},
                       {"text", event.text}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string text_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<Event> parse_line(const std::string& line) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) return std::nullopt;
    const auto id = json.find("id");
    const auto time = json.find("time_ns");
    if (id == json.end() || !id->is_number_unsigned()) return std::nullopt;
    if (id->get<std::uint64_t>() > kEventIdMax) return std::nullopt;
    if (time == json.end() || !time->is_number_unsigned()) return std::nullopt;
    Event event;
    event.id = id->get<std::uint64_t>();
    event.time_ns = time->get<std::uint64_t>();
    const std::string severity = text_of(json, "severity");
    if (severity == to_text(Severity::kWarning)) event.severity = Severity::kWarning;
    if (severity == to_text(Severity::kError)) event.severity = Severity::kError;
    event.kind = text_of(json, "kind");
    event.group = text_of(json, "group");
    event.volume = text_of(json, "volume");
    event.drive_serial = text_of(json, "drive_serial");
    event.text = text_of(json, "text");
    return event;
}

LogLevel log_level_of(Severity severity) {
    switch (severity) {
        case Severity::kInfo:
            return LogLevel::kInfo;
        case Severity::kWarning:
            return LogLevel::kWarning;
        case Severity::kError:
            break;
    }
    return LogLevel::kError;
}

}  // namespace

std::string_view to_text(Severity severity) {
    switch (severity) {
        case Severity::kInfo:
            return "info";
        case Severity::kWarning:
            return "warning";
        case Severity::kError:
            break;
    }
    return "error";
}

bool EventLog::take(const std::string& text) {
    bool is_whole = true;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::optional<Event> event = parse_line(line);
        if (!event || event->id < next_id_) {
            is_whole = is_whole && lines.eof();
            continue;
        }
        next_id_ = event->id + 1;
        events_.push_back(*std::move(event));
        if (events_.size() > kept_) events_.pop_front();
    }
    return is_whole;
}

Status EventLog::load(std::string& warning) {
    const Result<std::string> text = read_file(path_, kLogBytesMax);
    const bool is_there = text.ok() || text.error().code != ErrorCode::kNotFound;
    if (!text.ok() && is_there && !is_broken(text)) return text.error();
    if (is_there && (!text.ok() || !take(*text))) {
        WARPRAID_TRY_ASSIGN(const std::string aside, move_aside(path_));
        warning = path_ + " is broken (" +
                  (text.ok() ? "lines in it are no events" : text.error().message) +
                  ") and was moved aside to " + aside;
    }
    WARPRAID_TRY(load_reserve(warning));
    // Also ends a torn last line, which a later append would otherwise continue.
    note(rewrite());
    return success();
}

EventLog::~EventLog() {
    // After an orderly stop no number is left out.
    if (file_ && problem_.empty()) static_cast<void>(write_reserve(next_id_));
}

Status EventLog::load_reserve(std::string& warning) {
    const Result<std::string> text = read_file(next_path_, kNumberBytesMax);
    if (!text.ok() && text.error().code == ErrorCode::kNotFound) return success();
    if (!text.ok() && !is_broken(text)) return text.error();
    std::optional<std::uint64_t> end;
    if (text.ok()) end = parse_whole_number<std::uint64_t>(text->substr(0, text->find('\n')));
    if (end && *end <= kEventIdMax) {
        next_id_ = std::max(next_id_, *end);
        return success();
    }
    WARPRAID_TRY_ASSIGN(const std::string aside, move_aside(next_path_));
    warning +=
        (warning.empty() ? "" : "; ") + next_path_ + " is broken and was moved aside to " + aside;
    return success();
}

Status EventLog::write_reserve(std::uint64_t end) {
    WARPRAID_TRY(replace_file(next_path_, std::to_string(end) + "\n"));
    reserved_ = end;
    return success();
}

Status EventLog::reserve() {
    return next_id_ <= reserved_ ? success() : write_reserve(next_id_ + kIdsReserved);
}

Status EventLog::open() {
    file_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, mode_t{0640}));
    if (!file_) return system_error(ErrorCode::kSystem, "cannot open " + path_, errno);
    return success();
}

Status EventLog::rewrite() {
    std::string text;
    for (const Event& event : events_) text += to_line(event);
    WARPRAID_TRY(replace_file(path_, text));
    lines_on_disk_ = events_.size();
    WARPRAID_TRY(open());
    return reserve();
}

void EventLog::append(const Event& event) {
    // What is missing before this one has to go to disk with it, in order.
    const bool is_behind = !problem_.empty() || lines_on_disk_ >= 2 * kept_;
    Status stored = is_behind ? rewrite() : write_line(to_line(event));
    if (stored.ok()) stored = reserve();
    note(stored);
}

Status EventLog::write_line(const std::string& line) {
    struct stat before{};
    if (::fstat(file_.get(), &before) != 0) {
        return system_error(ErrorCode::kSystem, "cannot look at " + path_, errno);
    }
    errno = ENOSPC;  // what a short write means
    const ssize_t written = ::write(file_.get(), line.data(), line.size());
    const bool is_whole = written == static_cast<ssize_t>(line.size());
    if (is_whole && ::fdatasync(file_.get()) == 0) {
        ++lines_on_disk_;
        return success();
    }
    const int error = errno;
    // Nothing may follow half a line.
    if (::ftruncate(file_.get(), before.st_size) != 0) log_error("cannot cut " + path_);
    return system_error(ErrorCode::kSystem, "cannot write " + path_, error);
}

void EventLog::note(const Status& status) {
    if (!status.ok() && problem_.empty()) {
        log_error("events cannot be stored: " + status.error().message);
    }
    problem_ = status.ok() ? std::string() : status.error().message;
}

void EventLog::catch_up() {
    if (!problem_.empty()) note(rewrite());
}

void EventLog::add(EventDraft draft) {
    Event event;
    event.id = next_id_++;
    event.time_ns = clock_.wall_ns();
    event.severity = draft.severity;
    event.kind = std::move(draft.kind);
    event.group = std::move(draft.group);
    event.volume = std::move(draft.volume);
    event.drive_serial = std::move(draft.drive_serial);
    event.text = std::move(draft.text);
    log(log_level_of(event.severity), event.kind + ": " + event.text);
    events_.push_back(event);
    if (events_.size() > kept_) events_.pop_front();
    append(event);
}

std::vector<Event> EventLog::list(std::uint64_t after, std::size_t limit) const {
    const auto first =
        std::upper_bound(events_.begin(), events_.end(), after,
                         [](std::uint64_t id, const Event& event) { return id < event.id; });
    const auto left = static_cast<std::size_t>(events_.end() - first);
    return {first, first + static_cast<std::ptrdiff_t>(std::min(left, limit))};
}

}  // namespace warpraid::control
