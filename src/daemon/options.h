// What an operator can set, as plain values. Filled from the configuration file, then from the
// command line, both through the same table of settings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace warpraid::daemon {

struct Options {
    std::string state_directory = "/var/lib/warpraid";
    std::string socket_path = "/run/warpraid/control.sock";
    std::string readonly_socket_path;  // empty: beside the control socket, see fill_in()
    std::string socket_group;          // empty: the daemon's own
    std::string nbd_socket_path;       // empty: beside the control socket
    std::string nbd_tcp;               // "address:port"; empty: none
    std::vector<std::string> drive_patterns;
    std::uint64_t engine_arena_bytes = 512 * kMiB;
    std::uint64_t nbd_arena_bytes = 256 * kMiB;
    bool register_buffers = false;
    std::uint64_t command_timeout_seconds = 30;
    std::uint64_t absent_grace_seconds = 3;
    std::uint64_t bitmap_delay_seconds = 5;
    std::uint64_t read_errors_max = 20;
    std::uint64_t rebuild_bytes_per_second_max = 0;
    std::uint64_t shards = 1;
};

/// One thing that can be set: `warpraidd --<key> VALUE`, or `<key> = VALUE` in the file.
struct Setting {
    std::string_view key;
    std::string_view value_name;  // for the help text
    std::string_view help;
    bool is_list = false;
    /// kBadConfig without the key's name; `values` has one entry unless `is_list`.
    Status (*set)(Options& options, const std::vector<std::string>& values);
};

const std::vector<Setting>& settings();

/// kBadConfig, naming the key, when it is unknown or the value makes no sense.
Status set(Options& options, std::string_view key, const std::vector<std::string>& values);

/// Derives what was left empty, and checks what only makes sense together.
Status fill_in(Options& options);

struct TcpAddress {
    std::string address;
    std::uint16_t port = 0;
};
/// "127.0.0.1:10809", "[::1]:10809".
Result<TcpAddress> parse_tcp_address(std::string_view text);

}  // namespace warpraid::daemon
