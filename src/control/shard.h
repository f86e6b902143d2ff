// What the control plane needs of a data shard: its reactor and pools, and a way to run something
// on it and wait. Built by the composition root.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "export/nbd/server.h"
#include "io/arena.h"
#include "io/reactor.h"
#include "parity/coder.h"

namespace warpraid::control {

struct Shard {
    io::Reactor* reactor = nullptr;
    io::BufferArena* engine_arena = nullptr;
    parity::Coder* coder = nullptr;
    nbd::Server* nbd_server = nullptr;
    /// Empty where a thread of its own turns the reactor. Otherwise whoever waits for the shard
    /// does, by calling this: so it is where one thread does everything, as in a simulation.
    std::function<void()> turn;

    /// Runs `task` on the shard and returns when it has run. Not from the shard itself.
    void run(const std::function<void()>& task) const;
};

}  // namespace warpraid::control
