// From waiting requests to operations. Requests are cut into parts of a few stripes; parts that
// conflict with something in flight wait, and writes that wait for one stripe go together when it
// is free (group commit without a timer).
#include <algorithm>
#include <cerrno>

#include "array/engine_impl.h"

namespace warpraid::array {

namespace {
constexpr std::size_t kScanMax = 256;                 // waiting requests looked at in a turn
constexpr std::uint64_t kBatchBytes = 2 * kMiB;       // host bytes of a batch, about
constexpr std::uint64_t kZeroDepthBytes = 64 * kMiB;  // per member, of a zeroing batch
}  // namespace

std::uint64_t Engine::Impl::stripes_per_batch() const {
    const std::uint64_t wanted = divide_up(kBatchBytes, layout.stripe_data_bytes()) + 1;
    const std::uint64_t pieces =
        std::uint64_t{layout.data_columns()} * layout.copies() + layout.parity_columns();
    const std::uint64_t heights = divide_up(layout.chunk_bytes(), kSlabHeightMax);
    const std::uint64_t by_pieces = 1024 / (pieces * heights);
    const std::uint64_t by_slabs = (kSlabsMax - 2 * kPartsMax) / heights;
    return std::max<std::uint64_t>(1, std::min({wanted, by_pieces, by_slabs}));
}

void Engine::Impl::lock_range_of(const Part& part, std::uint64_t& begin, std::uint64_t& end) const {
    begin = part.offset;
    end = part.end();
    if (!layout.has_parity()) return;
    begin = round_down(begin, layout.stripe_data_bytes());
    end = round_up(end, layout.stripe_data_bytes());
}

bool Engine::Impl::blocked(std::uint64_t begin, std::uint64_t end, bool shared) const {
    if (blocked_count == kBlockedMax || locks.conflicts(begin, end, shared)) return true;
    for (std::size_t i = 0; i < blocked_count; ++i) {
        if (begin < blocked_ranges[i].end && blocked_ranges[i].begin < end) return true;
    }
    return false;
}

void Engine::Impl::note_blocked(std::uint64_t begin, std::uint64_t end) {
    if (blocked_count < kBlockedMax) blocked_ranges[blocked_count++] = {begin, end};
}

Batch* Engine::Impl::acquire_batch(BatchKind kind) {
    Batch* batch = free_batches.pop_front();
    if (batch == nullptr) return nullptr;
    WARPRAID_ASSERT(batch->step == Step::kFree && !batch->held);
    batch->kind = kind;
    batch->fua = false;
    batch->shared = false;
    batch->intent_held = false;
    batch->direct = false;
    batch->avoid = 0;
    batch->part_count = 0;
    batch->task = nullptr;
    batch->task_failed = false;
    batch->task_targets = 0;
    batch->task_cursor = 0;
    batch->part_errors = 0;
    batch->slab_count = 0;
    batch->round_first = 0;
    batch->round_end = 0;
    return batch;
}

void Engine::Impl::release_batch(Batch& batch) {
    batch.scratch.release();
    batch.step = Step::kFree;
    batch.group.forget_drives();
    free_batches.push_front(batch);
    dispatch_needed = true;
}

Part Engine::Impl::next_part(const block::Request& request) const {
    const std::uint64_t stripe_bytes = layout.stripe_data_bytes();
    const std::uint64_t offset = request.next_offset;
    const std::uint64_t cut = (offset / stripe_bytes + stripes_per_batch()) * stripe_bytes;
    Part part;
    part.request = const_cast<block::Request*>(&request);
    part.offset = offset;
    part.length = std::min(request.offset + request.length_bytes, cut) - offset;
    part.memory = request.data == nullptr ? nullptr : request.data + (offset - request.offset);
    return part;
}

void Engine::Impl::take_part(block::Request& request, const Part& part) {
    request.next_offset = part.end();
    ++request.parts_pending;
}

bool Engine::Impl::dispatch() {
    while (ReadOperation* operation = failed_reads.front()) {
        Batch* batch = acquire_batch(BatchKind::kRead);
        if (batch == nullptr) return true;
        failed_reads.pop_front();
        batch->parts[batch->part_count++] = operation->part;
        batch->avoid = operation->group.failed;
        ++counters.replans;
        free_reads.push_front(*operation);
        batch->step = Step::kLock;
        run(*batch);
    }
    if (!dispatch_needed && seen_releases == locks.releases()) return false;
    dispatch_needed = false;
    seen_releases = locks.releases();
    blocked_count = 0;
    bool any = false;
    for (std::size_t left = lock_waiting.size(); left > 0; --left) {
        Batch& batch = *lock_waiting.pop_front();
        run(batch);
        if (batch.is_queued()) note_blocked(batch.begin, batch.end);
    }
    any = dispatch_tasks();
    block::Request* previous = nullptr;
    block::Request* request = waiting.front();
    for (std::size_t scanned = 0; request != nullptr && scanned < kScanMax; ++scanned) {
        const bool gone = dispatch_request(*request, previous);
        any = any || gone;
        if (!gone) {
            if (free_batches.empty() && free_reads.empty()) break;
            previous = request;
        }
        request =
            previous == nullptr ? waiting.front() : IntrusiveFifo<block::Request>::after(*previous);
    }
    return any;
}

bool Engine::Impl::dispatch_request(block::Request& request, block::Request* previous) {
    const std::uint64_t end = request.offset + request.length_bytes;
    while (request.next_offset < end) {
        if (!dispatch_piece(request)) return false;
    }
    waiting.remove_after(previous, request);
    if (request.parts_pending == 0) finish_request(request);
    return true;
}

bool Engine::Impl::dispatch_piece(block::Request& request) {
    if (membership.failed()) {
        request.error = EIO;
        request.next_offset = request.offset + request.length_bytes;
        return true;
    }
    Part part = next_part(request);
    if (request.operation == block::Operation::kRead) {
        if (can_read_directly(part)) return start_fast_read(part);
        return start_locked_read(request, part);
    }
    if (request.operation == block::Operation::kWrite) return start_write(request, part);

    // Zeroing: whole stripes by the drives' own command, the rest as writes of zeros. A trim leaves
    // partial stripes alone.
    const std::uint64_t stripe_bytes = layout.stripe_data_bytes();
    const std::uint64_t end = request.offset + request.length_bytes;
    if (part.offset % stripe_bytes == 0 && end - part.offset >= stripe_bytes) {
        const std::uint64_t stripes_max =
            std::max<std::uint64_t>(1, kZeroDepthBytes / layout.stripe_depth_bytes());
        part.length = std::min((end - part.offset) / stripe_bytes, stripes_max) * stripe_bytes;
        return start_zero(request, part);
    }
    part.length = std::min(end, round_up(part.offset + 1, stripe_bytes)) - part.offset;
    if (request.operation == block::Operation::kTrim) {
        request.next_offset = part.end();
        return true;
    }
    // Zeros are written from one small buffer: more pieces a chunk, so fewer chunks a part.
    const std::uint64_t chunks_max = std::max<std::uint64_t>(1, 256 / layout.copies());
    part.length = std::min(part.length, chunks_max * layout.chunk_bytes());
    part.memory = nullptr;
    return start_write(request, part);
}

bool Engine::Impl::start_write(block::Request& request, const Part& part) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    lock_range_of(part, begin, end);
    if (blocked(begin, end, false)) {
        note_blocked(begin, end);
        return false;
    }
    Batch* batch = acquire_batch(BatchKind::kWrite);
    if (batch == nullptr) return false;
    batch->begin = begin;
    batch->end = end;
    batch->fua = request.fua;
    batch->parts[batch->part_count++] = part;
    take_part(request, part);
    if (layout.has_parity()) join_waiting(*batch, &request);
    const bool locked = locks.try_lock(*batch);
    WARPRAID_ASSERT(locked);
    batch->step = Step::kIntent;
    run(*batch);
    return true;
}

