// Rounds of background work: rebuild, resync, verify. A task is cut into units (a slab height of a
// stripe for parity levels, of a chunk for mirrored ones) a frame full at a time.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "array/engine_impl.h"

namespace warpraid::array {

namespace {

using Kind = StripeTask::Kind;

ColumnMask mask_of(std::uint32_t columns) {
    return static_cast<ColumnMask>((std::uint64_t{1} << columns) - 1);
}

}  // namespace

// Fills the frame's slabs from the task's cursor. For mirrored levels `touched` is the column's
// number, not a mask: a slab is one chunk there.
void Engine::Impl::cut_task(Batch& batch) {
    const std::uint64_t heights = divide_up(layout.chunk_bytes(), kSlabHeightMax);
    const std::uint64_t columns = layout.has_parity() ? 1 : layout.data_columns();
    const std::uint64_t units = batch.task->count * columns * heights;
    batch.slab_count = 0;
    batch.round_first = 0;
    batch.round_end = 0;
    for (; batch.task_cursor < units && batch.slab_count < kSlabsMax; ++batch.task_cursor) {
        Slab& slab = batch.slabs[batch.slab_count++];
        const std::uint64_t row = batch.task_cursor / (columns * heights);
        const std::uint64_t height = batch.task_cursor % heights;
        slab = Slab{};
        slab.stripe = Stripe(batch.task->first.get() + row);
        slab.low = static_cast<std::uint32_t>(height * kSlabHeightMax);
        slab.high = std::min(slab.low + kSlabHeightMax, layout.chunk_bytes());
        const auto column = static_cast<std::uint32_t>(batch.task_cursor / heights % columns);
        slab.touched = layout.has_parity() ? mask_of(layout.data_columns()) : column;
    }
}

bool Engine::Impl::plan_task_round(Batch& batch) {
    if (batch.task_failed) {
        batch.step = Step::kFinish;
        return true;
    }
    if (batch.round_end == batch.slab_count) {
        cut_task(batch);
        if (batch.slab_count == 0) {
            batch.step = Step::kFinish;
            return true;
        }
    }
    return layout.has_parity() ? plan_parity_task(batch) : plan_mirror_task(batch);
}

// What a parity slab needs: `writes` are the columns to bring right, `reads` what that takes.
SlabPlan Engine::Impl::plan_task_slab(Batch& batch, const Slab& slab) {
    const SlabInput input = slab_input(batch, slab);
    const ColumnMask data = mask_of(input.columns);
    const ColumnMask parity = mask_of(input.columns + input.parities) & ~data;
    SlabPlan plan;
    plan.mode = SlabMode::kDirect;
    if (batch.task->kind == Kind::kRebuild) {
        const SlotMask targets = batch.task_targets & membership.rebuilding();
        const ColumnMask wanted = columns_of(slab.stripe, targets);
        if (wanted == 0) return plan;
        plan = plan_recovery(input);
        plan.writes = wanted;
    } else if (batch.task->kind == Kind::kResync) {
        if ((data & ~input.readable) == 0) {
            plan.reads = data;
            plan.writes = parity & input.writable;
            return plan;
        }
        // With data missing, parity is all there is: it cannot be checked and is taken as it is. A
        // second parity is made to agree, or the data would change with the next loss.
        SlabPlan recovery = plan_recovery(input);
        recovery.writes = parity & input.writable & ~recovery.reads;
        if (recovery.mode != SlabMode::kLost && recovery.writes != 0) plan = recovery;
    } else if (((data | parity) & ~input.readable) == 0) {
        plan.reads = data | parity;
    } else {
        plan.mode = SlabMode::kLost;
    }
    return plan;
}

bool Engine::Impl::plan_parity_task(Batch& batch) {
    const std::uint32_t members = layout.members();
    batch.round_first = batch.round_end;
    batch.pointer_count = 0;
    batch.index_count = 0;
    std::uint64_t scratch_bytes = 0;
    std::uint32_t index = batch.round_first;
    for (; index < batch.slab_count; ++index) {
        const Slab& slab = batch.slabs[index];
        const std::uint64_t bytes = std::uint64_t{members} * slab.height();
        if (index != batch.round_first && (scratch_bytes + bytes > kScratchBytesMax ||
                                           !has_room(batch, index - batch.round_first))) {
            break;
        }
        SlabWork& work = batch.work[index];
        work.plan = plan_task_slab(batch, slab);
        work.job = -1;
        work.first_pointer = batch.pointer_count;
        batch.pointer_count += members;
        scratch_bytes += bytes;
        if (work.plan.mode == SlabMode::kLost) batch.task_failed = true;
    }
    if (!acquire_scratch(batch, scratch_bytes)) {
        batch.round_end = batch.round_first;
        return false;
    }
    batch.round_end = index;
    batch.list.clear();
    std::byte* scratch = batch.scratch.data();
    for (index = batch.round_first; index < batch.round_end; ++index) {
        const Slab& slab = batch.slabs[index];
        SlabWork& work = batch.work[index];
        for (std::uint32_t column = 0; column < members; ++column) {
            content(batch, work)[column] = scratch;
            scratch += slab.height();
        }
        if (work.plan.mode != SlabMode::kLost) add_column_reads(batch, work, slab);
    }
    return issue(batch, io::Opcode::kRead, Step::kRecover);
}

void Engine::Impl::add_task_jobs(Batch& batch) {
    if (!layout.has_parity()) return;
    const std::uint32_t data = layout.data_columns();
    for (std::uint32_t i = batch.round_first; i < batch.round_end; ++i) {
        SlabWork& work = batch.work[i];
        if (work.plan.mode == SlabMode::kLost || work.plan.reads == 0) continue;
        const bool verify = batch.task->kind == Kind::kVerify;
        const ColumnMask parity = work.plan.writes & ~mask_of(data);
        if (!verify && parity == 0) continue;
        std::byte** columns = content(batch, work);
        work.job = static_cast<std::int32_t>(batch.job_count);
        parity::Job& job = batch.jobs[batch.job_count++];
        job = parity::Job{};
        job.kind = verify ? parity::JobKind::kVerify : parity::JobKind::kEncode;
        job.columns = data;
        job.length_bytes = batch.slabs[i].height();
        job.data = columns;
        if (verify || has(parity, data)) job.p = columns[data];
        if (layout.parity_columns() == 2 && (verify || has(parity, data + 1))) {
            job.q = columns[data + 1];
        }
    }
}

bool Engine::Impl::plan_mirror_task(Batch& batch) {
    const bool verify = batch.task->kind == Kind::kVerify;
    const std::uint32_t columns = verify ? layout.copies() : 1;
    batch.round_first = batch.round_end;
    const std::uint64_t fit = kScratchBytesMax / (std::uint64_t{columns} * kSlabHeightMax);
    const std::uint64_t room = kPiecesMax / layout.copies();
    batch.round_end = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        batch.slab_count, batch.round_first + std::max<std::uint64_t>(1, std::min(fit, room))));
    std::uint64_t scratch_bytes = 0;
    for (std::uint32_t i = batch.round_first; i < batch.round_end; ++i) {
        scratch_bytes += std::uint64_t{columns} * batch.slabs[i].height();
    }
    if (!acquire_scratch(batch, scratch_bytes)) {
        batch.round_end = batch.round_first;
        return false;
    }
    batch.list.clear();
    std::byte* scratch = batch.scratch.data();
    for (std::uint32_t i = batch.round_first; i < batch.round_end; ++i) {
        const Slab& slab = batch.slabs[i];
        SlabWork& work = batch.work[i];
        work.scratch = scratch;
        scratch += std::uint64_t{columns} * slab.height();
        const SlotMask readable = membership.usable(slab.stripe) & ~batch.avoid;
        std::uint32_t sources = 0;
        for (std::uint32_t copy = 0; copy < layout.copies(); ++copy) {
            const geometry::Placement place =
                layout.data_placement(slab.stripe, slab.touched, copy);
            if ((readable & slot_bit(place.slot)) == 0 || sources == columns) continue;
            batch.list.add(place.slot, place.data_offset + slab.low,
                           work.scratch + std::uint64_t{sources} * slab.height(), slab.height());
            ++sources;
        }
        if (sources != columns) batch.task_failed = true;
    }
    return issue(batch, io::Opcode::kRead, Step::kRecover);
}

