// Recovery over a group of RAM drives on a reactor without a kernel: one millisecond a turn.
#include "tasks/recovery.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "array/test_group.h"
#include "base/base_test_support.h"

namespace warpraid::tasks {
namespace {

using array::TestGroup;
using geometry::Level;
using geometry::Shape;

// A host that writes random blocks and knows what must be read back.
class Host {
  public:
    Host(TestGroup& group, std::uint64_t seed)
        : group_(group), random_(seed), content_(group.layout().capacity_bytes()) {
        for (Write& write : writes_) {
            write.data.reset(static_cast<std::byte*>(std::aligned_alloc(4096, kWriteBytesMax)));
            write.request.owner = &write;
            write.request.complete = [](block::Request& request) {
                static_cast<Write*>(request.owner)->busy = false;
            };
        }
    }

    void fill() {
        for (std::uint64_t at = 0; at < content_.size(); at += kWriteBytesMax) {
            const std::uint64_t length = std::min(kWriteBytesMax, content_.size() - at);
            start(writes_[0], at, length);
            drain();
        }
    }

    // Keeps random writes in flight; every one that ended must have been taken.
    void step() {
        Write& write = writes_[random_.below(std::size(writes_))];
        if (write.busy) return;
        ASSERT_EQ(write.request.error, 0);
        const std::uint64_t block = group_.layout().block_bytes();
        std::uint64_t length = block * (1 + random_.below(kWriteBytesMax / block));
        if (random_.below(2) == 0) length = block * (1 + random_.below(4));
        length = std::min(length, content_.size());
        const std::uint64_t at = random_.below((content_.size() - length) / block + 1) * block;
        for (const Write& other : writes_) {
            const block::Request& busy = other.request;
            if (other.busy && at < busy.offset + busy.length_bytes && busy.offset < at + length) {
                return;
            }
        }
        start(write, at, length);
    }

    void drain() {
        group_.run_until([&] {
            return std::none_of(std::begin(writes_), std::end(writes_),
                                [](const Write& write) { return write.busy; });
        });
    }

    void check() {
        drain();
        for (std::uint64_t at = 0; at < content_.size(); at += kWriteBytesMax) {
            const std::uint64_t length = std::min(kWriteBytesMax, content_.size() - at);
            std::byte* data = writes_[0].data.get();
            ASSERT_EQ(group_.execute(block::Operation::kRead, at, length, data), 0);
            ASSERT_EQ(std::memcmp(data, content_.data() + at, length), 0) << "at " << at;
        }
    }

  private:
    static constexpr std::uint64_t kWriteBytesMax = 256 * kKiB;
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    struct Write {
        block::Request request;
        std::unique_ptr<std::byte, Free> data;
        bool busy = false;
    };

    void start(Write& write, std::uint64_t at, std::uint64_t length) {
        for (std::uint64_t i = 0; i < length; i += 8) {
            const std::uint64_t word = random_.next();
            std::memcpy(write.data.get() + i, &word, 8);
        }
        std::memcpy(content_.data() + at, write.data.get(), length);
        write.request.operation = block::Operation::kWrite;
        write.request.offset = at;
        write.request.length_bytes = length;
        write.request.data = write.data.get();
        write.busy = true;
        group_.engine().submit(write.request);
    }

    TestGroup& group_;
    SeededRandom random_;
    std::vector<std::byte> content_;
    Write writes_[8];
};

struct Rig {
    explicit Rig(const Shape& shape, std::uint64_t region_stripes = 4, std::uint64_t rate = 0,
                 std::span<const std::uint64_t> dirty = {})
        : group(shape, region_stripes, dirty),
          recovery(group.engine(), group.bitmap(), group.reactor(), rate),
          host(group, test_seed()) {}
    ~Rig() {
        host.drain();
        recovery.stop();
        group.run_until([&] { return recovery.idle(); });
    }

