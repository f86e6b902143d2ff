#include "io/uring/drive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <ostream>

#include "base/limits.h"
#include "base/random.h"
#include "base/units.h"
#include "io/uring/reactor.h"
#include "io/uring/uring_test_support.h"

namespace warpraid::io::uring {
namespace {

constexpr std::uint64_t kSize = 16 * kMiB;

/// A file-backed drive on a reactor.
class FileDrive : public testing::Test {
  protected:
    void open(std::uint32_t ring_entries = 256) {
        reactor_ = make_test_reactor(ring_entries, arena_.get());
        auto opened = provider_->open(file_.path(), OpenMode::kExclusive);
        ASSERT_TRUE(opened.ok()) << opened.error().message;
        blocking_ = std::move(opened).value();
        auto bound = provider_->bind(*blocking_, *reactor_, 0);
        ASSERT_TRUE(bound.ok()) << bound.error().message;
        drive_ = std::move(bound).value();
    }
    void open_with_arena() {
        auto arena = BufferArena::make(4 * kMiB);
        ASSERT_TRUE(arena.ok());
        arena_ = std::move(arena).value();
        open();
    }
    int execute(TestCommand& command) { return uring::execute(*reactor_, *drive_, command); }
    int execute(Opcode opcode, std::uint64_t offset, std::uint64_t length, bool fua = false) {
        TestCommand command;
        command.opcode = opcode;
        command.offset = offset;
        command.length_bytes = length;
        command.fua = fua;
        return execute(command);
    }
    /// Fills the file, runs `opcode` over a range and checks what is zero afterwards.
    void expect_only_range_zeroed(Drive& drive, std::uint64_t offset, std::uint64_t length,
                                  bool fua) {
        const AlignedBytes ones(kSize);
        std::fill_n(ones.data(), kSize, std::byte{0xff});
        TestCommand write(Opcode::kWrite, 0, {ones.part(0, kSize)});
        ASSERT_EQ(uring::execute(*reactor_, drive, write), 0);
        TestCommand zero;
        zero.opcode = Opcode::kWriteZeroes;
        zero.offset = offset;
        zero.length_bytes = length;
        zero.fua = fua;
        ASSERT_EQ(uring::execute(*reactor_, drive, zero), 0);
        const AlignedBytes now(kSize);
        TestCommand read(Opcode::kRead, 0, {now.part(0, kSize)});
        ASSERT_EQ(uring::execute(*reactor_, drive, read), 0);
        std::fill_n(ones.data() + offset, length, std::byte{0});
        EXPECT_TRUE(now == ones) << offset << "+" << length;
    }

