#include "daemon/config.h"

#include <cerrno>
#include <fstream>

#include "daemon/toml_reader.h"

namespace warpraid::daemon {

namespace {

constexpr std::size_t kConfigBytesMax = 1 << 20;

Error bad(std::string message) {
    return Error{ErrorCode::kBadConfig, std::move(message)};
}

}  // namespace

Status apply_config(Options& options, std::string_view text, const std::string& name) {
    const Result<std::vector<TomlEntry>> entries = read_toml(text);
    if (!entries.ok()) return bad(name + " " + entries.error().message);
    for (const TomlEntry& entry : entries.value()) {
        const Status status = set(options, entry.key, entry.values);
        if (!status.ok()) {
            return bad(name + " line " + std::to_string(entry.line) + ": " +
                       status.error().message);
        }
    }
    return success();
}

Status apply_config_file(Options& options, const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return system_error(ErrorCode::kBadConfig, "cannot open the configuration file " + path,
                            errno);
    }
    std::string text(kConfigBytesMax + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad()) return bad("cannot read " + path);
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > kConfigBytesMax)
        return bad(path + " is larger than 1 MiB, the most that is read");
    return apply_config(options, text, path);
}

}  // namespace warpraid::daemon
