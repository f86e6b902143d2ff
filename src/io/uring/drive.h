// The data-path face of a block device or plain file. A command is a small machine: each step is
// one ring entry, and what comes back decides whether it goes on, starts over or is done.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/limits.h"
#include "base/units.h"
#include "io/drive.h"

namespace warpraid::io::uring {

class UringReactor;

struct UringDriveOptions {
    int fd = -1;  // must stay open as long as the drive lives
    DriveLimits limits;
    std::uint64_t command_timeout_ns = 0;  // 0: none
    bool can_deallocate = true;            // found out at the first command that needs it
    // What one ring entry moves at most; a command that has more takes several, one after the
    // other. The kernel would cut longer ones to just under 2 GiB anyway.
    std::uint64_t transfer_bytes_max = 1 * kGiB;
    std::size_t segments_max = limits::kSegmentsPerCommandMax;
};

/// The errno that a command reports for one of the kernel's: ENODEV for every way in which a drive
/// disappears, EIO for what only means "it failed".
int command_error(int error_number);

class UringDrive final : public Drive {
  public:
    static constexpr std::uint64_t kNever = ~std::uint64_t{0};

    UringDrive(UringReactor& reactor, const UringDriveOptions& options);
    ~UringDrive() override;
    UringDrive(const UringDrive&) = delete;
    UringDrive& operator=(const UringDrive&) = delete;

    void submit(Command& command) override;
    const DriveLimits& limits() const override { return options_.limits; }
    std::uint32_t in_flight() const override { return in_flight_; }
    bool overdue() const override { return oldest_ != nullptr && oldest_->overdue; }
    void note_completed(Command& command) override;

    // For the reactor.
    /// Fills in the command's next step.
    void prepare(Command& command, io_uring_sqe& entry);
    /// The kernel has given the command back.
    void returned(Command& command, int result);
    void check_deadlines(std::uint64_t now_ns);
    /// Of the first command that is not yet past it.
    std::uint64_t next_deadline_ns() const {
        return next_to_expire_ != nullptr ? next_to_expire_->deadline_ns : kNever;
    }

  private:
    enum class Step : std::uint8_t { kTransfer, kDeallocate, kWriteZeroes, kSync };

    static Step first_step(const Command& command, bool can_deallocate);
    void prepare_transfer(Command& command, io_uring_sqe& entry) const;
    /// As many of the segments as one entry takes, at least one.
    std::size_t count_for_one_entry(std::span<const iovec> segments) const;
    void prepare_vectored(const Command& command, std::span<const iovec> segments,
                          io_uring_sqe& entry) const;
    void prepare_contiguous(const Command& command, iovec segment, io_uring_sqe& entry) const;
    /// The registered buffer that holds all segments, or -1.
    int common_buffer(std::span<const iovec> segments) const;
    void failed(Command& command, int error);
    void advanced(Command& command, int result);
    void go_to(Command& command, Step step);
    void finish(Command& command, int error);
    void link(Command& command);
    void unlink(Command& command);

    UringReactor& reactor_;
    UringDriveOptions options_;
    int file_index_ = -1;
    std::uint32_t in_flight_ = 0;
    /// Started and not finished, oldest first: also the order of their deadlines.
    Command* oldest_ = nullptr;
    Command* newest_ = nullptr;
    /// The first of them that has not missed its deadline.
    Command* next_to_expire_ = nullptr;
};

}  // namespace warpraid::io::uring
