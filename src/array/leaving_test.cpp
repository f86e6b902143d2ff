// Members that leave, fail or come back at the worst moment of a request: between the waves of its
// commands, as the last copy, or while another copy returns.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "array/test_group.h"

namespace warpraid::array {
namespace {

using geometry::Level;
using geometry::Shape;

// Requests under way side by side; memory from the heap so that sanitizers see what is freed.
class Requests {
  public:
    explicit Requests(TestGroup& group) : group_(group) {}
    ~Requests() { wait(); }

    block::Request& start(block::Operation operation, std::uint64_t offset = 0,
                          std::uint64_t length = 0, std::byte* data = nullptr) {
        auto& request = *requests_.emplace_back(std::make_unique<block::Request>());
        request.operation = operation;
        request.offset = offset;
        request.length_bytes = length;
        request.data = data;
        request.owner = this;
        request.complete = [](block::Request& done) {
            ++static_cast<Requests*>(done.owner)->done_;
        };
        group_.engine().submit(request);
        return request;
    }
    void wait() {
        group_.run_until([&] { return done_ == requests_.size(); });
    }
    bool all_done() const { return done_ == requests_.size(); }

  private:
    TestGroup& group_;
    std::vector<std::unique_ptr<block::Request>> requests_;
    std::size_t done_ = 0;
};

std::vector<std::byte> pattern(std::size_t size, std::uint8_t seed) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<std::byte>((i / 512 * 31 + i + seed) & 0xff);
    }
    return bytes;
}

struct WaveCase {
    Shape shape;
    block::Operation operation;
    std::string name;
};

class Waves : public testing::TestWithParam<WaveCase> {};

// Small chunks cut a large request into more commands than a frame holds; they go out in waves. The
// drive of a later wave has nothing in flight during the first, and may leave just then.
TEST_P(Waves, ADriveThatLeavesBetweenThemStaysAliveForThem) {
    const WaveCase& param = GetParam();
    constexpr std::size_t kBytes = 2 * kMiB;
    std::uint64_t kept = 0;
    for (std::uint32_t slot = 0; slot < param.shape.members; ++slot) {
        for (std::uint32_t turns = 1; turns < 4; ++turns) {
            TestGroup group(param.shape, 64);
            std::vector<std::byte> before = pattern(kBytes, 1);
            ASSERT_EQ(group.execute(block::Operation::kWrite, 0, kBytes, before.data()), 0);
            std::vector<std::byte> after = pattern(kBytes, 2);
            const bool reads = param.operation == block::Operation::kRead;
            std::vector<std::byte> read(kBytes);
            Requests requests(group);
            block::Request& request =
                requests.start(param.operation, 0, kBytes, reads ? read.data() : after.data());
            for (std::uint32_t turn = 0; turn < turns; ++turn) group.turn();
            group.lose(slot);
            requests.wait();
            EXPECT_EQ(request.error, 0);
            if (!reads) {
                ASSERT_EQ(group.execute(block::Operation::kRead, 0, kBytes, read.data()), 0);
            }
            ASSERT_TRUE(read == (reads ? before : after)) << "slot " << slot << " turns " << turns;
            group.turn();
            EXPECT_EQ(group.retired(), 0u) << "nothing refers to it any more";
            kept += group.kept_for_engine;
        }
    }
    // Whole stripes lie one behind the other on a member: their writes need no second wave.
    if (param.operation == block::Operation::kRead) {
        EXPECT_GT(kept, 0u) << "no drive ever left between waves";
    }
}

WaveCase wave_case(Level level, std::uint32_t members, block::Operation operation,
                   const std::string& name) {
    const std::uint32_t copies = level == Level::kRaid10 ? 2 : 1;
    return {{level, members, copies, 4096, 4096, 8 * kMiB}, operation, name};
}

INSTANTIATE_TEST_SUITE_P(
    Levels, Waves,
    testing::Values(wave_case(Level::kRaid5, 3, block::Operation::kRead, "raid5_read"),
                    wave_case(Level::kRaid5, 3, block::Operation::kWrite, "raid5_write"),
                    wave_case(Level::kRaid6, 4, block::Operation::kRead, "raid6_read"),
                    wave_case(Level::kRaid10, 3, block::Operation::kRead, "raid10_read"),
                    wave_case(Level::kRaid10, 3, block::Operation::kWrite, "raid10_write")),
    [](const auto& wave) { return wave.param.name; });

