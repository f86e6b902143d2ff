#include "io/uring/ring.h"

#include <sys/uio.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"

namespace warpraid::io::uring {
namespace {

Error explain_setup_error(int error) {
    std::string hint;
    if (error == EPERM || error == EACCES) {
        hint =
            "io_uring is forbidden here: look at the sysctl kernel.io_uring_disabled and at the "
            "seccomp filter of the container or the service";
    } else if (error == ENOSYS) {
        hint =
            "this kernel has no io_uring, or a seccomp filter hides it; Linux 5.15 or newer is "
            "needed";
    } else if (error == ENOMEM) {
        hint = "cannot make an io_uring: raise the memory lock limit (ulimit -l, LimitMEMLOCK=)";
    } else {
        hint = "cannot make an io_uring";
    }
    return system_error(ErrorCode::kSystem, hint, error);
}

}  // namespace

Status check_features(unsigned features) {
    if ((features & kNeededFeatures) == kNeededFeatures) return success();
    utsname kernel{};
    uname(&kernel);
    char missing[16];
    std::snprintf(missing, sizeof missing, "%#x", kNeededFeatures & ~features);
    return Error{ErrorCode::kNotSupported, "the io_uring of this kernel, " +
                                               std::string(kernel.release) +
                                               ", lacks the features " + missing +
                                               ": boot Linux 5.15 or newer, which is needed"};
}

Result<std::unique_ptr<Ring>> Ring::make(const ReactorOptions& options) {
    std::unique_ptr<Ring> ring(new Ring);
    WARPRAID_TRY(ring->set_up(options.ring_entries));
    if (options.arena != nullptr) ring->register_buffers(*options.arena);
    ring->register_file_table();
    return ring;
}

Status Ring::set_up(std::uint32_t entries) {
    constexpr unsigned kCommon = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    constexpr unsigned kModes[] = {
        kCommon | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER |
            IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
        kCommon | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
        kCommon,
    };
    int error = 0;
    for (const unsigned flags : kModes) {
        io_uring_params parameters{};
        parameters.flags = flags;
        parameters.cq_entries = entries * 4;
        error = -io_uring_queue_init_params(entries, &ring_, &parameters);
        if (error == EINVAL) continue;
        if (error != 0) return explain_setup_error(error);
        is_open_ = true;
        info_.deferred_task_run = (flags & IORING_SETUP_DEFER_TASKRUN) != 0;
        break;
    }
    if (!is_open_) return explain_setup_error(error);
    WARPRAID_TRY(check_features(ring_.features));
    // Saves looking up the ring's descriptor at each system call; nothing is lost without it.
    static_cast<void>(io_uring_register_ring_fd(&ring_));
    if (io_uring_probe* probe = io_uring_get_probe_ring(&ring_)) {
        for (unsigned i = 0; i < supported_.size(); ++i) {
            supported_[i] = io_uring_opcode_supported(probe, static_cast<int>(i)) != 0;
        }
        io_uring_free_probe(probe);
    }
    return success();
}

Ring::~Ring() {
    if (!is_open_) return;
    // Closing a ring cancels in the background. Waiting for it here means that no late receive can
    // write into memory that its owner has given away. Older kernels refuse, which changes nothing.
    io_uring_sync_cancel_reg everything{};
    everything.fd = -1;
    everything.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL;
    everything.timeout.tv_sec = 1;
    static_cast<void>(io_uring_register_sync_cancel(&ring_, &everything));
    io_uring_queue_exit(&ring_);
}

void Ring::register_buffers(BufferArena& arena) {
    std::span<std::byte> memory = arena.memory();
    std::vector<iovec> pieces;
    for (std::size_t at = 0; at < memory.size(); at += kBufferPieceBytes) {
        pieces.push_back({memory.data() + at, std::min(kBufferPieceBytes, memory.size() - at)});
    }
    info_.buffers_error =
        -io_uring_register_buffers(&ring_, pieces.data(), static_cast<unsigned>(pieces.size()));
    info_.registered_buffers = info_.buffers_error == 0;
    if (info_.registered_buffers) registered_ = memory;
}

void Ring::register_file_table() {
    info_.registered_files = io_uring_register_files_sparse(&ring_, kFileTableEntries) == 0;
    if (!info_.registered_files) return;
    for (int index = kFileTableEntries; index-- > 0;) free_files_.push_back(index);
}

int Ring::buffer_index(const void* data, std::size_t length) const {
    const auto* first = static_cast<const std::byte*>(data);
    if (first < registered_.data() || first >= registered_.data() + registered_.size()) return -1;
    const auto offset = static_cast<std::size_t>(first - registered_.data());
    if (length > registered_.size() - offset) return -1;
    const std::size_t piece = offset / kBufferPieceBytes;
    if (length > 0 && (offset + length - 1) / kBufferPieceBytes != piece) return -1;
    return static_cast<int>(piece);
}

int Ring::register_file(int fd) {
    if (free_files_.empty()) return -1;
    const int index = free_files_.back();
    // Refused when the caller is not the ring's thread; the plain descriptor then does as well.
    if (io_uring_register_files_update(&ring_, static_cast<unsigned>(index), &fd, 1) != 1) {
        return -1;
    }
    free_files_.pop_back();
    return index;
}

void Ring::unregister_file(int index) {
    int none = -1;
    if (io_uring_register_files_update(&ring_, static_cast<unsigned>(index), &none, 1) == 1) {
        free_files_.push_back(index);
    }
}

io_uring_sqe* Ring::try_get_entry() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) {
        static_cast<void>(io_uring_submit(&ring_));
        entry = io_uring_get_sqe(&ring_);
    }
    return entry;
}

void Ring::submit_and_collect(std::uint64_t wait_ns) {
    int result = 0;
    if (wait_ns > 0 && io_uring_cq_ready(&ring_) == 0) {
        __kernel_timespec time{};
        time.tv_sec = static_cast<std::int64_t>(wait_ns / kNanosecondsPerSecond);
        time.tv_nsec = static_cast<long long>(wait_ns % kNanosecondsPerSecond);
        io_uring_cqe* first = nullptr;
        result = io_uring_submit_and_wait_timeout(&ring_, &first, 1, &time, nullptr);
    } else if (io_uring_sq_ready(&ring_) > 0) {
        result = io_uring_submit_and_get_events(&ring_);
    }
    // With nothing to submit, taking completions enters the kernel by itself when its flags say
    // that there is work. Busy and interrupted calls are tried again by the next turn; anything
    // else is a use from a wrong thread.
    WARPRAID_ASSERT(result >= 0 || result == -ETIME || result == -EINTR || result == -EBUSY ||
                    result == -EAGAIN || result == -ENOMEM);
}

std::size_t Ring::take_completions(std::span<io_uring_cqe> into) {
    std::array<io_uring_cqe*, 64> found;
    const auto wanted = static_cast<unsigned>(std::min(into.size(), found.size()));
    const unsigned count = io_uring_peek_batch_cqe(&ring_, found.data(), wanted);
    for (unsigned i = 0; i < count; ++i) {
        into[i].user_data = found[i]->user_data;
        into[i].res = found[i]->res;
        into[i].flags = found[i]->flags;
    }
    io_uring_cq_advance(&ring_, count);
    return count;
}

}  // namespace warpraid::io::uring
