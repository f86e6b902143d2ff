#include <array>

#include "base/printable.h"
#include "base/size_text.h"
#include "base/time_text.h"
#include "cli/table.h"
#include "cli/view.h"

namespace warpraid::cli {

namespace {

constexpr auto kRight = Table::Align::kRight;

/// The table, or one line when there is nothing to show.
std::string or_none(const Table& table, const char* what) {
    return table.empty() ? std::string("no ") + what + "\n" : table.to_text();
}

std::string block_text(const Json& drive) {
    const std::uint64_t logical = number(drive, "logical_block_bytes");
    const std::uint64_t physical = number(drive, "physical_block_bytes");
    std::string shown = std::to_string(logical);
    if (physical != logical) shown += "/" + std::to_string(physical);
    return shown;
}

std::size_t live_members(const Json& group) {
    std::size_t count = 0;
    for (const Json& member : at(group, "members")) {
        if (text(member, "state") == "in-sync") ++count;
    }
    return count;
}

}  // namespace

std::string task_text(const Json& task) {
    if (!task.is_object()) return "";
    const Json& progress = at(task, "progress");
    std::string shown = text(progress, "work");
    const std::uint64_t total = number(progress, "total_bytes");
    if (total != 0) {
        const auto percent =
            static_cast<std::uint64_t>(100.0 * static_cast<double>(number(progress, "done_bytes")) /
                                       static_cast<double>(total));
        shown += " " + std::to_string(percent) + " %";
    }
    if (number(task, "bytes_per_second") != 0) {
        shown += ", " + size_text(task, "bytes_per_second") + "/s";
    }
    const auto eta = optional_number(task, "eta_seconds");
    if (eta) shown += ", " + format_duration(*eta) + " left";
    return shown;
}

std::string view_drives(const Json& drives) {
    Table table({{"ID", kRight},
                 {"PATH"},
                 {"SERIAL"},
                 {"MODEL"},
                 {"SIZE", kRight},
                 {"BLOCK", kRight},
                 {"USE"},
                 {"GROUP"},
                 {"SLOT", kRight},
                 {"DETAIL"}});
    for (const Json& drive : drives) {
        table.add({number_text(drive, "id"), text(drive, "path"), text(drive, "serial"),
                   text(drive, "model"), size_text(drive, "size_bytes"), block_text(drive),
                   text(drive, "use"), text(drive, "group"), number_text(drive, "slot"),
                   text(drive, "detail")});
    }
    return or_none(table, "drives");
}

std::string view_groups(const Json& groups) {
    Table table({{"ID", kRight},
                 {"NAME"},
                 {"LEVEL"},
                 {"STATE"},
                 {"IN SYNC", kRight},
                 {"CHUNK", kRight},
                 {"CAPACITY", kRight},
                 {"FREE", kRight},
                 {"WORK"}});
    std::string reasons;
    for (const Json& group : groups) {
        const Json& shape = at(group, "shape");
        table.add({number_text(group, "id"), text(group, "name"), text(shape, "level"),
                   text(group, "state"),
                   std::to_string(live_members(group)) + "/" + number_text(shape, "members"),
                   size_text(shape, "chunk_bytes"), size_text(group, "capacity_bytes"),
                   size_text(group, "free_bytes"), task_text(at(group, "task"))});
        const std::string reason = text(group, "reason");
        if (!reason.empty()) {
            reasons += printable(text(group, "name") + ": " + reason) + " [" +
                       text(group, "reason_code") + "]\n";
        }
    }
    return or_none(table, "groups") + reasons;
}

std::string view_volumes(const Json& volumes) {
    Table table({{"GROUP"},
                 {"ID", kRight},
                 {"NAME"},
                 {"SIZE", kRight},
                 {"BLOCK", kRight},
                 {"EXPORTED"},
                 {"UUID"}});
    for (const Json& volume : volumes) {
        table.add({text(volume, "group"), number_text(volume, "id"), text(volume, "name"),
                   size_text(volume, "size_bytes"), number_text(volume, "block_bytes"),
                   flag(volume, "exported") ? "yes" : "no", text(volume, "uuid")});
    }
    return or_none(table, "volumes");
}

std::string view_spares(const Json& spares) {
    Table table({{"DRIVE", kRight}, {"PATH"}, {"SERIAL"}, {"SIZE", kRight}, {"GROUP"}});
    for (const Json& spare : spares) {
        const std::string group = text(spare, "group");
        table.add({number_text(spare, "drive_id"), text(spare, "path"), text(spare, "serial"),
                   size_text(spare, "drive_bytes"), group.empty() ? "any" : group});
    }
    return or_none(table, "spares");
}

std::string view_exports(const Json& exports) {
    Table table({{"GROUP"}, {"VOLUME"}, {"MODE"}, {"CLIENTS", kRight}, {"URI"}});
    for (const Json& record : exports) {
        table.add({text(record, "group"), text(record, "volume"),
                   flag(record, "read_only") ? "read-only" : "read-write",
                   number_text(record, "connections"), text(record, "uri")});
    }
    return or_none(table, "exports");
}

std::string view_events(const Json& events) {
    Table table({{"ID", kRight},
                 {"TIME"},
                 {"SEVERITY"},
                 {"KIND"},
                 {"GROUP"},
                 {"VOLUME"},
                 {"DRIVE"},
                 {"TEXT"}});
    for (const Json& event : events) {
        table.add({number_text(event, "id"), text(event, "time"), text(event, "severity"),
                   text(event, "kind"), text(event, "group"), text(event, "volume"),
                   text(event, "drive_serial"), text(event, "text")});
    }
    return or_none(table, "events");
}

std::string view_health(const Json& health) {
    static constexpr std::array<const char*, 3> kLevels = {"fine", "needs attention", "failed"};
    const std::uint64_t level = number(health, "level");
    std::string shown =
        std::string("health: ") + (level < kLevels.size() ? kLevels[level] : "unknown") + "\n";
    for (const Json& finding : at(health, "findings")) {
        if (finding.is_string()) shown += "  " + printable(finding.get<std::string>()) + "\n";
    }
    return shown;
}

std::string view_outcomes(const Json& outcomes) {
    Table table({{"GROUP"}, {"OUTCOME"}, {"CODE"}, {"MESSAGE"}});
    for (const Json& outcome : outcomes) {
        table.add({text(outcome, "group"), text(outcome, "outcome"), text(outcome, "code"),
                   text(outcome, "message")});
    }
    return or_none(table, "groups found");
}

}  // namespace warpraid::cli
