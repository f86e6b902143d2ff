#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "base/log.h"
#include "daemon/command_line.h"
#include "daemon/daemon.h"

namespace {

using namespace warpraid;

/// Where the running program lies: the demo starts its neighbours.
std::string program_directory() {
    char path[4096];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
    const std::string program(path, length > 0 ? static_cast<std::size_t>(length) : 0);
    const std::size_t slash = program.rfind('/');
    return slash == std::string::npos ? "." : program.substr(0, slash);
}

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

int run(int argc, char** argv) {
    daemon::CommandLine line = daemon::parse_command_line(argc, argv);
    if (line.exit_status) {
        std::fputs(line.text.c_str(), *line.exit_status == 0 ? stdout : stderr);
        return *line.exit_status;
    }
    if (line.demo) {
        line.demo->program_directory = program_directory();
        return demo::run(*line.demo);
    }
    const char* notify_socket = std::getenv("NOTIFY_SOCKET");
    const Status status = daemon::run(
        line.options,
        {.notify_socket = notify_socket != nullptr ? notify_socket : "", .host_name = host_name()});
    if (status.ok()) return 0;
    const std::string code(to_text(status.error().code));
    log_error(status.error().message + " [" + code + "]");
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        // Libraries throw when memory or threads run out at start; nothing has been promised yet.
        std::fprintf(stderr, "error: %s [internal-error]\n", error.what());
        return 1;
    }
}
