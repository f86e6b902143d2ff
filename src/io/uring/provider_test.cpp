#include "io/uring/provider.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/units.h"
#include "io/uring/blocking_drive.h"
#include "io/uring/loop_test_support.h"
#include "io/uring/uring_test_support.h"

namespace warpraid::io::uring {
namespace {

constexpr std::uint64_t kSize = 8 * kMiB;

class Provider : public testing::Test {
  protected:
    std::unique_ptr<BlockingDrive> open(const std::string& path,
                                        OpenMode mode = OpenMode::kExclusive) {
        auto drive = provider_->open(path, mode);
        EXPECT_TRUE(drive.ok()) << drive.error().message;
        return drive.ok() ? std::move(drive).value() : nullptr;
    }
    Error open_error(const std::string& path, OpenMode mode = OpenMode::kExclusive) {
        auto drive = provider_->open(path, mode);
        EXPECT_FALSE(drive.ok());
        return drive.ok() ? Error{} : drive.error();
    }

    std::unique_ptr<DriveProvider> provider_ = make_drive_provider();
};

TEST_F(Provider, describes_a_plain_file) {
    const TemporaryFile file(kSize + 100);
    const auto drive = open(file.path());
    ASSERT_NE(drive, nullptr);
    EXPECT_EQ(drive->identity().path, file.path());
    EXPECT_EQ(drive->identity().model, "file");
    EXPECT_TRUE(drive->identity().wwid.empty());
    EXPECT_EQ(drive->identity().serial.size(), std::string("FILE-").size() + 16);
    EXPECT_TRUE(drive->identity().serial.starts_with("FILE-"));
    EXPECT_EQ(drive->limits().size_bytes, kSize) << "rounded down to the block";
    EXPECT_FALSE(drive->limits().read_only);
}

TEST_F(Provider, knows_a_file_again_after_it_was_renamed_and_tells_files_apart) {
    TemporaryFile file(kSize);
    const TemporaryFile other(kSize);
    const std::string serial = open(file.path())->identity().serial;
    EXPECT_NE(open(other.path())->identity().serial, serial);
    file.rename_to(file.path() + "-renamed");
    EXPECT_EQ(open(file.path())->identity().serial, serial);
}

TEST_F(Provider, gives_a_file_to_one_exclusive_opener_and_lets_others_examine_it) {
    const TemporaryFile file(kSize);
    auto holder = open(file.path());
    ASSERT_NE(holder, nullptr);
    const Error busy = open_error(file.path());
    EXPECT_EQ(busy.code, ErrorCode::kDriveBusy);
    EXPECT_NE(busy.message.find(file.path()), std::string::npos) << busy.message;
    EXPECT_NE(busy.message.find(holder->identity().serial), std::string::npos) << busy.message;
    const auto examiner = open(file.path(), OpenMode::kReadOnly);
    ASSERT_NE(examiner, nullptr);
    std::vector<std::byte> block(4096);
    EXPECT_TRUE(examiner->read(0, block).ok());
    EXPECT_EQ(examiner->write(0, block).error().code, ErrorCode::kDriveReadOnly);
    holder.reset();
    EXPECT_NE(open(file.path()), nullptr) << "an examiner must not keep others out";
}

TEST_F(Provider, tells_which_drive_cannot_be_written_and_what_to_do) {
    const TemporaryFile file(kSize);
    const auto drive = open(file.path(), OpenMode::kReadOnly);
    const Status refused = drive->write(0, std::vector<std::byte>(4096));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kDriveReadOnly);
    for (const std::string& part :
         {drive->identity().serial, file.path(), std::string("cannot be written to: Read-only"),
          std::string("unlock it, or use another drive that can be written to")}) {
        EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
    }
    EXPECT_TRUE(open(file.path())->write(0, std::vector<std::byte>(4096)).ok());
}

TEST_F(Provider, reads_and_writes_any_memory_and_any_length_of_blocks) {
    const TemporaryFile file(kSize);
    const auto drive = open(file.path());
    std::vector<std::byte> out(3 * kMiB + 512 + 1);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 13 % 251);
    const std::span<std::byte> odd = std::span(out).subspan(1);
    ASSERT_TRUE(drive->write(512, odd).ok());
    ASSERT_TRUE(drive->flush().ok());
    std::vector<std::byte> in(odd.size() + 3);
    const std::span<std::byte> target = std::span(in).subspan(3);
    ASSERT_TRUE(drive->read(512, target).ok());
    EXPECT_TRUE(std::equal(odd.begin(), odd.end(), target.begin()));
    EXPECT_EQ(drive->read(100, target.first(512)).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(drive->read(0, target.first(100)).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(drive->write(kSize, odd.first(512)).error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(drive->read(kSize, {}).ok());
}

TEST_F(Provider, probe_notices_a_deleted_replaced_or_shrunken_file) {
    const TemporaryFile file(kSize);
    const auto drive = open(file.path());
    EXPECT_TRUE(drive->probe().ok());
    ASSERT_EQ(truncate(file.path().c_str(), kSize + 4096), 0);
    EXPECT_TRUE(drive->probe().ok()) << "a larger drive still has all it had";
    ASSERT_EQ(truncate(file.path().c_str(), kSize / 2), 0);
    EXPECT_EQ(drive->probe().error().code, ErrorCode::kMemberTooSmall);
    ASSERT_EQ(truncate(file.path().c_str(), kSize), 0);
    EXPECT_TRUE(drive->probe().ok());
    ASSERT_EQ(unlink(file.path().c_str()), 0);
    EXPECT_EQ(drive->probe().error().code, ErrorCode::kDriveMissing);
    const UniqueFd replacement(::open(file.path().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_EQ(ftruncate(replacement.get(), kSize), 0);
    EXPECT_EQ(drive->probe().error().code, ErrorCode::kDriveMissing);
}

TEST_F(Provider, refuses_what_is_not_there_or_not_a_drive) {
    EXPECT_EQ(open_error(testing::TempDir() + "no-such-drive").code, ErrorCode::kDriveMissing);
    EXPECT_EQ(open_error(testing::TempDir()).code, ErrorCode::kDriveOpen);
    EXPECT_EQ(open_error("/dev/null").code, ErrorCode::kDriveOpen);
}

TEST_F(Provider, examining_a_drive_changes_nothing_of_it) {
    const TemporaryFile file(kSize);
    struct stat before{};
    struct stat after{};
    ASSERT_EQ(stat(file.path().c_str(), &before), 0);
    std::vector<std::byte> block(4096);
    EXPECT_TRUE(open(file.path(), OpenMode::kReadOnly)->read(4096, block).ok());
    ASSERT_EQ(stat(file.path().c_str(), &after), 0);
    EXPECT_EQ(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
    EXPECT_EQ(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    EXPECT_EQ(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
    EXPECT_EQ(before.st_blocks, after.st_blocks);
}

TEST_F(Provider, lists_files_and_devices_sorted_and_once) {
    std::string folder = testing::TempDir() + "warpraid-list-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    for (const char* name : {"b.img", "a.img", "c.txt"}) {
        const UniqueFd fd(
            ::open((folder + "/" + name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
        ASSERT_TRUE(fd);
    }
    ASSERT_EQ(mkdir((folder + "/folder.img").c_str(), 0700), 0);
    const std::vector<std::string> patterns = {folder + "/*.img", folder + "/b*",
                                               folder + "/nothing*", "/dev/null"};
    EXPECT_EQ(provider_->list(patterns),
              (std::vector<std::string>{folder + "/a.img", folder + "/b.img"}));
    EXPECT_TRUE(provider_->list({}).empty());
    std::filesystem::remove_all(folder);
}

TEST_F(Provider, works_on_a_file_system_in_memory_and_says_when_it_is_buffered) {
    std::string path = "/dev/shm/warpraid-io-XXXXXX";
    const UniqueFd fd(mkstemp(path.data()));
    if (!fd) GTEST_SKIP() << "no /dev/shm to write to";
    ASSERT_EQ(ftruncate(fd.get(), kSize), 0);
    const UniqueFd direct(::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    std::string logged;
    set_log_sink([&](LogLevel, std::string_view line) { logged += line; });
    const auto drive = open(path);
    set_log_sink({});
    const bool warned = logged.find(path) != std::string::npos;
    EXPECT_EQ(warned, !direct) << logged;
    ASSERT_NE(drive, nullptr);
    const auto reactor = make_test_reactor();
    auto bound = provider_->bind(*drive, *reactor, 0);
    ASSERT_TRUE(bound.ok());
    const AlignedBytes out(64 * kKiB);
    const AlignedBytes in(64 * kKiB);
    out.fill(1);
    TestCommand write(Opcode::kWrite, 4096, {out.part(0, out.size())});
    write.fua = true;
    EXPECT_EQ(execute(*reactor, *bound.value(), write), 0);
    TestCommand flush;
    flush.opcode = Opcode::kFlush;
    EXPECT_EQ(execute(*reactor, *bound.value(), flush), 0);
    TestCommand read(Opcode::kRead, 4096, {in.part(0, in.size())});
    EXPECT_EQ(execute(*reactor, *bound.value(), read), 0);
    EXPECT_TRUE(in == out);
    unlink(path.c_str());
}

TEST_F(Provider, warns_once_when_a_file_system_refuses_direct_access) {
    constexpr const char* kPath = "/proc/version";
    const UniqueFd direct(::open(kPath, O_RDONLY | O_DIRECT | O_CLOEXEC));
    if (direct) GTEST_SKIP() << "no file system here refuses O_DIRECT";
    std::vector<std::string> logged;
    set_log_sink([&](LogLevel, std::string_view line) { logged.emplace_back(line); });
    const auto drive = open(kPath, OpenMode::kReadOnly);
    set_log_sink({});
    ASSERT_NE(drive, nullptr);
    ASSERT_EQ(logged.size(), 1u);
    EXPECT_NE(logged[0].find(kPath), std::string::npos) << logged[0];
    EXPECT_TRUE(static_cast<UringBlockingDrive&>(*drive).is_buffered());
}

class ProviderOverLoop : public Provider, public testing::WithParamInterface<unsigned> {};

TEST_P(ProviderOverLoop, a_block_device_does_all_that_a_drive_must) {
    const TemporaryFile file(kSize);
    const LoopDevice device(file.path(), GetParam());
    if (device.path().empty()) GTEST_SKIP() << "no loop devices for us here";
    auto drive = open(device.path());
    ASSERT_NE(drive, nullptr);
    EXPECT_EQ(drive->limits().size_bytes, kSize);
    EXPECT_EQ(drive->limits().logical_block_bytes, GetParam());
    EXPECT_FALSE(drive->limits().read_only);
    EXPECT_EQ(drive->identity().model, "loop");
    EXPECT_TRUE(drive->probe().ok());

    const auto reactor = make_test_reactor();
    auto bound = provider_->bind(*drive, *reactor, 10 * kNanosecondsPerSecond);
    ASSERT_TRUE(bound.ok());
    const AlignedBytes out(1 * kMiB);
    const AlignedBytes in(1 * kMiB);
    out.fill(GetParam());
    TestCommand write(Opcode::kWrite, GetParam(),
                      {out.part(0, 8192), out.part(8192, out.size() - 8192)});
    write.fua = true;
    EXPECT_EQ(execute(*reactor, *bound.value(), write), 0);
    TestCommand zero;
    zero.opcode = Opcode::kWriteZeroes;
    zero.offset = GetParam() + 16384;
    zero.length_bytes = 65536;
    zero.fua = true;
    EXPECT_EQ(execute(*reactor, *bound.value(), zero), 0);
    std::fill_n(out.data() + 16384, 65536, std::byte{0});
    TestCommand flush;
    flush.opcode = Opcode::kFlush;
    EXPECT_EQ(execute(*reactor, *bound.value(), flush), 0);
    TestCommand read(Opcode::kRead, GetParam(), {in.part(0, in.size())});
    EXPECT_EQ(execute(*reactor, *bound.value(), read), 0);
    EXPECT_TRUE(in == out);
    TestCommand discard;
    discard.opcode = Opcode::kDiscard;
    discard.length_bytes = 1 * kMiB;
    EXPECT_EQ(execute(*reactor, *bound.value(), discard), 0);
}

TEST_P(ProviderOverLoop, a_block_device_is_exclusive_and_keeps_its_serial_under_another_number) {
    TemporaryFile file(kSize);
    std::string serial;
    {
        const LoopDevice first(file.path(), GetParam());
        if (first.path().empty()) GTEST_SKIP() << "no loop devices for us here";
        const auto holder = open(first.path());
        ASSERT_NE(holder, nullptr);
        serial = holder->identity().serial;
        EXPECT_TRUE(serial.starts_with("LOOP-"));
        const Error busy = open_error(first.path());
        EXPECT_EQ(busy.code, ErrorCode::kDriveBusy);
        EXPECT_NE(busy.message.find(serial), std::string::npos) << busy.message;
        EXPECT_NE(open(first.path(), OpenMode::kReadOnly), nullptr);
    }
    const TemporaryFile other(kSize);
    const LoopDevice filler(other.path(), GetParam());
    file.rename_to(file.path() + "-renamed");
    const LoopDevice second(file.path(), GetParam());
    ASSERT_FALSE(second.path().empty() || filler.path().empty());
    EXPECT_EQ(open(second.path())->identity().serial, serial);
    EXPECT_NE(open(filler.path())->identity().serial, serial);
}

TEST_P(ProviderOverLoop, a_write_protected_device_can_be_examined_and_not_taken) {
    const TemporaryFile file(kSize);
    const LoopDevice device(file.path(), GetParam(), true);
    if (device.path().empty()) GTEST_SKIP() << "no loop devices for us here";
    EXPECT_EQ(open_error(device.path()).code, ErrorCode::kDriveReadOnly);
    const auto examiner = open(device.path(), OpenMode::kReadOnly);
    ASSERT_NE(examiner, nullptr);
    EXPECT_TRUE(examiner->limits().read_only);
}

INSTANTIATE_TEST_SUITE_P(BlockSizes, ProviderOverLoop, testing::Values(512u, 4096u));

}  // namespace
}  // namespace warpraid::io::uring
