// A host that keeps requests in flight: some jobs, each with its own part of the address space when
// it goes through it in order, each with the same queue depth.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "block/device.h"
#include "engine/statistics.h"
#include "io/arena.h"

namespace warpraid::bench {

enum class Pattern : std::uint8_t { kRead, kWrite, kRandomRead, kRandomWrite };
std::string_view to_text(Pattern pattern);
/// "read", "write", "randread", "randwrite"; kInvalidArgument.
Result<Pattern> parse_pattern(std::string_view text);

struct LoadOptions {
    Pattern pattern = Pattern::kWrite;
    std::uint64_t request_bytes = 0;
    std::uint32_t depth = 0;  // per job
    std::uint32_t jobs = 1;
    std::uint64_t span_bytes = 0;  // of the device, from its start
    std::uint64_t seed = 0;
};

/// What ended since start() or the last take().
struct LoadCounts {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
    std::uint64_t errors = 0;
    Histogram latency_ns;
};

class Load {
  public:
    /// The span must hold a request for every job, the arena all buffers (kInvalidArgument,
    /// kOutOfMemory).
    static Result<std::unique_ptr<Load>> make(block::Device& device, io::BufferArena& arena,
                                              const Clock& clock, const LoadOptions& options);
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;

    void start();
    /// Submits nothing more.
    void stop() { running_ = false; }
    bool drained() const { return in_flight_ == 0; }
    /// Gives the counts and starts new ones.
    LoadCounts take();

  private:
    struct Entry {
        block::Request request;
        io::Buffer buffer;
        Load* load = nullptr;
        std::uint32_t job = 0;
        std::uint64_t started_ns = 0;
    };
    struct Job {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::uint64_t next = 0;
    };

    Load(block::Device& device, const Clock& clock, const LoadOptions& options);
    void submit(Entry& entry);
    void completed(Entry& entry);
    std::uint64_t next_offset(Job& job);

    block::Device& device_;
    const Clock& clock_;
    LoadOptions options_;
    SeededRandom random_;
    std::vector<Job> jobs_;
    std::vector<Entry> entries_;
    bool running_ = false;
    std::uint64_t in_flight_ = 0;
    LoadCounts counts_;
};

}  // namespace warpraid::bench