void Engine::Impl::add_mirror_task_writes(Batch& batch, const SlabWork& work, const Slab& slab) {
    const SlotMask usable = membership.usable(slab.stripe);
    bool source_seen = false;
    for (std::uint32_t copy = 0; copy < layout.copies(); ++copy) {
        const geometry::Placement place = layout.data_placement(slab.stripe, slab.touched, copy);
        const SlotMask bit = slot_bit(place.slot);
        bool target = (batch.task_targets & membership.rebuilding() & bit) != 0;
        if (batch.task->kind == Kind::kResync) {
            // The first readable copy was the source; the others are made equal to it.
            const bool source = !source_seen && (usable & ~batch.avoid & bit) != 0;
            target = (usable & bit) != 0 && !source;
            source_seen = source_seen || source;
        }
        if (!target) continue;
        batch.list.add(place.slot, place.data_offset + slab.low, work.scratch, slab.height());
    }
}

void Engine::Impl::count_mismatches(Batch& batch) {
    Stripe last(layout.stripes());
    for (std::uint32_t i = batch.round_first; i < batch.round_end; ++i) {
        const SlabWork& work = batch.work[i];
        const Slab& slab = batch.slabs[i];
        bool matches = true;
        if (layout.has_parity()) {
            matches = work.job < 0 || batch.jobs[static_cast<std::size_t>(work.job)].matches;
        } else {
            for (std::uint32_t copy = 1; copy < layout.copies(); ++copy) {
                matches = matches && std::memcmp(work.scratch,
                                                 work.scratch + std::uint64_t{copy} * slab.height(),
                                                 slab.height()) == 0;
            }
        }
        if (!matches && slab.stripe != last) {
            last = slab.stripe;
            ++batch.task->mismatches;
        }
    }
}

