// Background recovery of one group, on the engine's shard: resync of suspect regions, rebuild of
// stale regions of rebuilding members (all of them side by side), or a verify pass over everything.
// A window of stripe tasks is kept in flight, throttled to a byte rate. Poll-driven; no thread of
// its own. The caller starts one work after the other.
//
// What a stripe that cannot be read does. Verify counts it and goes on. Resync and rebuild leave
// its region as it is (suspect, stale), do every other region, and try what was left once more; if
// that fails too they end with finished == false and the number of regions left. Rebuild is
// finished only when no rebuilding member has a stale region and all members were flushed, so that
// a member may be committed as in sync. Which members are rebuilding is the caller's knowledge: one
// that left has nothing stale any more.
#pragma once

#include <cstdint>
#include <memory>

#include "array/engine.h"
#include "io/reactor.h"

namespace warpraid::tasks {

enum class Work : std::uint8_t { kNone, kResync, kRebuild, kVerify };

/// Bytes count what lies on each member, once for all members: a rebuild of two members goes over
/// the same bytes for both, and a whole pass is the members' data size.
struct Progress {
    Work work = Work::kNone;
    std::uint64_t done_bytes = 0;  // of member data, this work
    std::uint64_t total_bytes = 0;
    std::uint64_t mismatches = 0;  // kVerify, stripes
    /// kVerify: stripes that could not be read. Else: regions left because of such a stripe.
    std::uint64_t unreadable = 0;
    bool finished = false;  // nothing left of this work; kVerify: everything was looked at
    /// kRebuild: nothing is left, but a member could not be flushed, perhaps none of the rebuilt.
    bool flush_failed = false;
};

/// All calls on the engine's shard. Heap is used by the constructor only.
class Recovery final : public io::Poller {
  public:
    /// `bytes_per_second_max` 0 is unlimited (member data bytes).
    Recovery(array::Engine& engine, intent::Bitmap& bitmap, io::Reactor& reactor,
             std::uint64_t bytes_per_second_max);
    /// Asserts idle().
    ~Recovery() override;

    /// Starts, or starts over after a membership change: the work is found from the engine's state.
    /// What is still in flight of earlier work is waited for and not counted.
    void start_resync();
    void start_rebuild();
    void start_verify();
    /// Issues nothing more; idle() once what is in flight has ended. Progress stays as it is.
    void stop();
    void set_rate(std::uint64_t bytes_per_second_max);

    Progress progress() const;
    /// Nothing in flight and nothing to be issued: the work has ended, finished or not.
    bool idle() const;
    bool poll(std::uint64_t now_ns) override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    io::Reactor& reactor_;
};

}  // namespace warpraid::tasks
