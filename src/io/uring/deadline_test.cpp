// Commands that the kernel does not finish in time. A pipe without a writer never answers a read
// but gives it up when asked; a frozen file system does not even do that.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/units.h"
#include "io/uring/drive.h"
#include "io/uring/loop_test_support.h"
#include "io/uring/reactor.h"
#include "io/uring/uring_test_support.h"

namespace warpraid::io::uring {
namespace {

class Pipe {
  public:
    Pipe() {
        int ends[2] = {-1, -1};
        EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
        read_end.reset(ends[0]);
        write_end.reset(ends[1]);
    }
    UniqueFd read_end;
    UniqueFd write_end;
};

UringDriveOptions options_of(int fd, std::uint64_t timeout_ms) {
    UringDriveOptions options;
    options.fd = fd;
    options.limits.size_bytes = 1 * kMiB;
    options.command_timeout_ns = timeout_ms * kNanosecondsPerMillisecond;
    return options;
}

TEST(Deadline, a_command_that_never_ends_is_called_back_and_times_out) {
    const auto reactor = make_test_reactor();
    const Pipe pipe;
    const SystemClock clock;
    UringDrive drive(static_cast<UringReactor&>(*reactor), options_of(pipe.read_end.get(), 50));
    const AlignedBytes memory(4096);
    TestCommand read(Opcode::kRead, 0, {memory.part(0, 4096)});
    // A command's time starts with the turn of the loop in which it is submitted.
    const std::uint64_t start = reactor->now_ns();
    EXPECT_EQ(execute(*reactor, drive, read), ETIMEDOUT);
    EXPECT_GE(clock.monotonic_ns() - start, 50 * kNanosecondsPerMillisecond);
    EXPECT_FALSE(drive.overdue());
    EXPECT_EQ(drive.in_flight(), 0u);
    // The same command can be used again, and is on time when the answer is.
    ASSERT_EQ(write(pipe.write_end.get(), memory.data(), 4096), 4096);
    EXPECT_EQ(execute(*reactor, drive, read), 0);
}

TEST(Deadline, a_sleeping_loop_wakes_up_for_it) {
    const auto reactor = make_test_reactor();
    const Pipe pipe;
    const SystemClock clock;
    UringDrive drive(static_cast<UringReactor&>(*reactor), options_of(pipe.read_end.get(), 50));
    const AlignedBytes memory(4096);
    TestCommand read(Opcode::kRead, 0, {memory.part(0, 4096)});
    drive.submit(read);
    const std::uint64_t start = clock.monotonic_ns();
    while (!read.done) reactor->run_once(60 * kNanosecondsPerSecond);
    EXPECT_LT(clock.monotonic_ns() - start, 20 * kNanosecondsPerSecond);
    EXPECT_EQ(read.error, ETIMEDOUT);
}

TEST(Deadline, a_drive_without_one_waits) {
    const auto reactor = make_test_reactor();
    const Pipe pipe;
    UringDrive drive(static_cast<UringReactor&>(*reactor), options_of(pipe.read_end.get(), 0));
    const AlignedBytes memory(4096);
    TestCommand read(Opcode::kRead, 0, {memory.part(0, 4096)});
    drive.submit(read);
    for (int i = 0; i < 20; ++i) reactor->run_once(5 * kNanosecondsPerMillisecond);
    EXPECT_FALSE(read.done);
    EXPECT_FALSE(drive.overdue());
    ASSERT_EQ(write(pipe.write_end.get(), memory.data(), 4096), 4096);
    EXPECT_TRUE(run_until(*reactor, [&] { return read.done; }));
    EXPECT_EQ(read.error, 0);
}

TEST(Deadline, a_drive_full_of_stuck_commands_does_not_starve_another) {
    // 8 entries leave room for 24 commands in the kernel: 24 of the 40 are stuck there, 16 wait.
    const auto reactor = make_test_reactor(8);
    const Pipe pipe;
    const TemporaryFile file(1 * kMiB);
    const UniqueFd fd(open(file.path().c_str(), O_RDWR | O_CLOEXEC));
    auto& loop = static_cast<UringReactor&>(*reactor);
    UringDrive stuck(loop, options_of(pipe.read_end.get(), 100));
    UringDrive healthy(loop, options_of(fd.get(), 0));
    const AlignedBytes memory(4096);
    std::deque<TestCommand> commands;
    for (int i = 0; i < 40; ++i) {
        commands.emplace_back(Opcode::kRead, 0, std::vector<iovec>{memory.part(0, 4096)});
        stuck.submit(commands.back());
    }
    TestCommand write(Opcode::kWrite, 0, {memory.part(0, 4096)});
    EXPECT_EQ(execute(*reactor, healthy, write), 0);
    EXPECT_TRUE(run_until(*reactor, [&] { return stuck.in_flight() == 0; }));
    for (const TestCommand& command : commands) EXPECT_EQ(command.error, ETIMEDOUT);
    // Nothing of the stuck ones may still be counted: the ring has its whole room again.
    for (int round = 0; round < 50; ++round) EXPECT_EQ(execute(*reactor, healthy, write), 0);
}

/// Whether a thread of this process, as the ring's workers are, sleeps where nothing reaches it.
bool a_worker_is_stuck() {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream stat(task.path() / "stat");
        const std::string text(std::istreambuf_iterator<char>(stat), {});
        const std::size_t name_end = text.rfind(") ");
        if (name_end != std::string::npos && text.compare(name_end, 3, ") D") == 0) return true;
    }
    return false;
}

TEST(Deadline, a_command_the_kernel_keeps_is_reported_overdue_and_completes_only_when_given_back) {
    FrozenFile file;
    if (!file.problem().empty()) GTEST_SKIP() << file.problem();
    const auto reactor = make_test_reactor();
    const SystemClock clock;
    UringDrive drive(static_cast<UringReactor&>(*reactor), options_of(file.fd(), 1000));
    file.freeze();
    TestCommand zero;
    zero.opcode = Opcode::kWriteZeroes;
    zero.length_bytes = 4096;
    drive.submit(zero);
    EXPECT_FALSE(drive.overdue());
    // A worker that has not begun would give the command back: a loaded machine may be that late.
    bool stuck = false;
    EXPECT_TRUE(run_until(*reactor, [&] {
        stuck = stuck || a_worker_is_stuck();
        return drive.overdue() || zero.done;
    }));
    for (int i = 0; i < 10; ++i) reactor->run_once(10 * kNanosecondsPerMillisecond);
    const bool done_while_frozen = zero.done;
    const bool overdue_while_frozen = drive.overdue();
    file.thaw();
    if (!stuck) GTEST_SKIP() << "the kernel did not begin the command before its deadline";
    EXPECT_TRUE(run_until(*reactor, [&] { return zero.done; }));
    EXPECT_EQ(zero.error, ETIMEDOUT);
    EXPECT_FALSE(drive.overdue());
    EXPECT_FALSE(done_while_frozen) << "its memory could have been reused under the kernel's feet";
    EXPECT_TRUE(overdue_while_frozen);
}

}  // namespace
}  // namespace warpraid::io::uring
