// The engine's inside, shared by the files that implement it: engine.cpp (requests in and out),
// dispatch.cpp (requests to operations), read_path.cpp, batch.cpp (the machine and its commands),
// parity_round.cpp, simple_round.cpp, task_round.cpp (what a round does), flush.cpp.
#pragma once

#include <memory>
#include <vector>

#include "array/engine.h"
#include "array/membership.h"
#include "array/operations.h"

namespace warpraid::array {

struct Engine::Impl {
    Impl(const EngineOptions& options, io::Reactor& reactor, io::BufferArena& arena,
         parity::Coder& coder, intent::Bitmap& bitmap, Listener& listener);

    // engine.cpp
    void submit(block::Request& request);
    void reject(block::Request& request, int error);
    void adopt(const View& view);
    void part_done(const Part& part, int error);
    void finish_request(block::Request& request);
    bool deliver_completed();
    void resume_parked();
    bool refers_to(const io::Drive& drive) const;
    bool idle() const;
    bool poll(std::uint64_t now_ns);
    void check_overdue(std::uint64_t now_ns);

    // dispatch.cpp
    bool dispatch();
    bool dispatch_request(block::Request& request, block::Request* previous);
    bool dispatch_piece(block::Request& request);
    Part next_part(const block::Request& request) const;
    bool start_write(block::Request& request, const Part& part);
    bool start_zero(block::Request& request, const Part& part);
    bool start_locked_read(block::Request& request, const Part& part);
    void join_waiting(Batch& batch, block::Request* previous);
    bool can_join(const Batch& batch, const Part& part, std::uint64_t& end) const;
    void take_part(block::Request& request, const Part& part);
    bool blocked(std::uint64_t begin, std::uint64_t end, bool shared) const;
    void note_blocked(std::uint64_t begin, std::uint64_t end);
    void lock_range_of(const Part& part, std::uint64_t& begin, std::uint64_t& end) const;
    std::uint64_t stripes_per_batch() const;
    bool dispatch_tasks();
    Batch* acquire_batch(BatchKind kind);
    void release_batch(Batch& batch);

    // read_path.cpp
    bool start_fast_read(const Part& part);
    bool can_read_directly(const Part& part) const;
    void read_finished(ReadOperation& operation);
    std::uint32_t choose_copy(const geometry::Position& position, SlotMask usable) const;
    bool add_read_pieces(CommandList& list, const Part& part, SlotMask avoid) const;

    // batch.cpp
    void run(Batch& batch);
    bool step(Batch& batch);  // true: call again at once
    bool step_lock(Batch& batch);
    bool begin_intent(Batch& batch);
    void cut_parts(Batch& batch);
    bool plan_round(Batch& batch);
    bool acquire_scratch(Batch& batch, std::uint64_t bytes);
    bool submit_jobs(Batch& batch, Step next);
    void start_command(io::Command& command, Operation& operation);
    bool issue(Batch& batch, io::Opcode opcode, Step next);
    void issue_more(Batch& batch);
    void command_completed(io::Command& command);
    void report_fault(const io::Command& command, CommandGroup& group);
    bool is_survivable_without(SlotMask slots) const;
    bool must_end_with_error(const CommandGroup& group) const;
    bool commands_finished(Batch& batch);
    void park(Batch& batch);
    bool must_leave(const CommandGroup& group) const;
    bool finish_round(Batch& batch);
    static void mark_failed(Batch& batch);
    void fail_batch(Batch& batch);
    bool finish(Batch& batch);

    // parity_round.cpp
    bool plan_parity_round(Batch& batch);
    SlabInput slab_input(const Batch& batch, const Slab& slab) const;
    void lay_out_slab(Batch& batch, SlabWork& work, const Slab& slab, std::byte*& scratch);
    void prepare_recover_jobs(Batch& batch);
    void prepare_compute_jobs(Batch& batch);
    void add_update_job(Batch& batch, SlabWork& work, const Slab& slab);
    void issue_parity_writes(Batch& batch);
    void add_column_reads(Batch& batch, const SlabWork& work, const Slab& slab);
    Slot column_slot(Stripe stripe, std::uint32_t column) const;
    ColumnMask columns_of(Stripe stripe, SlotMask slots) const;
    std::uint64_t column_offset(const Slab& slab) const;
    std::byte** content(Batch& batch, const SlabWork& work);
    void mark_lost(Batch& batch, const Slab& slab);
    bool has_room(const Batch& batch, std::uint32_t slabs_in_round) const;

    // simple_round.cpp
    bool plan_simple_round(Batch& batch);
    bool add_mirror_writes(Batch& batch, const Part& part);

    // task_round.cpp
    void cut_task(Batch& batch);
    bool plan_task_round(Batch& batch);
    bool plan_parity_task(Batch& batch);
    SlabPlan plan_task_slab(Batch& batch, const Slab& slab);
    bool plan_mirror_task(Batch& batch);
    void add_task_jobs(Batch& batch);
    bool finish_task_round(Batch& batch);
    void add_mirror_task_writes(Batch& batch, const SlabWork& work, const Slab& slab);
    void count_mismatches(Batch& batch);
    void finish_task(Batch& batch);

    // flush.cpp
    void start_flush();
    void issue_flush();
    void flush_finished();
    void resume_flush();
    void end_flush(int error);

    geometry::Layout layout;
    block::Limits limits;
    io::Reactor& reactor;
    io::BufferArena& arena;
    parity::Coder& coder;
    intent::Bitmap& bitmap;
    Listener& listener;
    Membership membership;
    RangeLock locks;
    EngineCounters counters;
    io::Buffer zeros;

    std::vector<std::unique_ptr<ReadOperation>> read_storage;
    std::vector<std::unique_ptr<Batch>> batch_storage;
    IntrusiveFifo<ReadOperation> free_reads;
    IntrusiveFifo<Batch> free_batches;

    IntrusiveFifo<block::Request> waiting;    // not yet fully cut into operations
    IntrusiveFifo<block::Request> completed;  // to be told to their submitters
    IntrusiveFifo<block::Request> flush_waiting;
    IntrusiveFifo<StripeTask> task_waiting;
    IntrusiveFifo<StripeTask> finished_tasks;  // to be told to their submitters
    IntrusiveFifo<Batch> lock_waiting;  // reads that found an error and now need a stable stripe
    IntrusiveFifo<Batch> scratch_waiting;
    IntrusiveFifo<Batch> computing;  // jobs that finish later
    IntrusiveFifo<Batch> parked;
    IntrusiveFifo<Batch> runnable;  // to be stepped outside of any callback
    IntrusiveFifo<ReadOperation> failed_reads;
    // Background work in submission order; finished in this order.
    std::vector<Batch*> ordered_tasks;
    FlushOperation flush;

    struct BlockedRange {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };
    static constexpr std::size_t kBlockedMax = 64;
    std::array<BlockedRange, kBlockedMax> blocked_ranges;
    std::size_t blocked_count = 0;
    std::uint64_t seen_releases = 0;
    bool dispatch_needed = false;
    std::uint64_t next_overdue_check_ns = 0;
    SlotMask overdue_reported = 0;
};

}  // namespace warpraid::array