// Each of two writes fails on another copy: one copy leaves, the other is the last then and stays.
TEST(LastCopy, FailsItsOwnRequestOnlyWhenBothCopiesFailAtOnce) {
    const Shape shape{Level::kRaid1, 2, 2, 65536, 4096, 65536 * 16};
    TestGroup group(shape, 4);
    std::vector<std::byte> bytes = pattern(8192, 3);
    // The region's bit is on the drives after this, so that data writes are all that can fail.
    ASSERT_EQ(group.execute(block::Operation::kWrite, 0, 8192, bytes.data()), 0);
    group.faults(0).fail_write_after = 0;
    group.faults(1).fail_write_after = 1;
    Requests requests(group);
    const block::Request& first = requests.start(block::Operation::kWrite, 0, 4096, bytes.data());
    const block::Request& second =
        requests.start(block::Operation::kWrite, 65536, 4096, bytes.data());
    requests.wait();
    EXPECT_EQ((first.error != 0) + (second.error != 0), 1);
    EXPECT_FALSE(group.failed());
    std::vector<std::byte> read(4096);
    EXPECT_EQ(group.execute(block::Operation::kRead, 0, 4096, read.data()), 0);
    EXPECT_EQ(group.execute(block::Operation::kWrite, 0, 4096, bytes.data()), 0);
}

// The last copy fails a flush and is spared; until the slower members answer, the other copy is
// back. Nobody is going to take the first one out for that any more.
TEST(LastCopy, AFlushItFailedEndsAlthoughTheOtherCopyReturnsMeanwhile) {
    const Shape shape{Level::kRaid10, 4, 2, 65536, 4096, 65536 * 16};
    TestGroup group(shape, 4);
    group.lose(1);
    group.faults(0).fail_flushes = true;
    group.faults(2).hold_flushes = true;
    Requests requests(group);
    const block::Request& flush = requests.start(block::Operation::kFlush);
    for (int i = 0; i < 4; ++i) group.turn();
    ASSERT_FALSE(requests.all_done());
    group.replace(1);
    ASSERT_TRUE(group.rebuild());
    group.faults(2).hold_flushes = false;
    requests.wait();
    EXPECT_EQ(flush.error, EIO);
    EXPECT_FALSE(group.failed());
    group.faults(0).fail_flushes = false;
    EXPECT_EQ(group.execute(block::Operation::kFlush, 0, 0, nullptr), 0);
}

// What fails after the group did is never taken out, so nothing may wait for that: the daemon could
// not stop. Found by simulation.
class AfterFailure : public testing::TestWithParam<Shape> {};

TEST_P(AfterFailure, RequestsThatFailStillEnd) {
    const std::vector<std::byte> bytes = pattern(1 << 20, 1);
    AlignedBuffer memory(bytes.size());
    std::memcpy(memory.data, bytes.data(), bytes.size());
    for (const block::Operation operation :
         {block::Operation::kWrite, block::Operation::kFlush, block::Operation::kWriteZeroes}) {
        TestGroup failing(GetParam(), 4);
        const std::uint64_t stripe = failing.layout().stripe_data_bytes();
        // The bits are on the drives after this.
        ASSERT_EQ(failing.execute(block::Operation::kWrite, 0, stripe, memory.data), 0);
        for (std::uint32_t slot = 0; slot < failing.layout().members(); ++slot) {
            failing.faults(slot).fail_writes = failing.faults(slot).fail_flushes = true;
        }
        Requests requests(failing);
        const bool is_flush = operation == block::Operation::kFlush;
        std::byte* const data = operation == block::Operation::kWrite ? memory.data : nullptr;
        const block::Request& whole = requests.start(operation, 0, is_flush ? 0 : stripe, data);
        const block::Request& part = requests.start(operation, 0, is_flush ? 0 : 4096, data);
        failing.turn();
        failing.fail_group();
        requests.wait();
        EXPECT_NE(whole.error, 0);
        EXPECT_NE(part.error, 0);
        EXPECT_TRUE(failing.engine().idle());
    }
}

INSTANTIATE_TEST_SUITE_P(Levels, AfterFailure,
                         testing::Values(Shape{Level::kRaid0, 2, 2, 65536, 4096, 65536 * 16},
                                         Shape{Level::kRaid1, 2, 2, 65536, 4096, 65536 * 16},
                                         Shape{Level::kRaid5, 3, 2, 65536, 4096, 65536 * 16},
                                         Shape{Level::kRaid6, 4, 2, 65536, 4096, 65536 * 16},
                                         Shape{Level::kRaid10, 4, 2, 65536, 4096, 65536 * 16}));

}  // namespace
}  // namespace warpraid::array
