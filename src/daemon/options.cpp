#include "daemon/options.h"

#include <algorithm>

#include "base/limits.h"
#include "base/number_text.h"
#include "base/size_text.h"

namespace warpraid::daemon {

namespace {

using Values = std::vector<std::string>;

constexpr std::uint64_t kArenaBytesMin = limits::kRequestBytesMax;
constexpr std::uint64_t kArenaBytesMax = 256 * kGiB;
constexpr std::uint64_t kSecondsMax = 24 * 3600;

Error bad(std::string message) {
    return Error{ErrorCode::kBadConfig, std::move(message)};
}

Result<std::uint64_t> parse_number(const std::string& text, std::uint64_t least,
                                   std::uint64_t most) {
    const auto value = parse_whole_number<std::uint64_t>(text);
    if (!value || *value < least || *value > most) {
        return bad("must be a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most) + ", not '" + text + "'");
    }
    return *value;
}

template <std::string Options::* member>
Status set_text(Options& options, const Values& values) {
    if (values[0].empty()) return bad("must not be empty");
    options.*member = values[0];
    return success();
}

template <std::uint64_t Options::* member, std::uint64_t least, std::uint64_t most>
Status set_number(Options& options, const Values& values) {
    WARPRAID_TRY_ASSIGN(options.*member, parse_number(values[0], least, most));
    return success();
}

template <std::uint64_t Options::* member>
Status set_arena(Options& options, const Values& values) {
    const Result<std::uint64_t> size = parse_size(values[0]);
    if (!size.ok()) return bad(size.error().message);
    if (size.value() < kArenaBytesMin || size.value() > kArenaBytesMax) {
        return bad("must be " + format_size(kArenaBytesMin) + " to " + format_size(kArenaBytesMax) +
                   ", not " + values[0]);
    }
    options.*member = size.value();
    return success();
}

Status set_rate(Options& options, const Values& values) {
    const Result<std::uint64_t> rate = parse_size(values[0]);
    if (!rate.ok()) return bad(rate.error().message);
    options.rebuild_bytes_per_second_max = rate.value();
    return success();
}

Status set_register_buffers(Options& options, const Values& values) {
    if (values[0] != "true" && values[0] != "false") {
        return bad("must be true or false, not '" + values[0] + "'");
    }
    options.register_buffers = values[0] == "true";
    return success();
}

Status set_drives(Options& options, const Values& values) {
    if (std::ranges::find(values, std::string()) != values.end()) return bad("an empty pattern");
    options.drive_patterns = values;
    return success();
}

Status set_nbd_tcp(Options& options, const Values& values) {
    const Result<TcpAddress> address = parse_tcp_address(values[0]);
    if (!address.ok()) return address.error();
    options.nbd_tcp = values[0];
    return success();
}

}  // namespace

const std::vector<Setting>& settings() {
    static const std::vector<Setting> table = {
        {"state-dir", "DIR", "where the daemon keeps its state and events", false,
         set_text<&Options::state_directory>},
        {"socket", "PATH", "Unix socket of the control API", false,
         set_text<&Options::socket_path>},
        {"readonly-socket", "PATH",
         "Unix socket that answers queries only (default: <socket>-ro.sock)", false,
         set_text<&Options::readonly_socket_path>},
        {"socket-group", "NAME", "group that may use the sockets", false,
         set_text<&Options::socket_group>},
        {"nbd-socket", "PATH",
         "Unix socket of the NBD server (default: nbd.sock beside the socket)", false,
         set_text<&Options::nbd_socket_path>},
        {"nbd-tcp", "ADDRESS:PORT",
         "serve NBD over TCP too; NBD has no authentication, so keep it on loopback", false,
         set_nbd_tcp},
        {"drives", "GLOB...", "drives to look at, besides those created by hand", true, set_drives},
        {"engine-arena", "SIZE", "buffer memory of the engine", false,
         set_arena<&Options::engine_arena_bytes>},
        {"nbd-arena", "SIZE", "buffer memory of NBD clients", false,
         set_arena<&Options::nbd_arena_bytes>},
        {"register-buffers", "true|false",
         "pin the NBD buffers for quicker drive commands; their memory is taken at once", false,
         set_register_buffers},
        {"command-timeout", "SECONDS", "put out a drive that does not answer for so long; 0: never",
         false, set_number<&Options::command_timeout_seconds, 0, kSecondsMax>},
        {"absent-grace", "SECONDS", "wait for a vanished drive before a spare takes its place",
         false, set_number<&Options::absent_grace_seconds, 0, kSecondsMax>},
        {"bitmap-delay", "SECONDS",
         "keep a region marked as in use for so long after its last write", false,
         set_number<&Options::bitmap_delay_seconds, 1, kSecondsMax>},
        {"read-errors-max", "COUNT", "put out a drive after so many corrected read errors", false,
         set_number<&Options::read_errors_max, 0, UINT32_MAX>},
        {"rebuild-rate", "SIZE", "bytes per second of rebuild and resync; 0: unlimited", false,
         set_rate},
        {"shards", "COUNT", "data threads; this version has one", false,
         set_number<&Options::shards, 0, 1024>},
    };
    return table;
}

Status set(Options& options, std::string_view key, const std::vector<std::string>& values) {
    const std::string name(key);
    const auto setting = std::ranges::find(settings(), key, &Setting::key);
    if (setting == settings().end()) {
        return bad("unknown setting '" + name + "': warpraidd --help names those that there are");
    }
    if (!setting->is_list && values.size() != 1) {
        return bad(name + ": needs one value, not " + std::to_string(values.size()));
    }
    const Status status = setting->set(options, values);
    if (!status.ok()) return bad(name + ": " + status.error().message);
    return success();
}

Status fill_in(Options& options) {
    if (options.shards != 1) {
        return bad("shards: must be 1, not " + std::to_string(options.shards) +
                   ": this version runs one data thread");
    }
    const std::size_t slash = options.socket_path.rfind('/');
    const std::string directory =
        slash == std::string::npos ? "" : options.socket_path.substr(0, slash + 1);
    if (options.readonly_socket_path.empty()) {
        const std::string name = options.socket_path.substr(directory.size());
        const std::string stem = name.ends_with(".sock") ? name.substr(0, name.size() - 5) : name;
        options.readonly_socket_path = directory + stem + "-ro.sock";
    }
    if (options.nbd_socket_path.empty()) options.nbd_socket_path = directory + "nbd.sock";
    if (options.socket_path == options.readonly_socket_path ||
        options.socket_path == options.nbd_socket_path ||
        options.readonly_socket_path == options.nbd_socket_path) {
        return bad("socket, readonly-socket and nbd-socket must be three different paths, not " +
                   options.socket_path + ", " + options.readonly_socket_path + " and " +
                   options.nbd_socket_path);
    }
    return success();
}

Result<TcpAddress> parse_tcp_address(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    const Error refusal =
        bad("must be a numeric address and a port, such as 127.0.0.1:10809 or "
            "[::1]:10809, not '" +
            std::string(text) + "'");
    if (colon == std::string_view::npos) return refusal;
    std::string_view address = text.substr(0, colon);
    const std::string_view port_text = text.substr(colon + 1);
    const bool is_bracketed = address.size() > 2 && address.front() == '[' && address.back() == ']';
    if (is_bracketed) address = address.substr(1, address.size() - 2);
    // Without brackets a colon would leave open where the port starts.
    if (address.empty() ||
        (!is_bracketed && address.find_first_of("[]:") != std::string_view::npos)) {
        return refusal;
    }
    const auto port = parse_whole_number<std::uint16_t>(port_text);
    if (!port || *port == 0) return refusal;
    return TcpAddress{std::string(address), *port};
}

}  // namespace warpraid::daemon
