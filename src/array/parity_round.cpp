// A round of a parity batch: reads, parity jobs and writes of as many slabs as fit the frame.
#include <bit>

#include "array/engine_impl.h"

namespace warpraid::array {

namespace {

std::uint32_t count(ColumnMask mask) {
    return static_cast<std::uint32_t>(std::popcount(mask));
}

// How many scratch columns a plan needs (see lay_out_slab, which hands them out).
std::uint32_t scratch_columns(const SlabPlan& plan, ColumnMask touched, ColumnMask data) {
    ColumnMask missing = 0;
    for (std::uint32_t i = 0; i < plan.missing_count; ++i) {
        missing |= ColumnMask{1} << plan.missing[i];
    }
    switch (plan.mode) {
        case SlabMode::kReconstructRead:
            return count((plan.reads | missing) & ~touched);
        case SlabMode::kEncode:
            return count(plan.reads) + count(plan.writes & ~data);
        case SlabMode::kUpdate:
            return count(plan.reads);
        case SlabMode::kRecoverWrite:
            return count(data) + count((plan.reads | plan.writes) & ~data);
        case SlabMode::kDirect:
        case SlabMode::kPlainWrite:
        case SlabMode::kLost:
            return 0;
    }
    return 0;
}

}  // namespace

Slot Engine::Impl::column_slot(Stripe stripe, std::uint32_t column) const {
    const std::uint32_t data = layout.data_columns();
    return column < data ? layout.data_placement(stripe, column, 0).slot
                         : layout.parity_placement(stripe, column - data).slot;
}

ColumnMask Engine::Impl::columns_of(Stripe stripe, SlotMask slots) const {
    const std::uint32_t all = layout.members();
    if (slots == static_cast<SlotMask>((std::uint64_t{1} << all) - 1)) return slots;
    ColumnMask mask = 0;
    for (std::uint32_t column = 0; column < all; ++column) {
        if ((slots & slot_bit(column_slot(stripe, column))) != 0) mask |= ColumnMask{1} << column;
    }
    return mask;
}

// Every member of a stripe has its chunk at the same data offset.
std::uint64_t Engine::Impl::column_offset(const Slab& slab) const {
    return slab.stripe.get() * layout.chunk_bytes() + slab.low;
}

std::byte** Engine::Impl::content(Batch& batch, const SlabWork& work) {
    return batch.pointers.data() + work.first_pointer;
}

SlabInput Engine::Impl::slab_input(const Batch& batch, const Slab& slab) const {
    const SlotMask usable = membership.usable(slab.stripe);
    SlabInput input;
    input.write = batch.kind == BatchKind::kWrite;
    input.columns = layout.data_columns();
    input.parities = layout.parity_columns();
    input.touched = slab.touched;
    input.writable = columns_of(slab.stripe, usable);
    input.readable = columns_of(slab.stripe, usable & ~batch.avoid);
    input.distrust_parity = membership.is_suspect(membership.region_of(slab.stripe));
    return input;
}

bool Engine::Impl::has_room(const Batch& batch, std::uint32_t slabs_in_round) const {
    const std::uint32_t members = layout.members();
    const std::uint32_t pointers = members + 2 * layout.data_columns();
    return (slabs_in_round + 1) * members <= kPiecesMax &&
           batch.pointer_count + pointers <= kPointersMax &&
           batch.index_count + layout.data_columns() <= kIndicesMax;
}

void Engine::Impl::mark_lost(Batch& batch, const Slab& slab) {
    const std::uint64_t begin = slab.stripe.get() * layout.stripe_data_bytes();
    const std::uint64_t end = begin + layout.stripe_data_bytes();
    for (std::uint32_t i = 0; i < batch.part_count; ++i) {
        const Part& part = batch.parts[i];
        if (part.offset < end && begin < part.end()) batch.part_errors |= 1u << i;
    }
}

bool Engine::Impl::plan_parity_round(Batch& batch) {
    if (batch.round_end == batch.slab_count) {
        batch.step = Step::kFinish;
        return true;
    }
    const auto data = static_cast<ColumnMask>((std::uint64_t{1} << layout.data_columns()) - 1);
    batch.round_first = batch.round_end;
    batch.pointer_count = 0;
    batch.index_count = 0;
    std::uint64_t scratch_bytes = 0;
    std::uint32_t index = batch.round_first;
    for (; index < batch.slab_count; ++index) {
        const Slab& slab = batch.slabs[index];
        SlabWork& work = batch.work[index];
        work.plan = plan_slab(slab_input(batch, slab));
        const std::uint64_t bytes =
            std::uint64_t{scratch_columns(work.plan, slab.touched, data)} * slab.height();
        const bool first = index == batch.round_first;
        if (!first && (scratch_bytes + bytes > kScratchBytesMax ||
                       !has_room(batch, index - batch.round_first))) {
            break;
        }
        scratch_bytes += bytes;
        work.first_pointer = batch.pointer_count;
        work.first_new_pointer = batch.pointer_count + layout.members();
        batch.pointer_count += layout.members() + 2 * layout.data_columns();
        work.first_index = batch.index_count;
        if (work.plan.mode == SlabMode::kUpdate) batch.index_count += layout.data_columns();
    }
    // The round's end is set only once its memory is there: waiting for it plans anew.
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
        if (work.plan.mode == SlabMode::kLost) {
            mark_lost(batch, slab);
            continue;
        }
        lay_out_slab(batch, work, slab, scratch);
        add_column_reads(batch, work, slab);
        if (work.plan.mode == SlabMode::kUpdate) ++counters.read_modify_writes;
        if (work.plan.mode == SlabMode::kEncode) {
            ++(work.plan.reads == 0 ? counters.full_stripes : counters.reconstruct_writes);
        }
    }
    return issue(batch, io::Opcode::kRead, Step::kRecover);
}

