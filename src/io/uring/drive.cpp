#include "io/uring/drive.h"

#include <fcntl.h>
#include <linux/falloc.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/assert.h"
#include "base/limits.h"
#include "base/units.h"
#include "io/uring/compat.h"
#include "io/uring/reactor.h"

namespace warpraid::io::uring {
namespace {

constexpr std::uint64_t kDeallocateBytesMax = 1 * kGiB;
constexpr std::uint8_t kAttemptsMax = 100;

// Never written; not const, so that it costs no bytes in the program's file.
constexpr std::size_t kZeroBytes = 1 * kMiB;
alignas(limits::kBufferAlignment) std::array<std::byte, kZeroBytes> zero_bytes;

/// What the submitter owes: whole blocks, and segments that O_DIRECT takes and that add up.
[[maybe_unused]] bool is_well_formed(const Command& command, std::uint64_t block) {
    if (command.opcode == Opcode::kFlush) return true;
    if (command.offset % block != 0 || command.length_bytes % block != 0) return false;
    if (command.opcode != Opcode::kRead && command.opcode != Opcode::kWrite) return true;
    std::uint64_t sum = 0;
    for (const iovec& segment : command.segments) {
        const auto address = reinterpret_cast<std::uintptr_t>(segment.iov_base);
        if (address % block != 0 || segment.iov_len % block != 0) return false;
        sum += segment.iov_len;
    }
    return sum == command.length_bytes;
}

/// liburing's own function takes other types from release to release, which is a warning here.
void prepare_deallocate(io_uring_sqe& entry, int fd, std::uint64_t offset, std::uint64_t length) {
    constexpr unsigned kPunchHole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    io_uring_prep_rw(IORING_OP_FALLOCATE, &entry, fd, nullptr, kPunchHole, offset);
    entry.addr = length;  // where the kernel looks for it; `len` is the mode
}

}  // namespace

int command_error(int error_number) {
    switch (error_number) {
        case ENXIO:
        case ENODEV:
        case EBADF:
        case ENOMEDIUM:
        case ESHUTDOWN:
            return ENODEV;
        case ENOSPC:
        case EDQUOT:
            return ENOSPC;
        case ETIMEDOUT:
        case ENOMEM:
        case EROFS:
            return error_number;
        default:
            return EIO;
    }
}

UringDrive::UringDrive(UringReactor& reactor, const UringDriveOptions& options)
    : reactor_(reactor), options_(options), file_index_(reactor.ring().register_file(options.fd)) {
    reactor_.attach(*this);
}

UringDrive::~UringDrive() {
    WARPRAID_ASSERT(in_flight_ == 0);
    reactor_.detach(*this);
    if (file_index_ >= 0) reactor_.ring().unregister_file(file_index_);
}

UringDrive::Step UringDrive::first_step(const Command& command, bool can_deallocate) {
    switch (command.opcode) {
        case Opcode::kRead:
        case Opcode::kWrite:
            return Step::kTransfer;
        case Opcode::kFlush:
            return Step::kSync;
        case Opcode::kDiscard:
            return Step::kDeallocate;
        case Opcode::kWriteZeroes:
            return can_deallocate ? Step::kDeallocate : Step::kWriteZeroes;
    }
    WARPRAID_ASSERT(!"unknown opcode");
    return Step::kSync;
}

void UringDrive::submit(Command& command) {
    WARPRAID_ASSERT(command.segments.size() <= limits::kSegmentsPerCommandMax);
    WARPRAID_VERIFY(is_well_formed(command, options_.limits.logical_block_bytes));
    command.drive = this;
    command.error = 0;
    command.done_bytes = 0;
    command.attempts = 0;
    command.overdue = false;
    command.in_kernel = false;
    ++in_flight_;
    link(command);
    const bool changes = command.opcode != Opcode::kRead && command.opcode != Opcode::kFlush;
    const std::uint64_t size = options_.limits.size_bytes;
    if (command.opcode != Opcode::kFlush &&
        (command.offset > size || command.length_bytes > size - command.offset)) {
        // A plain file must not grow, and a truncated one must not read as zeroes.
        finish(command, EIO);
    } else if (changes && options_.limits.read_only) {
        finish(command, EROFS);
    } else if (command.opcode != Opcode::kFlush && command.length_bytes == 0) {
        finish(command, 0);
    } else if (command.opcode == Opcode::kDiscard && !options_.can_deallocate) {
        finish(command, 0);
    } else {
        go_to(command, first_step(command, options_.can_deallocate));
    }
}

void UringDrive::go_to(Command& command, Step step) {
    command.step = static_cast<std::uint8_t>(step);
    reactor_.start(command);
}

void UringDrive::prepare(Command& command, io_uring_sqe& entry) {
    const std::uint64_t offset = command.offset + command.done_bytes;
    const std::uint64_t left = command.length_bytes - command.done_bytes;
    switch (static_cast<Step>(command.step)) {
        case Step::kTransfer:
            prepare_transfer(command, entry);
            break;
        case Step::kDeallocate:
            prepare_deallocate(entry, options_.fd, offset, std::min(left, kDeallocateBytesMax));
            break;
        case Step::kWriteZeroes:
            io_uring_prep_write(&entry, options_.fd, zero_bytes.data(),
                                static_cast<unsigned>(std::min<std::uint64_t>(left, kZeroBytes)),
                                offset);
            entry.rw_flags = command.fua ? RWF_DSYNC : 0;
            break;
        case Step::kSync:
            io_uring_prep_fsync(&entry, options_.fd, IORING_FSYNC_DATASYNC);
            break;
    }
    if (file_index_ >= 0) {
        entry.fd = file_index_;
        entry.flags |= IOSQE_FIXED_FILE;
    }
}

void UringDrive::prepare_transfer(Command& command, io_uring_sqe& entry) const {
    // Skip what is done. Within a segment the rest of that segment goes alone: the submitter's list
    // is not ours to change, and a short transfer is rare.
    std::uint64_t skip = command.done_bytes;
    std::size_t index = 0;
    while (skip > 0 && skip >= command.segments[index].iov_len) {
        skip -= command.segments[index].iov_len;
        ++index;
    }
    const auto left = command.segments.subspan(index);
    const std::size_t count = skip == 0 ? count_for_one_entry(left) : 1;
    if (count > 1) {
        prepare_vectored(command, left.first(count), entry);
    } else {
        iovec rest = left[0];
        rest.iov_base = static_cast<std::byte*>(rest.iov_base) + skip;
        rest.iov_len -= skip;
        prepare_contiguous(command, rest, entry);
    }
    entry.rw_flags = command.opcode == Opcode::kWrite && command.fua ? RWF_DSYNC : 0;
}

std::size_t UringDrive::count_for_one_entry(std::span<const iovec> segments) const {
    const std::size_t most = std::min(segments.size(), options_.segments_max);
    std::uint64_t bytes = segments[0].iov_len;
    std::size_t count = 1;
    while (count < most && bytes + segments[count].iov_len <= options_.transfer_bytes_max) {
        bytes += segments[count].iov_len;
        ++count;
    }
    return count;
}

void UringDrive::prepare_vectored(const Command& command, std::span<const iovec> segments,
                                  io_uring_sqe& entry) const {
    const auto count = static_cast<unsigned>(segments.size());
    const std::uint64_t offset = command.offset + command.done_bytes;
    const bool is_read = command.opcode == Opcode::kRead;
    if (is_read) {
        io_uring_prep_readv(&entry, options_.fd, segments.data(), count, offset);
    } else {
        io_uring_prep_writev(&entry, options_.fd, segments.data(), count, offset);
    }
    const unsigned fixed = is_read ? kOpReadvFixed : kOpWritevFixed;
    const int buffer = reactor_.ring().supports(fixed) ? common_buffer(segments) : -1;
    if (buffer >= 0) {
        entry.opcode = static_cast<std::uint8_t>(fixed);
        entry.buf_index = static_cast<std::uint16_t>(buffer);
    }
}

int UringDrive::common_buffer(std::span<const iovec> segments) const {
    const Ring& ring = reactor_.ring();
    const int first = ring.buffer_index(segments[0].iov_base, segments[0].iov_len);
    if (first < 0) return -1;
    for (const iovec& segment : segments.subspan(1)) {
        if (ring.buffer_index(segment.iov_base, segment.iov_len) != first) return -1;
    }
    return first;
}

void UringDrive::prepare_contiguous(const Command& command, iovec segment,
                                    io_uring_sqe& entry) const {
    const auto length = static_cast<unsigned>(
        std::min<std::uint64_t>(segment.iov_len, options_.transfer_bytes_max));
    const std::uint64_t offset = command.offset + command.done_bytes;
    const int buffer = reactor_.ring().buffer_index(segment.iov_base, length);
    const bool is_read = command.opcode == Opcode::kRead;
    if (buffer >= 0 && is_read) {
        io_uring_prep_read_fixed(&entry, options_.fd, segment.iov_base, length, offset, buffer);
    } else if (buffer >= 0) {
        io_uring_prep_write_fixed(&entry, options_.fd, segment.iov_base, length, offset, buffer);
    } else if (is_read) {
        io_uring_prep_read(&entry, options_.fd, segment.iov_base, length, offset);
    } else {
        io_uring_prep_write(&entry, options_.fd, segment.iov_base, length, offset);
    }
}

void UringDrive::returned(Command& command, int result) {
    // Late is late, whatever came of it: the member was judged at the deadline.
    if (command.overdue) {
        finish(command, ETIMEDOUT);
    } else if (result < 0) {
        failed(command, -result);
    } else {
        advanced(command, result);
    }
}

void UringDrive::failed(Command& command, int error) {
    const auto step = static_cast<Step>(command.step);
    if ((error == EAGAIN || error == EINTR) && command.attempts < kAttemptsMax) {
        ++command.attempts;
        go_to(command, step);
        return;
    }
    const bool not_supported = error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
    if (step == Step::kDeallocate && not_supported) {
        options_.can_deallocate = false;
        if (command.opcode == Opcode::kDiscard) {
            finish(command, 0);
        } else {
            go_to(command, Step::kWriteZeroes);
        }
        return;
    }
    finish(command, command_error(error));
}

void UringDrive::advanced(Command& command, int result) {
    const auto step = static_cast<Step>(command.step);
    if (step == Step::kSync) {
        finish(command, 0);
        return;
    }
    const std::uint64_t left = command.length_bytes - command.done_bytes;
    const std::uint64_t moved = step == Step::kDeallocate ? std::min(left, kDeallocateBytesMax)
                                                          : static_cast<std::uint64_t>(result);
    if (moved == 0) {
        finish(command, EIO);
        return;
    }
    WARPRAID_ASSERT(moved <= left);
    command.attempts = 0;
    command.done_bytes += moved;
    if (command.done_bytes < command.length_bytes) {
        go_to(command, step);
    } else if (step == Step::kDeallocate && command.fua) {
        go_to(command, Step::kSync);
    } else {
        finish(command, 0);
    }
}

void UringDrive::finish(Command& command, int error) {
    unlink(command);
    command.error = error;
    reactor_.completed_commands().push_back(command);
}

void UringDrive::note_completed(Command& command) {
    static_cast<void>(command);
    --in_flight_;
}

void UringDrive::check_deadlines(std::uint64_t now_ns) {
    while (next_to_expire_ != nullptr && next_to_expire_->deadline_ns <= now_ns) {
        Command& late = *next_to_expire_;
        next_to_expire_ = late.started_after;
        reactor_.expire(late);
    }
}

void UringDrive::link(Command& command) {
    const std::uint64_t timeout = options_.command_timeout_ns;
    command.deadline_ns = timeout == 0 ? kNever : reactor_.now_ns() + timeout;
    command.started_before = newest_;
    command.started_after = nullptr;
    (newest_ != nullptr ? newest_->started_after : oldest_) = &command;
    newest_ = &command;
    if (next_to_expire_ == nullptr) next_to_expire_ = &command;
}

void UringDrive::unlink(Command& command) {
    if (next_to_expire_ == &command) next_to_expire_ = command.started_after;
    (command.started_before != nullptr ? command.started_before->started_after : oldest_) =
        command.started_after;
    (command.started_after != nullptr ? command.started_after->started_before : newest_) =
        command.started_before;
}

}  // namespace warpraid::io::uring
