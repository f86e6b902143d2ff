#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

#include "api/client.h"
#include "cli/parse.h"
#include "cli/run.h"

namespace {

using namespace warpraid;

/// Tries until the daemon answers or the time is over.
Result<api::Reply> send(const cli::Options& options, const cli::Request& request) {
    using Clock = std::chrono::steady_clock;
    api::Client client({.socket_path = options.socket_path});
    const auto end = Clock::now() + std::chrono::seconds(options.wait_seconds);
    while (true) {
        Result<api::Reply> reply = client.request(request.method, request.target, request.body);
        const bool may_come = !reply.ok() && reply.error().code == ErrorCode::kDaemonUnreachable;
        if (!may_come || Clock::now() >= end) return reply;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

bool ask(const std::string& question) {
    std::cerr << question << " Continue? [y/N] " << std::flush;
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "Y" || answer == "yes";
}

cli::Outside make_outside(const cli::Options& options) {
    cli::Outside outside;
    const bool is_drawn_over = options.watch && !options.json && ::isatty(STDOUT_FILENO) == 1;
    outside.send = [&options](const cli::Request& request) { return send(options, request); };
    outside.output = [is_drawn_over](const std::string& text) {
        if (is_drawn_over) std::cout << "\x1b[H\x1b[2J";
        std::cout << text << std::flush;
    };
    outside.problem = [](const std::string& text) { std::cerr << text << std::flush; };
    if (::isatty(STDIN_FILENO) == 1) outside.ask = ask;
    outside.again = [] {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        return std::cout.good();
    };
    return outside;
}

/// The grammar was not understood, so neither may --format have been.
bool wants_json(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--format=json") return true;
        if (word == "--format" && i + 1 < argc && std::string_view(argv[i + 1]) == "json") {
            return true;
        }
    }
    return false;
}

int run(int argc, char** argv) {
    const cli::Parsed parsed = cli::parse(argc, argv);
    if (parsed.options) {
        return cli::run(*parsed.options, make_outside(*parsed.options));
    }
    std::cout << parsed.output << std::flush;
    if (parsed.exit_status != 0 && wants_json(argc, argv)) {
        cli::Options options;
        options.json = true;
        std::string problem = parsed.problem;
        while (!problem.empty() && problem.back() == '\n') problem.pop_back();
        cli::report(options, make_outside(options), Error{ErrorCode::kInvalidArgument, problem});
    } else {
        std::cerr << parsed.problem << std::flush;
    }
    return parsed.exit_status;
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << " [internal-error]\n";
        return 1;
    }
}
