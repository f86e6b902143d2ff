#include "control/shard.h"

namespace warpraid::control {

void Shard::run(const std::function<void()>& task) const {
    if (turn) {
        bool has_run = false;
        reactor->post([&] {
            task();
            has_run = true;
        });
        while (!has_run) turn();
        return;
    }
    std::mutex mutex;
    std::condition_variable finished;
    bool done = false;
    reactor->post([&] {
        task();
        const std::lock_guard lock(mutex);
        done = true;
        finished.notify_one();
    });
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return done; });
}

}  // namespace warpraid::control
