// The one owner of an io_uring instance with its registered buffers and files. All calls on the
// thread that made it.
#pragma once

#include <liburing.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "io/uring/provider.h"

namespace warpraid::io::uring {

/// Of those that the kernel tells when a ring is made.
inline constexpr unsigned kNeededFeatures =
    IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG | IORING_FEAT_SUBMIT_STABLE;

/// kNotSupported when one that is needed is not among them.
Status check_features(unsigned features);

class Ring {
  public:
    /// Asks for the cheapest mode and goes down step by step on older kernels.
    static Result<std::unique_ptr<Ring>> make(const ReactorOptions& options);
    ~Ring();
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    /// A cleared submission entry, after a submit if the queue was full; null when the kernel takes
    /// no more for now.
    io_uring_sqe* try_get_entry();
    /// Submits what is queued and takes finished work over; waits up to `wait_ns` for the first
    /// completion when there is none yet.
    void submit_and_collect(std::uint64_t wait_ns);
    /// Moves up to `into.size()` completions out of the ring.
    std::size_t take_completions(std::span<io_uring_cqe> into);

    std::uint32_t completion_entries() const { return ring_.cq.ring_entries; }
    bool supports(unsigned opcode) const { return opcode < 256 && supported_[opcode]; }
    const ReactorInfo& info() const { return info_; }

    /// Index of the registered buffer that holds all of these bytes, or -1.
    int buffer_index(const void* data, std::size_t length) const;
    /// Index in the table of registered files, or -1 when the table is full or unavailable.
    int register_file(int fd);
    void unregister_file(int index);

  private:
    Ring() = default;
    Status set_up(std::uint32_t entries);
    void register_buffers(BufferArena& arena);
    void register_file_table();

    static constexpr std::size_t kBufferPieceBytes = std::size_t{1} << 30;
    static constexpr unsigned kFileTableEntries = 512;

    io_uring ring_{};
    bool is_open_ = false;
    ReactorInfo info_;
    std::array<bool, 256> supported_{};
    std::span<std::byte> registered_;
    std::vector<int> free_files_;
};

}  // namespace warpraid::io::uring
