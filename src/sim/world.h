// One simulated machine: the product's service and engine on one thread over simulated drives and
// time. The host may stop and start again; the drives go on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/random.h"
#include "control/service_impl.h"
#include "control/shard.h"
#include "io/arena.h"
#include "io/manual_reactor.h"
#include "parity/coder.h"
#include "sim/drives.h"
#include "sim/time.h"

namespace warpraid::sim {

class World {
  public:
    /// State files lie in a fresh folder below `directory`.
    World(std::uint64_t seed, const std::filesystem::path& directory);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    Time& time() { return time_; }
    Drives& drives() { return drives_; }
    SeededRandom& random() { return random_; }
    /// While the host runs.
    control::ServiceImpl& service() { return *service_; }
    bool is_running() const { return service_ != nullptr; }

    /// One turn: what is done is answered, the next event happens, the service looks around.
    void step();
    /// Until it holds, for so long at most; false when it never did.
    bool run_until(const std::function<bool()>& condition, std::uint64_t ns_max);

    /// The host stops where it is; with `power_cut` so do the drives.
    void crash(bool power_cut);
    Status start();

  private:
    void turn();

    Time time_;
    SeededRandom random_;
    SeededRandom service_random_;  // its own, so that what it draws moves nothing else
    Drives drives_;
    std::filesystem::path directory_;
    io::ManualReactor reactor_{time_};
    std::unique_ptr<io::BufferArena> arena_;
    std::unique_ptr<parity::Coder> coder_;
    control::Shard shard_;
    control::ServiceOptions options_;
    std::unique_ptr<control::ServiceImpl> service_;
    std::uint64_t next_look_ns_ = 0;
};

}  // namespace warpraid::sim
