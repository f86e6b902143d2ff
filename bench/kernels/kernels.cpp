// Throughput of every kind of parity job, by number of columns and bytes per column, beside ISA-L's
// own pq_gen and xor_gen on the same memory in the same run: the ratio (the counter to_isal) is
// what counts, the rest depends on the machine. Bytes are those of the data columns that a job
// covers (for kUpdate: the changed columns). Columns rotate through more memory than a second-level
// cache, as stripes do.
//   warpraid-kernels --benchmark_filter=pq --benchmark_min_time=0.5
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <isa-l.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "parity/cpu/isal_coder.h"
#include "parity/reference.h"

namespace warpraid::parity {
namespace {

constexpr std::size_t kWorkingSetBytes = 16 * kMiB;

struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
};

/// Stripes of `columns` + P + Q and two more columns each, with right parity.
class Stripes {
  public:
    Stripes(std::uint32_t columns, std::size_t length_bytes)
        : columns_(columns), length_bytes_(length_bytes) {
        const std::size_t stripe_bytes = (columns + 4) * length_bytes;
        count_ = std::max<std::size_t>(2, kWorkingSetBytes / stripe_bytes);
        memory_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, count_ * stripe_bytes)));
        if (memory_ == nullptr) std::abort();
        SeededRandom random(columns);
        for (std::size_t i = 0; i < count_ * stripe_bytes; i += sizeof(std::uint64_t)) {
            *reinterpret_cast<std::uint64_t*>(memory_.get() + i) = random.next();
        }
        for (std::size_t i = 0; i < count_ * (columns + 4); ++i) {
            pointers_.push_back(memory_.get() + i * length_bytes);
        }
        const auto coder = make_isal_coder();
        for (std::size_t i = 0; i < count_; ++i) {
            Job job = next(JobKind::kEncode);
            run(*coder, job);
        }
    }

    /// The next stripe in turn as an argument of ISA-L: data, P, Q.
    std::byte** next() {
        std::byte** stripe = pointers_.data() + turn_ * (columns_ + 4);
        turn_ = (turn_ + 1) % count_;
        return stripe;
    }

    Job next(JobKind kind) {
        std::byte** stripe = next();
        Job job;
        job.kind = kind;
        job.columns = columns_;
        job.length_bytes = length_bytes_;
        job.data = stripe;
        job.p = stripe[columns_];
        job.q = stripe[columns_ + 1];
        // For kUpdate: the two columns behind Q become the first of the stripe.
        job.new_data = stripe + columns_ + 2;
        job.update_columns = kFirstColumns;
        return job;
    }

    static void run(Coder& coder, Job& job) {
        Batch batch;
        batch.jobs = std::span(&job, 1);
        coder.submit(batch);
        while (!batch.done) coder.poll();
    }

  private:
    static constexpr std::uint32_t kFirstColumns[] = {0, 1};

    std::uint32_t columns_;
    std::size_t length_bytes_;
    std::size_t count_ = 0;
    std::size_t turn_ = 0;
    std::unique_ptr<std::byte, Free> memory_;
    std::vector<std::byte*> pointers_;
};

/// ISA-L called directly, on P and Q or on P alone.
enum class Rival { kPqGen, kXorGen };

void call_rival(Rival rival, std::byte** stripe, std::uint32_t columns, std::size_t length_bytes) {
    void** vectors = reinterpret_cast<void**>(stripe);
    const int length = static_cast<int>(length_bytes);
    const int sources = static_cast<int>(columns);
    benchmark::DoNotOptimize(rival == Rival::kPqGen ? pq_gen(sources + 2, length, vectors)
                                                    : xor_gen(sources + 1, length, vectors));
}

/// Data bytes that the rival takes in per second of CPU time, measured here and now, so that it is
/// the other half of a ratio under the same conditions.
double rival_rate(Rival rival, Stripes& stripes, std::uint32_t columns, std::size_t length_bytes) {
    constexpr double kSeconds = 0.02;
    const std::clock_t start = std::clock();
    double seconds = 0;
    double bytes = 0;
    while (seconds < kSeconds) {
        for (int i = 0; i < 32; ++i) call_rival(rival, stripes.next(), columns, length_bytes);
        bytes += 32.0 * static_cast<double>(columns * length_bytes);
        seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    }
    return bytes / seconds;
}

/// One line of the table: what is changed in a job of the kind before it runs.
struct Variant {
    const char* name;
    JobKind kind;
    bool p = true;
    bool q = true;
    std::vector<std::uint32_t> missing = {};  // data columns, kP, kQ
    std::uint32_t update_count = 0;
};