// Whether a part may go along: in or right behind the batch's stripes, no overlap, within budget.
bool Engine::Impl::can_join(const Batch& batch, const Part& part, std::uint64_t& end) const {
    std::uint64_t part_begin = 0;
    std::uint64_t part_end = 0;
    lock_range_of(part, part_begin, part_end);
    if (part_begin < batch.begin || part_begin > batch.end) return false;
    end = std::max(batch.end, part_end);
    const std::uint64_t stripes = (end - batch.begin) / layout.stripe_data_bytes();
    if (stripes > stripes_per_batch()) return false;
    if (slabs_bound(layout, stripes, batch.part_count + 1) * layout.data_columns() > kSourcesMax) {
        return false;
    }
    for (std::uint32_t i = 0; i < batch.part_count; ++i) {
        const Part& other = batch.parts[i];
        if (part.offset < other.end() && other.offset < part.end()) return false;
    }
    return end == batch.end || !blocked(batch.end, end, false);
}

void Engine::Impl::join_waiting(Batch& batch, block::Request* previous) {
    block::Request* request = IntrusiveFifo<block::Request>::after(*previous);
    for (std::size_t scanned = 0; request != nullptr && scanned < kScanMax; ++scanned) {
        block::Request* next = IntrusiveFifo<block::Request>::after(*request);
        std::uint64_t end = 0;
        bool removed = false;
        if (request->operation == block::Operation::kWrite && batch.part_count < kPartsMax) {
            const Part part = next_part(*request);
            if (can_join(batch, part, end)) {
                batch.end = end;
                batch.fua = batch.fua || request->fua;
                batch.parts[batch.part_count++] = part;
                take_part(*request, part);
                ++counters.joined_writes;
                removed = request->next_offset == request->offset + request->length_bytes;
                if (removed) waiting.remove_after(previous, *request);
            }
        }
        if (!removed) previous = request;
        request = next;
    }
    std::sort(batch.parts.begin(), batch.parts.begin() + batch.part_count,
              [](const Part& a, const Part& b) { return a.offset < b.offset; });
}

