// The bitmap against drives whose every command ends when the test says so: what is granted must be
// on every member's disk, and what is cleared must have been flushed.
#include "intent/bitmap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/base_test_support.h"
#include "format/bitmap_page.h"
#include "io/manual_reactor.h"

namespace warpraid::intent {
namespace {

constexpr std::uint32_t kRegions = format::kBitsPerPage + 100;  // two pages
constexpr std::uint64_t kIdleNs = 1000;

/// Called when a page is about to reach a disk and when a flush has ended.
struct Watcher {
    virtual ~Watcher() = default;
    virtual void page_lands(std::size_t drive, std::span<const std::byte> page) = 0;
    virtual void flush_starts(std::size_t drive) = 0;
    virtual void flush_ends(std::size_t drive) = 0;
};

bool map_has(std::span<const std::byte> map, std::uint32_t region) {
    const std::uint32_t bit = region % format::kBitsPerPage;
    return (std::to_integer<unsigned>(map[bit / 8]) >> (bit % 8) & 1) != 0;
}

class HeldDrive final : public io::Drive {
  public:
    HeldDrive(io::Reactor& reactor, std::size_t number) : reactor_(reactor), number_(number) {
        limits_.size_bytes = kMiB;
    }

    void submit(io::Command& command) override {
        command.drive = this;
        ++in_flight_;
        if (watcher != nullptr && command.opcode == io::Opcode::kFlush) {
            watcher->flush_starts(number_);
        }
        held_.push_back(command);
    }
    const io::DriveLimits& limits() const override { return limits_; }
    std::uint32_t in_flight() const override { return in_flight_; }
    void note_completed(io::Command&) override { --in_flight_; }

    std::size_t held() const { return held_.size(); }
    /// Ends the oldest command.
    void release_one(int error = 0) {
        io::Command* command = held_.pop_front();
        if (command == nullptr) return;
        command->error = error;
        if (error == 0) apply(*command);
        reactor_.completed_commands().push_back(*command);
    }
    void release_all(int error = 0) {
        while (held_.size() > 0) release_one(error);
    }
    bool has_bit(std::uint32_t region) const {
        return map_has(format::bitmap_maps(page_of(region)).dirty, region);
    }
    bool has_missed(std::uint32_t region) const {
        return map_has(format::bitmap_maps(page_of(region)).missed, region);
    }
    bool page_is_whole(std::uint32_t page, const Uuid& group) const {
        const auto bytes =
            std::span(disk_).subspan(page * format::kBitmapPageBytes, format::kBitmapPageBytes);
        return format::decode_bitmap_page(bytes, group, page).ok();
    }

    Watcher* watcher = nullptr;

  private:
    std::span<const std::byte> page_of(std::uint32_t region) const {
        return std::span(disk_).subspan(region / format::kBitsPerPage * format::kBitmapPageBytes,
                                        format::kBitmapPageBytes);
    }
    void apply(const io::Command& command) {
        if (command.opcode == io::Opcode::kFlush) {
            if (watcher != nullptr) watcher->flush_ends(number_);
            return;
        }
        ASSERT_EQ(command.opcode, io::Opcode::kWrite);
        ASSERT_TRUE(command.fua);
        ASSERT_EQ(command.length_bytes, format::kBitmapPageBytes);
        const auto* from = static_cast<const std::byte*>(command.segments[0].iov_base);
        if (watcher != nullptr) watcher->page_lands(number_, {from, command.length_bytes});
        std::memcpy(disk_.data() + (command.offset - format::kBitmapOffset), from,
                    command.length_bytes);
    }

    io::Reactor& reactor_;
    std::size_t number_;
    io::DriveLimits limits_;
    io::CommandFifo held_;
    std::uint32_t in_flight_ = 0;
    std::vector<std::byte> disk_ = std::vector<std::byte>(2 * format::kBitmapPageBytes);
};

struct TestWaiter : Waiter {
    TestWaiter(std::uint32_t first_region, std::uint32_t last_region) {
        first = Region(first_region);
        last = Region(last_region);
        owner = this;
        ready = [](Waiter& waiter) { static_cast<TestWaiter*>(waiter.owner)->granted = true; };
    }
    bool granted = false;
};

class BitmapTest : public ::testing::Test, public Listener {
  protected:
    void make(const format::BitmapContent& found = {}, std::size_t members = 3) {
        for (std::size_t i = 0; i < members; ++i) {
            drives.push_back(std::make_unique<HeldDrive>(reactor, i));
        }
        Options options;
        options.group.bytes[3] = 7;
        options.regions = kRegions;
        options.idle_ns_before_clear = kIdleNs;
        group = options.group;
        bitmap = std::make_unique<Bitmap>(options, found, reactor, *this);
        for (std::size_t i = 0; i < members; ++i) present |= 1u << i;
        announce();
        settle();
    }
    void TearDown() override {
        settle();
        bitmap.reset();
    }

