#include "meta/apart.h"

#include "meta/meta_test_support.h"

namespace warpraid::meta {
namespace {

std::vector<std::byte> bytes_of(io::RamStore& store) {
    return {io::ram_bytes(store), io::ram_bytes(store) + test::kDriveBytes};
}

TEST(Apart, two_drives_are_apart_and_keep_their_bytes) {
    SeededRandom random(1);
    const auto first = test::make_drive_bytes("a");
    const auto second = test::make_drive_bytes("b");
    io::ram_bytes(*first)[112 * kKiB] = std::byte{7};
    const std::vector<std::byte> before = bytes_of(*first);
    const std::vector<std::byte> other = bytes_of(*second);
    const auto copy = io::make_ram_blocking_drive(first);
    const auto keeper = io::make_ram_blocking_drive(second);
    EXPECT_TRUE(prove_apart(*copy, *keeper, random).ok());
    EXPECT_EQ(bytes_of(*first), before);
    EXPECT_EQ(bytes_of(*second), other);
}

TEST(Apart, two_names_of_a_drive_are_told_and_it_keeps_its_bytes) {
    SeededRandom random(1);
    const auto store = test::make_drive_bytes("a");
    io::ram_bytes(*store)[112 * kKiB] = std::byte{7};
    const std::vector<std::byte> before = bytes_of(*store);
    const auto copy = io::make_ram_blocking_drive(store);
    const auto keeper = io::make_ram_blocking_drive(store);
    EXPECT_EQ(prove_apart(*copy, *keeper, random).error().code, ErrorCode::kWrongState);
    EXPECT_EQ(bytes_of(*store), before);
}

/// A drive whose head or tail is another drive's.
class SplicedDrive final : public io::BlockingDrive {
  public:
    SplicedDrive(std::shared_ptr<io::RamStore> head, std::shared_ptr<io::RamStore> tail)
        : head_(io::make_ram_blocking_drive(std::move(head))),
          tail_(io::make_ram_blocking_drive(std::move(tail))) {}
    const io::DriveIdentity& identity() const override { return head_->identity(); }
    const io::DriveLimits& limits() const override { return head_->limits(); }
    Status read(std::uint64_t offset, std::span<std::byte> to) override {
        return half(offset).read(offset, to);
    }
    Status write(std::uint64_t offset, std::span<const std::byte> from) override {
        return half(offset).write(offset, from);
    }
    Status flush() override { return success(); }
    Status probe() override { return success(); }

  private:
    io::BlockingDrive& half(std::uint64_t offset) {
        return offset < test::kDriveBytes / 2 ? *head_ : *tail_;
    }
    std::unique_ptr<io::BlockingDrive> head_, tail_;
};

TEST(Apart, sharing_one_end_is_enough) {
    SeededRandom random(1);
    const auto mine = test::make_drive_bytes("a");
    const auto theirs = test::make_drive_bytes("b");
    const auto keeper = io::make_ram_blocking_drive(theirs);
    SplicedDrive head(theirs, mine);
    SplicedDrive tail(mine, theirs);
    EXPECT_EQ(prove_apart(head, *keeper, random).error().code, ErrorCode::kWrongState);
    EXPECT_EQ(prove_apart(tail, *keeper, random).error().code, ErrorCode::kWrongState);
}

}  // namespace
}  // namespace warpraid::meta