bool Engine::Impl::start_zero(block::Request& request, const Part& part) {
    if (blocked(part.offset, part.end(), false)) {
        note_blocked(part.offset, part.end());
        return false;
    }
    Batch* batch = acquire_batch(BatchKind::kZero);
    if (batch == nullptr) return false;
    batch->begin = part.offset;
    batch->end = part.end();
    batch->fua = request.fua;
    batch->parts[batch->part_count++] = part;
    take_part(request, part);
    const bool locked = locks.try_lock(*batch);
    WARPRAID_ASSERT(locked);
    batch->step = Step::kIntent;
    run(*batch);
    return true;
}

bool Engine::Impl::start_locked_read(block::Request& request, const Part& part) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    lock_range_of(part, begin, end);
    if (blocked(begin, end, true)) {
        note_blocked(begin, end);
        return false;
    }
    Batch* batch = acquire_batch(BatchKind::kRead);
    if (batch == nullptr) return false;
    batch->parts[batch->part_count++] = part;
    take_part(request, part);
    ++counters.degraded_reads;
    batch->step = Step::kLock;
    run(*batch);
    return true;
}

bool Engine::Impl::dispatch_tasks() {
    bool any = false;
    while (StripeTask* task = task_waiting.front()) {
        const std::uint64_t begin = task->first.get() * layout.stripe_data_bytes();
        const std::uint64_t end = begin + task->count * layout.stripe_data_bytes();
        // Background work that waits keeps new writes out of its stripes: it must get its turn.
        if (blocked(begin, end, false)) {
            note_blocked(begin, end);
            return any;
        }
        Batch* batch = acquire_batch(BatchKind::kTask);
        if (batch == nullptr) return any;
        task_waiting.pop_front();
        batch->begin = begin;
        batch->end = end;
        batch->task = task;
        batch->task_epoch = membership.epoch();
        batch->task_targets = membership.stale(task->first);
        task->error = 0;
        task->mismatches = 0;
        const bool locked = locks.try_lock(*batch);
        WARPRAID_ASSERT(locked);
        ordered_tasks.push_back(batch);
        batch->step = Step::kPlan;
        cut_task(*batch);
        run(*batch);
        any = true;
    }
    return any;
}

}  // namespace warpraid::array
