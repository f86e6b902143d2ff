#include "io/ram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/base_test_support.h"
#include "base/units.h"
#include "io/manual_reactor.h"

namespace warpraid::io {
namespace {

class RamDrives : public testing::Test {
  protected:
    static constexpr std::uint64_t kSize = 4 * kMiB;

    /// Submits one command and runs the loop; the error it completed with.
    int execute(Drive& drive, Opcode opcode, std::uint64_t offset, std::uint64_t length,
                std::vector<iovec> segments = {}) {
        Command command;
        command.opcode = opcode;
        command.offset = offset;
        command.length_bytes = length;
        command.segments = segments;
        bool done = false;
        command.owner = &done;
        command.complete = [](Command& c) { *static_cast<bool*>(c.owner) = true; };
        drive.submit(command);
        EXPECT_FALSE(done) << "completed inside submit()";
        EXPECT_EQ(drive.in_flight(), 1u);
        EXPECT_TRUE(reactor_.run_until_idle());
        EXPECT_TRUE(done);
        EXPECT_EQ(drive.in_flight(), 0u);
        return command.error;
    }

    ManualClock clock_;
    ManualReactor reactor_{clock_};
    std::shared_ptr<RamStore> store_ = make_ram_store("r0", kSize, 512);
    std::unique_ptr<Drive> drive_ = make_ram_drive(store_, reactor_);
};

TEST_F(RamDrives, start_as_zeroes) {
    const std::byte* bytes = ram_bytes(*store_);
    EXPECT_TRUE(std::all_of(bytes, bytes + kSize, [](std::byte b) { return b == std::byte{0}; }));
    EXPECT_EQ(drive_->limits().size_bytes, kSize);
    EXPECT_EQ(drive_->limits().logical_block_bytes, 512u);
}

TEST_F(RamDrives, both_faces_and_the_raw_bytes_agree) {
    std::vector<std::byte> a(1024, std::byte{1});
    std::vector<std::byte> b(512, std::byte{2});
    EXPECT_EQ(execute(*drive_, Opcode::kWrite, 512, 1536, {{a.data(), 1024}, {b.data(), 512}}), 0);
    EXPECT_EQ(ram_bytes(*store_)[511], std::byte{0});
    EXPECT_EQ(ram_bytes(*store_)[512], std::byte{1});
    EXPECT_EQ(ram_bytes(*store_)[1536], std::byte{2});
    EXPECT_EQ(ram_bytes(*store_)[2048], std::byte{0});

    const auto blocking = make_ram_blocking_drive(store_);
    EXPECT_EQ(blocking->identity().serial, "r0");
    EXPECT_EQ(blocking->identity().model, "ram");
    std::vector<std::byte> read(512);
    ASSERT_TRUE(blocking->read(1536, read).ok());
    EXPECT_EQ(read, b);
    ASSERT_TRUE(blocking->write(0, a).ok());
    std::vector<std::byte> back(1024);
    EXPECT_EQ(execute(*drive_, Opcode::kRead, 0, 1024, {{back.data(), 256}, {&back[256], 768}}), 0);
    EXPECT_EQ(back, a);
    EXPECT_TRUE(blocking->flush().ok());
    EXPECT_TRUE(blocking->probe().ok());
}

TEST_F(RamDrives, zero_exactly_the_range_small_or_large) {
    std::vector<std::byte> ones(kSize, std::byte{0xff});
    for (const auto opcode : {Opcode::kWriteZeroes, Opcode::kDiscard}) {
        for (const auto& [offset, length] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
                 {512, 1024}, {512, 1 * kMiB}, {4096, 2 * kMiB}, {kSize - 1536, 1536}}) {
            EXPECT_EQ(execute(*drive_, Opcode::kWrite, 0, kSize, {{ones.data(), kSize}}), 0);
            EXPECT_EQ(execute(*drive_, opcode, offset, length), 0);
            std::vector<std::byte> expected = ones;
            std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(offset), length,
                        std::byte{0});
            EXPECT_TRUE(std::equal(expected.begin(), expected.end(), ram_bytes(*store_)))
                << offset << "+" << length;
        }
    }
}

TEST_F(RamDrives, refuse_what_lies_outside) {
    std::vector<std::byte> block(512);
    EXPECT_EQ(execute(*drive_, Opcode::kRead, kSize, 512, {{block.data(), 512}}), EINVAL);
    EXPECT_EQ(execute(*drive_, Opcode::kWrite, kSize - 512, 1024, {{block.data(), 512}}), EINVAL);
    EXPECT_EQ(execute(*drive_, Opcode::kWriteZeroes, ~std::uint64_t{511}, 1024), EINVAL);
    EXPECT_EQ(execute(*drive_, Opcode::kFlush, 0, 0), 0);
    const auto blocking = make_ram_blocking_drive(store_);
    EXPECT_EQ(blocking->read(kSize, block).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(blocking->write(100, block).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(RamDrives, of_the_null_kind_complete_without_touching_memory) {
    const auto null = make_null_drive(1 * kTiB, 4096, reactor_);
    EXPECT_EQ(null->limits().size_bytes, 1 * kTiB);
    std::vector<std::byte> block(4096, std::byte{9});
    EXPECT_EQ(execute(*null, Opcode::kRead, 0, 4096, {{block.data(), 4096}}), 0);
    EXPECT_EQ(block[0], std::byte{9});
    EXPECT_EQ(execute(*null, Opcode::kWrite, 4096, 4096, {{block.data(), 4096}}), 0);
}

TEST_F(RamDrives, with_faults_fail_only_the_chosen_commands) {
    const auto faulty =
        make_faulty_drive(make_ram_drive(store_, reactor_), reactor_, [](const Command& command) {
            return command.opcode == Opcode::kWrite && command.offset == 4096 ? EIO : 0;
        });
    std::vector<std::byte> ones(512, std::byte{1});
    EXPECT_EQ(execute(*faulty, Opcode::kWrite, 0, 512, {{ones.data(), 512}}), 0);
    EXPECT_EQ(execute(*faulty, Opcode::kWrite, 4096, 512, {{ones.data(), 512}}), EIO);
    EXPECT_EQ(execute(*faulty, Opcode::kRead, 4096, 512, {{ones.data(), 512}}), 0);
    EXPECT_EQ(ones[0], std::byte{0}) << "the failed write reached the drive";
    EXPECT_EQ(ram_bytes(*store_)[0], std::byte{1});
}

}  // namespace
}  // namespace warpraid::io