bool Engine::Impl::finish_task_round(Batch& batch) {
    if (batch.task_failed) {
        batch.step = Step::kFinish;
        return true;
    }
    if (batch.task->kind == Kind::kVerify) {
        count_mismatches(batch);
        batch.step = Step::kPlan;
        return true;
    }
    batch.list.clear();
    for (std::uint32_t i = batch.round_first; i < batch.round_end; ++i) {
        const SlabWork& work = batch.work[i];
        const Slab& slab = batch.slabs[i];
        if (!layout.has_parity()) {
            add_mirror_task_writes(batch, work, slab);
            continue;
        }
        const SlotMask live = membership.usable(slab.stripe) | membership.rebuilding();
        const ColumnMask writes = work.plan.writes & columns_of(slab.stripe, live);
        for (std::uint32_t column = 0; column < layout.members(); ++column) {
            if (!has(writes, column)) continue;
            batch.list.add(column_slot(slab.stripe, column), column_offset(slab),
                           content(batch, work)[column], slab.height());
        }
    }
    return issue(batch, io::Opcode::kWrite, Step::kPlan);
}

void Engine::Impl::finish_task(Batch& batch) {
    WARPRAID_ASSERT(ordered_tasks.front() == &batch);
    ordered_tasks.erase(ordered_tasks.begin());
    if (!ordered_tasks.empty() && ordered_tasks.front()->step == Step::kOrder) {
        runnable.push_back(*ordered_tasks.front());
    }
    StripeTask& task = *batch.task;
    // Members that changed under way void the result: the work is started again.
    const bool valid = !batch.task_failed && batch.task_epoch == membership.epoch();
    task.error = valid ? 0 : EIO;
    if (valid && task.kind == Kind::kRebuild) {
        membership.note_rebuilt(batch.task_targets, task.first, task.count);
    }
    if (valid && task.kind == Kind::kResync) membership.note_resynced(task.first, task.count);
    finished_tasks.push_back(task);
}

}  // namespace warpraid::array
