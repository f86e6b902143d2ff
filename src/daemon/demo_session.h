// What the demo holds while it runs: its folder, its daemon, and the commands it shows and runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "daemon/demo_tools.h"

namespace warpraid::demo {

/// One figure of the table, in bytes per second.
struct Rate {
    double value = 0;
    bool held = false;  // the group was in the state that is named before and after it was taken
};

struct Rates {
    Rate write;
    Rate read;
};

/// The work of a group that is rebuilt, in place of a state's name.
constexpr const char* kRebuild = "rebuild";

/// Every step says what is wrong and returns false when it did not hold.
class Session {
  public:
    Session(std::filesystem::path directory, std::filesystem::path programs)
        : directory_(std::move(directory)), programs_(std::move(programs)) {}

    bool fail(const std::string& text) const;
    void heading(const std::string& text) const;
    std::string file(const std::string& name) const { return (directory_ / name).string(); }
    std::string drive(int number) const;
    const std::filesystem::path& directory() const { return directory_; }

    bool start_daemon();
    /// An orderly stop; true when there was none to stop.
    bool stop_daemon();
    /// Runs the tool, which must succeed.
    bool warpraid(const std::vector<std::string>& arguments);
    std::optional<GroupStatus> group_status(const std::string& group) const;
    /// A figure for each direction, with the group in `state` or, when that is kRebuild, in work.
    bool measure(const std::string& name, const std::string& group, const std::string& volume,
                 const std::string& state, Rates& rates);
    std::string uri(const std::string& volume) const;
    /// Until the group's work is at its end, with a bar.
    bool wait_for_work(const std::string& label, const std::string& group, const std::string& work);

  private:
    bool is_in(const std::string& group, const std::string& state) const;

    std::filesystem::path directory_;
    std::filesystem::path programs_;
    std::optional<Process> daemon_;
};

/// A command as a user would type it.
std::string shell_text(const std::vector<std::string>& arguments);

}  // namespace warpraid::demo