    // Turns until the work has ended; how many it took, that is, milliseconds.
    std::uint64_t run(bool with_host = false) {
        std::uint64_t turns = 0;
        group.run_until([&] {
            ++turns;
            if (with_host) host.step();
            return recovery.idle();
        });
        return turns;
    }
    void turns(std::uint64_t count, bool with_host = false) {
        for (; count > 0; --count) {
            group.turn();
            if (with_host) host.step();
        }
    }
    // Makes what was rebuilt full members; then all agree and hold what the host wrote.
    void expect_whole() {
        ASSERT_TRUE(group.rebuild());
        host.drain();
        EXPECT_EQ(group.count_mismatches(), 0u);
        host.check();
    }
    std::byte* at(const geometry::Placement& place) {
        return group.bytes(place.slot.get()) + TestGroup::kDataOffset + place.data_offset;
    }
    // Makes members disagree in `stripe`; data stays what the host wrote.
    void spoil(std::uint64_t stripe, std::uint32_t parity = 0) {
        const geometry::Layout& layout = group.layout();
        std::byte* byte = at(layout.has_parity() ? layout.parity_placement(Stripe(stripe), parity)
                                                 : layout.data_placement(Stripe(stripe), 0, 1));
        byte[100] ^= std::byte{1};
    }
    // Reads of one block of `stripe` on the drive of `slot` fail from now on.
    void make_bad(std::uint32_t slot, std::uint64_t stripe) {
        TestGroup::DriveFaults& faults = group.faults(slot);
        faults.bad_begin =
            TestGroup::kDataOffset + stripe * group.layout().stripe_depth_bytes() + 4096;
        faults.bad_end = faults.bad_begin + 4096;
    }
    std::uint64_t member_bytes() const {
        return group.layout().stripes() * group.layout().stripe_depth_bytes();
    }

