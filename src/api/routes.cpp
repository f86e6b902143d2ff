#include "api/routes.h"

#include "api/bodies.h"
#include "api/json_in.h"
#include "api/target.h"
#include "base/limits.h"
#include "base/number_text.h"

namespace warpraid::api {

namespace {

using control::Service;

constexpr std::uint64_t kEventsDefault = 100;
constexpr std::uint64_t kEventsMax = 1000;

struct Call {
    Service& service;
    std::string_view body;
    std::vector<std::string> pieces;  // those that the route's "*" stand for
    std::map<std::string, std::string> query;
};

using Body = Result<std::string>;

Error bad_parameter(const std::string& name, const std::string& message) {
    return Error{ErrorCode::kInvalidArgument, "the parameter '" + name + "' " + message};
}

/// Takes a number out of the query.
Result<std::uint64_t> take_number(Call& call, const std::string& name, std::uint64_t otherwise) {
    const auto found = call.query.find(name);
    if (found == call.query.end()) return otherwise;
    const std::string text = found->second;
    call.query.erase(found);
    const auto value = parse_whole_number<std::uint64_t>(text);
    if (!value) return bad_parameter(name, "must be a whole number, not '" + text + "'");
    return *value;
}

Result<bool> take_flag(Call& call, const std::string& name) {
    const auto found = call.query.find(name);
    if (found == call.query.end()) return false;
    const std::string text = found->second;
    call.query.erase(found);
    if (text != "true" && text != "false") {
        return bad_parameter(name, "must be true or false, not '" + text + "'");
    }
    return text == "true";
}

Status nothing_left(const Call& call) {
    if (call.query.empty()) return success();
    return Error{ErrorCode::kInvalidArgument,
                 "unknown parameter '" + call.query.begin()->first + "'"};
}

Body done(const Status& status) {
    if (!status.ok()) return status.error();
    return done_body();
}

/// The one item that `matches`; kNotFound when there is none, kInvalidArgument when there are more.
template <typename T, typename Matches>
Result<T> find_one(const std::vector<T>& items, const std::string& what, const std::string& name,
                   const Matches& matches) {
    const T* found = nullptr;
    for (const T& item : items) {
        if (!matches(item)) continue;
        if (found != nullptr) {
            return Error{ErrorCode::kInvalidArgument,
                         "more than one " + what + " is called '" + name + "'; use its uuid"};
        }
        found = &item;
    }
    if (found == nullptr) {
        return Error{ErrorCode::kNotFound,
                     "there is no " + what + " '" + name + "': see list " + what};
    }
    return *found;
}

Result<control::GroupInfo> find_group(Service& service, const std::string& name) {
    return find_one(service.groups(), "group", name, [&](const control::GroupInfo& group) {
        return group.name == name || group.uuid == name || std::to_string(group.id) == name;
    });
}

Result<control::DriveInfo> find_drive(Service& service, const std::string& name) {
    return find_one(service.drives(), "drive", name, [&](const control::DriveInfo& drive) {
        return drive.path == name || drive.serial == name || drive.wwid == name ||
               std::to_string(drive.id) == name;
    });
}

// ---- queries ------------------------------------------------------------------------------------

Body get_drives(Call& call) {
    return drives_body(call.service.drives());
}
Body get_groups(Call& call) {
    return groups_body(call.service.groups());
}
Body get_volumes(Call& call) {
    return volumes_body(call.service.volumes());
}
Body get_spares(Call& call) {
    return spares_body(call.service.spares());
}
Body get_exports(Call& call) {
    return exports_body(call.service.exports());
}
Body get_health(Call& call) {
    return health_body(call.service.health());
}
Body get_examine(Call& call) {
    return drives_body(call.service.examine());
}
Body get_version(Call&) {
    return version_body();
}

Body get_drive(Call& call) {
    WARPRAID_TRY_ASSIGN(const control::DriveInfo drive, find_drive(call.service, call.pieces[0]));
    return drive_body(drive);
}

Body get_spare(Call& call) {
    const std::string& name = call.pieces[0];
    WARPRAID_TRY_ASSIGN(const control::DriveInfo drive, find_drive(call.service, name));
    WARPRAID_TRY_ASSIGN(
        const control::SpareInfo spare,
        find_one(call.service.spares(), "spare", name, [&](const control::SpareInfo& candidate) {
            return candidate.drive_id == drive.id;
        }));
    return spare_body(spare);
}

Body get_export(Call& call) {
    const std::string& name = call.pieces[0];
    WARPRAID_TRY_ASSIGN(
        const control::ExportRecord record,
        find_one(call.service.exports(), "export", name,
                 [&](const control::ExportRecord& candidate) { return candidate.name == name; }));
    return export_body(record);
}

Body get_group(Call& call) {
    WARPRAID_TRY_ASSIGN(const control::GroupInfo group, find_group(call.service, call.pieces[0]));
    return group_body(group);
}

Body get_volume(Call& call) {
    WARPRAID_TRY_ASSIGN(const control::GroupInfo group, find_group(call.service, call.pieces[0]));
    const std::string& name = call.pieces[1];
    WARPRAID_TRY_ASSIGN(
        const control::VolumeInfo volume,
        find_one(call.service.volumes(), "volume", name, [&](const control::VolumeInfo& candidate) {
            return candidate.group_id == group.id &&
                   (candidate.name == name || candidate.uuid == name ||
                    std::to_string(candidate.id) == name);
        }));
    return volume_body(volume);
}

Body get_events(Call& call) {
    WARPRAID_TRY_ASSIGN(const std::uint64_t after, take_number(call, "after", 0));
    WARPRAID_TRY_ASSIGN(const std::uint64_t limit, take_number(call, "limit", kEventsDefault));
    WARPRAID_TRY_ASSIGN(const bool is_newest, take_flag(call, "newest"));
    WARPRAID_TRY(nothing_left(call));
    if (limit == 0 || limit > kEventsMax) {
        return bad_parameter("limit", "must be 1 to " + std::to_string(kEventsMax));
    }
    if (!is_newest) return events_body(call.service.events(after, limit));
    std::vector<control::Event> events = call.service.events(after, limits::kEventsKept);
    if (events.size() > limit)
        events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(limit));
    return events_body(events);
}

Body get_event(Call& call) {
    const auto id = parse_whole_number<std::uint64_t>(call.pieces[0]);
    if (id && *id != 0) {
        const std::vector<control::Event> events = call.service.events(*id - 1, 1);
        if (!events.empty() && events.front().id == *id) return event_body(events.front());
    }
    return Error{ErrorCode::kNotFound,
                 "there is no event '" + call.pieces[0] +
                     "': old ones are given up, and list event shows those that are kept"};
}

Body get_status(Call& call) {
    Service& service = call.service;
    return status_body(Everything{.drives = service.drives(),
                                  .groups = service.groups(),
                                  .volumes = service.volumes(),
                                  .spares = service.spares(),
                                  .exports = service.exports(),
                                  .health = service.health()});
}

// ---- commands -----------------------------------------------------------------------------------

Body post_drives(Call& call) {
    WARPRAID_TRY_ASSIGN(const control::CreateDrive command, parse_create_drive(call.body));
    WARPRAID_TRY_ASSIGN(const auto drives, call.service.create_drive(command));
    return drives_body(drives);
}

Body post_groups(Call& call) {
    WARPRAID_TRY_ASSIGN(const control::CreateGroup command, parse_create_group(call.body));
    WARPRAID_TRY_ASSIGN(const control::GroupInfo group, call.service.create_group(command));
    return group_body(group);
}

Body post_volumes(Call& call) {
    WARPRAID_TRY_ASSIGN(const control::CreateVolume command, parse_create_volume(call.body));
    WARPRAID_TRY_ASSIGN(const auto volumes, call.service.create_volume(command));
    return volumes_body(volumes);
}

Body post_spares(Call& call) {
    WARPRAID_TRY_ASSIGN(const control::CreateSpare command, parse_create_spare(call.body));
    WARPRAID_TRY_ASSIGN(const auto spares, call.service.create_spare(command));
    return spares_body(spares);
}

Body post_exports(Call& call) {
    WARPRAID_TRY_ASSIGN(const ExportRequest request, parse_export(call.body));
    WARPRAID_TRY_ASSIGN(
        const control::ExportRecord record,
        call.service.export_volume(request.group, request.volume, request.read_only));
    return export_body(record);
}

Body post_fail(Call& call) {
    WARPRAID_TRY_ASSIGN(const control::FailDrive command,
                        parse_fail_drive(call.body, call.pieces[0]));
    WARPRAID_TRY_ASSIGN(const control::MemberInfo member, call.service.fail_drive(command));
    return member_body(member);
}

Body post_replace(Call& call) {
    WARPRAID_TRY_ASSIGN(const control::ReplaceDrive command,
                        parse_replace_drive(call.body, call.pieces[0]));
    WARPRAID_TRY_ASSIGN(const control::MemberInfo member, call.service.replace_drive(command));
    return member_body(member);
}

Body post_reset_identity(Call& call) {
    WARPRAID_TRY(parse_nothing(call.body));
    return done(call.service.reset_identity(call.pieces[0]));
}

Body post_verify(Call& call) {
    WARPRAID_TRY(parse_nothing(call.body));
    return done(call.service.verify_group(call.pieces[0]));
}

Body post_undo(Call& call) {
    WARPRAID_TRY(parse_nothing(call.body));
    return done(call.service.undo_group(call.pieces[0]));
}

Body delete_undo(Call& call) {
    WARPRAID_TRY(parse_nothing(call.body));
    return done(call.service.abandon_undo(call.pieces[0]));
}

Body post_assemble(Call& call) {
    WARPRAID_TRY_ASSIGN(const control::AssembleOptions options, parse_assemble(call.body));
    WARPRAID_TRY_ASSIGN(const auto outcomes, call.service.assemble(options));
    return outcomes_body(outcomes);
}

Body patch_group(Call& call) {
    WARPRAID_TRY_ASSIGN(const control::EditGroup command,
                        parse_edit_group(call.body, call.pieces[0]));
    return done(call.service.edit_group(command));
}

Body patch_volume(Call& call) {
    WARPRAID_TRY_ASSIGN(const std::string name, parse_edit_volume(call.body));
    return done(call.service.rename_volume(call.pieces[0], call.pieces[1], name));
}

Body delete_drive(Call& call) {
    WARPRAID_TRY(parse_nothing(call.body));
    return done(call.service.delete_drive(call.pieces[0]));
}

Body delete_group(Call& call) {
    WARPRAID_TRY(parse_nothing(call.body));
    WARPRAID_TRY_ASSIGN(const bool clear, take_flag(call, "clear"));
    WARPRAID_TRY(nothing_left(call));
    return done(call.service.delete_group(call.pieces[0], clear));
}

Body delete_volume(Call& call) {
    WARPRAID_TRY(parse_nothing(call.body));
    return done(call.service.delete_volume(call.pieces[0], call.pieces[1]));
}

Body delete_spare(Call& call) {
    WARPRAID_TRY(parse_nothing(call.body));
    return done(call.service.delete_spare(call.pieces[0]));
}

Body delete_export(Call& call) {
    WARPRAID_TRY(parse_nothing(call.body));
    return done(call.service.unexport_volume(call.pieces[0], call.pieces[1]));
}

Body delete_verify(Call& call) {
    WARPRAID_TRY(parse_nothing(call.body));
    return done(call.service.stop_verify(call.pieces[0]));
}

// ---- the table ----------------------------------------------------------------------------------

struct Route {
    std::string_view method;
    std::vector<std::string_view> pattern;  // below /api/v1; "*" takes any piece
    Body (*run)(Call&);
    bool takes_query = false;
};

const std::vector<Route>& routes() {
    static const std::vector<Route> table = {
        {"GET", {"drives"}, get_drives},
        {"GET", {"drives", "*"}, get_drive},
        {"GET", {"groups"}, get_groups},
        {"GET", {"groups", "*"}, get_group},
        {"GET", {"volumes"}, get_volumes},
        {"GET", {"volumes", "*", "*"}, get_volume},
        {"GET", {"spares"}, get_spares},
        {"GET", {"spares", "*"}, get_spare},
        {"GET", {"exports"}, get_exports},
        {"GET", {"exports", "*"}, get_export},
        {"GET", {"events"}, get_events, true},
        {"GET", {"events", "*"}, get_event},
        {"GET", {"health"}, get_health},
        {"GET", {"status"}, get_status},
        {"GET", {"examine"}, get_examine},
        {"GET", {"version"}, get_version},
        {"POST", {"drives"}, post_drives},
        {"POST", {"groups"}, post_groups},
        {"POST", {"volumes"}, post_volumes},
        {"POST", {"spares"}, post_spares},
        {"POST", {"exports"}, post_exports},
        {"POST", {"drives", "*", "fail"}, post_fail},
        {"POST", {"drives", "*", "replace"}, post_replace},
        {"POST", {"drives", "*", "reset-identity"}, post_reset_identity},
        {"POST", {"groups", "*", "verify"}, post_verify},
        {"POST", {"groups", "*", "undo"}, post_undo},
        {"DELETE", {"groups", "*", "undo"}, delete_undo},
        {"POST", {"assemble"}, post_assemble},
        {"PATCH", {"groups", "*"}, patch_group},
        {"PATCH", {"volumes", "*", "*"}, patch_volume},
        {"DELETE", {"drives", "*"}, delete_drive},
        {"DELETE", {"groups", "*"}, delete_group, true},
        {"DELETE", {"volumes", "*", "*"}, delete_volume},
        {"DELETE", {"spares", "*"}, delete_spare},
        {"DELETE", {"exports", "*", "*"}, delete_export},
        {"DELETE", {"groups", "*", "verify"}, delete_verify},
    };
    return table;
}

/// Fills `taken` with the pieces that the pattern's stars stand for.
bool matches(const Route& route, const std::vector<std::string>& pieces,
             std::vector<std::string>& taken) {
    constexpr std::size_t kPrefix = 2;  // "api", "v1"
    if (pieces.size() != route.pattern.size() + kPrefix) return false;
    taken.clear();
    for (std::size_t i = 0; i < route.pattern.size(); ++i) {
        const std::string& piece = pieces[i + kPrefix];
        if (route.pattern[i] == "*") {
            taken.push_back(piece);
        } else if (route.pattern[i] != piece) {
            return false;
        }
    }
    return true;
}

Body run(Service& service, const Request& request) {
    WARPRAID_TRY_ASSIGN(Target target, parse_target(request.target));
    const Error not_found{ErrorCode::kNotFound, "there is no " + std::string(request.method) + " " +
                                                    std::string(request.target) +
                                                    ": docs/openapi.json has what there is"};
    if (target.pieces.size() < 3 || target.pieces[0] != "api" || target.pieces[1] != "v1") {
        return not_found;
    }
    Call call{service, request.body, {}, std::move(target.query)};
    for (const Route& route : routes()) {
        if (route.method != request.method || !matches(route, target.pieces, call.pieces)) continue;
        if (!route.takes_query) WARPRAID_TRY(nothing_left(call));
        return route.run(call);
    }
    return not_found;
}

}  // namespace

Answer answer_of(const Error& error) {
    return Answer{to_http_status(error.code), error_body(error)};
}

Answer handle(Service& service, const Request& request) {
    const Body body = run(service, request);
    if (!body.ok()) return answer_of(body.error());
    return Answer{200, body.value()};
}

}  // namespace warpraid::api
