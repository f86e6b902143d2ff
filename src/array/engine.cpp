#include "array/engine.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "array/engine_impl.h"

namespace warpraid::array {

namespace {
constexpr std::uint32_t kReadOperations = 512;
constexpr std::uint64_t kOverdueCheckNs = 100'000'000;
}  // namespace

std::uint32_t stripes_per_task(std::uint64_t stripe_depth_bytes) {
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, kMiB / stripe_depth_bytes));
}

Engine::Engine(const EngineOptions& options, io::Reactor& reactor, io::BufferArena& arena,
               parity::Coder& coder, intent::Bitmap& bitmap, Listener& listener)
    : impl_(std::make_unique<Impl>(options, reactor, arena, coder, bitmap, listener)) {
    reactor.add_poller(*this);
}

Engine::~Engine() {
    WARPRAID_ASSERT(impl_->idle());
    impl_->reactor.remove_poller(*this);
}

const block::Limits& Engine::limits() const {
    return impl_->limits;
}
void Engine::submit(block::Request& request) {
    impl_->submit(request);
}
void Engine::reject(block::Request& request, int error) {
    impl_->reject(request, error);
}
void Engine::adopt(const View& view) {
    impl_->adopt(view);
}
void Engine::set_suspect_regions(std::span<const std::uint64_t> bits) {
    impl_->membership.set_suspect(bits);
}
void Engine::submit(StripeTask& task) {
    WARPRAID_ASSERT(task.count > 0);
    WARPRAID_ASSERT(task.first.get() + task.count <= impl_->layout.stripes());
    impl_->task_waiting.push_back(task);
    impl_->dispatch_needed = true;
}
std::uint64_t Engine::rebuilt_bytes(Slot slot) const {
    return impl_->membership.rebuilt_bytes(slot);
}
std::uint32_t Engine::stale_regions(Slot slot) const {
    return impl_->membership.stale_regions(slot);
}
bool Engine::is_region_stale(Slot slot, Region region) const {
    return impl_->membership.is_region_stale(slot, region);
}
bool Engine::is_region_suspect(Region region) const {
    return impl_->membership.is_suspect(region);
}
const geometry::Layout& Engine::layout() const {
    return impl_->layout;
}
std::uint32_t Engine::region_count() const {
    return impl_->membership.region_count();
}
Stripe Engine::region_first_stripe(Region region) const {
    return impl_->membership.region_first_stripe(region);
}
Stripe Engine::region_end_stripe(Region region) const {
    return impl_->membership.region_end_stripe(region);
}
const EngineCounters& Engine::counters() const {
    return impl_->counters;
}
bool Engine::refers_to(const io::Drive& drive) const {
    return impl_->refers_to(drive);
}
bool Engine::idle() const {
    return impl_->idle();
}
bool Engine::poll(std::uint64_t now_ns) {
    return impl_->poll(now_ns);
}

Engine::Impl::Impl(const EngineOptions& options, io::Reactor& reactor_in, io::BufferArena& arena_in,
                   parity::Coder& coder_in, intent::Bitmap& bitmap_in, Listener& listener_in)
    : layout(options.layout),
      reactor(reactor_in),
      arena(arena_in),
      coder(coder_in),
      bitmap(bitmap_in),
      listener(listener_in),
      membership(layout, options.region_stripes),
      zeros(arena.try_acquire(kSlabHeightMax)),
      flush(*this) {
    WARPRAID_ASSERT(zeros && options.operations > 0);
    std::memset(zeros.data(), 0, kSlabHeightMax);
    limits.size_bytes = layout.capacity_bytes();
    limits.block_bytes = layout.block_bytes();
    limits.optimal_bytes = layout.stripe_data_bytes();
    for (std::uint32_t i = 0; i < kReadOperations; ++i) {
        read_storage.push_back(std::make_unique<ReadOperation>(*this, membership));
        free_reads.push_back(*read_storage.back());
    }
    for (std::uint32_t i = 0; i < options.operations; ++i) {
        batch_storage.push_back(std::make_unique<Batch>(*this, membership));
        free_batches.push_back(*batch_storage.back());
    }
    ordered_tasks.reserve(options.operations);
}

void Engine::Impl::submit(block::Request& request) {
    request.error = 0;
    request.parts_pending = 0;
    request.next_offset = request.offset;
    const int error = block::check_request(request, limits);
    if (error != 0) {
        reject(request, error);
        return;
    }
    dispatch_needed = true;
    if (request.operation == block::Operation::kFlush) {
        flush_waiting.push_back(request);
        return;
    }
    const bool reads = request.operation == block::Operation::kRead;
    ++(reads ? counters.reads : counters.writes);
    (reads ? counters.read_bytes : counters.written_bytes) += request.length_bytes;
    waiting.push_back(request);
}

void Engine::Impl::reject(block::Request& request, int error) {
    request.error = error;
    completed.push_back(request);
}

