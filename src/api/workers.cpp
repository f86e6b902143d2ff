#include "api/workers.h"

#include <utility>

namespace warpraid::api {

Workers::Workers(unsigned threads, std::function<void(ServerClient&)> work,
                 std::function<void()> done)
    : work_(std::move(work)), done_(std::move(done)) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

void Workers::give(ServerClient& client) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(&client);
    }
    changed_.notify_one();
}

std::vector<ServerClient*> Workers::take_done() {
    const std::lock_guard lock(mutex_);
    return std::exchange(finished_, {});
}

void Workers::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        waiting_.clear();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

void Workers::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
        if (stopping_) return;
        ServerClient& client = *waiting_.front();
        waiting_.pop_front();
        lock.unlock();
        work_(client);
        lock.lock();
        finished_.push_back(&client);
        done_();
    }
}

}  // namespace warpraid::api
