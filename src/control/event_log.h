// What happened, durably: one JSON object a line in events.jsonl of the state directory, bounded.
// Ids only grow, also over restarts and when the log is lost: the file events.next beside it says
// below which number some may be taken. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "control/service.h"

namespace warpraid::control {

/// What the caller knows of an event; id and time are the log's.
struct EventDraft {
    Severity severity = Severity::kInfo;
    std::string kind;
    std::string group, volume, drive_serial;
    std::string text;
};

class EventLog {
  public:
    EventLog(const std::string& directory, const Clock& clock,
             std::size_t kept = limits::kEventsKept)
        : path_(directory + "/events.jsonl"),
          next_path_(directory + "/events.next"),
          clock_(clock),
          kept_(kept) {}
    ~EventLog();
    EventLog(const EventLog&) = delete;
    EventLog& operator=(const EventLog&) = delete;

    /// Reads what is there. A torn last line is dropped; a log that cannot be read, or with
    /// anything else that cannot be understood, is moved aside, and `warning` says so. Fails when a
    /// file cannot be opened.
    Status load(std::string& warning);
    /// Keeps the event, also on disk, and logs its text. An event that cannot be stored is kept in
    /// memory, and on disk as soon as that works again.
    void add(EventDraft draft);
    /// Tries again to store what could not be stored.
    void catch_up();
    /// Why the latest events are not on disk; empty while they are.
    const std::string& problem() const { return problem_; }
    /// With id > `after`, oldest first, at most `limit`.
    std::vector<Event> list(std::uint64_t after, std::size_t limit) const;

  private:
    void append(const Event& event);
    Status load_reserve(std::string& warning);
    /// Makes room for ids on disk before they run out.
    Status reserve();
    Status write_reserve(std::uint64_t end);
    Status write_line(const std::string& line);
    void note(const Status& status);
    /// Whether every line but a torn last one was understood.
    bool take(const std::string& text);
    Status rewrite();
    Status open();

    std::string path_, next_path_;
    const Clock& clock_;
    std::size_t kept_;
    std::deque<Event> events_;
    std::uint64_t next_id_ = 1;
    std::uint64_t reserved_ = 0;  // ids below it may be taken, says the disk
    std::size_t lines_on_disk_ = 0;
    std::string problem_;
    UniqueFd file_;
};

std::string_view to_text(Severity severity);

}  // namespace warpraid::control