void Engine::Impl::part_done(const Part& part, int error) {
    block::Request& request = *part.request;
    WARPRAID_ASSERT(request.parts_pending > 0);
    --request.parts_pending;
    if (error != 0 && request.error == 0) request.error = error;
    // A request that is still queued has parts to come.
    if (request.parts_pending == 0 && !request.is_queued()) finish_request(request);
}

void Engine::Impl::finish_request(block::Request& request) {
    completed.push_back(request);
}

bool Engine::Impl::deliver_completed() {
    bool any = false;
    for (std::size_t left = completed.size(); left > 0; --left) {
        block::Request& request = *completed.pop_front();
        request.complete(request);
        any = true;
    }
    for (std::size_t left = finished_tasks.size(); left > 0; --left) {
        StripeTask& task = *finished_tasks.pop_front();
        task.complete(task);
        any = true;
    }
    return any;
}

void Engine::Impl::adopt(const View& view) {
    WARPRAID_ASSERT(view.version > membership.view().version || membership.view().version == 0);
    membership.adopt(view, bitmap);
    overdue_reported = 0;
    std::array<intent::Target, limits::kMembersMax> targets;
    std::size_t count = 0;
    for (std::uint32_t slot = 0; slot < layout.members(); ++slot) {
        const MemberView& member = view.members[slot];
        if (member.access == Access::kNone || !member.keeps_bitmap || view.failed) continue;
        targets[count++] = {Slot(static_cast<std::uint8_t>(slot)), member.drive};
    }
    bitmap.set_members(std::span(targets).first(count));
    resume_parked();
    resume_flush();
    dispatch_needed = true;
}

// Batches whose failed members are out go on; so do those whose member must stay, because others
// left first and it holds the last copy now: they end with the error.
void Engine::Impl::resume_parked() {
    for (std::size_t left = parked.size(); left > 0; --left) {
        Batch& batch = *parked.pop_front();
        const bool waits = !membership.failed() && must_leave(batch.group);
        if (waits && !must_end_with_error(batch.group)) {
            parked.push_back(batch);
            continue;
        }
        batch.step = batch.after_commands;
        if (waits) mark_failed(batch);
        if (membership.failed()) fail_batch(batch);
        runnable.push_back(batch);
    }
}

bool Engine::Impl::refers_to(const io::Drive& drive) const {
    const auto has_sent_to = [&](const CommandGroup& group) {
        return std::ranges::find(group.drives, &drive) != group.drives.end();
    };
    if (flush.active && has_sent_to(flush.group)) return true;
    // Reads are issued at once as a whole: what they refer to has them in flight.
    return std::ranges::any_of(batch_storage, [&](const auto& batch) {
        return batch->step != Step::kFree &&
               (has_sent_to(batch->group) || batch->list.refers_to(drive));
    });
}

bool Engine::Impl::idle() const {
    return waiting.empty() && completed.empty() && flush_waiting.empty() && task_waiting.empty() &&
           finished_tasks.empty() && failed_reads.empty() &&
           free_reads.size() == read_storage.size() &&
           free_batches.size() == batch_storage.size() && !flush.active;
}

// A drive that hangs is put out before its command comes back: new work must not queue behind it.
void Engine::Impl::check_overdue(std::uint64_t now_ns) {
    if (now_ns < next_overdue_check_ns) return;
    next_overdue_check_ns = now_ns + kOverdueCheckNs;
    for (std::uint32_t slot = 0; slot < layout.members(); ++slot) {
        const Slot member(static_cast<std::uint8_t>(slot));
        const io::Drive* drive = membership.drive(member);
        if (drive == nullptr || !drive->overdue() || (overdue_reported & slot_bit(member)) != 0) {
            continue;
        }
        overdue_reported |= slot_bit(member);
        listener.member_fault(member, FaultKind::kTimeout, ETIMEDOUT, 0);
    }
}

bool Engine::Impl::poll(std::uint64_t now_ns) {
    bool any = false;
    check_overdue(now_ns);
    coder.poll();
    for (std::size_t left = computing.size(); left > 0; --left) {
        Batch& batch = *computing.pop_front();
        if (batch.jobs_under_way.done) {
            runnable.push_back(batch);
        } else {
            computing.push_back(batch);
        }
    }
    for (std::size_t left = scratch_waiting.size(); left > 0; --left) {
        runnable.push_back(*scratch_waiting.pop_front());
    }
    while (Batch* batch = runnable.pop_front()) {
        const std::size_t waiting_before = scratch_waiting.size();
        run(*batch);
        any = any || scratch_waiting.size() == waiting_before;
    }
    any = dispatch() || any;
    if (!flush.active && !flush_waiting.empty()) {
        start_flush();
        any = true;
    }
    return deliver_completed() || any;
}

}  // namespace warpraid::array