// Gives every column that the plan reads, computes or writes its memory: the host's where the
// host's bytes are what is meant, scratch elsewhere.
void Engine::Impl::lay_out_slab(Batch& batch, SlabWork& work, const Slab& slab,
                                std::byte*& scratch) {
    const SlabPlan& plan = work.plan;
    std::byte** columns = content(batch, work);
    const std::uint32_t data = layout.data_columns();
    const auto take = [&] {
        std::byte* memory = scratch;
        scratch += slab.height();
        return memory;
    };
    ColumnMask missing = 0;
    for (std::uint32_t i = 0; i < plan.missing_count; ++i) {
        missing |= ColumnMask{1} << plan.missing[i];
    }
    const bool old_apart =  // the touched columns' old content has its own memory
        plan.mode == SlabMode::kUpdate || plan.mode == SlabMode::kRecoverWrite;
    std::uint32_t source = slab.first_source;
    for (std::uint32_t column = 0; column < data; ++column) {
        std::byte* host = has(slab.touched, column) ? batch.sources[source++] : nullptr;
        const bool needed =
            has(plan.reads | missing, column) || (plan.mode == SlabMode::kRecoverWrite);
        if (host != nullptr && !old_apart) {
            columns[column] = host;
        } else {
            columns[column] = needed ? take() : nullptr;
        }
    }
    for (std::uint32_t column = data; column < layout.members(); ++column) {
        const bool needed = has(plan.reads | plan.writes, column);
        columns[column] = needed ? take() : nullptr;
    }
}

void Engine::Impl::add_column_reads(Batch& batch, const SlabWork& work, const Slab& slab) {
    for (std::uint32_t column = 0; column < layout.members(); ++column) {
        if (!has(work.plan.reads, column)) continue;
        batch.list.add(column_slot(slab.stripe, column), column_offset(slab),
                       content(batch, work)[column], slab.height());
    }
}

void Engine::Impl::prepare_recover_jobs(Batch& batch) {
    batch.job_count = 0;
    if (!layout.has_parity()) return;
    const std::uint32_t data = layout.data_columns();
    for (std::uint32_t i = batch.round_first; i < batch.round_end; ++i) {
        SlabWork& work = batch.work[i];
        if (work.plan.missing_count == 0 || work.plan.mode == SlabMode::kLost) continue;
        parity::Job& job = batch.jobs[batch.job_count++];
        job = parity::Job{};
        job.kind = parity::JobKind::kReconstruct;
        job.columns = data;
        job.length_bytes = batch.slabs[i].height();
        job.data = content(batch, work);
        if (has(work.plan.reads, data)) job.p = content(batch, work)[data];
        if (has(work.plan.reads, data + 1)) job.q = content(batch, work)[data + 1];
        job.missing_count = work.plan.missing_count;
        job.missing[0] = work.plan.missing[0];
        job.missing[1] = work.plan.missing[1];
    }
}

