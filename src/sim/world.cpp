#include "sim/world.h"

#include <cstdlib>

#include "base/assert.h"
#include "base/units.h"
#include "parity/cpu/isal_coder.h"

namespace warpraid::sim {

namespace {

constexpr std::uint64_t kIdleNs = kNanosecondsPerMillisecond;
constexpr std::uint64_t kLookNs = 100 * kNanosecondsPerMillisecond;
constexpr std::size_t kArenaBytes = 16 * kMiB;

}  // namespace

World::World(std::uint64_t seed, const std::filesystem::path& directory)
    : random_(seed), service_random_(random_.next()), drives_(time_, random_) {
    std::string name = (directory / "warpraid-sim-XXXXXX").string();
    WARPRAID_ASSERT(::mkdtemp(name.data()) != nullptr);
    directory_ = name;
    arena_ = io::BufferArena::make(kArenaBytes).value();
    coder_ = parity::make_isal_coder();
    shard_.reactor = &reactor_;
    shard_.engine_arena = arena_.get();
    shard_.coder = coder_.get();
    shard_.turn = [this] { turn(); };
    options_.state_directory = (directory_ / "state").string();
    options_.absent_grace_ns = kNanosecondsPerSecond;
    options_.bitmap_delay_ns = kNanosecondsPerSecond;
    options_.has_worker = false;
}

World::~World() {
    service_.reset();
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
}

void World::turn() {
    reactor_.run_once();
    time_.advance(kIdleNs);
}

void World::step() {
    turn();
    if (service_ == nullptr || time_.monotonic_ns() < next_look_ns_) return;
    next_look_ns_ = time_.monotonic_ns() + kLookNs;
    service_->look_after();
}

bool World::run_until(const std::function<bool()>& condition, std::uint64_t ns_max) {
    const std::uint64_t end_ns = time_.monotonic_ns() + ns_max;
    while (!condition()) {
        if (time_.monotonic_ns() > end_ns) return false;
        step();
    }
    return true;
}

void World::crash(bool power_cut) {
    drives_.freeze();
    if (power_cut) drives_.cut_power();
    service_.reset();
    drives_.thaw();
}

Status World::start() {
    auto service =
        std::make_unique<control::ServiceImpl>(options_, drives_, shard_, time_, service_random_);
    WARPRAID_TRY(service->open());
    service_ = std::move(service);
    return success();
}

}  // namespace warpraid::sim