    TemporaryFile file_{kSize};
    std::unique_ptr<BufferArena> arena_;
    std::unique_ptr<Reactor> reactor_;
    std::unique_ptr<DriveProvider> provider_ = make_drive_provider();
    std::unique_ptr<BlockingDrive> blocking_;
    std::unique_ptr<Drive> drive_;
};

TEST_F(FileDrive, reads_back_what_was_written) {
    open();
    const AlignedBytes out(64 * kKiB);
    const AlignedBytes in(64 * kKiB);
    out.fill(1);
    in.fill(2);
    TestCommand write(Opcode::kWrite, 8192, {out.part(0, out.size())});
    EXPECT_EQ(execute(write), 0);
    TestCommand read(Opcode::kRead, 8192, {in.part(0, in.size())});
    EXPECT_EQ(execute(read), 0);
    EXPECT_TRUE(in == out);
    std::vector<std::byte> blocking(out.size());
    ASSERT_TRUE(blocking_->read(8192, blocking).ok());
    EXPECT_TRUE(std::equal(blocking.begin(), blocking.end(), out.data()));
    EXPECT_EQ(drive_->in_flight(), 0u);
    EXPECT_FALSE(drive_->overdue());
}

TEST_F(FileDrive, scattered_segments_land_in_order) {
    open();
    const AlignedBytes out(64 * kKiB);
    const AlignedBytes in(64 * kKiB);
    out.fill(3);
    TestCommand write(Opcode::kWrite, 0,
                      {out.part(0, 4096), out.part(4096, 53248), out.part(57344, 8192)});
    write.fua = true;
    EXPECT_EQ(execute(write), 0);
    TestCommand read(Opcode::kRead, 0, {in.part(0, 32768), in.part(32768, 32768)});
    EXPECT_EQ(execute(read), 0);
    EXPECT_TRUE(in == out);
}

TEST_F(FileDrive, takes_the_most_segments_a_command_may_have) {
    open();
    constexpr std::size_t kSegments = limits::kSegmentsPerCommandMax;
    const AlignedBytes out(kSegments * 512);
    const AlignedBytes in(kSegments * 512);
    out.fill(4);
    std::vector<iovec> from;
    std::vector<iovec> to;
    for (std::size_t i = 0; i < kSegments; ++i) {
        from.push_back(out.part(i * 512, 512));
        to.push_back(in.part(i * 512, 512));
    }
    TestCommand write(Opcode::kWrite, 4096, from);
    EXPECT_EQ(execute(write), 0);
    TestCommand read(Opcode::kRead, 4096, to);
    EXPECT_EQ(execute(read), 0);
    EXPECT_TRUE(in == out);
}

TEST_F(FileDrive, works_with_registered_buffers_alone_mixed_and_scattered) {
    open_with_arena();
    if (!describe(*reactor_).registered_buffers) GTEST_SKIP() << "buffers cannot be registered";
    Buffer first = arena_->try_acquire(64 * kKiB);
    Buffer second = arena_->try_acquire(64 * kKiB);
    const AlignedBytes outside(64 * kKiB);
    outside.fill(5);
    std::copy_n(outside.data(), 64 * kKiB, first.data());
    TestCommand write(Opcode::kWrite, 0, {{first.data(), 64 * kKiB}});
    EXPECT_EQ(execute(write), 0);
    TestCommand scattered(Opcode::kWrite, 64 * kKiB,
                          {{first.data() + 32 * kKiB, 32 * kKiB}, {first.data(), 32 * kKiB}});
    EXPECT_EQ(execute(scattered), 0);
    TestCommand read(Opcode::kRead, 64 * kKiB,
                     {{second.data() + 32 * kKiB, 32 * kKiB}, {second.data(), 32 * kKiB}});
    EXPECT_EQ(execute(read), 0);
    EXPECT_TRUE(std::equal(outside.data(), outside.data() + 64 * kKiB, second.data()));
    const AlignedBytes half(32 * kKiB);
    TestCommand mixed(Opcode::kRead, 0, {{second.data(), 32 * kKiB}, half.part(0, half.size())});
    EXPECT_EQ(execute(mixed), 0);
    EXPECT_TRUE(std::equal(outside.data(), outside.data() + 32 * kKiB, second.data()));
    EXPECT_TRUE(std::equal(half.data(), half.data() + half.size(), outside.data() + 32 * kKiB));
    // A range that leaves the registered memory must not be sent as part of it.
    EXPECT_EQ(static_cast<UringReactor&>(*reactor_).ring().buffer_index(
                  arena_->memory().data() + arena_->memory().size() - 512, 1024),
              -1);
}

TEST_F(FileDrive, zeroes_exactly_the_range) {
    open();
    expect_only_range_zeroed(*drive_, 4096, 1 * kMiB, false);
    expect_only_range_zeroed(*drive_, 512, 5 * kMiB + 1024, true);
}

TEST_F(FileDrive, writes_zeroes_out_where_the_device_cannot_deallocate) {
    open();
    UringDriveOptions options;
    options.fd = static_cast<int>(::open(file_.path().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    const UniqueFd fd(options.fd);
    options.limits = drive_->limits();
    options.can_deallocate = false;
    UringDrive plain(static_cast<UringReactor&>(*reactor_), options);
    expect_only_range_zeroed(plain, 4096, 3 * kMiB + 512, true);
    expect_only_range_zeroed(plain, 512, 512, false);
    TestCommand discard;
    discard.opcode = Opcode::kDiscard;
    discard.length_bytes = 1 * kMiB;
    EXPECT_EQ(uring::execute(*reactor_, plain, discard), 0);
}

TEST_F(FileDrive, flushes_and_discards) {
    open();
    EXPECT_EQ(execute(Opcode::kFlush, 0, 0), 0);
    EXPECT_EQ(execute(Opcode::kDiscard, 1 * kMiB, 4 * kMiB), 0);
    EXPECT_EQ(execute(Opcode::kWriteZeroes, 0, 0), 0);
}

TEST_F(FileDrive, reports_what_lies_outside_without_growing_the_file) {
    open();
    const AlignedBytes block(4096);
    TestCommand write(Opcode::kWrite, kSize, {block.part(0, 4096)});
    EXPECT_EQ(execute(write), EIO);
    TestCommand crossing(Opcode::kWrite, kSize - 512, {block.part(0, 1024)});
    EXPECT_EQ(execute(crossing), EIO);
    EXPECT_EQ(execute(Opcode::kWriteZeroes, ~std::uint64_t{511}, 1024), EIO);
    struct stat status{};
    ASSERT_EQ(stat(file_.path().c_str(), &status), 0);
    EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), kSize);
}

TEST_F(FileDrive, reports_a_truncated_file_as_an_error_not_as_zeroes) {
    open();
    ASSERT_EQ(truncate(file_.path().c_str(), 1 * kMiB), 0);
    const AlignedBytes memory(1 * kMiB);
    TestCommand beyond(Opcode::kRead, 2 * kMiB, {memory.part(0, 4096)});
    EXPECT_EQ(execute(beyond), EIO);
    // Half of it is there: the transfer is short, goes on, and then finds nothing.
    TestCommand partly(Opcode::kRead, 1 * kMiB - 8192,
                       {memory.part(0, 4096), memory.part(4096, 8192), memory.part(12288, 4096)});
    EXPECT_EQ(execute(partly), EIO);
    TestCommand inside(Opcode::kRead, 0, {memory.part(0, 4096)});
    EXPECT_EQ(execute(inside), 0);
    EXPECT_EQ(blocking_->probe().error().code, ErrorCode::kMemberTooSmall);
}

TEST_F(FileDrive, refuses_writes_when_it_was_opened_for_reading) {
    open();
    auto opened = provider_->open(file_.path(), OpenMode::kReadOnly);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    auto bound = provider_->bind(*opened.value(), *reactor_, 0);
    ASSERT_TRUE(bound.ok());
    const AlignedBytes block(512);
    TestCommand write(Opcode::kWrite, 0, {block.part(0, 512)});
    EXPECT_EQ(uring::execute(*reactor_, *bound.value(), write), EROFS);
    TestCommand read(Opcode::kRead, 0, {block.part(0, 512)});
    EXPECT_EQ(uring::execute(*reactor_, *bound.value(), read), 0);
}

TEST_F(FileDrive, ten_thousand_commands_fit_through_a_small_ring) {
    open(64);
    constexpr std::size_t kCommands = 10'000;
    const AlignedBytes memory(512 * 1024);
    memory.fill(6);
    TestCommand fill(Opcode::kWrite, 0, {memory.part(0, memory.size())});
    ASSERT_EQ(execute(fill), 0);
    const AlignedBytes target(kCommands * 512);
    std::deque<TestCommand> commands;
    for (std::size_t i = 0; i < kCommands; ++i) {
        commands.emplace_back(Opcode::kRead, i % 1024 * 512,
                              std::vector<iovec>{target.part(i * 512, 512)});
        drive_->submit(commands.back());
    }
    EXPECT_EQ(drive_->in_flight(), kCommands);
    ASSERT_TRUE(run_until(*reactor_, [&] { return drive_->in_flight() == 0; }, 60));
    for (std::size_t i = 0; i < kCommands; ++i) {
        ASSERT_TRUE(commands[i].done);
        ASSERT_EQ(commands[i].error, 0);
        ASSERT_TRUE(std::equal(target.data() + i * 512, target.data() + i * 512 + 512,
                               memory.data() + i % 1024 * 512))
            << "command " << i;
    }
}

/// What one ring entry moves at most. A command goes on where its last entry stopped, at the end of
/// a segment and within one.
struct EntryLimits {
    std::uint64_t bytes;
    std::size_t segments;
};

void PrintTo(const EntryLimits& limits, std::ostream* stream) {
    *stream << limits.bytes << " bytes in " << limits.segments << " segments";
}

class RandomCommands : public FileDrive, public testing::WithParamInterface<EntryLimits> {
  protected:
    void open_limited() {
        open_with_arena();
        fd_ = UniqueFd(::open(file_.path().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
        ASSERT_TRUE(fd_);
        UringDriveOptions options;
        options.fd = fd_.get();
        options.limits = drive_->limits();
        options.transfer_bytes_max = GetParam().bytes;
        options.segments_max = GetParam().segments;
        limited_ = std::make_unique<UringDrive>(static_cast<UringReactor&>(*reactor_), options);
        registered_ = arena_->try_acquire(kMost);
    }
    /// Memory of `length` bytes, in pieces, some of them in registered buffers.
    std::vector<iovec> pieces(std::uint64_t length) {
        std::vector<iovec> parts;
        for (std::uint64_t at = 0; at < length;) {
            const std::uint64_t left = (length - at) / 512;
            const std::uint64_t blocks = random_.below(2) == 0 ? left : random_.below(left);
            const std::uint64_t bytes = (blocks == 0 ? 1 : blocks) * 512;
            parts.push_back(
                {(memory_is_mixed_ && random_.below(2) == 0 ? plain_.data() : registered_.data()) +
                     at,
                 bytes});
            at += bytes;
        }
        return parts;
    }
    void fill(const std::vector<iovec>& parts, std::byte* model) {
        for (const iovec& part : parts) {
            auto* bytes = static_cast<std::byte*>(part.iov_base);
            for (std::uint64_t i = 0; i < part.iov_len; i += 8) {
                const std::uint64_t word = random_.next();
                std::memcpy(bytes + i, &word, 8);
            }
            model = std::copy_n(bytes, part.iov_len, model);
        }
    }
    static bool agree(const std::vector<iovec>& parts, const std::byte* model) {
        for (const iovec& part : parts) {
            if (std::memcmp(part.iov_base, model, part.iov_len) != 0) return false;
            model += part.iov_len;
        }
        return true;
    }

    static constexpr std::uint64_t kMost = 256 * kKiB;
    SeededRandom random_{99};
    bool memory_is_mixed_ = false;
    UniqueFd fd_;
    const AlignedBytes plain_{kMost};
    Buffer registered_;
    std::unique_ptr<UringDrive> limited_;
};

TEST_P(RandomCommands, agree_with_a_copy_in_memory) {
    open_limited();
    std::vector<std::byte> model(kSize);
    for (int step = 0; step < 400; ++step) {
        const std::uint64_t length = (1 + random_.below(kMost / 512)) * 512;
        const std::uint64_t offset = random_.below((kSize - length) / 512 + 1) * 512;
        memory_is_mixed_ = random_.below(2) == 0;
        const std::vector<iovec> parts = pieces(length);
        const std::uint64_t choice = random_.below(5);
        if (choice < 2) {
            fill(parts, model.data() + offset);
            TestCommand write(Opcode::kWrite, offset, parts);
            write.fua = random_.below(4) == 0;
            ASSERT_EQ(uring::execute(*reactor_, *limited_, write), 0);
        } else if (choice == 2) {
            std::fill_n(model.data() + offset, length, std::byte{0});
            TestCommand zero;
            zero.opcode = Opcode::kWriteZeroes;
            zero.offset = offset;
            zero.length_bytes = length;
            zero.fua = random_.below(2) == 0;
            ASSERT_EQ(uring::execute(*reactor_, *limited_, zero), 0);
        } else {
            TestCommand read(Opcode::kRead, offset, parts);
            ASSERT_EQ(uring::execute(*reactor_, *limited_, read), 0);
            ASSERT_TRUE(agree(parts, model.data() + offset)) << "step " << step;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(EntryLimits, RandomCommands,
                         testing::Values(EntryLimits{1 * kGiB, limits::kSegmentsPerCommandMax},
                                         EntryLimits{128 * kKiB, 8}, EntryLimits{4096, 2},
                                         EntryLimits{1536, 1}, EntryLimits{1 * kGiB, 1}));

TEST(CommandError, keeps_a_vanished_drive_apart_from_a_failed_command) {
    for (const int gone : {ENXIO, ENODEV, EBADF, ENOMEDIUM, ESHUTDOWN}) {
        EXPECT_EQ(command_error(gone), ENODEV) << gone;
    }
    for (const int failed : {EIO, EREMOTEIO, EILSEQ, ENODATA, EINVAL, ENOLINK, EFAULT}) {
        EXPECT_EQ(command_error(failed), EIO) << failed;
    }
    EXPECT_EQ(command_error(ENOSPC), ENOSPC);
    EXPECT_EQ(command_error(EDQUOT), ENOSPC);
    EXPECT_EQ(command_error(ETIMEDOUT), ETIMEDOUT);
}

}  // namespace
}  // namespace warpraid::io::uring
