// The contract of every parity device: batches of jobs over scattered memory. Field GF(2^8) with
// polynomial 0x11d and generator 2, as Linux raid6: P = xor of the data columns, Q = xor of
// 2^i * column i.
//
// A coder may finish a batch inside submit() (CPU) or later (GPU); either way `Batch::done` becomes
// true and the owner learns it by poll(). A coder never blocks. One coder object belongs to one
// shard and is called only from it. Memory of a job must stay valid until the batch is done; every
// pointer is aligned to kAlignment and `length_bytes` is a multiple of kAlignment (asserted).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/intrusive_list.h"
#include "base/limits.h"

namespace warpraid::parity {

inline constexpr std::size_t kAlignment = 64;
/// Data columns of a job; P and Q come on top.
inline constexpr std::uint32_t kColumnsMax = limits::kMembersMax;

enum class JobKind : std::uint8_t {
    kEncode,       // data -> p and/or q
    kUpdate,       // p and/or q ^= contribution of (old ^ new) of `count` columns
    kReconstruct,  // up to two missing columns (data, P or Q) from the others
    kVerify,       // data, p, q -> matches
    kLocate,       // data, p, q -> which single column is wrong, if one explains it
};

/// What kLocate found.
enum class LocateVerdict : std::uint8_t { kClean, kData, kP, kQ, kAmbiguous };

/// One job. Column pointers address `length_bytes` each; `p` or `q` null means "not there".
struct Job {
    JobKind kind = JobKind::kEncode;
    std::uint32_t columns = 0;  // data columns of the stripe
    std::size_t length_bytes = 0;

    /// kEncode/kVerify/kLocate: `columns` readable columns.
    /// kReconstruct: `columns` entries; the entries of missing data columns are written.
    /// kUpdate: entry i (< update_count) is the *old* content of column update_columns[i].
    std::byte* const* data = nullptr;
    std::byte* p = nullptr;
    std::byte* q = nullptr;

    /// kUpdate: the *new* contents, same order as `data`.
    std::byte* const* new_data = nullptr;
    const std::uint32_t* update_columns = nullptr;
    std::uint32_t update_count = 0;

    /// kReconstruct: indices of missing columns, ascending; `columns` means P, `columns + 1` Q.
    /// A missing column is computed when its pointer is not null, and skipped when it is null (P or
    /// Q only). With one missing data column, `q` may be null (P is used) or `p` may be null or
    /// missing (Q is used).
    std::uint32_t missing[2] = {0, 0};
    std::uint32_t missing_count = 0;

    // Results.
    bool matches = false;                           // kVerify
    LocateVerdict verdict = LocateVerdict::kClean;  // kLocate
    std::uint32_t located_column = 0;               // kLocate with kData
};

/// Jobs that finish together. Owned by the submitter, alive until `done`.
struct Batch : FifoLink<Batch> {
    std::span<Job> jobs;
    bool done = false;
};

class Coder {
  public:
    virtual ~Coder() = default;
    /// Name for logs and `describe`, such as "reference", "isal-avx512".
    virtual std::string_view name() const = 0;
    /// Starts a batch. `batch.done` may already be true on return.
    virtual void submit(Batch& batch) = 0;
    /// Advances batches that finish later. Returns how many became done.
    virtual std::size_t poll() = 0;
};

}  // namespace warpraid::parity
