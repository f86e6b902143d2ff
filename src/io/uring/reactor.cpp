#include "io/uring/reactor.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "io/uring/drive.h"
#include "io/uring/socket_entry.h"

namespace warpraid::io::uring {
namespace {

// The low bits of an entry's user data say what it belongs to; objects are aligned to 8.
enum class Tag : std::uint64_t { kIgnored = 0, kCommand = 1, kOperation = 2, kWake = 3 };
constexpr std::uint64_t kTagMask = 7;

template <typename T>
std::uint64_t user_data_of(T& object, Tag tag) {
    static_assert(alignof(T) > kTagMask);
    return reinterpret_cast<std::uintptr_t>(&object) | static_cast<std::uint64_t>(tag);
}

template <typename T>
T& object_of(std::uint64_t user_data) {
    return *reinterpret_cast<T*>(static_cast<std::uintptr_t>(user_data & ~kTagMask));
}

}  // namespace

Result<std::unique_ptr<UringReactor>> UringReactor::make(const Clock& clock,
                                                         const ReactorOptions& options) {
    WARPRAID_TRY_ASSIGN(auto ring, Ring::make(options));
    UniqueFd wake(eventfd(0, EFD_CLOEXEC));
    if (!wake) return system_error(ErrorCode::kSystem, "cannot make an eventfd", errno);
    return std::unique_ptr<UringReactor>(new UringReactor(clock, std::move(ring), std::move(wake)));
}

UringReactor::UringReactor(const Clock& clock, std::unique_ptr<Ring> ring, UniqueFd wake)
    : clock_(clock),
      ring_(std::move(ring)),
      wake_(std::move(wake)),
      now_ns_(clock.monotonic_ns()),
      // One quarter of the completion queue is left for sockets and wake-ups. More would not be
      // lost, only slower: the kernel keeps what overflows.
      commands_in_kernel_max_(ring_->completion_entries() / 4 * 3) {}

UringReactor::~UringReactor() {
    WARPRAID_ASSERT(drives_.empty());
    // The ring goes first: the kernel may write to wake_count_ until then.
    ring_.reset();
}

void UringReactor::attach(UringDrive& drive) {
    drives_.push_back(&drive);
}

void UringReactor::detach(UringDrive& drive) {
    std::erase(drives_, &drive);
}

void UringReactor::post(std::function<void()> task) {
    if (!tasks_.push(std::move(task))) return;
    const std::uint64_t one = 1;
    const ssize_t written = write(wake_.get(), &one, sizeof one);
    WARPRAID_ASSERT(written == sizeof one);
}

void UringReactor::start(Command& command) {
    if (!pending_commands_.empty() || !try_issue(command)) pending_commands_.push_back(command);
}

void UringReactor::expire(Command& command) {
    command.overdue = true;
    if (!command.in_kernel) return;
    --commands_in_kernel_;
    request_cancel(user_data_of(command, Tag::kCommand));
}

bool UringReactor::try_issue(Command& command) {
    if (commands_in_kernel_ >= commands_in_kernel_max_) return false;
    io_uring_sqe* entry = ring_->try_get_entry();
    if (entry == nullptr) return false;
    static_cast<UringDrive*>(command.drive)->prepare(command, *entry);
    entry->user_data = user_data_of(command, Tag::kCommand);
    command.in_kernel = true;
    ++commands_in_kernel_;
    return true;
}

void UringReactor::submit(SocketOperation& operation) {
    WARPRAID_ASSERT(!operation.in_flight);
    operation.in_flight = true;
    operation.in_kernel = false;
    operation.cancelled = false;
    operation.sent_bytes = 0;
    if (!pending_operations_.empty() || !try_issue(operation)) {
        pending_operations_.push_back(operation);
    }
}

bool UringReactor::try_issue(SocketOperation& operation) {
    io_uring_sqe* entry = ring_->try_get_entry();
    if (entry == nullptr) return false;
    fill_socket_entry(operation, *entry);
    entry->user_data = user_data_of(operation, Tag::kOperation);
    operation.in_kernel = true;
    return true;
}

void UringReactor::cancel(SocketOperation& operation) {
    if (!operation.in_flight || operation.cancelled) return;
    operation.cancelled = true;
    if (operation.in_kernel) request_cancel(user_data_of(operation, Tag::kOperation));
}

void UringReactor::request_cancel(std::uint64_t user_data) {
    io_uring_sqe* entry = pending_cancels_.empty() ? ring_->try_get_entry() : nullptr;
    if (entry == nullptr) {
        pending_cancels_.push_back(user_data);
        return;
    }
    io_uring_prep_cancel64(entry, user_data, 0);
    entry->user_data = static_cast<std::uint64_t>(Tag::kIgnored);
}

void UringReactor::arm_wake() {
    io_uring_sqe* entry = ring_->try_get_entry();
    if (entry == nullptr) return;
    io_uring_prep_read(entry, wake_.get(), &wake_count_, sizeof wake_count_, 0);
    entry->user_data = static_cast<std::uint64_t>(Tag::kWake);
    wake_armed_ = true;
}

void UringReactor::issue_pending() {
    if (!wake_armed_) arm_wake();
    for (auto cancels = std::exchange(pending_cancels_, {}); const std::uint64_t cancel : cancels) {
        request_cancel(cancel);
    }
    bool commands_move = true;
    bool operations_move = true;
    // One of each in turn, so that neither kind waits for the other's whole queue.
    while (commands_move || operations_move) {
        Command* command = pending_commands_.front();
        commands_move = command != nullptr;
        if (command != nullptr && command->overdue) {
            pending_commands_.pop_front();
            static_cast<UringDrive*>(command->drive)->returned(*command, -ECANCELED);
        } else if (command != nullptr) {
            // The entry is filled while the command is out of the queue, as when it is started.
            pending_commands_.pop_front();
            commands_move = try_issue(*command);
            if (!commands_move) pending_commands_.push_front(*command);
        }
        SocketOperation* operation = pending_operations_.pop_front();
        operations_move = operation != nullptr;
        if (operation != nullptr && operation->cancelled) {
            finish(*operation, -ECANCELED);
        } else if (operation != nullptr && !try_issue(*operation)) {
            pending_operations_.push_front(*operation);
            operations_move = false;
        }
    }
}

void UringReactor::collect(std::uint64_t wait_ns) {
    ring_->submit_and_collect(wait_ns);
    std::array<io_uring_cqe, 64> completions;
    // Bounded, so that a flood of completions cannot keep the rest of the turn waiting.
    for (std::uint32_t left = ring_->completion_entries(); left > 0;) {
        const std::size_t count = ring_->take_completions(completions);
        for (std::size_t i = 0; i < count; ++i) dispatch(completions[i]);
        if (count == 0) break;
        left -= std::min(left, static_cast<std::uint32_t>(count));
    }
}

void UringReactor::dispatch(const io_uring_cqe& completion) {
    if (!pending_cancels_.empty()) std::erase(pending_cancels_, completion.user_data);
    switch (static_cast<Tag>(completion.user_data & kTagMask)) {
        case Tag::kIgnored:
            break;
        case Tag::kCommand:
            command_returned(object_of<Command>(completion.user_data), completion.res);
            break;
        case Tag::kOperation:
            operation_returned(object_of<SocketOperation>(completion.user_data), completion.res);
            break;
        case Tag::kWake:
            wake_armed_ = false;
            break;
    }
}

void UringReactor::command_returned(Command& command, int result) {
    WARPRAID_ASSERT(command.in_kernel);
    command.in_kernel = false;
    if (!command.overdue) --commands_in_kernel_;
    static_cast<UringDrive*>(command.drive)->returned(command, result);
}

void UringReactor::operation_returned(SocketOperation& operation, int result) {
    WARPRAID_ASSERT(operation.in_kernel);
    operation.in_kernel = false;
    const SocketOutcome outcome = take_socket_result(operation, result);
    if (outcome.is_finished) {
        finish(operation, outcome.result);
    } else if (operation.cancelled) {
        finish(operation, -ECANCELED);
    } else if (!pending_operations_.empty() || !try_issue(operation)) {
        pending_operations_.push_back(operation);
    }
}

void UringReactor::finish(SocketOperation& operation, std::int64_t result) {
    operation.result = result;
    finished_operations_.push_back(operation);
}

bool UringReactor::run_finished_operations() {
    if (finished_operations_.empty()) return false;
    for (std::size_t left = finished_operations_.size(); left > 0; --left) {
        SocketOperation* operation = finished_operations_.pop_front();
        operation->in_flight = false;
        operation->complete(*operation);
    }
    return true;
}

std::uint64_t UringReactor::allowed_wait_ns(std::uint64_t wait_ns_max) const {
    const bool ring_is_full = commands_in_kernel_ >= commands_in_kernel_max_;
    if (pollers_busy_ || !completed_.empty() || !finished_operations_.empty() || !wake_armed_ ||
        !pending_operations_.empty() || !pending_cancels_.empty() ||
        (!pending_commands_.empty() && !ring_is_full) || !tasks_.empty()) {
        return 0;
    }
    constexpr std::uint64_t kWaitMax = 3600 * kNanosecondsPerSecond;
    std::uint64_t wait_ns = std::min(wait_ns_max, kWaitMax);
    for (const UringDrive* drive : drives_) {
        const std::uint64_t deadline = drive->next_deadline_ns();
        if (deadline == UringDrive::kNever) continue;
        wait_ns = std::min(wait_ns, deadline > now_ns_ ? deadline - now_ns_ : 0);
    }
    return wait_ns;
}

bool UringReactor::run_once(std::uint64_t wait_ns_max) {
    now_ns_ = clock_.monotonic_ns();
    issue_pending();
    collect(wait_ns_max == 0 ? 0 : allowed_wait_ns(wait_ns_max));
    now_ns_ = clock_.monotonic_ns();
    for (UringDrive* drive : drives_) drive->check_deadlines(now_ns_);
    bool did_something = run_completed(completed_);
    if (run_finished_operations()) did_something = true;
    if (tasks_.run()) did_something = true;
    pollers_busy_ = pollers_.run(now_ns_);
    return did_something || pollers_busy_ || !completed_.empty() || !finished_operations_.empty();
}

Result<std::unique_ptr<Reactor>> make_reactor(const Clock& clock, const ReactorOptions& options) {
    WARPRAID_TRY_ASSIGN(auto reactor, UringReactor::make(clock, options));
    return std::unique_ptr<Reactor>(std::move(reactor));
}

ReactorInfo describe(const Reactor& reactor) {
    const auto* ours = dynamic_cast<const UringReactor*>(&reactor);
    WARPRAID_ASSERT(ours != nullptr);
    return ours->ring().info();
}

}  // namespace warpraid::io::uring