void Engine::Impl::prepare_compute_jobs(Batch& batch) {
    batch.job_count = 0;
    if (batch.kind == BatchKind::kTask) {
        add_task_jobs(batch);
        return;
    }
    if (batch.kind != BatchKind::kWrite) return;
    const std::uint32_t data = layout.data_columns();
    for (std::uint32_t i = batch.round_first; i < batch.round_end; ++i) {
        SlabWork& work = batch.work[i];
        const Slab& slab = batch.slabs[i];
        if (work.plan.mode == SlabMode::kUpdate) {
            add_update_job(batch, work, slab);
            continue;
        }
        if (work.plan.mode != SlabMode::kEncode && work.plan.mode != SlabMode::kRecoverWrite) {
            continue;
        }
        std::byte** columns = content(batch, work);
        if (work.plan.mode == SlabMode::kRecoverWrite) {
            std::byte** fresh = batch.pointers.data() + work.first_new_pointer;
            std::uint32_t source = slab.first_source;
            for (std::uint32_t column = 0; column < data; ++column) {
                fresh[column] =
                    has(slab.touched, column) ? batch.sources[source++] : columns[column];
            }
            columns = fresh;
        }
        parity::Job& job = batch.jobs[batch.job_count++];
        job = parity::Job{};
        job.kind = parity::JobKind::kEncode;
        job.columns = data;
        job.length_bytes = slab.height();
        job.data = columns;
        if (has(work.plan.writes, data)) job.p = content(batch, work)[data];
        if (has(work.plan.writes, data + 1)) job.q = content(batch, work)[data + 1];
    }
}

void Engine::Impl::add_update_job(Batch& batch, SlabWork& work, const Slab& slab) {
    const std::uint32_t data = layout.data_columns();
    std::byte** columns = content(batch, work);
    std::byte** old_content = batch.pointers.data() + work.first_new_pointer;
    std::byte** new_content = old_content + count(slab.touched);
    std::uint32_t* touched = batch.indices.data() + work.first_index;
    std::uint32_t updates = 0;
    for (std::uint32_t column = 0; column < data; ++column) {
        if (!has(slab.touched, column)) continue;
        old_content[updates] = columns[column];
        new_content[updates] = batch.sources[slab.first_source + updates];
        touched[updates++] = column;
    }
    parity::Job& job = batch.jobs[batch.job_count++];
    job = parity::Job{};
    job.kind = parity::JobKind::kUpdate;
    job.columns = data;
    job.length_bytes = slab.height();
    job.data = old_content;
    job.new_data = new_content;
    job.update_columns = touched;
    job.update_count = updates;
    if (has(work.plan.writes, data)) job.p = columns[data];
    if (has(work.plan.writes, data + 1)) job.q = columns[data + 1];
}

void Engine::Impl::issue_parity_writes(Batch& batch) {
    batch.list.clear();
    const std::uint32_t data = layout.data_columns();
    for (std::uint32_t i = batch.round_first; i < batch.round_end; ++i) {
        const SlabWork& work = batch.work[i];
        const Slab& slab = batch.slabs[i];
        if (work.plan.mode == SlabMode::kLost) continue;
        // A member may have left since the plan was made: what parity says is then enough.
        const ColumnMask live = columns_of(slab.stripe, membership.usable(slab.stripe));
        std::uint32_t source = slab.first_source;
        for (std::uint32_t column = 0; column < layout.members(); ++column) {
            std::byte* memory = nullptr;
            if (column >= data) {
                memory = content(batch, work)[column];
            } else if (has(slab.touched, column)) {
                memory = batch.sources[source++];
            }
            if (!has(work.plan.writes & live, column)) continue;
            batch.list.add(column_slot(slab.stripe, column), column_offset(slab), memory,
                           slab.height());
        }
    }
}

}  // namespace warpraid::array
