#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/limits.h"
#include "base/number_text.h"
#include "base/size_text.h"

namespace warpraid::cli {

namespace {

constexpr const char* kSocketDefault = "/run/warpraid/control.sock";

constexpr const char* kDrivesHelp = "ids, ranges of ids (0-7), serial numbers or paths of drives";

std::string absolute(const std::string& path) {
    std::error_code error;
    const std::string relative = path.starts_with("./") ? path.substr(2) : path;
    const std::filesystem::path whole = std::filesystem::absolute(relative, error);
    return error ? path : whole.string();
}

/// A drive's name as the daemon understands it: it runs in another directory, where a file of the
/// same name may lie. A number is an id, whatever lies here.
std::string drive_name(const std::string& word) {
    std::error_code error;
    const bool is_path = word.find('/') != std::string::npos ||
                         (!is_whole_number(word) && std::filesystem::exists(word, error));
    return is_path ? absolute(word) : word;
}

/// CLI11 finds no value in `--name=`, as of a script whose variable is empty. It is given one that
/// is empty, which is then refused as any other name that cannot be used.
std::vector<std::string> with_empty_names(int argc, const char* const* argv) {
    std::vector<std::string> words;
    bool has_options = true;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        has_options = has_options && word != "--";
        if (has_options && (word == "--name=" || word == "--group=" || word == "--prefer=")) {
            words.emplace_back(word.substr(0, word.size() - 1));
            words.emplace_back();
        } else {
            words.emplace_back(word);
        }
    }
    return words;
}

/// Every verb's options land in one Options; CLI11 sees it through these helpers.
class Grammar {
  public:
    Grammar();
    Parsed parse(int argc, const char* const* argv);

  private:
    CLI::App* verb(const char* name, const char* help);
    CLI::App* noun(CLI::App* verb, const char* name, Command command, const char* help);
    void command(CLI::App* app, Command command) {
        app->callback([this, command] { options_.command = command; });
    }
    void flag(CLI::App* app, const char* name, bool& into, const char* help) {
        app->add_flag(name, into, help);
    }
    CLI::Option* size(CLI::App* app, const char* name, std::optional<std::uint64_t>& into,
                      const char* help);
    CLI::Option* number(CLI::App* app, const char* name, std::optional<std::uint64_t>& into,
                        const char* help);
    void name(CLI::App* app, const char* help) {
        app->add_option("--name", options_.name, help)->type_name("NAME");
    }
    void drives(CLI::App* app, const char* name, const char* help) {
        app->add_option(name, words_, help)->required()->type_name("");
    }
    void drive(CLI::App* app, const char* name, const char* help) {
        app->add_option(name, drive_, help)->required()->type_name("");
    }
    void group(CLI::App* app) {
        app->add_option("GROUP", options_.group, "its id, name or uuid")->required()->type_name("");
    }
    void volume(CLI::App* app) {
        group(app);
        app->add_option("VOLUME", options_.volume, "its id, name or uuid")
            ->required()
            ->type_name("");
    }
    void if_still_at_generation(CLI::App* app) {
        number(app, "--generation", options_.generation,
               "Only if the group is still at this generation");
    }
    void add_globals();
    void add_queries();
    void add_create_drive(CLI::App* create);
    void add_create_group(CLI::App* create);
    void add_create_rest(CLI::App* create);
    void add_delete();
    void add_edit();
    void add_members();
    void add_exports();
    void add_assembly();
    Status finish();

