// The write-intent bitmap of one group. It has two maps of the group's regions. Dirty: stripes may
// disagree. The bit is durable on every live member before the first data write to the region is
// issued, and is cleared lazily: only after the region was idle for a while and the members were
// flushed. Missed: a member that is away does not have it. While what is missed is recorded, the
// write that clears a dirty bit sets the missed one; so whoever comes back lacks no more than what
// is dirty or missed.
//
// Rules it keeps. (1) begin_write() returns true only when the dirty bits of all its regions are
// durable. (2) A dirty bit is never cleared while a write to its region is in flight, while
// clearing is held, or while the region awaits resync. (3) It is never cleared on one member before
// all members' data of that region was flushed. (4) No disk loses a region's missed bit before what
// is missed is recorded no more. (5) A member that fails a bitmap write is reported to the
// listener; waiting writes go on once set_members() has been called without it.
//
// With no member at all (a failed group) there is nothing to keep: every write may go on.
// Belongs to one shard; the heap is used at construction and at membership changes only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/intrusive_list.h"
#include "base/limits.h"
#include "base/units.h"
#include "base/uuid.h"
#include "format/bitmap_page.h"
#include "io/drive.h"
#include "io/reactor.h"

namespace warpraid::intent {

/// A write that waits for its regions' bits.
struct Waiter : FifoLink<Waiter> {
    Region first;
    Region last;
    /// Called in the reactor's completion phase or from set_members(), once the bits are durable.
    void (*ready)(Waiter&) = nullptr;
    void* owner = nullptr;
};

/// Told about members whose bitmap could not be written or flushed. Same shard.
class Listener {
  public:
    virtual ~Listener() = default;
    virtual void bitmap_write_failed(Slot slot, int error) = 0;
};

struct Target {
    Slot slot;
    io::Drive* drive = nullptr;
};

struct Options {
    Uuid group;
    std::uint32_t regions = 0;
    std::uint64_t idle_ns_before_clear = 5'000'000'000;
};

class Bitmap final : public io::Poller {
  public:
    /// `found` is what assembly found; its maps may be shorter than the group. Dirty regions stay
    /// dirty until clear_after_resync(); missed ones until record_missed(false).
    Bitmap(const Options& options, const format::BitmapContent& found, io::Reactor& reactor,
           Listener& listener);
    ~Bitmap() override;

    /// The live members; called at start and at each membership change. Writes all dirty pages to
    /// newcomers. Commands to drives no longer named are ignored when they complete.
    void set_members(std::span<const Target> members);
    /// While held no dirty bit is cleared.
    void hold_clearing(bool hold);
    /// To be called before the members go on without the one that left: from here on, what is or
    /// becomes dirty counts as missed. False: nobody is away who is to be told.
    void record_missed(bool record);

    /// Registers a write to regions first..last. True: go on now. False: `waiter` was queued.
    bool begin_write(Waiter& waiter);
    /// The write is over (once per begin_write, whatever came of it).
    void end_write(Region first, Region last);

    bool is_dirty(Region region) const;
    /// Regions whose bit is set, in memory or still on the disk of a member: at 0 every clearing
    /// has reached the disks.
    std::uint32_t dirty_count() const;
    std::uint32_t missed_count() const;
    /// Regions that are dirty or missed: all that a member which comes back may lack.
    std::vector<std::uint64_t> dirty_or_missed() const;
    /// Regions found dirty at start whose resync is still to be done keep their bit until this.
    void clear_after_resync(Region region);
    /// For an orderly stop: clears what may be cleared without waiting for it to age. Over when
    /// idle().
    void clear_idle_now();

    /// No command in flight, no waiter and no clearing under way: safe to destroy.
    bool idle() const;
    bool poll(std::uint64_t now_ns) override;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace warpraid::intent
