// The product's event loop over one io_uring. One thread, except post().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "io/loop_parts.h"
#include "io/reactor.h"
#include "io/uring/ring.h"

namespace warpraid::io::uring {

class UringDrive;

class UringReactor final : public Reactor {
  public:
    static Result<std::unique_ptr<UringReactor>> make(const Clock& clock,
                                                      const ReactorOptions& options);
    ~UringReactor() override;

    CommandFifo& completed_commands() override { return completed_; }
    void submit(SocketOperation& operation) override;
    void cancel(SocketOperation& operation) override;
    void add_poller(Poller& poller) override { pollers_.add(poller); }
    void remove_poller(Poller& poller) override { pollers_.remove(poller); }
    void post(std::function<void()> task) override;
    std::uint64_t now_ns() const override { return now_ns_; }
    bool run_once(std::uint64_t wait_ns_max) override;

    // For the drives of this reactor.
    Ring& ring() { return *ring_; }
    const Ring& ring() const { return *ring_; }
    void attach(UringDrive& drive);
    void detach(UringDrive& drive);
    /// Puts the command's next step into the ring, now or as soon as there is room; its drive fills
    /// in the entry and hears of the result.
    void start(Command& command);
    /// The command missed its deadline: asks the kernel to give it back, and no longer counts it
    /// against the room in the ring, so that a hung drive cannot starve the others.
    void expire(Command& command);

  private:
    UringReactor(const Clock& clock, std::unique_ptr<Ring> ring, UniqueFd wake);

    bool try_issue(Command& command);
    bool try_issue(SocketOperation& operation);
    void issue_pending();
    void request_cancel(std::uint64_t user_data);
    void arm_wake();
    void collect(std::uint64_t wait_ns);
    void dispatch(const io_uring_cqe& completion);
    void command_returned(Command& command, int result);
    void operation_returned(SocketOperation& operation, int result);
    void finish(SocketOperation& operation, std::int64_t result);
    bool run_finished_operations();
    std::uint64_t allowed_wait_ns(std::uint64_t wait_ns_max) const;

    const Clock& clock_;
    std::unique_ptr<Ring> ring_;
    UniqueFd wake_;
    std::uint64_t wake_count_ = 0;
    bool wake_armed_ = false;
    std::uint64_t now_ns_ = 0;
    bool pollers_busy_ = false;

    std::uint32_t commands_in_kernel_max_;
    std::uint32_t commands_in_kernel_ = 0;
    CommandFifo pending_commands_;
    IntrusiveFifo<SocketOperation> pending_operations_;
    std::vector<std::uint64_t> pending_cancels_;

    CommandFifo completed_;
    IntrusiveFifo<SocketOperation> finished_operations_;
    TaskQueue tasks_;
    PollerList pollers_;
    std::vector<UringDrive*> drives_;
};

}  // namespace warpraid::io::uring
