#include "io/loop_parts.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "io/drive.h"

namespace warpraid::io {

bool TaskQueue::push(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    const bool was_empty = tasks_.empty();
    tasks_.push_back(std::move(task));
    return was_empty;
}

bool TaskQueue::empty() const {
    const std::lock_guard lock(mutex_);
    return tasks_.empty();
}

bool TaskQueue::run() {
    {
        const std::lock_guard lock(mutex_);
        if (tasks_.empty()) return false;
        running_.swap(tasks_);
    }
    for (auto& task : running_) task();
    running_.clear();
    return true;
}

void PollerList::add(Poller& poller) {
    WARPRAID_ASSERT(std::find(pollers_.begin(), pollers_.end(), &poller) == pollers_.end());
    pollers_.push_back(&poller);
}

void PollerList::remove(Poller& poller) {
    const auto found = std::find(pollers_.begin(), pollers_.end(), &poller);
    WARPRAID_ASSERT(found != pollers_.end());
    if (running_) {
        // The list is being walked by index: leave a hole and close it afterwards.
        *found = nullptr;
        has_holes_ = true;
    } else {
        pollers_.erase(found);
    }
}

bool PollerList::run(std::uint64_t now_ns) {
    WARPRAID_ASSERT(!running_);
    running_ = true;
    bool did_something = false;
    const std::size_t count = pollers_.size();
    for (std::size_t i = 0; i < count; ++i) {
        if (pollers_[i] != nullptr && pollers_[i]->poll(now_ns)) did_something = true;
    }
    running_ = false;
    if (has_holes_) {
        std::erase(pollers_, nullptr);
        has_holes_ = false;
    }
    return did_something;
}

bool run_completed(CommandFifo& completed) {
    if (completed.empty()) return false;
    for (std::size_t left = completed.size(); left > 0; --left) {
        Command* command = completed.pop_front();
        // A completion may itself run nothing else of this list, but be safe against a shorter one.
        if (command == nullptr) break;
        if (Drive* drive = std::exchange(command->drive, nullptr)) drive->note_completed(*command);
        command->complete(*command);
    }
    return true;
}

}  // namespace warpraid::io
