#include "tasks/recovery.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/assert.h"
#include "base/limits.h"
#include "tasks/throttle.h"

namespace warpraid::tasks {

namespace {

using Kind = array::StripeTask::Kind;

// Member data under way, over all members together, and the bounds of how many tasks that makes.
constexpr std::uint64_t kWindowBytes = 32 * kMiB;
constexpr std::uint64_t kTasksMin = 2;
constexpr std::uint64_t kTasksMax = 16;
// Regions looked at in one turn of the loop, so that a nearly clean group does not hold it up.
constexpr std::uint32_t kScanRegionsMax = 16384;
// A first walk over everything, and another over what the first could not do.
constexpr std::uint32_t kWalks = 2;

std::uint64_t window_tasks(const geometry::Layout& layout) {
    const std::uint64_t depth = layout.stripe_depth_bytes();
    const std::uint64_t task_bytes = array::stripes_per_task(depth) * depth * layout.members();
    return std::clamp(kWindowBytes / task_bytes, kTasksMin, kTasksMax);
}

}  // namespace

struct Recovery::Impl {
    Impl(array::Engine& engine_in, intent::Bitmap& bitmap_in, std::uint64_t rate);

    /// One piece of the window. With verify, a piece with an unreadable stripe is gone over again
    /// stripe by stripe, to `end`.
    struct Piece : FifoLink<Piece> {
        array::StripeTask task;
        Impl* owner = nullptr;
        std::uint64_t run = 0;
        Region region;
        Stripe end;
    };

    void start(Work work);
    void find_stale_slots();
    void go_to_region(Region region);
    bool needs_work(Region region) const;
    bool find_next();
    void issue(std::uint64_t now_ns);
    void submit(Piece& piece);

    void piece_done(Piece& piece);
    bool verify_goes_on(Piece& piece);
    void count_piece(const Piece& piece);
    void region_failed(Region region);
    void walk_ended();
    bool is_all_rebuilt() const;
    void flush_ended(int error);

    std::uint64_t member_bytes(std::uint64_t stripes) const {
        return stripes * engine.layout().stripe_depth_bytes();
    }
    bool poll(std::uint64_t now_ns);

    array::Engine& engine;
    intent::Bitmap& bitmap;
    Throttle throttle;
    std::vector<Piece> pieces;
    IntrusiveFifo<Piece> free_pieces;
    block::Request flush;
    bool flush_in_flight = false;
    std::uint64_t flush_run = 0;

    std::uint64_t run = 0;  // counts starts: what belongs to an earlier one is not counted
    std::uint64_t in_flight = 0;
    std::uint64_t in_flight_of_run = 0;
    bool active = false;
    bool flush_wanted = false;
    Progress progress;

    // Where the walk is.
    std::uint32_t walk = 0;
    Region region;  // == region_count at the end
    Stripe next;    // within `region`
    std::array<Slot, limits::kMembersMax> stale_slots;
    std::size_t stale_slot_count = 0;

