// Operation frames: everything one operation needs, allocated once at start. A frame is a visible
// machine: one Step, one step function, and to_text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "array/command_list.h"
#include "array/engine.h"
#include "array/range_lock.h"
#include "array/slab_cutter.h"
#include "array/stripe_task.h"
#include "io/arena.h"
#include "parity/coder.h"

namespace warpraid::array {

/// Commands of an operation under way, and what went wrong.
struct CommandGroup {
    std::uint32_t pending = 0;
    SlotMask failed = 0;  // slots with any error
    /// Of those, slots whose member stays although it failed a write, being the last copy of
    /// something: the operation ends with the error, whoever else has come back since.
    SlotMask spared = 0;
    /// To which drive the commands of a slot went: another may have its place by the time they end.
    /// (A command's own `drive` belongs to the drive once it is submitted.)
    std::array<io::Drive*, limits::kMembersMax> drives{};

    void restart() {
        pending = 0;
        failed = 0;
        spared = 0;
    }
    /// At the operation's end: what it knew of drives is not to keep them from being freed.
    void forget_drives() { drives.fill(nullptr); }
};

enum class OperationClass : std::uint8_t { kRead, kBatch, kFlush };

/// What every frame starts with, so that a completed command finds its operation.
struct Operation {
    Operation(OperationClass which, Engine::Impl& owner) : operation_class(which), engine(owner) {}
    OperationClass operation_class;
    Engine::Impl& engine;
    CommandGroup group;
};

/// A healthy read: a few pieces straight into the host's memory, no lock.
struct ReadOperation : Operation, FifoLink<ReadOperation> {
    static constexpr std::size_t kPieces = 8;
    ReadOperation(Engine::Impl& owner, const Membership& membership)
        : Operation(OperationClass::kRead, owner), list(membership, pieces, segments, commands) {}

    Part part;
    std::array<Piece, kPieces> pieces;
    std::array<iovec, kPieces> segments;
    std::array<io::Command, kPieces> commands;
    CommandList list;
};

enum class Step : std::uint8_t {
    kFree,
    kLock,     // waits for its range
    kIntent,   // waits for the bitmap
    kPlan,     // next round: decide what to read, compute, write
    kScratch,  // waits for buffer memory
    kRead,
    kRecover,  // parity jobs that bring back missing columns
    kCompute,  // parity jobs that make new parity, or compare
    kFinishRound,
    kWrite,
    kParked,  // waits for the control plane to take a member out
    kOrder,   // background work: waits for the piece before it
    kFinish,
};
std::string_view to_text(Step step);

enum class BatchKind : std::uint8_t { kRead, kWrite, kZero, kTask };

inline constexpr std::size_t kPartsMax = 32;
inline constexpr std::size_t kSlabsMax = 320;
inline constexpr std::size_t kSourcesMax = 2048;
inline constexpr std::size_t kPiecesMax = 1280;
inline constexpr std::size_t kCommandsMax = 192;
inline constexpr std::size_t kPointersMax = 4096;
inline constexpr std::size_t kIndicesMax = 1024;
inline constexpr std::uint64_t kScratchBytesMax = 16 * kMiB;

/// What a planned slab needs between its steps.
struct SlabWork {
    SlabPlan plan;
    std::byte* scratch = nullptr;
    std::uint32_t first_pointer = 0;      // of columns + parities pointers: content by column
    std::uint32_t first_new_pointer = 0;  // kUpdate: touched old, then touched new; kRecoverWrite:
                                          // columns pointers that parity is made from
    std::uint32_t first_index = 0;        // kUpdate: the touched columns
    std::int32_t job = -1;                // kVerify: its job
};

/// Anything that needs a stable stripe: writes, degraded reads, zeroing, background work. Executed
/// in rounds of as many slabs as fit the frame.
struct Batch : Operation, FifoLink<Batch>, RangeHolder {
    Batch(Engine::Impl& owner, const Membership& membership)
        : Operation(OperationClass::kBatch, owner), list(membership, pieces, segments, commands) {}

    BatchKind kind = BatchKind::kRead;
    Step step = Step::kFree;
    Step after_commands = Step::kFree;  // where to go when the commands under way are done
    bool fua = false;
    bool intent_held = false;
    bool direct = false;                    // kRead: straight from the members, no stripe held
    io::Opcode opcode = io::Opcode::kRead;  // of the list under way
    SlotMask avoid = 0;                     // members that failed a read of this batch

    std::uint32_t part_count = 0;
    StripeTask* task = nullptr;
    SlotMask task_targets = 0;
    std::uint64_t task_epoch = 0;   // of the members the task started with
    std::uint64_t task_cursor = 0;  // units already cut into slabs (see cut_task)
    bool task_failed = false;
    std::uint32_t part_errors = 0;  // bit by part: some of it is lost

    std::uint32_t slab_count = 0;
    std::uint32_t round_first = 0;
    std::uint32_t round_end = 0;
    std::uint32_t pointer_count = 0;
    std::uint32_t index_count = 0;
    std::uint32_t job_count = 0;
    io::Buffer scratch;
    parity::Batch jobs_under_way;
    intent::Waiter waiter;

    std::array<Part, kPartsMax> parts;
    std::array<Slab, kSlabsMax> slabs;
    std::array<SlabWork, kSlabsMax> work;
    std::array<std::byte*, kSourcesMax> sources;
    std::array<std::byte*, kPointersMax> pointers;
    std::array<std::uint32_t, kIndicesMax> indices;
    std::array<parity::Job, kSlabsMax> jobs;
    std::array<Piece, kPiecesMax> pieces;
    std::array<iovec, kPiecesMax> segments;
    std::array<io::Command, kCommandsMax> commands;
    CommandList list;

    std::string to_text() const;
};

/// The flush of all members on behalf of every flush request that arrived before it began.
struct FlushOperation : Operation {
    explicit FlushOperation(Engine::Impl& owner) : Operation(OperationClass::kFlush, owner) {}
    bool active = false;
    bool parked = false;
    IntrusiveFifo<block::Request> requests;
    std::array<io::Command, limits::kMembersMax> commands;
};

}  // namespace warpraid::array
