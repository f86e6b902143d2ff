#include "daemon/command_line.h"

#include <CLI/CLI.hpp>
#include <map>
#include <sstream>

#include "daemon/config.h"

namespace warpraid::daemon {

namespace {

constexpr int kUsageStatus = 2;

CommandLine ends_with(int status, std::string text) {
    CommandLine line;
    line.exit_status = status;
    line.text = std::move(text);
    return line;
}

Status apply(Options& options, const CLI::App& app, const std::string& config_path) {
    if (!config_path.empty()) WARPRAID_TRY(apply_config_file(options, config_path));
    for (const Setting& setting : settings()) {
        const CLI::Option* flag = app.get_option("--" + std::string(setting.key));
        if (flag->count() == 0) continue;
        const Status status = set(options, setting.key, flag->results());
        if (!status.ok()) return Error{status.error().code, "--" + status.error().message};
    }
    return fill_in(options);
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
    CLI::App app{
        "The Warpraid daemon: owns the RAID groups of this machine and serves their volumes "
        "over NBD.\nControl it with warpraid."};
    app.set_version_flag("--version", "warpraidd " WARPRAID_VERSION);
    std::string config_path;
    app.add_option("--config", config_path, "TOML file with the same keys as these flags")
        ->type_name("FILE");
    std::map<std::string, std::vector<std::string>> values;
    for (const Setting& setting : settings()) {
        CLI::Option* flag =
            app.add_option("--" + std::string(setting.key), values[std::string(setting.key)],
                           std::string(setting.help));
        flag->type_name(std::string(setting.value_name));
        if (!setting.is_list) flag->expected(1);
    }
    CommandLine line;
    demo::Options demo;
    CLI::App* demo_command =
        app.add_subcommand("demo",
                           "show the main job in a minute: files as drives, a RAID 6 group, "
                           "two drives lost in mid-write, rebuilt, verified");
    demo_command->add_option("--directory", demo.directory, "where its files go")
        ->type_name("DIR")
        ->capture_default_str();
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        std::ostringstream output;
        std::ostringstream problem;
        const int status = app.exit(error, output, problem);
        return status == 0 ? ends_with(0, output.str()) : ends_with(kUsageStatus, problem.str());
    }
    if (demo_command->parsed()) {
        line.demo = demo;
        return line;
    }
    const Status status = apply(line.options, app, config_path);
    if (!status.ok()) {
        return ends_with(kUsageStatus, "error: " + status.error().message + " [" +
                                           std::string(to_text(status.error().code)) + "]\n");
    }
    return line;
}

}  // namespace warpraid::daemon