// Column numbers of a variant that stand for "P" and "Q" whatever the number of columns.
constexpr std::uint32_t kP = 100;
constexpr std::uint32_t kQ = 101;

void prepare(const Variant& variant, Job& job) {
    if (!variant.p) job.p = nullptr;
    if (!variant.q) job.q = nullptr;
    for (std::uint32_t index : variant.missing) {
        job.missing[job.missing_count++] = index >= kP ? job.columns + (index - kP) : index;
    }
    job.update_count = variant.update_count;
}

using Maker = std::unique_ptr<Coder> (*)();

void run_coder(benchmark::State& state, Maker maker, const Variant& variant) {
    const auto columns = static_cast<std::uint32_t>(state.range(0));
    const auto length_bytes = static_cast<std::size_t>(state.range(1));
    Stripes stripes(columns, length_bytes);
    const auto coder = maker();
    const Rival rival = variant.q ? Rival::kPqGen : Rival::kXorGen;
    const bool has_rival = variant.kind != JobKind::kUpdate;
    const double before = has_rival ? rival_rate(rival, stripes, columns, length_bytes) : 0;
    for (auto _ : state) {
        Job job = stripes.next(variant.kind);
        prepare(variant, job);
        Stripes::run(*coder, job);
        benchmark::DoNotOptimize(job.matches);
        if (variant.kind == JobKind::kVerify && !job.matches) {
            state.SkipWithError("a right stripe does not verify");
            break;
        }
    }
    const std::size_t covered = variant.kind == JobKind::kUpdate ? variant.update_count : columns;
    state.SetBytesProcessed(static_cast<std::int64_t>(covered * length_bytes) * state.iterations());
    if (!has_rival) return;
    // Bytes per second of ours over those of the rival, before and after.
    const double after = rival_rate(rival, stripes, columns, length_bytes);
    state.counters["to_isal"] =
        benchmark::Counter(static_cast<double>(covered * length_bytes) * 2 / (before + after),
                           benchmark::Counter::kIsIterationInvariantRate);
}

void run_rival(benchmark::State& state, Rival rival) {
    const auto columns = static_cast<std::uint32_t>(state.range(0));
    const auto length_bytes = static_cast<std::size_t>(state.range(1));
    Stripes stripes(columns, length_bytes);
    for (auto _ : state) call_rival(rival, stripes.next(), columns, length_bytes);
    state.SetBytesProcessed(state.range(0) * state.range(1) * state.iterations());
}

void add_shapes(benchmark::internal::Benchmark* benchmark) {
    benchmark->ArgNames({"columns", "bytes"});
    for (std::int64_t columns : {2, 4, 8, 10, 16, 22, 30}) {
        for (std::int64_t length : {4096, 65536}) benchmark->Args({columns, length});
    }
}

void register_all() {
    add_shapes(benchmark::RegisterBenchmark("isal_raw/pq_gen", run_rival, Rival::kPqGen));
    add_shapes(benchmark::RegisterBenchmark("isal_raw/xor_gen", run_rival, Rival::kXorGen));
    const std::vector<Variant> variants = {
        {.name = "encode_pq", .kind = JobKind::kEncode},
        {.name = "encode_p", .kind = JobKind::kEncode, .q = false},
        {.name = "update_pq", .kind = JobKind::kUpdate, .update_count = 1},
        {.name = "update_p", .kind = JobKind::kUpdate, .q = false, .update_count = 1},
        {.name = "update_pq_2", .kind = JobKind::kUpdate, .update_count = 2},
        {.name = "reconstruct_d", .kind = JobKind::kReconstruct, .q = false, .missing = {0}},
        {.name = "reconstruct_d_by_q", .kind = JobKind::kReconstruct, .missing = {0, kP}},
        {.name = "reconstruct_d_q", .kind = JobKind::kReconstruct, .missing = {0, kQ}},
        {.name = "reconstruct_dd", .kind = JobKind::kReconstruct, .missing = {0, 1}},
        {.name = "verify_pq", .kind = JobKind::kVerify},
        {.name = "verify_p", .kind = JobKind::kVerify, .q = false},
        {.name = "locate_clean", .kind = JobKind::kLocate},
    };
    for (const Variant& variant : variants) {
        add_shapes(benchmark::RegisterBenchmark(fmt::format("isal/{}", variant.name).c_str(),
                                                run_coder, make_isal_coder, variant));
    }
    // The plain coder, once: how much the kernels give.
    benchmark::RegisterBenchmark("reference/encode_pq", run_coder, make_reference_coder,
                                 variants.front())
        ->ArgNames({"columns", "bytes"})
        ->Args({8, 4096});
}

}  // namespace
}  // namespace warpraid::parity

int main(int argc, char** argv) {
    warpraid::parity::register_all();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