    // The region whose pieces are coming back, to take back what was counted when it fails.
    Region counted_region;
    std::uint64_t counted_bytes = 0;
    bool counted_failed = false;
};

Recovery::Impl::Impl(array::Engine& engine_in, intent::Bitmap& bitmap_in, std::uint64_t rate)
    : engine(engine_in),
      bitmap(bitmap_in),
      throttle(rate),
      pieces(window_tasks(engine_in.layout())) {
    for (Piece& piece : pieces) {
        piece.owner = this;
        piece.task.owner = &piece;
        piece.task.complete = [](array::StripeTask& task) {
            Piece& done = *static_cast<Piece*>(task.owner);
            done.owner->piece_done(done);
        };
        free_pieces.push_back(piece);
    }
    flush.operation = block::Operation::kFlush;
    flush.owner = this;
    flush.complete = [](block::Request& request) {
        static_cast<Impl*>(request.owner)->flush_ended(request.error);
    };
}

// ---- finding work -------------------------------------------------------------------------------

void Recovery::Impl::start(Work work) {
    ++run;
    in_flight_of_run = 0;
    active = true;
    flush_wanted = false;
    walk = 0;
    counted_failed = false;
    counted_bytes = 0;
    counted_region = Region(engine.region_count());
    progress = Progress{};
    progress.work = work;
    find_stale_slots();
    for (Region at(0); at.get() < engine.region_count(); at = at.next()) {
        if (!needs_work(at)) continue;
        progress.total_bytes +=
            member_bytes(engine.region_end_stripe(at).get() - engine.region_first_stripe(at).get());
    }
    go_to_region(Region(0));
}

void Recovery::Impl::find_stale_slots() {
    stale_slot_count = 0;
    if (progress.work != Work::kRebuild) return;
    for (std::uint32_t slot = 0; slot < engine.layout().members(); ++slot) {
        const Slot member(static_cast<std::uint8_t>(slot));
        if (engine.stale_regions(member) != 0) stale_slots[stale_slot_count++] = member;
    }
}

void Recovery::Impl::go_to_region(Region to) {
    region = to;
    if (to.get() < engine.region_count()) next = engine.region_first_stripe(to);
}

bool Recovery::Impl::needs_work(Region at) const {
    if (progress.work == Work::kVerify) return true;
    if (progress.work == Work::kResync) return engine.is_region_suspect(at);
    return std::any_of(stale_slots.begin(), stale_slots.begin() + stale_slot_count,
                       [&](Slot slot) { return engine.is_region_stale(slot, at); });
}

// Moves to the next stripe to be worked on. False when there is none, or none was found yet.
bool Recovery::Impl::find_next() {
    for (std::uint32_t scanned = 0; scanned < kScanRegionsMax; ++scanned) {
        if (region.get() >= engine.region_count()) return false;
        // A region is looked at when it is entered: while its pieces are under way it stays stale,
        // and the last of them leaves it.
        if (next != engine.region_first_stripe(region)) return true;
        if (needs_work(region)) return true;
        go_to_region(region.next());
    }
    return false;
}

// ---- the window ---------------------------------------------------------------------------------

void Recovery::Impl::submit(Piece& piece) {
    ++in_flight;
    if (piece.run == run) ++in_flight_of_run;
    engine.submit(piece.task);
}

void Recovery::Impl::issue(std::uint64_t now_ns) {
    Piece& piece = *free_pieces.pop_front();
    const Stripe region_end = engine.region_end_stripe(region);
    const std::uint64_t count =
        std::min<std::uint64_t>(array::stripes_per_task(engine.layout().stripe_depth_bytes()),
                                region_end.get() - next.get());
    array::StripeTask& task = piece.task;
    task.kind = progress.work == Work::kVerify   ? Kind::kVerify
                : progress.work == Work::kResync ? Kind::kResync
                                                 : Kind::kRebuild;
    task.first = next;
    task.count = static_cast<std::uint32_t>(count);
    piece.run = run;
    piece.region = region;
    piece.end = Stripe(next.get() + count);
    next = piece.end;
    if (next == region_end) go_to_region(region.next());
    throttle.take(member_bytes(count), now_ns);
    submit(piece);
}

bool Recovery::Impl::poll(std::uint64_t now_ns) {
    bool any = false;
    while (active && !flush_wanted && !free_pieces.empty() && throttle.allows(now_ns)) {
        const Region before = region;
        if (!find_next()) {
            any = any || region != before;
            break;
        }
        issue(now_ns);
        any = true;
    }
    if (active && !flush_wanted && region.get() >= engine.region_count() && in_flight_of_run == 0) {
        walk_ended();
        any = true;
    }
    if (active && flush_wanted && !flush_in_flight) {
        flush_wanted = false;
        flush_in_flight = true;
        flush_run = run;
        engine.submit(flush);
        any = true;
    }
    return any;
}

// ---- results ------------------------------------------------------------------------------------

void Recovery::Impl::piece_done(Piece& piece) {
    WARPRAID_ASSERT(in_flight > 0);
    --in_flight;
    if (piece.run == run) {
        WARPRAID_ASSERT(in_flight_of_run > 0);
        --in_flight_of_run;
        if (progress.work == Work::kVerify) {
            if (verify_goes_on(piece)) return;
        } else {
            count_piece(piece);
        }
    }
    free_pieces.push_back(piece);
}

// With an unreadable stripe somewhere in the piece the others are still checked, one by one.
bool Recovery::Impl::verify_goes_on(Piece& piece) {
    array::StripeTask& task = piece.task;
    if (task.error != 0 && task.count > 1) {
        task.count = 1;
    } else {
        progress.mismatches += task.mismatches;
        progress.done_bytes += member_bytes(task.count);
        if (task.error != 0) ++progress.unreadable;
        task.first = Stripe(task.first.get() + task.count);
        task.count = 1;
    }
    if (!active || task.first == piece.end) return false;
    submit(piece);
    return true;
}

// Pieces of one walk come back in the order in which they were issued.
void Recovery::Impl::count_piece(const Piece& piece) {
    if (piece.region != counted_region) {
        counted_region = piece.region;
        counted_bytes = 0;
        counted_failed = false;
    }
    if (counted_failed) return;
    const bool last = piece.end == engine.region_end_stripe(piece.region);
    if (piece.task.error != 0 || (last && needs_work(piece.region))) {
        region_failed(piece.region);
        return;
    }
    const std::uint64_t bytes = member_bytes(piece.task.count);
    progress.done_bytes += bytes;
    counted_bytes += bytes;
    // The bitmap flushes the members itself before the bit goes.
    if (last && progress.work == Work::kResync) bitmap.clear_after_resync(piece.region);
}

// The engine takes a region as right only when all of it was done in one go.
void Recovery::Impl::region_failed(Region failed) {
    counted_failed = true;
    progress.done_bytes -= counted_bytes;
    ++progress.unreadable;
    if (region == failed) go_to_region(failed.next());
}

void Recovery::Impl::walk_ended() {
    if (progress.work == Work::kVerify) {
        active = false;
        progress.finished = true;
        return;
    }
    if (progress.unreadable != 0) {
        active = ++walk < kWalks;
        if (!active) return;
        progress.unreadable = 0;
        counted_region = Region(engine.region_count());
        go_to_region(Region(0));
        return;
    }
    if (progress.work == Work::kRebuild) {
        flush_wanted = true;
        return;
    }
    active = false;
    progress.finished = true;
}

void Recovery::Impl::flush_ended(int error) {
    flush_in_flight = false;
    if (!active || flush_run != run) return;
    active = false;
    progress.finished = error == 0 && is_all_rebuilt();
    progress.flush_failed = error != 0 && is_all_rebuilt();
}

bool Recovery::Impl::is_all_rebuilt() const {
    for (std::uint32_t slot = 0; slot < engine.layout().members(); ++slot) {
        if (engine.stale_regions(Slot(static_cast<std::uint8_t>(slot))) != 0) return false;
    }
    return true;
}

// ---- Recovery -----------------------------------------------------------------------------------

Recovery::Recovery(array::Engine& engine, intent::Bitmap& bitmap, io::Reactor& reactor,
                   std::uint64_t bytes_per_second_max)
    : impl_(std::make_unique<Impl>(engine, bitmap, bytes_per_second_max)), reactor_(reactor) {
    reactor.add_poller(*this);
}

Recovery::~Recovery() {
    WARPRAID_ASSERT(idle());
    reactor_.remove_poller(*this);
}

void Recovery::start_resync() {
    impl_->start(Work::kResync);
}
void Recovery::start_rebuild() {
    impl_->start(Work::kRebuild);
}
void Recovery::start_verify() {
    impl_->start(Work::kVerify);
}
void Recovery::stop() {
    impl_->active = false;
    impl_->flush_wanted = false;
}
void Recovery::set_rate(std::uint64_t bytes_per_second_max) {
    impl_->throttle.set_rate(bytes_per_second_max);
}
Progress Recovery::progress() const {
    return impl_->progress;
}
bool Recovery::idle() const {
    return !impl_->active && impl_->in_flight == 0 && !impl_->flush_in_flight;
}
bool Recovery::poll(std::uint64_t now_ns) {
    return impl_->poll(now_ns);
}

}  // namespace warpraid::tasks
