// The batch machine: one step function, the commands under way, faults and parking.
#include <fmt/format.h>

#include <bit>
#include <cerrno>

#include "array/engine_impl.h"

namespace warpraid::array {

std::string_view to_text(Step step) {
    constexpr std::string_view kNames[] = {
        "free",    "lock",         "intent", "plan",   "scratch", "read",  "recover",
        "compute", "finish-round", "write",  "parked", "order",   "finish"};
    return kNames[static_cast<std::size_t>(step)];
}

std::string Batch::to_text() const {
    constexpr std::string_view kKinds[] = {"read", "write", "zero", "task"};
    return fmt::format("{} [{}, {}) step {} slabs {}-{} of {} commands {}",
                       kKinds[static_cast<std::size_t>(kind)], begin, end,
                       warpraid::array::to_text(step), round_first, round_end, slab_count,
                       group.pending);
}

void Engine::Impl::run(Batch& batch) {
    while (step(batch)) {
    }
}

bool Engine::Impl::step(Batch& batch) {
    switch (batch.step) {
        case Step::kLock:
            return step_lock(batch);
        case Step::kIntent:
            return begin_intent(batch);
        case Step::kPlan:
        case Step::kScratch:
            return plan_round(batch);
        case Step::kRead:
        case Step::kWrite:
            return commands_finished(batch);
        case Step::kRecover:
            prepare_recover_jobs(batch);
            return submit_jobs(batch, Step::kCompute);
        case Step::kCompute:
            prepare_compute_jobs(batch);
            return submit_jobs(batch, Step::kFinishRound);
        case Step::kFinishRound:
            return finish_round(batch);
        case Step::kOrder:
        case Step::kFinish:
            return finish(batch);
        case Step::kFree:
        case Step::kParked:
            break;
    }
    WARPRAID_ASSERT(!"a batch is stepped in a state that waits for something else");
    return false;
}

// Reads that need a stable stripe: mirrored levels never do, another copy is enough.
bool Engine::Impl::step_lock(Batch& batch) {
    if (!layout.has_parity()) {
        batch.direct = true;
        batch.step = Step::kPlan;
        return true;
    }
    batch.shared = true;
    lock_range_of(batch.parts[0], batch.begin, batch.end);
    if (!locks.try_lock(batch)) {
        lock_waiting.push_back(batch);
        return false;
    }
    batch.direct = false;
    batch.step = Step::kPlan;
    cut_parts(batch);
    return true;
}

bool Engine::Impl::begin_intent(Batch& batch) {
    batch.step = Step::kPlan;
    if (batch.kind == BatchKind::kWrite && layout.has_parity()) cut_parts(batch);
    const bool redundant = layout.has_parity() || layout.copies() > 1;
    if (!redundant) return true;
    const std::uint64_t stripe_bytes = layout.stripe_data_bytes();
    batch.waiter.first = membership.region_of(Stripe(batch.begin / stripe_bytes));
    batch.waiter.last = membership.region_of(Stripe((batch.end - 1) / stripe_bytes));
    batch.waiter.owner = &batch;
    batch.waiter.ready = [](intent::Waiter& waiter) {
        Batch& waited = *static_cast<Batch*>(waiter.owner);
        waited.engine.runnable.push_back(waited);
    };
    batch.intent_held = true;
    return bitmap.begin_write(batch.waiter);
}

void Engine::Impl::cut_parts(Batch& batch) {
    SlabSpace space{batch.slabs, batch.sources, 0, 0};
    cut_slabs(layout, std::span(batch.parts).first(batch.part_count), zeros.data(), space);
    batch.slab_count = space.slab_count;
    batch.round_first = 0;
    batch.round_end = 0;
}

bool Engine::Impl::plan_round(Batch& batch) {
    if (membership.failed()) {
        fail_batch(batch);
        return true;
    }
    if (batch.kind == BatchKind::kTask) return plan_task_round(batch);
    if (layout.has_parity() && batch.kind != BatchKind::kZero && !batch.direct) {
        return plan_parity_round(batch);
    }
    return plan_simple_round(batch);
}

bool Engine::Impl::acquire_scratch(Batch& batch, std::uint64_t bytes) {
    batch.scratch.release();
    if (bytes == 0) return true;
    batch.scratch = arena.try_acquire(bytes);
    if (batch.scratch) return true;
    batch.step = Step::kScratch;
    scratch_waiting.push_back(batch);
    return false;
}

bool Engine::Impl::submit_jobs(Batch& batch, Step next) {
    batch.step = next;
    if (batch.job_count == 0) return true;
    batch.jobs_under_way.jobs = std::span(batch.jobs).first(batch.job_count);
    batch.jobs_under_way.done = false;
    coder.submit(batch.jobs_under_way);
    if (batch.jobs_under_way.done) return true;
    computing.push_back(batch);
    return false;
}

void Engine::Impl::start_command(io::Command& command, Operation& operation) {
    command.owner = &operation;
    command.complete = [](io::Command& finished) {
        static_cast<Operation*>(finished.owner)->engine.command_completed(finished);
    };
    ++counters.member_commands;
    if (command.opcode == io::Opcode::kRead) counters.member_bytes_read += command.length_bytes;
    if (command.opcode == io::Opcode::kWrite) counters.member_bytes_written += command.length_bytes;
    operation.group.drives[command.slot] = command.drive;
    command.drive->submit(command);
}

// Runs what the batch's list holds, then goes to `next`; at once when there is nothing to run.
bool Engine::Impl::issue(Batch& batch, io::Opcode opcode, Step next) {
    batch.opcode = opcode;
    batch.after_commands = next;
    batch.step = opcode == io::Opcode::kRead ? Step::kRead : Step::kWrite;
    batch.group.restart();
    if (batch.list.empty()) {
        batch.step = next;
        return true;
    }
    issue_more(batch);
    return false;
}

void Engine::Impl::issue_more(Batch& batch) {
    const bool fua = batch.fua && batch.opcode != io::Opcode::kRead;
    const std::span<io::Command> commands = batch.list.build(batch.opcode, fua);
    batch.group.pending = static_cast<std::uint32_t>(commands.size());
    for (io::Command& command : commands) start_command(command, batch);
}

void Engine::Impl::command_completed(io::Command& command) {
    Operation& operation = *static_cast<Operation*>(command.owner);
    if (command.error != 0) {
        operation.group.failed |= SlotMask{1} << command.slot;
        report_fault(command, operation.group);
    }
    WARPRAID_ASSERT(operation.group.pending > 0);
    if (--operation.group.pending != 0) return;
    switch (operation.operation_class) {
        case OperationClass::kRead:
            read_finished(static_cast<ReadOperation&>(operation));
            return;
        case OperationClass::kBatch:
            run(static_cast<Batch&>(operation));
            return;
        case OperationClass::kFlush:
            flush_finished();
            return;
    }
}

void Engine::Impl::report_fault(const io::Command& command, CommandGroup& group) {
    FaultKind kind = FaultKind::kWriteError;
    if (command.error == ETIMEDOUT) {
        kind = FaultKind::kTimeout;
    } else if (command.error == ENODEV) {
        kind = FaultKind::kGone;
    } else if (command.opcode == io::Opcode::kRead) {
        kind = FaultKind::kReadError;
    }
    const Slot slot(command.slot);
    // A drive that left still ends what it was given, when its slot may belong to another already.
    if (membership.drive(slot) != group.drives[command.slot]) return;
    // A write error on the last copy of something ends that request: putting the member out at once
    // would lose everything else on it. The control plane hears of it, for it may be the last copy
    // no more by then, and is to leave when another has its data.
    if (kind == FaultKind::kWriteError && !layout.has_parity() &&
        !is_survivable_without(slot_bit(slot))) {
        group.spared |= slot_bit(slot);
    }
    listener.member_fault(slot, kind, command.error, command.offset);
}

bool Engine::Impl::is_survivable_without(SlotMask slots) const {
    return layout.survives(membership.missing() | slots);
}

// All commands under way are done: on to the next step, or around the members that failed.
bool Engine::Impl::commands_finished(Batch& batch) {
    if (batch.list.has_more()) {
        issue_more(batch);
        return false;
    }
    const SlotMask failed = batch.group.failed;
    if (failed == 0) {
        batch.step = batch.after_commands;
        return true;
    }
    ++counters.replans;
    if (batch.opcode == io::Opcode::kRead) {
        // Another plan for the same round, without those members' answers.
        batch.avoid |= failed;
        batch.round_end = batch.round_first;
        batch.scratch.release();
        batch.step = batch.direct ? Step::kLock : Step::kPlan;
        return true;
    }
    // What was written is written; those that failed must be out before the host hears of it.
    if (must_end_with_error(batch.group)) {
        mark_failed(batch);
        batch.step = batch.after_commands;
        return true;
    }
    park(batch);
    return false;
}

// Whether no member can be put out for what failed: the last copy of something is among them.
bool Engine::Impl::must_end_with_error(const CommandGroup& group) const {
    if (layout.has_parity()) return false;
    return group.spared != 0 || !is_survivable_without(group.failed);
}

void Engine::Impl::park(Batch& batch) {
    if (membership.failed()) {  // nobody takes members out any more
        fail_batch(batch);
        runnable.push_back(batch);
        return;
    }
    if (!must_leave(batch.group)) {  // the control plane was faster
        batch.step = batch.after_commands;
        runnable.push_back(batch);
        return;
    }
    batch.step = Step::kParked;
    parked.push_back(batch);
}

// Whether a drive that failed a command of this group is still part of the view.
bool Engine::Impl::must_leave(const CommandGroup& group) const {
    for (SlotMask rest = group.failed; rest != 0; rest &= rest - 1) {
        const Slot slot(static_cast<std::uint8_t>(std::countr_zero(rest)));
        if (membership.drive(slot) == group.drives[slot.get()]) return true;
    }
    return false;
}

bool Engine::Impl::finish_round(Batch& batch) {
    if (batch.kind == BatchKind::kTask) return finish_task_round(batch);
    if (batch.kind == BatchKind::kWrite && layout.has_parity()) {
        issue_parity_writes(batch);
        return issue(batch, io::Opcode::kWrite, Step::kPlan);
    }
    batch.step = Step::kPlan;
    return true;
}

void Engine::Impl::mark_failed(Batch& batch) {
    batch.part_errors = ~std::uint32_t{0};
    batch.task_failed = true;
}

void Engine::Impl::fail_batch(Batch& batch) {
    mark_failed(batch);
    batch.step = Step::kFinish;
}

bool Engine::Impl::finish(Batch& batch) {
    if (batch.kind == BatchKind::kTask) {
        WARPRAID_ASSERT(!ordered_tasks.empty());
        if (ordered_tasks.front() != &batch) {
            batch.step = Step::kOrder;
            return false;
        }
        finish_task(batch);
    }
    if (batch.intent_held) bitmap.end_write(batch.waiter.first, batch.waiter.last);
    batch.intent_held = false;
    if (batch.held) locks.unlock(batch);
    for (std::uint32_t i = 0; i < batch.part_count; ++i) {
        part_done(batch.parts[i], (batch.part_errors >> i & 1) != 0 ? EIO : 0);
    }
    release_batch(batch);
    return false;
}

}  // namespace warpraid::array