    void announce() {
        std::vector<Target> targets;
        for (std::size_t i = 0; i < drives.size(); ++i) {
            if ((present >> i & 1) == 0) continue;
            targets.push_back({Slot(static_cast<std::uint8_t>(i)), drives[i].get()});
        }
        bitmap->set_members(targets);
    }
    void turn(std::uint64_t ns = 1) {
        clock.now_ns += ns;
        reactor.run_once();
    }
    /// Lets every command end well until nothing is left to do.
    void settle() {
        for (int i = 0; i < 20; ++i) {
            for (auto& drive : drives) drive->release_all();
            turn();
        }
    }
    bool begin(TestWaiter& waiter) {
        waiter.granted = bitmap->begin_write(waiter);
        return waiter.granted;
    }
    void end(const TestWaiter& waiter) { bitmap->end_write(waiter.first, waiter.last); }

    void bitmap_write_failed(Slot slot, int error) override {
        failed_slots.push_back(slot.get());
        last_error = error;
    }

    ManualClock clock;
    io::ManualReactor reactor{clock};
    std::vector<std::unique_ptr<HeldDrive>> drives;
    std::unique_ptr<Bitmap> bitmap;
    Uuid group;
    std::uint32_t present = 0;
    std::vector<int> failed_slots;
    int last_error = 0;
};

TEST_F(BitmapTest, a_write_waits_for_its_bit_on_every_member) {
    make();
    TestWaiter write(40000 % kRegions, 40000 % kRegions);
    EXPECT_FALSE(begin(write));
    drives[0]->release_all();
    drives[2]->release_all();
    turn();
    EXPECT_FALSE(write.granted);
    drives[1]->release_all();
    turn();
    EXPECT_TRUE(write.granted);
    for (const auto& drive : drives) EXPECT_TRUE(drive->has_bit(write.first.get()));
    TestWaiter again(write.first.get(), write.first.get());
    EXPECT_TRUE(begin(again)) << "the bit is there already";
    end(write);
    end(again);
}

TEST_F(BitmapTest, a_write_over_a_page_boundary_waits_for_both_pages) {
    make();
    TestWaiter write(format::kBitsPerPage - 1, format::kBitsPerPage);
    EXPECT_FALSE(begin(write));
    for (auto& drive : drives) drive->release_one();
    turn();
    EXPECT_FALSE(write.granted);
    settle();
    EXPECT_TRUE(write.granted);
    end(write);
}

TEST_F(BitmapTest, writes_that_come_during_a_round_share_the_next) {
    make();
    TestWaiter first(1, 1);
    TestWaiter second(2, 2);
    TestWaiter third(3, 3);
    EXPECT_FALSE(begin(first));
    EXPECT_FALSE(begin(second));
    EXPECT_FALSE(begin(third));
    EXPECT_EQ(drives[0]->held(), 1u);
    for (auto& drive : drives) drive->release_all();
    turn();
    EXPECT_TRUE(first.granted);
    EXPECT_FALSE(second.granted);
    EXPECT_EQ(drives[0]->held(), 1u);
    settle();
    EXPECT_TRUE(second.granted && third.granted);
    for (const TestWaiter* waiter : {&first, &second, &third}) end(*waiter);
}

TEST_F(BitmapTest, an_idle_region_is_cleared_after_a_flush_and_a_busy_one_is_not) {
    make();
    TestWaiter idle(5, 5);
    TestWaiter busy(6, 6);
    begin(idle);
    begin(busy);
    settle();
    end(idle);
    turn(kIdleNs);  // one sweep to see that it is idle, one to clear
    turn(kIdleNs);
    ASSERT_EQ(drives[0]->held(), 1u) << "the flush";
    EXPECT_TRUE(bitmap->is_dirty(Region(5)));
    settle();
    EXPECT_FALSE(bitmap->is_dirty(Region(5)));
    EXPECT_FALSE(drives[1]->has_bit(5));
    EXPECT_TRUE(drives[1]->has_bit(6));
    end(busy);
}

TEST_F(BitmapTest, a_write_during_the_flush_keeps_its_bit) {
    make();
    TestWaiter write(5, 5);
    begin(write);
    settle();
    end(write);
    bitmap->clear_idle_now();
    TestWaiter late(5, 5);
    EXPECT_TRUE(begin(late));
    settle();
    EXPECT_TRUE(bitmap->is_dirty(Region(5)));
    for (const auto& drive : drives) EXPECT_TRUE(drive->has_bit(5));
    end(late);
}

TEST_F(BitmapTest, a_write_during_the_clearing_round_waits_for_its_bit_again) {
    make();
    TestWaiter write(5, 5);
    begin(write);
    settle();
    end(write);
    bitmap->clear_idle_now();
    for (auto& drive : drives) drive->release_all();
    turn();  // flushed; the clearing page is on its way
    ASSERT_EQ(drives[0]->held(), 1u);
    TestWaiter late(5, 5);
    EXPECT_FALSE(begin(late));
    settle();
    EXPECT_TRUE(late.granted);
    for (const auto& drive : drives) EXPECT_TRUE(drive->has_bit(5));
    end(late);
}

TEST_F(BitmapTest, nothing_is_cleared_while_held_or_while_a_region_awaits_resync) {
    make({{1}, {}});
    EXPECT_TRUE(drives[0]->has_bit(0)) << "newcomers get what was found dirty";
    bitmap->clear_idle_now();
    settle();
    EXPECT_TRUE(bitmap->is_dirty(Region(0)));
    bitmap->clear_after_resync(Region(0));
    bitmap->hold_clearing(true);
    bitmap->clear_idle_now();
    settle();
    EXPECT_TRUE(bitmap->is_dirty(Region(0)));
    bitmap->hold_clearing(false);
    bitmap->clear_idle_now();
    settle();
    EXPECT_FALSE(bitmap->is_dirty(Region(0)));
    EXPECT_EQ(bitmap->dirty_count(), 0u);
}

TEST_F(BitmapTest, a_region_counts_as_dirty_until_no_disk_has_its_bit) {
    make();
    TestWaiter write(9, 9);
    EXPECT_FALSE(begin(write));
    settle();
    end(write);
    bitmap->clear_idle_now();
    for (auto& drive : drives) drive->release_all();  // the flushes
    turn();
    EXPECT_FALSE(bitmap->is_dirty(Region(9)));
    for (auto& drive : drives) {
        EXPECT_EQ(bitmap->dirty_count(), 1u) << "one disk still has it";
        EXPECT_TRUE(drive->has_bit(9));
        drive->release_all();
        turn();
    }
    EXPECT_EQ(bitmap->dirty_count(), 0u);
}

TEST_F(BitmapTest, a_member_that_fails_is_reported_and_writes_go_on_without_it) {
    make();
    TestWaiter write(9, 9);
    EXPECT_FALSE(begin(write));
    drives[1]->release_all(EIO);
    drives[0]->release_all();
    drives[2]->release_all();
    turn();
    EXPECT_EQ(failed_slots, std::vector<int>{1});
    EXPECT_EQ(last_error, EIO);
    EXPECT_FALSE(write.granted);
    announce();  // an unrelated change: it is still a member
    settle();
    EXPECT_FALSE(write.granted);
    present &= ~2u;
    announce();
    settle();
    EXPECT_TRUE(write.granted);
    EXPECT_EQ(failed_slots.size(), 1u);
    end(write);
}

TEST_F(BitmapTest, a_flush_error_clears_nothing) {
    make();
    TestWaiter write(9, 9);
    begin(write);
    settle();
    end(write);
    bitmap->clear_idle_now();
    drives[2]->release_all(EIO);
    settle();
    EXPECT_EQ(failed_slots, std::vector<int>{2});
    EXPECT_TRUE(bitmap->is_dirty(Region(9)));
    EXPECT_TRUE(drives[0]->has_bit(9));
}

TEST_F(BitmapTest, a_leaver_may_end_its_commands_late_and_its_slot_be_filled_meanwhile) {
    make();
    TestWaiter write(9, 9);
    EXPECT_FALSE(begin(write));
    present &= ~2u;
    announce();
    drives[0]->release_all();
    drives[2]->release_all();
    turn();
    EXPECT_TRUE(write.granted) << "the leaver is not waited for";
    EXPECT_FALSE(bitmap->idle()) << "but its memory is still with the kernel";
    drives.push_back(std::make_unique<HeldDrive>(reactor, 3));
    const std::array targets = {Target{Slot(0), drives[0].get()}, Target{Slot(1), drives[3].get()},
                                Target{Slot(2), drives[2].get()}};
    bitmap->set_members(targets);
    TestWaiter other(10, 10);
    EXPECT_FALSE(begin(other));
    settle();
    EXPECT_TRUE(other.granted);
    EXPECT_TRUE(drives[3]->has_bit(9));
    EXPECT_TRUE(drives[3]->has_bit(10));
    EXPECT_TRUE(drives[3]->page_is_whole(0, group));
    EXPECT_TRUE(drives[3]->page_is_whole(1, group));
    end(write);
    end(other);
}

TEST_F(BitmapTest, without_members_every_write_goes_on) {
    make();
    TestWaiter write(9, 9);
    EXPECT_FALSE(begin(write));
    present = 0;
    announce();
    EXPECT_TRUE(write.granted);
    TestWaiter other(100, 101);
    EXPECT_TRUE(begin(other));
    end(write);
    end(other);
}

TEST_F(BitmapTest, what_was_missed_is_noted_by_the_write_that_clears_what_is_dirty) {
    make();
    TestWaiter before(5, 5);
    TestWaiter during(6, 6);
    begin(before);
    settle();
    present = 0b011;  // the third member leaves in the middle of a write
    bitmap->record_missed(true);
    announce();
    settle();
    EXPECT_FALSE(drives[0]->has_missed(5)) << "no write for its own sake: it is dirty";
    begin(during);
    settle();
    end(before);
    end(during);
    bitmap->clear_idle_now();
    settle();
    EXPECT_EQ(bitmap->dirty_count(), 0u) << "what was missed is no reason to stay dirty";
    EXPECT_EQ(bitmap->missed_count(), 2u);
    EXPECT_EQ(bitmap->dirty_or_missed().front(), 0b1100000u);
    for (const std::uint32_t region : {5u, 6u}) {
        EXPECT_TRUE(drives[0]->has_missed(region) && drives[1]->has_missed(region)) << region;
        EXPECT_FALSE(drives[0]->has_bit(region)) << region;
    }
    present = 0b111;
    announce();
    settle();
    EXPECT_TRUE(drives[2]->has_missed(6)) << "until it is in sync";
    bitmap->record_missed(false);
    settle();
    for (const auto& drive : drives) EXPECT_FALSE(drive->has_missed(5) || drive->has_missed(6));
}

TEST_F(BitmapTest, what_was_found_missed_stays_so_while_it_is_recorded) {
    make({{0b01}, {0b10}});
    bitmap->record_missed(true);
    EXPECT_EQ(bitmap->missed_count(), 2u) << "who is away lacks what is dirty as well";
    EXPECT_EQ(bitmap->dirty_count(), 1u);
    bitmap->clear_after_resync(Region(0));
    bitmap->clear_idle_now();
    settle();
    EXPECT_EQ(bitmap->dirty_count(), 0u);
    EXPECT_TRUE(drives[0]->has_missed(0) && drives[0]->has_missed(1));
}

// Random writes, sweeps, faults and changes of membership with commands ending in any order. Three
// rules are checked at every step: a granted write has its bits on all live disks until it ends; a
// bit leaves a disk only when every live member was flushed after the region's last write ended;
// what was written while somebody was away is dirty or missed on a live disk.
class BitmapRules : public BitmapTest, public Watcher {
  protected:
    static constexpr std::uint32_t kUsed = 24;  // regions written, around the page boundary
    static std::uint32_t region_at(std::uint32_t index) {
        return format::kBitsPerPage - kUsed / 2 + index;
    }

