#include "daemon/demo_tools.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

extern char** environ;

namespace warpraid::demo {

Result<Process> Process::start(const std::vector<std::string>& arguments,
                               const std::string& error_path) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return system_error(ErrorCode::kSystem, "cannot make a pipe", errno);
    }
    UniqueFd read_end(ends[0]);
    const UniqueFd write_end(ends[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    if (error_path.empty()) {
        ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDERR_FILENO);
    } else {
        ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, error_path.c_str(),
                                           O_WRONLY | O_CREAT | O_APPEND, 0644);
    }
    std::vector<char*> argv;
    for (const std::string& argument : arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    pid_t pid = -1;
    const int error = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        return system_error(ErrorCode::kSystem, "cannot start " + arguments[0], error);
    }
    return Process(pid, std::move(read_end));
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      pending_(std::move(other.pending_)) {}

Process::~Process() {
    if (pid_ < 0) return;
    terminate();
    wait();
}

void Process::terminate() {
    if (pid_ > 0) ::kill(pid_, SIGTERM);
}

std::optional<std::string> Process::read_line(int timeout_ms) {
    while (true) {
        const std::size_t end = pending_.find('\n');
        if (end != std::string::npos) {
            std::string line = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            return line;
        }
        pollfd ready{output_.get(), POLLIN, 0};
        if (::poll(&ready, 1, timeout_ms) <= 0) return std::nullopt;
        char buffer[4096];
        const ssize_t bytes = ::read(output_.get(), buffer, sizeof buffer);
        if (bytes <= 0) return std::nullopt;
        pending_.append(buffer, static_cast<std::size_t>(bytes));
    }
}

bool Process::running() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

Finished Process::wait() {
    Finished finished;
    finished.output = std::move(pending_);
    char buffer[65536];
    ssize_t bytes = 0;
    while ((bytes = ::read(output_.get(), buffer, sizeof buffer)) > 0) {
        finished.output.append(buffer, static_cast<std::size_t>(bytes));
    }
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return finished;
}

}  // namespace warpraid::demo
