#include "cli/view.h"

#include "base/printable.h"
#include "base/size_text.h"
#include "cli/table.h"

namespace warpraid::cli {

namespace {

constexpr auto kRight = Table::Align::kRight;
constexpr std::size_t kLabelWidth = 18;

/// "label:            value"; an empty value is "-".
std::string line(const std::string& label, const std::string& value) {
    std::string shown = label + ":";
    shown.resize(std::max(kLabelWidth, shown.size() + 1), ' ');
    return shown + (value.empty() ? "-" : printable(value)) + "\n";
}

std::string progress_bar(const Json& task) {
    constexpr std::uint64_t kWidth = 40;
    const Json& progress = at(task, "progress");
    const std::uint64_t total = number(progress, "total_bytes");
    const double part = total == 0 ? 0.0
                                   : static_cast<double>(number(progress, "done_bytes")) /
                                         static_cast<double>(total);
    const auto filled = static_cast<std::size_t>(std::min(part, 1.0) * kWidth);
    return "[" + std::string(filled, '#') + std::string(kWidth - filled, ' ') + "]";
}

std::string verify_text(const Json& progress) {
    if (!progress.is_object()) return "never, since the daemon started";
    const std::string found = number_text(progress, "mismatches") + " mismatches, " +
                              number_text(progress, "unreadable") + " unreadable stripes";
    if (flag(progress, "finished")) return "finished: " + found;
    return "not finished, " + size_text(progress, "done_bytes") + " of " +
           size_text(progress, "total_bytes") + ": " + found;
}

std::string counters_text(const Json& counters) {
    if (!counters.is_object()) return "";
    std::string shown = "\nCounters since the daemon started\n";
    const auto row = [&](const char* label, const std::string& value) {
        shown += "  " + line(label, value);
    };
    row("reads", number_text(counters, "reads") + ", " + size_text(counters, "read_bytes") + ", " +
                     number_text(counters, "degraded_reads") + " degraded");
    row("writes", number_text(counters, "writes") + ", " + size_text(counters, "written_bytes") +
                      ", " + number_text(counters, "joined_writes") + " joined others");
    row("stripe writes", number_text(counters, "full_stripes") + " full, " +
                             number_text(counters, "read_modify_writes") + " read-modify-write, " +
                             number_text(counters, "reconstruct_writes") + " reconstruct");
    row("drive commands", number_text(counters, "member_commands") + ", " +
                              size_text(counters, "member_bytes_read") + " read, " +
                              size_text(counters, "member_bytes_written") + " written");
    row("plans made again", number_text(counters, "replans"));
    return shown;
}

std::string members_text(const Json& members) {
    Table table({{"SLOT", kRight},
                 {"STATE"},
                 {"REASON"},
                 {"SINCE"},
                 {"SERIAL"},
                 {"PATH"},
                 {"SIZE", kRight},
                 {"UNUSED", kRight},
                 {"ERRORS R/W", kRight}});
    for (const Json& member : members) {
        const std::string reason = text(member, "reason");
        table.add({number_text(member, "slot"), text(member, "state"),
                   reason == "none" ? "" : reason, text(member, "since"), text(member, "serial"),
                   text(member, "path"), size_text(member, "drive_bytes"),
                   size_text(member, "unused_tail_bytes"),
                   number_text(member, "read_errors") + "/" + number_text(member, "write_errors")});
    }
    return table.to_text(2);
}

std::string member_text(const Json& member) {
    return "slot " + number_text(member, "slot") + " (" + printable(text(member, "serial")) + ", " +
           printable(text(member, "path")) + ") is " + text(member, "state") + "\n";
}

std::string done_text(const Options& options) {
    const std::string drive = options.drives.empty() ? "" : options.drives[0];
    switch (options.command) {
        case Command::kDeleteDrive:
            return "drive " + drive + " is forgotten\n";
        case Command::kDeleteGroup:
            return "group " + options.group + " is deleted\n";
        case Command::kUndo:
            return "group " + options.group +
                   (options.clear ? ": what its drives held before is kept no longer\n"
                                  : " is given up; its drives hold again what they held before\n");
        case Command::kDeleteVolume:
            return "volume " + options.volume + " is deleted\n";
        case Command::kDeleteSpare:
            return "drive " + drive + " is no spare any more\n";
        case Command::kEditDrive:
            return "drive " + drive + " is blank now\n";
        case Command::kEditGroup:
            return "group " + options.group + " is changed\n";
        case Command::kEditVolume:
            return "volume " + options.volume + " is renamed\n";
        case Command::kUnexport:
            return "volume " + options.volume + " is not exported any more\n";
        case Command::kVerify:
            return "verify of group " + options.group + " runs; see `warpraid describe group " +
                   options.group + "`\n";
        case Command::kStopVerify:
            return "verify of group " + options.group + " is stopped\n";
        default:
            return "";
    }
}

std::string bytes_text(const Json& object, const char* key) {
    return size_text(object, key) + " (" + number_text(object, key) + " bytes)";
}

}  // namespace

std::string view_drive(const Json& drive) {
    return line("id", number_text(drive, "id")) + line("path", text(drive, "path")) +
           line("serial", text(drive, "serial")) + line("model", text(drive, "model")) +
           line("wwid", text(drive, "wwid")) + line("size", bytes_text(drive, "size_bytes")) +
           line("logical block", number_text(drive, "logical_block_bytes")) +
           line("physical block", number_text(drive, "physical_block_bytes")) +
           line("use", text(drive, "use")) + line("group", text(drive, "group")) +
           line("slot", number_text(drive, "slot")) + line("detail", text(drive, "detail"));
}

std::string view_volume(const Json& volume) {
    return line("group", text(volume, "group")) + line("id", number_text(volume, "id")) +
           line("name", text(volume, "name")) + line("uuid", text(volume, "uuid")) +
           line("start", number_text(volume, "start") + " bytes into the group") +
           line("size", bytes_text(volume, "size_bytes")) +
           line("block", number_text(volume, "block_bytes")) +
           line("exported", flag(volume, "exported") ? "yes" : "no");
}

std::string view_spare(const Json& spare) {
    const std::string group = text(spare, "group");
    return line("drive", number_text(spare, "drive_id")) + line("path", text(spare, "path")) +
           line("serial", text(spare, "serial")) + line("size", bytes_text(spare, "drive_bytes")) +
           line("group", group.empty() ? "any that it fits" : group);
}

std::string view_export(const Json& record) {
    return line("name", text(record, "name")) + line("group", text(record, "group")) +
           line("volume", text(record, "volume")) + line("uri", text(record, "uri")) +
           line("mode", flag(record, "read_only") ? "read-only" : "read-write") +
           line("clients", number_text(record, "connections"));
}

std::string view_event(const Json& event) {
    return line("id", number_text(event, "id")) + line("time", text(event, "time")) +
           line("severity", text(event, "severity")) + line("kind", text(event, "kind")) +
           line("group", text(event, "group")) + line("volume", text(event, "volume")) +
           line("drive", text(event, "drive_serial")) + line("text", text(event, "text"));
}

std::string view_group(const Json& group) {
    const Json& shape = at(group, "shape");
    std::string shown = line("id", number_text(group, "id")) + line("name", text(group, "name")) +
                        line("uuid", text(group, "uuid")) + line("state", text(group, "state"));
    const std::string reason = text(group, "reason");
    if (!reason.empty()) shown += line("reason", reason + " [" + text(group, "reason_code") + "]");
    if (at(group, "undoable") == true) {
        shown += line("undo", "possible until the first volume is made: `warpraid undo group " +
                                  text(group, "name") + "`");
    } else if (at(group, "held") == true) {
        shown += line("undo", "not here: nothing is kept of what its drives held before");
    }
    std::string level = text(shape, "level") + " of " + number_text(shape, "members") + " drives";
    if (text(shape, "level") == "raid10") level += ", " + number_text(shape, "copies") + " copies";
    shown += line("level", level) + line("chunk", size_text(shape, "chunk_bytes")) +
             line("stripe", size_text(group, "stripe_bytes")) +
             line("block", number_text(shape, "block_bytes")) +
             line("capacity", size_text(group, "capacity_bytes")) +
             line("free", size_text(group, "free_bytes")) +
             line("used of a drive", size_text(shape, "member_data_bytes")) +
             line("generation", number_text(group, "generation"));
    const std::uint64_t rate = number(group, "rebuild_bytes_per_second_max");
    shown += line("rebuild rate", rate == 0 ? "unlimited" : format_size(rate) + "/s at most") +
             line("dirty regions",
                  number_text(group, "dirty_regions") + " of " + number_text(group, "regions")) +
             line("missed regions", number_text(group, "missed_regions")) +
             line("resynced", size_text(group, "resynced_bytes") + " since the daemon started") +
             line("last verify", verify_text(at(group, "last_verify")));
    const Json& task = at(group, "task");
    if (task.is_object()) {
        shown += line("work", task_text(task)) + line("progress", progress_bar(task));
    }
    return shown + "\nMembers\n" + members_text(at(group, "members")) +
           counters_text(at(group, "counters"));
}

std::string view_status(const Json& status) {
    std::string shown =
        view_health(at(status, "health")) + "\n" + view_groups(at(status, "groups"));
    for (const Json& group : at(status, "groups")) {
        const Json& task = at(group, "task");
        if (!task.is_object()) continue;
        shown += printable(text(group, "name")) + " " + progress_bar(task) + " " + task_text(task) +
                 "\n";
    }
    Table lost({{"GROUP"}, {"SLOT", kRight}, {"STATE"}, {"REASON"}, {"SINCE"}, {"SERIAL"}});
    for (const Json& group : at(status, "groups")) {
        for (const Json& member : at(group, "members")) {
            if (text(member, "state") == "in-sync") continue;
            const std::string reason = text(member, "reason");
            lost.add({text(group, "name"), number_text(member, "slot"), text(member, "state"),
                      reason == "none" ? "" : reason, text(member, "since"),
                      text(member, "serial")});
        }
    }
    if (!lost.empty()) shown += "\n" + lost.to_text();
    shown += "\n" + view_volumes(at(status, "volumes"));
    if (!at(status, "exports").empty()) shown += "\n" + view_exports(at(status, "exports"));
    if (!at(status, "spares").empty()) shown += "\n" + view_spares(at(status, "spares"));
    return shown;
}

std::string view(const Options& options, const Json& answer) {
    switch (options.command) {
        case Command::kListDrives:
        case Command::kCreateDrive:
        case Command::kExamine:
            return view_drives(at(answer, "drives"));
        case Command::kListGroups:
            return view_groups(at(answer, "groups"));
        case Command::kListVolumes:
        case Command::kCreateVolume:
            return view_volumes(at(answer, "volumes"));
        case Command::kListSpares:
        case Command::kCreateSpare:
            return view_spares(at(answer, "spares"));
        case Command::kListExports:
            return view_exports(at(answer, "exports"));
        case Command::kListEvents:
            return view_events(at(answer, "events"));
        case Command::kDescribeDrive:
            return view_drive(at(answer, "drive"));
        case Command::kDescribeGroup:
            return view_group(at(answer, "group"));
        case Command::kDescribeVolume:
            return view_volume(at(answer, "volume"));
        case Command::kDescribeSpare:
            return view_spare(at(answer, "spare"));
        case Command::kDescribeExport:
            return view_export(at(answer, "export"));
        case Command::kDescribeEvent:
            return view_event(at(answer, "event"));
        case Command::kCreateGroup:
            return view_groups(Json::array({at(answer, "group")}));
        case Command::kFail:
        case Command::kReplace:
            return member_text(at(answer, "member"));
        case Command::kExport:
            return text(at(answer, "export"), "uri") + "\n";
        case Command::kAssemble:
            return view_outcomes(at(answer, "outcomes"));
        case Command::kStatus:
            return view_status(answer);
        case Command::kHealth:
            return view_health(at(answer, "health"));
        case Command::kVersion:
            return "warpraidd " + text(answer, "version") + "\n";
        default:
            return done_text(options);
    }
}

}  // namespace warpraid::cli
