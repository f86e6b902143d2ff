// What the demo needs of the outside: child processes, the command line tool, fio.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace warpraid::demo {

struct Finished {
    int status = 0;  // exit status; 128 + signal when killed
    std::string output;
};

/// A child process; killed (by its id) and waited for when this is destroyed first.
class Process {
  public:
    /// Starts `arguments[0]`, found on PATH when it has no slash. Standard output comes through a
    /// pipe; standard error goes to `error_path`, or with the output when that is empty.
    static Result<Process> start(const std::vector<std::string>& arguments,
                                 const std::string& error_path = {});
    Process(Process&& other) noexcept;
    Process& operator=(Process&&) = delete;
    ~Process();

    /// Reads one line of its output; nothing at the end or after the timeout.
    std::optional<std::string> read_line(int timeout_ms);
    /// Not ended yet.
    bool running() const;
    /// Reads the rest of its output and waits for the end.
    Finished wait();
    void terminate();

  private:
    Process(pid_t pid, UniqueFd output) : pid_(pid), output_(std::move(output)) {}
    pid_t pid_ = -1;
    UniqueFd output_;
    std::string pending_;
};

/// What the demo reads out of the tool's JSON.
struct GroupStatus {
    std::string state;
    std::string work;  // "rebuild", "verify", ... or empty
    std::uint64_t done_bytes = 0;
    std::uint64_t total_bytes = 0;
    std::uint64_t written_bytes = 0;  // by clients, since the daemon started
    std::uint64_t verified_done = 0;
    std::uint64_t verified_total = 0;
    std::uint64_t verified_mismatches = 0;
    std::uint64_t verified_unreadable = 0;
    bool verify_finished = false;
};
std::optional<GroupStatus> parse_group_status(const std::string& json, const std::string& group);

/// Bytes per second of a finished fio job ("read" or "write"), from its JSON; nothing on an error.
std::optional<double> parse_fio_rate(const std::string& json, const std::string& direction);

}  // namespace warpraid::demo