    void page_lands(std::size_t drive, std::span<const std::byte> page) override {
        if ((present >> drive & 1) == 0) return;
        for (std::uint32_t index = 0; index < kUsed; ++index) {
            const std::uint32_t region = region_at(index);
            const std::uint32_t of_page = region / format::kBitsPerPage;
            if (!format::decode_bitmap_page(page, group, of_page).ok()) continue;
            if (map_has(format::bitmap_maps(page).dirty, region) || !drives[drive]->has_bit(region))
                continue;
            for (std::size_t other = 0; other < drives.size(); ++other) {
                if ((present >> other & 1) == 0) continue;
                ASSERT_GT(flushed_at[other], ended_at[index]) << "region " << region;
            }
        }
    }
    void flush_starts(std::size_t drive) override { flush_started_at[drive] = ++time; }
    void flush_ends(std::size_t drive) override { flushed_at[drive] = flush_started_at[drive]; }

    void check() {
        check_granted();
        check_owed();
    }
    void check_granted() {
        for (const auto& write : writes) {
            if (!write->granted) continue;
            for (std::uint32_t r = write->first.get(); r <= write->last.get(); ++r) {
                for (std::size_t i = 0; i < drives.size(); ++i) {
                    if ((present >> i & 1) == 0 || (joining >> i & 1) != 0) continue;
                    ASSERT_TRUE(drives[i]->has_bit(r)) << "drive " << i << " region " << r;
                }
                if (recording) owed[r - region_at(0)] = true;
            }
        }
    }
    // Of those members that have all pages; a group whose last one leaves has failed.
    void check_owed() {
        if (bitmap->idle()) behind = 0;
        const std::uint32_t holders = present & ~behind;
        if (holders == 0) return;
        for (std::uint32_t index = 0; index < kUsed; ++index) {
            if (!owed[index]) continue;
            const std::uint32_t region = region_at(index);
            bool known = false;
            for (std::size_t i = 0; i < drives.size(); ++i) {
                if ((holders >> i & 1) == 0) continue;
                known = known || drives[i]->has_bit(region) || drives[i]->has_missed(region);
            }
            ASSERT_TRUE(known) << "region " << region;
        }
    }
    void note_newcomer(std::size_t drive) {
        joining |= 1u << drive;
        behind |= 1u << drive;
        flushed_at[drive] = ++time;  // it holds no write from before
    }
    void clear_or_toggle(SeededRandom& random) {
        bitmap->clear_idle_now();
        if (random.below(100) != 0) return;
        recording = !recording;
        owed.fill(false);
        bitmap->record_missed(recording);
    }

