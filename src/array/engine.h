// The engine of one group: executes block requests on the members. Reads and writes of any size and
// alignment (multiples of the block), healthy or degraded, by plans that are made anew whenever a
// member leaves. One engine lives on one shard; every call is made there.
//
// Invariants between calls: two operations that change the same stripe never run together; parity
// of a stripe is right on all live members whenever no operation holds the stripe and its region is
// not awaiting resync; a host write completes only after every live member has its part; a member
// that failed a write is never trusted again before the control plane has committed its departure.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "array/stripe_task.h"
#include "array/view.h"
#include "block/device.h"
#include "geometry/layout.h"
#include "intent/bitmap.h"
#include "io/arena.h"
#include "io/reactor.h"
#include "parity/coder.h"

namespace warpraid::array {

enum class FaultKind : std::uint8_t { kReadError, kWriteError, kTimeout, kGone };

/// A member misbehaved. Called on the shard, never inside submit().
class Listener {
  public:
    virtual ~Listener() = default;
    /// kReadError was answered from redundancy and only counts; any other kind parks the operation
    /// until adopt() brings a view in which this member is no longer kFull (or the group failed).
    /// On mirrored levels the member may also stay, when it is the last copy of something: then the
    /// operation ends with the error, at once or with the view without those that left first.
    virtual void member_fault(Slot slot, FaultKind kind, int error, std::uint64_t drive_offset) = 0;
};

struct EngineOptions {
    geometry::Layout layout;
    std::uint64_t region_stripes = 0;
    std::uint32_t operations = 128;  // frames: batches in flight
};

struct EngineCounters {
    std::uint64_t reads = 0, read_bytes = 0;
    std::uint64_t writes = 0, written_bytes = 0;
    std::uint64_t full_stripes = 0, read_modify_writes = 0, reconstruct_writes = 0;
    std::uint64_t degraded_reads = 0, replans = 0, joined_writes = 0;
    std::uint64_t member_commands = 0, member_bytes_read = 0, member_bytes_written = 0;
};

class Engine final : public block::Device, public io::Poller {
  public:
    Engine(const EngineOptions& options, io::Reactor& reactor, io::BufferArena& arena,
           parity::Coder& coder, intent::Bitmap& bitmap, Listener& listener);
    ~Engine() override;

    // block::Device
    const block::Limits& limits() const override;
    void submit(block::Request& request) override;
    void reject(block::Request& request, int error) override;

    /// Takes a new view; parked operations go on. Also tells the bitmap its members. A drive that
    /// is no longer in the view may be destroyed once its in_flight() is 0 and the engine no longer
    /// refers_to() it.
    void adopt(const View& view);
    /// Whether an operation under way still has commands to send to `drive`, or has to tell it from
    /// another that may take its place.
    bool refers_to(const io::Drive& drive) const;
    /// Regions (bits, LSB first) whose stripes may disagree after an unclean stop: until resync
    /// reaches them their parity is always computed from data, never from old parity.
    void set_suspect_regions(std::span<const std::uint64_t> bits);

    /// Background work over whole stripes, under their lock (see stripe_task.h).
    void submit(StripeTask& task);

    /// Data bytes of a rebuilding member that are valid from the start, and how many of its regions
    /// are still invalid.
    std::uint64_t rebuilt_bytes(Slot slot) const;
    std::uint32_t stale_regions(Slot slot) const;
    bool is_region_stale(Slot slot, Region region) const;
    bool is_region_suspect(Region region) const;

    const geometry::Layout& layout() const;
    std::uint32_t region_count() const;
    Stripe region_first_stripe(Region region) const;
    Stripe region_end_stripe(Region region) const;

    const EngineCounters& counters() const;
    /// Nothing queued or in flight: safe to destroy.
    bool idle() const;
    bool poll(std::uint64_t now_ns) override;

    struct Impl;  // engine_impl.h

  private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace warpraid::array