    TestGroup group;
    Recovery recovery;
    Host host;
};

Shape shape_of(Level level, std::uint32_t members, std::uint32_t chunk, std::uint64_t chunks,
               std::uint32_t copies = 1, std::uint32_t block = 4096) {
    return Shape{level, members, copies, chunk, block, chunks * chunk};
}

const Shape kRaid5 = shape_of(Level::kRaid5, 5, 65536, 64);
const Shape kRaid6 = shape_of(Level::kRaid6, 6, 65536, 64);

class EveryLevel : public testing::TestWithParam<Shape> {};

TEST_P(EveryLevel, a_rebuild_under_writes_makes_the_member_whole) {
    Rig rig(GetParam());
    rig.host.fill();
    const std::uint32_t losses = rig.group.layout().losses_always_survived();
    for (std::uint32_t slot = 0; slot < losses; ++slot) rig.group.lose(slot);
    rig.turns(100, true);
    for (std::uint32_t slot = 0; slot < losses; ++slot) rig.group.replace(slot);
    rig.recovery.start_rebuild();
    rig.run(true);
    const Progress progress = rig.recovery.progress();
    EXPECT_EQ(progress.work, Work::kRebuild);
    EXPECT_TRUE(progress.finished);
    EXPECT_EQ(progress.unreadable, 0u);
    EXPECT_EQ(progress.done_bytes, progress.total_bytes);
    EXPECT_EQ(progress.total_bytes, rig.member_bytes());
    for (std::uint32_t slot = 0; slot < losses; ++slot) {
        EXPECT_EQ(rig.group.engine().stale_regions(Slot(static_cast<std::uint8_t>(slot))), 0u);
    }
    ASSERT_TRUE(rig.group.rebuild());  // finds nothing to do and makes them full members
    rig.host.drain();
    EXPECT_EQ(rig.group.count_mismatches(), 0u);
    // What was rebuilt must carry the data alone.
    for (std::uint32_t slot = 0; slot < losses; ++slot) {
        rig.group.lose(rig.group.layout().members() - 1 - slot);
    }
    rig.host.check();
}

TEST_P(EveryLevel, a_returning_member_is_rebuilt_where_it_missed_writes) {
    Rig rig(GetParam());
    rig.host.fill();
    rig.group.run_until([&] { return rig.group.bitmap().dirty_count() == 0; });
    rig.group.bitmap().hold_clearing(true);
    rig.group.lose(1);
    rig.turns(1, true);
    rig.host.drain();
    rig.group.give_back(1);
    const std::uint32_t stale = rig.group.engine().stale_regions(Slot(1));
    rig.recovery.start_rebuild();
    rig.run();
    EXPECT_TRUE(rig.recovery.progress().finished);
    EXPECT_LE(rig.recovery.progress().total_bytes,
              stale * 4 * rig.group.layout().stripe_depth_bytes());
    rig.expect_whole();
}

TEST_P(EveryLevel, verify_counts_exactly_the_stripes_that_disagree) {
    Rig rig(GetParam());
    rig.host.fill();
    std::uint64_t spoiled = 0;
    for (std::uint64_t stripe = 1; stripe < rig.group.layout().stripes(); stripe += 7) {
        rig.spoil(stripe);
        ++spoiled;
    }
    rig.recovery.start_verify();
    rig.run();
    const Progress progress = rig.recovery.progress();
    EXPECT_TRUE(progress.finished);
    EXPECT_EQ(progress.mismatches, spoiled);
    EXPECT_EQ(progress.unreadable, 0u);
    EXPECT_EQ(progress.done_bytes, rig.member_bytes());
    EXPECT_EQ(progress.total_bytes, rig.member_bytes());
    rig.recovery.start_verify();
    rig.run();
    EXPECT_EQ(rig.recovery.progress().mismatches, spoiled) << "verify must not repair";
}

TEST_P(EveryLevel, resync_makes_suspect_regions_agree_and_gives_their_bits_back) {
    const std::uint64_t dirty = 0b0110;  // regions of 4 stripes: stripes 4 to 11
    Rig rig(GetParam(), 4, 0, std::span(&dirty, 1));
    rig.host.fill();
    rig.turns(20'000);
    EXPECT_EQ(rig.group.bitmap().dirty_count(), 2u) << "kept until resync, dropped elsewhere";
    for (std::uint64_t stripe = 4; stripe < 12; ++stripe) rig.spoil(stripe);
    rig.recovery.start_resync();
    rig.run(true);
    const Progress progress = rig.recovery.progress();
    EXPECT_TRUE(progress.finished);
    EXPECT_EQ(progress.total_bytes, 8 * rig.group.layout().stripe_depth_bytes());
    EXPECT_EQ(progress.done_bytes, progress.total_bytes);
    EXPECT_FALSE(rig.group.engine().is_region_suspect(Region(1)));
    rig.host.drain();
    EXPECT_EQ(rig.group.count_mismatches(), 0u);
    rig.host.check();
    rig.turns(20'000);
    EXPECT_EQ(rig.group.bitmap().dirty_count(), 0u);
}

std::string name_of(const testing::TestParamInfo<Shape>& info) {
    return std::string(geometry::to_text(info.param.level)) + "_" +
           std::to_string(info.param.members) + "drives_" +
           std::to_string(info.param.chunk_bytes / 1024) + "k_" + std::to_string(info.param.copies);
}

INSTANTIATE_TEST_SUITE_P(Levels, EveryLevel,
                         testing::Values(shape_of(Level::kRaid1, 2, 65536, 64),
                                         shape_of(Level::kRaid1, 3, 16384, 128, 1, 512),
                                         shape_of(Level::kRaid5, 3, 4096, 128, 1, 512), kRaid5,
                                         shape_of(Level::kRaid5, 4, 1048576, 13), kRaid6,
                                         shape_of(Level::kRaid6, 4, 8192, 128, 1, 512),
                                         shape_of(Level::kRaid10, 4, 65536, 64, 2),
                                         shape_of(Level::kRaid10, 5, 16384, 120, 3, 512)),
                         name_of);

TEST(Recovery, nothing_to_do_is_finished_at_once) {
    Rig rig(kRaid5);
    EXPECT_TRUE(rig.recovery.idle());
    EXPECT_EQ(rig.recovery.progress().work, Work::kNone);
    rig.recovery.start_resync();
    EXPECT_FALSE(rig.recovery.idle());
    rig.run();
    EXPECT_TRUE(rig.recovery.progress().finished);
    rig.recovery.start_rebuild();
    rig.run();
    EXPECT_TRUE(rig.recovery.progress().finished);
    EXPECT_EQ(rig.recovery.progress().total_bytes, 0u);
}

TEST(Recovery, the_rate_is_honoured_and_can_be_changed_under_way) {
    Rig rig(shape_of(Level::kRaid6, 5, 65536, 256), 8, 4 * kMiB);  // 16 MiB a member: 4 s
    rig.recovery.start_verify();
    const std::uint64_t turns = rig.run();
    EXPECT_GE(turns, 3600u);
    EXPECT_LE(turns, 4200u);

    rig.recovery.start_verify();
    rig.turns(2000);
    const std::uint64_t half = rig.recovery.progress().done_bytes;
    EXPECT_GE(half, 7 * kMiB);
    EXPECT_LE(half, 10 * kMiB);
    rig.recovery.set_rate(0);
    EXPECT_LE(rig.run(), 200u);
    EXPECT_EQ(rig.recovery.progress().done_bytes, rig.member_bytes());
}

TEST(Recovery, a_stopped_rebuild_goes_on_where_it_was) {
    Rig rig(kRaid5, 4, 2 * kMiB);
    rig.host.fill();
    rig.group.lose(2);
    rig.group.replace(2);
    rig.recovery.start_rebuild();
    rig.turns(1000, true);
    rig.recovery.stop();
    rig.run(true);
    const Progress stopped = rig.recovery.progress();
    EXPECT_FALSE(stopped.finished);
    EXPECT_GT(stopped.done_bytes, 0u);
    EXPECT_LT(stopped.done_bytes, stopped.total_bytes);
    const std::uint32_t stale = rig.group.engine().stale_regions(Slot(2));
    EXPECT_GT(stale, 0u);
    rig.turns(500, true);
    EXPECT_EQ(rig.group.engine().stale_regions(Slot(2)), stale) << "nothing runs when stopped";

    rig.recovery.set_rate(0);
    rig.recovery.start_rebuild();
    EXPECT_LT(rig.recovery.progress().total_bytes, stopped.total_bytes);
    rig.run(true);
    EXPECT_TRUE(rig.recovery.progress().finished);
    rig.expect_whole();
}

TEST(Recovery, starting_over_while_pieces_are_in_flight_is_safe) {
    Rig rig(kRaid6);
    rig.host.fill();
    rig.group.lose(0);
    rig.group.replace(0);
    for (int i = 0; i < 40; ++i) {
        rig.recovery.start_rebuild();
        rig.turns(1, true);
        if (i % 3 == 0) rig.recovery.start_verify();
        if (i % 5 == 0) rig.recovery.stop();
        if (i % 7 == 0) rig.recovery.start_resync();
        rig.turns(static_cast<std::uint64_t>(i % 4), true);
    }
    rig.recovery.start_rebuild();
    rig.run(true);
    EXPECT_TRUE(rig.recovery.progress().finished);
    EXPECT_EQ(rig.recovery.progress().done_bytes, rig.recovery.progress().total_bytes);
    rig.expect_whole();
}

// With and without the caller starting it over: what the change voided is done again.
TEST(Recovery, another_member_lost_under_way_does_not_end_a_raid6_rebuild) {
    for (const bool start_over : {false, true}) {
        Rig rig(kRaid6);
        rig.host.fill();
        rig.group.lose(0);
        rig.group.replace(0);
        rig.recovery.start_rebuild();
        rig.turns(6, true);
        rig.group.faults(3).gone = true;
        rig.group.run_until([&] {
            rig.host.step();
            return (rig.group.missing_mask() & 0b1000) != 0;
        });
        ASSERT_FALSE(rig.recovery.progress().finished);
        if (start_over) rig.recovery.start_rebuild();
        rig.run(true);
        EXPECT_TRUE(rig.recovery.progress().finished);
        EXPECT_EQ(rig.group.engine().stale_regions(Slot(0)), 0u);
        ASSERT_TRUE(rig.group.rebuild());
        rig.group.replace(3);
        rig.recovery.start_rebuild();
        rig.run(true);
        EXPECT_TRUE(rig.recovery.progress().finished);
        rig.expect_whole();
    }
}

// Checkpoints are commits: what is under way while one is stored must count.
TEST(Recovery, views_that_bring_nothing_new_void_nothing) {
    for (const Shape& shape : {kRaid6, shape_of(Level::kRaid1, 3, 65536, 64)}) {
        Rig rig(shape);
        rig.host.fill();
        rig.group.lose(0);
        rig.group.replace(0);
        rig.recovery.start_rebuild();
        rig.group.run_until([&] {
            rig.group.adopt();
            EXPECT_EQ(rig.recovery.progress().unreadable, 0u);
            return rig.recovery.idle();
        });
        EXPECT_TRUE(rig.recovery.progress().finished);
        EXPECT_EQ(rig.group.engine().stale_regions(Slot(0)), 0u);
    }
}

TEST(Recovery, a_second_member_to_rebuild_joins_when_started_over) {
    Rig rig(kRaid6, 4, 2 * kMiB);
    rig.host.fill();
    rig.group.lose(0);
    rig.group.lose(1);
    rig.group.replace(0);
    rig.recovery.start_rebuild();
    rig.turns(1000, true);
    rig.group.replace(1);
    rig.recovery.set_rate(0);
    rig.recovery.start_rebuild();
    EXPECT_EQ(rig.recovery.progress().total_bytes, rig.member_bytes());
    rig.run(true);
    EXPECT_TRUE(rig.recovery.progress().finished);
    rig.expect_whole();
}

TEST(Recovery, a_replacement_that_fails_is_replaced_again) {
    Rig rig(kRaid5);
    rig.host.fill();
    rig.group.lose(4);
    rig.group.replace(4);
    rig.group.faults(4).fail_write_after = 7;
    rig.recovery.start_rebuild();
    rig.run(true);
    EXPECT_EQ(rig.group.missing_mask(), 0b10000u);
    rig.group.replace(4);
    rig.recovery.start_rebuild();
    rig.run(true);
    EXPECT_TRUE(rig.recovery.progress().finished);
    rig.expect_whole();
}

TEST(Recovery, a_group_that_fails_ends_the_rebuild_unfinished) {
    Rig rig(kRaid5);
    rig.host.fill();
    rig.group.lose(0);
    rig.group.replace(0);
    rig.recovery.start_rebuild();
    rig.turns(4);
    rig.group.faults(1).gone = true;
    rig.run();
    EXPECT_TRUE(rig.group.failed());
    EXPECT_FALSE(rig.recovery.progress().finished);
    EXPECT_GT(rig.recovery.progress().unreadable, 0u);
}

TEST(Recovery, a_stripe_that_cannot_be_rebuilt_keeps_only_its_region_stale) {
    Rig rig(kRaid5, 24);  // a region is more than one piece
    rig.host.fill();
    rig.group.lose(0);
    rig.group.replace(0);
    rig.make_bad(3, 44);  // in the second piece of region 1
    rig.recovery.start_rebuild();
    rig.run();
    const Progress progress = rig.recovery.progress();
    EXPECT_FALSE(progress.finished);
    EXPECT_EQ(progress.unreadable, 1u);
    EXPECT_EQ(progress.total_bytes - progress.done_bytes, 24u * 65536u);
    EXPECT_EQ(rig.group.engine().stale_regions(Slot(0)), 1u);
    EXPECT_TRUE(rig.group.engine().is_region_stale(Slot(0), Region(1)));

    rig.group.faults(3).bad_end = 0;
    rig.recovery.start_rebuild();
    rig.run();
    EXPECT_TRUE(rig.recovery.progress().finished);
    EXPECT_EQ(rig.recovery.progress().total_bytes, 24u * 65536u);
    rig.expect_whole();
}

TEST(Recovery, verify_counts_unreadable_stripes_one_by_one_and_checks_their_neighbours) {
    Rig rig(kRaid6);
    rig.host.fill();
    rig.spoil(8);
    rig.spoil(10, 1);
    rig.make_bad(2, 9);
    rig.recovery.start_verify();
    rig.run();
    const Progress progress = rig.recovery.progress();
    EXPECT_TRUE(progress.finished);
    EXPECT_EQ(progress.mismatches, 2u);
    EXPECT_EQ(progress.unreadable, 1u);
    EXPECT_EQ(progress.done_bytes, rig.member_bytes());
}

// Parity cannot be checked where data is missing; but P and Q must tell the same story afterwards,
// or the data would change with the next loss.
TEST(Recovery, resync_of_a_degraded_raid6_leaves_both_parities_agreeing) {
    const std::uint64_t dirty = ~std::uint64_t{0};
    Rig rig(kRaid6, 4, 0, std::span(&dirty, 1));
    rig.host.fill();
    for (std::uint64_t stripe = 0; stripe < rig.group.layout().stripes(); ++stripe) {
        rig.spoil(stripe, 1);
    }
    rig.group.lose(2);
    rig.recovery.start_resync();
    rig.run();
    EXPECT_TRUE(rig.recovery.progress().finished);
    rig.group.replace(2);
    rig.recovery.start_rebuild();
    rig.run();
    EXPECT_TRUE(rig.recovery.progress().finished);
    rig.expect_whole();
}

}  // namespace
}  // namespace warpraid::tasks
