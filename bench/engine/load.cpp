#include "engine/load.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/units.h"

namespace warpraid::bench {

namespace {

constexpr std::string_view kPatternNames[] = {"read", "write", "randread", "randwrite"};

bool is_random(Pattern pattern) {
    return pattern == Pattern::kRandomRead || pattern == Pattern::kRandomWrite;
}
bool is_write(Pattern pattern) {
    return pattern == Pattern::kWrite || pattern == Pattern::kRandomWrite;
}

}  // namespace

std::string_view to_text(Pattern pattern) {
    return kPatternNames[static_cast<std::size_t>(pattern)];
}

Result<Pattern> parse_pattern(std::string_view text) {
    for (std::size_t i = 0; i < std::size(kPatternNames); ++i) {
        if (text == kPatternNames[i]) return static_cast<Pattern>(i);
    }
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' is not a pattern; use read, write, randread or randwrite", text)};
}

Load::Load(block::Device& device, const Clock& clock, const LoadOptions& options)
    : device_(device), clock_(clock), options_(options), random_(options.seed) {}

Result<std::unique_ptr<Load>> Load::make(block::Device& device, io::BufferArena& arena,
                                         const Clock& clock, const LoadOptions& options) {
    const block::Limits& limits = device.limits();
    const std::uint64_t bytes = options.request_bytes;
    if (bytes == 0 || bytes % limits.block_bytes != 0 || bytes > limits.request_bytes_max) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("requests of {} bytes do not fit: multiples of {} up to {}", bytes,
                                 limits.block_bytes, limits.request_bytes_max)};
    }
    // Sequential jobs start on stripes: a stripe shared by two of them would be written in parts.
    std::uint64_t share = options.span_bytes / options.jobs;
    if (!is_random(options.pattern) && options.jobs > 1) {
        share = round_down(share, limits.optimal_bytes);
    }
    if (share < bytes || options.span_bytes > limits.size_bytes) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} jobs with requests of {} bytes do not fit into {} bytes",
                                 options.jobs, bytes, options.span_bytes)};
    }
    std::unique_ptr<Load> load(new Load(device, clock, options));
    for (std::uint32_t job = 0; job < options.jobs; ++job) {
        load->jobs_.push_back({job * share, (job + 1) * share, job * share});
    }
    load->entries_ = std::vector<Entry>(std::size_t{options.jobs} * options.depth);
    for (std::size_t i = 0; i < load->entries_.size(); ++i) {
        Entry& entry = load->entries_[i];
        entry.buffer = arena.try_acquire(bytes);
        if (!entry.buffer) {
            return Error{
                ErrorCode::kOutOfMemory,
                fmt::format("no memory for {} requests of {} bytes", load->entries_.size(), bytes)};
        }
        for (std::uint64_t at = 0; at < bytes; at += 8) {
            const std::uint64_t word = load->random_.next();
            std::memcpy(entry.buffer.data() + at, &word, 8);
        }
        entry.load = load.get();
        entry.job = static_cast<std::uint32_t>(i % options.jobs);
        entry.request.owner = &entry;
        entry.request.complete = [](block::Request& request) {
            Entry& done = *static_cast<Entry*>(request.owner);
            done.load->completed(done);
        };
    }
    return load;
}

void Load::start() {
    running_ = true;
    for (Entry& entry : entries_) submit(entry);
}

std::uint64_t Load::next_offset(Job& job) {
    const std::uint64_t bytes = options_.request_bytes;
    if (is_random(options_.pattern)) return random_.below(options_.span_bytes / bytes) * bytes;
    if (job.next + bytes > job.end) job.next = job.begin;
    return std::exchange(job.next, job.next + bytes);
}

void Load::submit(Entry& entry) {
    block::Request& request = entry.request;
    request.operation =
        is_write(options_.pattern) ? block::Operation::kWrite : block::Operation::kRead;
    request.offset = next_offset(jobs_[entry.job]);
    request.length_bytes = options_.request_bytes;
    request.data = entry.buffer.data();
    entry.started_ns = clock_.monotonic_ns();
    ++in_flight_;
    device_.submit(request);
}

void Load::completed(Entry& entry) {
    --in_flight_;
    ++counts_.requests;
    counts_.bytes += entry.request.length_bytes;
    if (entry.request.error != 0) {
        ++counts_.errors;
        running_ = false;
    }
    counts_.latency_ns.add(clock_.monotonic_ns() - entry.started_ns);
    if (running_) submit(entry);
}

LoadCounts Load::take() {
    return std::exchange(counts_, LoadCounts{});
}

}  // namespace warpraid::bench