    std::uint64_t time = 0;
    std::array<std::uint64_t, kUsed> ended_at{};
    std::array<std::uint64_t, 64> flush_started_at{};
    std::array<std::uint64_t, 64> flushed_at{};
    std::uint32_t joining = 0;  // came while writes were under way: has not got their bits yet
    std::uint32_t behind = 0;   // came, and has not got all pages yet
    bool recording = false;
    std::array<bool, kUsed> owed{};  // what somebody who is away lacks
    std::vector<std::unique_ptr<TestWaiter>> writes;
};

TEST_F(BitmapRules, hold_whatever_the_order_of_completions) {
    SeededRandom random(test_seed());
    make({}, 4);
    for (auto& drive : drives) drive->watcher = this;
    std::uint64_t granted = 0;
    std::uint64_t cleared = 0;
    for (int step = 0; step < 30'000; ++step) {
        const auto pick = static_cast<std::size_t>(random.below(drives.size()));
        switch (random.below(8)) {
            case 0:
            case 1: {
                const auto first = static_cast<std::uint32_t>(random.below(kUsed));
                const auto more = static_cast<std::uint32_t>(random.below(3));
                const std::uint32_t last = std::min(first + more, kUsed - 1);
                if (writes.size() >= 6) break;
                writes.push_back(std::make_unique<TestWaiter>(region_at(first), region_at(last)));
                begin(*writes.back());
                break;
            }
            case 2:
                if (writes.empty() || !writes.front()->granted) break;
                ++granted;
                ++time;
                for (std::uint32_t r = writes.front()->first.get(); r <= writes.front()->last.get();
                     ++r) {
                    ended_at[r - region_at(0)] = time;
                }
                end(*writes.front());
                writes.erase(writes.begin());
                break;
            case 3:
                if (random.below(40) == 0) {
                    // One leaves, or comes back with whatever its disk says.
                    const bool leaves = (present >> pick & 1) != 0;
                    if (leaves && present == (1u << pick)) break;
                    if (!leaves && drives[pick]->in_flight() > 0) break;
                    present ^= 1u << pick;
                    if (!leaves) note_newcomer(pick);
                    announce();
                    if (leaves) joining &= ~(1u << pick);
                }
                break;
            case 4:
                clear_or_toggle(random);
                break;
            default:
                drives[pick]->release_one();
                break;
        }
        const std::uint32_t before = bitmap->dirty_count();
        turn(random.below(20) == 0 ? kIdleNs : 1);
        if (bitmap->dirty_count() < before) ++cleared;
        if (writes.empty()) joining = 0;
        check();
        if (HasFatalFailure()) return;
    }
    for (int i = 0; i < 20; ++i) settle();
    for (const auto& write : writes) {
        EXPECT_TRUE(write->granted);
        end(*write);
    }
    writes.clear();
    for (auto& drive : drives) drive->watcher = nullptr;
    bitmap->clear_idle_now();
    settle();
    EXPECT_EQ(bitmap->dirty_count(), 0u);
    EXPECT_GT(granted, 1000u);
    EXPECT_GT(cleared, 50u);
}

}  // namespace
}  // namespace warpraid::intent