    CLI::App app_{"Warpraid: RAID groups in user space. Talks to the daemon warpraidd."};
    Options options_;
    std::string drive_;
    std::vector<std::string> words_;
    std::string format_ = "table";
};

Grammar::Grammar() {
    app_.require_subcommand(1);
    app_.fallthrough();  // global options work after the verb too
    add_globals();
    add_queries();
    CLI::App* create = verb("create", "Make drives, groups, volumes, spares");
    add_create_drive(create);
    add_create_group(create);
    add_create_rest(create);
    add_delete();
    add_edit();
    add_members();
    add_exports();
    add_assembly();
}

void Grammar::add_globals() {
    options_.socket_path = kSocketDefault;
    app_.add_option("--socket", options_.socket_path, "The daemon's control socket")
        ->envname("WARPRAID_SOCKET")
        ->type_name("PATH")
        ->capture_default_str();
    app_.add_option("--format", format_, "Tables for people, or the daemon's JSON and nothing else")
        ->check(CLI::IsMember({"table", "json"}))
        ->type_name("table|json");
    app_.add_option("--wait", options_.wait_seconds,
                    "Wait so long for the daemon to answer on its socket")
        ->check(CLI::Range(0, 86400))
        ->type_name("SECONDS");
    app_.add_flag("--yes", options_.yes, "Do what a command would ask about, without asking");
    app_.set_version_flag("--version", "warpraid " WARPRAID_VERSION);
    app_.footer(
        "Examples:\n"
        "  warpraid create drive /dev/nvme[0-7]n1\n"
        "  warpraid create group raid6 0-7 --name data\n"
        "  warpraid create volume data 2T --name vol1\n"
        "  warpraid export volume data vol1\n"
        "  warpraid status --watch\n"
        "  warpraid create group --help\n"
        "Short nouns: pd is drive, dg is group, vd is volume. Sizes: 64K, 1.5G, 2T (powers of "
        "1024).\n"
        "Exit status: 0 done, 1 refused or failed, 2 not a command; health and assemble have their "
        "own.");
}

CLI::App* Grammar::verb(const char* name, const char* help) {
    CLI::App* app = app_.add_subcommand(name, help);
    app->require_subcommand(1);
    return app;
}

CLI::App* Grammar::noun(CLI::App* verb, const char* name, Command what, const char* help) {
    CLI::App* app = verb->add_subcommand(name, help);
    const std::string long_name = name;
    if (long_name == "drive") app->alias("pd");
    if (long_name == "group") app->alias("dg");
    if (long_name == "volume") app->alias("vd");
    command(app, what);
    return app;
}

CLI::Option* Grammar::size(CLI::App* app, const char* name, std::optional<std::uint64_t>& into,
                           const char* help) {
    const auto check = [](const std::string& text) {
        const Result<std::uint64_t> parsed = parse_size(text);
        return parsed.ok() ? std::string() : parsed.error().message;
    };
    return app
        ->add_option_function<std::string>(
            name,
            [&into](const std::string& text) {
                const Result<std::uint64_t> parsed = parse_size(text);
                if (parsed.ok()) into = parsed.value();
            },
            help)
        ->check(check)
        ->type_name("SIZE");
}

CLI::Option* Grammar::number(CLI::App* app, const char* name, std::optional<std::uint64_t>& into,
                             const char* help) {
    const auto check = [](const std::string& text) {
        return is_whole_number(text) ? std::string() : "not a whole number: " + text;
    };
    return app->add_option(name, into, help)->check(check)->type_name("N");
}

void Grammar::add_queries() {
    CLI::App* list = verb("list", "One line for each drive, group, volume, spare, export or event");
    noun(list, "drive", Command::kListDrives, "Drives and what they are used for");
    noun(list, "group", Command::kListGroups, "Groups and their state");
    noun(list, "volume", Command::kListVolumes, "Volumes of all groups");
    noun(list, "spare", Command::kListSpares, "Drives that wait to replace a lost one");
    noun(list, "export", Command::kListExports, "Volumes that clients can use, and how");
    CLI::App* events =
        noun(list, "event", Command::kListEvents, "What happened: the newest, oldest first");
    number(events, "--after", options_.after, "Only events after this id");
    number(events, "--limit", options_.limit, "At most so many (100; up to 1000)");

    CLI::App* describe =
        verb("describe", "Everything about one drive, group, volume, spare, export or event");
    drive(noun(describe, "drive", Command::kDescribeDrive, "One drive"), "DRIVE",
          "its id, serial number or path");
    group(noun(describe, "group", Command::kDescribeGroup,
               "One group: members, work in progress, counters"));
    volume(noun(describe, "volume", Command::kDescribeVolume, "One volume"));
    drive(noun(describe, "spare", Command::kDescribeSpare, "One spare"), "DRIVE",
          "its id, serial number or path");
    noun(describe, "export", Command::kDescribeExport, "One volume that clients can use")
        ->add_option("NAME", options_.export_name, "its NBD name")
        ->required()
        ->type_name("");
    number(noun(describe, "event", Command::kDescribeEvent, "One event"), "ID", options_.event,
           "its number")
        ->required()
        ->type_name("");

    CLI::App* status = app_.add_subcommand("status", "Everything at a glance");
    flag(status, "--watch", options_.watch, "Show it again every second");
    command(status, Command::kStatus);
    CLI::App* health = app_.add_subcommand(
        "health", "What needs attention; exit status 0 fine, 1 attention, 2 failed or unknown");
    command(health, Command::kHealth);
    command(app_.add_subcommand("examine", "What is on the drives now; changes nothing"),
            Command::kExamine);
    command(app_.add_subcommand("version", "The daemon's version"), Command::kVersion);
}

void Grammar::add_create_drive(CLI::App* create) {
    CLI::App* app = noun(create, "drive", Command::kCreateDrive,
                         "Register block devices or plain files as drives; writes nothing to them");
    app->add_option("PATH", words_, "block devices or plain files")->required()->type_name("");
    size(app, "--size", options_.size_bytes, "Make files that do not exist, sparse, of this size");
    app->footer(
        "Examples:\n"
        "  warpraid create drive /dev/nvme0n1 /dev/nvme1n1\n"
        "  warpraid create drive --size 1G ./drive-0.img ./drive-1.img");
}

void Grammar::add_create_group(CLI::App* create) {
    CLI::App* app =
        noun(create, "group", Command::kCreateGroup, "Make a RAID group of registered drives");
    app->add_option("LEVEL", options_.level,
                    "raid0 (2 to 32 drives), raid1 (2-32), raid5 (3-32), raid6 (4-32), "
                    "raid10 (3-32)")
        ->required()
        ->type_name("");
    drives(app, "DRIVES", kDrivesHelp);
    name(app, "Name of the group (dg<id>)");
    size(app, "--chunk", options_.chunk_bytes,
         "Bytes on one drive before the next one's turn: a power of two from 4K to 1M (64K)");
    number(app, "--copies", options_.copies, "raid10: copies of each chunk (2)");
    size(app, "--block-size", options_.block_bytes,
         "Logical block of the volumes, 512 or 4096 (the drives' largest)");
    flag(app, "--exact-size", options_.exact_size,
         "Use every byte of the smallest drive; without it a little is left, so that a replacement "
         "may be slightly smaller");
    flag(app, "--force", options_.force,
         "Overwrite what is found on the drives: file systems, partition tables, groups that do "
         "not run");
    app->footer(
        "All drives count as large as the smallest. A drive with something on it is refused "
        "without\n--force; a member of a running group is refused always.\n"
        "Examples:\n"
        "  warpraid create group raid6 0-7 --name data\n"
        "  warpraid create group raid10 0 1 2 3 --copies 2 --chunk 128K\n"
        "  warpraid create group raid1 /dev/nvme0n1 /dev/nvme1n1 --name boot");
}

void Grammar::add_create_rest(CLI::App* create) {
    CLI::App* volume_app =
        noun(create, "volume", Command::kCreateVolume, "Make volumes on a group");
    group(volume_app);
    size(volume_app, "SIZE", options_.size_bytes, "of each volume (all that is free)")
        ->type_name("");
    name(volume_app, "Name of the volume (vd<id>); with --count the start of the names");
    number(volume_app, "--count", options_.count, "So many equal volumes");
    volume_app->footer(
        "Examples:\n"
        "  warpraid create volume data 2T --name vol1\n"
        "  warpraid create volume data --count 3");

    CLI::App* spare = noun(create, "spare", Command::kCreateSpare,
                           "Let drives wait for a member to be lost, and take its place by itself");
    drives(spare, "DRIVES", kDrivesHelp);
    spare->add_option("--group", options_.only_group, "Only for this group (any that it fits)")
        ->type_name("GROUP");
    flag(spare, "--force", options_.force, "Overwrite what is found on the drives");
}

void Grammar::add_delete() {
    CLI::App* verb_app = verb("delete", "Take drives, groups, volumes, spares away");
    drive(noun(verb_app, "drive", Command::kDeleteDrive, "Forget a drive that nothing uses"),
          "DRIVE", "its id, serial number or path");
    CLI::App* group_app =
        noun(verb_app, "group", Command::kDeleteGroup,
             "Give a group up: its drives are marked, and assemble --destroyed brings it back");
    group(group_app);
    flag(group_app, "--clear", options_.clear, "Wipe the superblocks: nothing brings it back");
    volume(noun(verb_app, "volume", Command::kDeleteVolume, "Give a volume up"));
    drive(noun(verb_app, "spare", Command::kDeleteSpare, "Make a spare an ordinary drive again"),
          "DRIVE", "its id, serial number or path");
}

void Grammar::add_edit() {
    CLI::App* verb_app = verb("edit", "Change names and limits; make a copied drive blank");
    CLI::App* drive_app = noun(verb_app, "drive", Command::kEditDrive,
                               "Make a blank drive of one that is a copy of another");
    drive(drive_app, "DRIVE", "its id, serial number or path");
    drive_app
        ->add_flag("--reset-identity", options_.clear,
                   "Wipe the superblocks that were copied; refused when it is no copy")
        ->required();
    CLI::App* group_app = noun(verb_app, "group", Command::kEditGroup, "Change a group");
    group(group_app);
    name(group_app, "New name");
    size(group_app, "--rebuild-rate", options_.rate_bytes_per_second,
         "Bytes per second that rebuild and resync may take, such as 200M; 0 is no limit");
    CLI::App* volume_app = noun(verb_app, "volume", Command::kEditVolume, "Rename a volume");
    volume(volume_app);
    volume_app->add_option("--name", options_.name, "New name")->required()->type_name("NAME");
}

void Grammar::add_members() {
    CLI::App* fail = noun(verb("fail", "Put a drive out of its group"), "drive", Command::kFail,
                          "Put a member out; refused when the group would lose data");
    drive(fail, "DRIVE", "its id, serial number or path");
    if_still_at_generation(fail);

    CLI::App* replace = noun(verb("replace", "Put a new drive in the place of another"), "drive",
                             Command::kReplace, "Rebuild a member onto a new drive");
    drive(replace, "OLD", "the member, or GROUP:SLOT for an empty slot");
    replace->add_option("NEW", options_.new_drive, "id, serial number or path of the new drive")
        ->required()
        ->type_name("");
    flag(replace, "--force", options_.force, "Overwrite what is found on the new drive");
    if_still_at_generation(replace);

    CLI::App* undo =
        noun(verb("undo", "Take a create that was forced back"), "group", Command::kUndo,
             "Give a group up that has no volume yet, and its drives what they held before");
    group(undo);
    undo->add_flag_callback(
        "--abandon", [this] { options_.clear = true; },
        "Leave the drives of one that does not run as they are, and forget what they held");

    CLI::App* verify = noun(verb("verify", "Compare parity and copies with the data"), "group",
                            Command::kVerify, "Read every stripe of a group; changes nothing");
    group(verify);
    verify->add_flag_callback(
        "--stop", [this] { options_.clear = true; }, "End the pass that runs");
}

void Grammar::add_exports() {
    CLI::App* add = noun(verb("export", "Let clients use a volume"), "volume", Command::kExport,
                         "Serve a volume over NBD; prints the address for clients");
    volume(add);
    flag(add, "--read-only", options_.read_only, "Clients may not write");
    volume(noun(verb("unexport", "Take a volume from its clients"), "volume", Command::kUnexport,
                "Close a volume's connections after their requests"));
}

void Grammar::add_assembly() {
    CLI::App* app = app_.add_subcommand(
        "assemble",
        "Look for groups and start what can be started; exit status 0 all run, 3 some incomplete, "
        "4 some refused or corrupt");
    app->add_option("GROUP", options_.only_group, "only this one (all)")->type_name("");
    flag(app, "--force", options_.force,
         "Start a group whose members disagree or whose parity may be wrong; data may be lost");
    flag(app, "--destroyed", options_.destroyed, "Bring back a group that was deleted");
    app->add_option("--prefer", options_.preferred_drive,
                    "When members lived apart: believe this drive")
        ->type_name("DRIVE");
    command(app, Command::kAssemble);
}

/// What the grammar cannot say by itself.
Status Grammar::finish() {
    options_.json = format_ == "json";
    if (options_.command == Command::kVerify && options_.clear) {
        options_.command = Command::kStopVerify;
    }
    if (options_.command == Command::kCreateDrive) {
        for (const std::string& word : words_) options_.drives.push_back(absolute(word));
    } else if (options_.command == Command::kCreateGroup ||
               options_.command == Command::kCreateSpare) {
        WARPRAID_TRY_ASSIGN(options_.drives, expand_drives(words_));
    } else {
        options_.drives = {drive_name(drive_)};
    }
    options_.new_drive = drive_name(options_.new_drive);
    if (options_.preferred_drive) {
        options_.preferred_drive = drive_name(*options_.preferred_drive);
    }
    if (options_.command == Command::kEditGroup && !options_.name &&
        !options_.rate_bytes_per_second) {
        return Error{ErrorCode::kInvalidArgument,
                     "nothing to change: give --name or "
                     "--rebuild-rate"};
    }
    return success();
}

Parsed Grammar::parse(int argc, const char* const* argv) {
    Parsed parsed;
    try {
        std::vector<std::string> words = with_empty_names(argc, argv);
        std::reverse(words.begin(), words.end());  // as CLI11 takes them
        app_.parse(words);
    } catch (const CLI::ParseError& error) {
        std::ostringstream output;
        std::ostringstream problem;
        const bool is_error = app_.exit(error, output, problem) != 0;
        parsed.exit_status = is_error ? kUsageStatus : 0;
        parsed.output = output.str();
        parsed.problem = problem.str();
        // What is missing is missing because of the word that was not understood.
        const std::vector<std::string> unknown = app_.remaining(true);
        if (is_error && !unknown.empty()) {
            parsed.problem = "'" + unknown.front() + "' is not known here: see --help\n";
        }
        return parsed;
    }
    const Status status = finish();
    if (!status.ok()) {
        parsed.exit_status = kUsageStatus;
        parsed.problem = status.error().message + "\n";
        return parsed;
    }
    parsed.options = options_;
    return parsed;
}

}  // namespace

Result<std::vector<std::string>> expand_drives(const std::vector<std::string>& words) {
    std::vector<std::string> names;
    for (const std::string& word : words) {
        const std::size_t dash = word.find('-');
        const std::string_view first_text = std::string_view(word).substr(0, dash);
        const std::string_view last_text =
            dash == std::string::npos ? "" : std::string_view(word).substr(dash + 1);
        if (!is_whole_number(first_text) || !is_whole_number(last_text)) {
            names.push_back(drive_name(word));
            continue;
        }
        const auto first = parse_whole_number<std::uint64_t>(first_text);
        const auto last = parse_whole_number<std::uint64_t>(last_text);
        if (!first || !last || *first > *last || *last - *first >= limits::kDrivesMax) {
            return Error{ErrorCode::kInvalidArgument, "not a range of drive ids: " + word};
        }
        for (std::uint64_t id = *first; id <= *last; ++id) names.push_back(std::to_string(id));
    }
    return names;
}

Parsed parse(int argc, const char* const* argv) {
    return Grammar().parse(argc, argv);
}

}  // namespace warpraid::cli
