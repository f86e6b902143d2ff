// The engine against a plain model: random requests side by side, members lost, replaced and
// returned at any moment; every read must see the newest write, and at the end every member must
// agree and every loss that the level promises to survive must be survived.
#include "array/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "array/test_group.h"
#include "base/base_test_support.h"

namespace warpraid::array {
namespace {

using geometry::Level;
using geometry::Shape;

class Model {
  public:
    Model(TestGroup& group, std::uint64_t seed)
        : group_(group),
          random_(seed),
          block_(group.layout().block_bytes()),
          content_(group.layout().capacity_bytes()) {}

    ~Model() { drain(); }

    void step() {
        if (flights_.size() < 12 && random_.below(4) != 0) submit_one();
        group_.turn();
        reap();
    }

    void drain() {
        group_.run_until([&] { return pending_ == 0; });
        reap();
    }

    // Reads everything back in pieces of odd sizes.
    void check_all() {
        drain();
        const std::uint64_t size = content_.size();
        for (std::uint64_t offset = 0; offset < size;) {
            const std::uint64_t length =
                std::min<std::uint64_t>((1 + random_.below(300)) * block_, size - offset);
            AlignedBuffer buffer(length);
            ASSERT_EQ(group_.execute(block::Operation::kRead, offset, length, buffer.data), 0);
            ASSERT_EQ(std::memcmp(buffer.data, content_.data() + offset, length), 0)
                << "at " << offset << " length " << length;
            offset += length;
        }
    }

    std::uint64_t expected_errors = 0;

  private:
    struct Flight {
        block::Request request;
        std::unique_ptr<AlignedBuffer> buffer;
        Model* model = nullptr;
        bool done = false;
    };

    bool overlaps(std::uint64_t offset, std::uint64_t length) const {
        for (const auto& flight : flights_) {
            const block::Request& other = flight->request;
            if (other.operation == block::Operation::kFlush) continue;
            const std::uint64_t start = flight->request.submit_offset;
            if (offset < start + other.length_bytes && start < offset + length) return true;
        }
        return false;
    }

    void submit_one() {
        const std::uint64_t size = content_.size();
        const std::uint64_t stripe = group_.layout().stripe_data_bytes();
        std::uint64_t length = block_;
        switch (random_.below(4)) {
            case 0:
                length = (1 + random_.below(8)) * block_;
                break;
            case 1:
                length = (1 + random_.below(stripe / block_)) * block_;
                break;
            case 2:
                length = stripe * (1 + random_.below(3));
                break;
            default:
                break;
        }
        length = std::min(length, size);
        std::uint64_t offset = random_.below((size - length) / block_ + 1) * block_;
        if (random_.below(3) == 0) offset = round_down(offset, stripe);
        if (overlaps(offset, length)) return;
        auto flight = std::make_unique<Flight>();
        block::Request& request = flight->request;
        request.offset = offset;
        request.submit_offset = offset;
        request.length_bytes = length;
        const std::uint64_t dice = random_.below(20);
        if (dice < 8) {
            request.operation = block::Operation::kRead;
        } else if (dice < 17) {
            request.operation = block::Operation::kWrite;
        } else if (dice < 18) {
            request.operation = block::Operation::kWriteZeroes;
        } else {
            request.operation = block::Operation::kFlush;
        }
        request.fua = random_.below(5) == 0 && request.operation != block::Operation::kFlush;
        flight->buffer = std::make_unique<AlignedBuffer>(length);
        if (request.operation == block::Operation::kWrite) fill(flight->buffer->data, length);
        if (request.operation == block::Operation::kRead ||
            request.operation == block::Operation::kWrite) {
            request.data = flight->buffer->data;
        }
        flight->model = this;
        request.owner = flight.get();
        request.complete = [](block::Request& finished) {
            auto* owner = static_cast<Flight*>(finished.owner);
            owner->done = true;
            --owner->model->pending_;
        };
        ++pending_;
        group_.engine().submit(request);
        flights_.push_back(std::move(flight));
    }

    void fill(std::byte* data, std::uint64_t length) {
        for (std::uint64_t i = 0; i < length; i += 8) {
            const std::uint64_t word = random_.next();
            std::memcpy(data + i, &word, 8);
        }
    }

    void reap() {
        for (auto& flight : flights_) {
            if (flight->done) settle(*flight);
        }
        std::erase_if(flights_, [](const auto& flight) { return flight->done; });
    }

    void settle(Flight& flight) {
        const block::Request& request = flight.request;
        ASSERT_EQ(request.error, 0);
        std::byte* at = content_.data() + request.submit_offset;
        if (request.operation == block::Operation::kRead) {
            ASSERT_EQ(std::memcmp(at, flight.buffer->data, request.length_bytes), 0)
                << "read at " << request.submit_offset << " length " << request.length_bytes;
        } else if (request.operation == block::Operation::kWrite) {
            std::memcpy(at, flight.buffer->data, request.length_bytes);
        } else if (request.operation == block::Operation::kWriteZeroes) {
            std::memset(at, 0, request.length_bytes);
        }
    }

    TestGroup& group_;
    SeededRandom random_;
    std::uint64_t block_;
    std::vector<std::byte> content_;
    std::vector<std::unique_ptr<Flight>> flights_;
    std::size_t pending_ = 0;
};

struct Case {
    Shape shape;
    std::uint64_t region_stripes;
    TestGroup::Parity parity = TestGroup::Parity::kAtOnce;
};

std::vector<Case> all_cases() {
    const auto shape = [](Level level, std::uint32_t members, std::uint32_t copies,
                          std::uint32_t chunk, std::uint32_t block, std::uint64_t chunks) {
        return Shape{level, members, copies, chunk, block, chunks * chunk};
    };
    return {
        {shape(Level::kRaid0, 2, 1, 65536, 512, 24), 4},
        {shape(Level::kRaid0, 5, 1, 4096, 4096, 100), 16},
        {shape(Level::kRaid1, 2, 1, 65536, 512, 24), 4},
        {shape(Level::kRaid1, 3, 1, 16384, 4096, 64), 8},
        {shape(Level::kRaid5, 3, 1, 65536, 512, 24), 4},
        {shape(Level::kRaid5, 5, 1, 4096, 4096, 150), 16},
        {shape(Level::kRaid5, 4, 1, 524288, 4096, 4), 1},
        {shape(Level::kRaid6, 4, 1, 4096, 512, 150), 16},
        {shape(Level::kRaid6, 6, 1, 65536, 4096, 16), 3},
        {shape(Level::kRaid6, 9, 1, 8192, 512, 60), 8},
        {shape(Level::kRaid5, 32, 1, 4096, 512, 24), 4},  // its columns fill a mask
        {shape(Level::kRaid5, 5, 1, 16384, 512, 40), 4, TestGroup::Parity::kLater},
        {shape(Level::kRaid6, 6, 1, 32768, 4096, 24), 3, TestGroup::Parity::kLater},
        {shape(Level::kRaid10, 4, 2, 65536, 512, 16), 4},
        {shape(Level::kRaid10, 5, 2, 4096, 4096, 100), 8},
        {shape(Level::kRaid10, 5, 3, 16384, 512, 42), 4},
        {shape(Level::kRaid10, 32, 2, 4096, 512, 24), 4},
    };
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
    const Shape& shape = info.param.shape;
    return std::string(geometry::to_text(shape.level)) + "_" + std::to_string(shape.members) +
           "drives_" + std::to_string(shape.chunk_bytes / 1024) + "k_" +
           std::to_string(shape.block_bytes) + "_" + std::to_string(shape.copies) +
           (info.param.parity == TestGroup::Parity::kLater ? "_late" : "");
}

std::vector<Case> redundant_cases() {
    std::vector<Case> cases = all_cases();
    std::erase_if(cases, [](const Case& one) { return one.shape.level == Level::kRaid0; });
    return cases;
}

class EngineModel : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override { seed_ = test_seed(); }
    bool redundant() const { return GetParam().shape.level != Level::kRaid0; }
    std::uint64_t seed_ = 0;
};
class RedundantModel : public EngineModel {};

TEST_P(EngineModel, healthy_requests_of_any_shape_read_back_and_leave_members_agreeing) {
    TestGroup group(GetParam().shape, GetParam().region_stripes, {}, GetParam().parity);
    Model model(group, seed_);
    for (int i = 0; i < 1500; ++i) model.step();
    model.check_all();
    if (redundant()) {
        EXPECT_EQ(group.count_mismatches(), 0u);
    }
    EXPECT_EQ(group.faults_seen, 0u);
}

TEST_P(RedundantModel, members_lost_under_load_lose_no_byte_and_come_back_by_rebuild) {
    TestGroup group(GetParam().shape, GetParam().region_stripes, {}, GetParam().parity);
    Model model(group, seed_);
    SeededRandom random(seed_ + 1);
    const std::uint32_t members = GetParam().shape.members;
    for (int round = 0; round < 6; ++round) {
        for (int i = 0; i < 200; ++i) model.step();
        const std::uint32_t losses =
            1 + static_cast<std::uint32_t>(random.below(group.layout().losses_always_survived()));
        std::uint32_t lost = 0;
        for (std::uint32_t n = 0; n < losses; ++n) {
            const auto slot = static_cast<std::uint32_t>(random.below(members));
            if ((lost >> slot & 1) != 0) continue;
            lost |= 1u << slot;
            switch (random.below(3)) {
                case 0:
                    group.faults(slot).fail_writes = true;
                    break;
                case 1:
                    group.faults(slot).gone = true;
                    break;
                default:
                    group.faults(slot).fail_write_after =
                        static_cast<std::int64_t>(random.below(20));
            }
            for (int i = 0; i < 60; ++i) model.step();
        }
        for (int i = 0; i < 200; ++i) model.step();
        model.drain();
        for (std::uint32_t slot = 0; slot < members; ++slot) {
            if ((lost >> slot & 1) != 0 && (group.missing_mask() >> slot & 1) == 0) {
                group.lose(slot);  // its fault was never met
            }
        }
        ASSERT_FALSE(group.failed());
        model.check_all();
        for (std::uint32_t slot = 0; slot < members; ++slot) {
            if ((lost >> slot & 1) != 0) group.replace(slot);
        }
        ASSERT_TRUE(group.rebuild([&] { model.step(); }));
        model.drain();
        ASSERT_EQ(group.count_mismatches(), 0u) << "round " << round;
    }
    model.check_all();
}

TEST_P(RedundantModel, a_returning_member_gets_only_what_it_missed) {
    TestGroup group(GetParam().shape, GetParam().region_stripes, {}, GetParam().parity);
    Model model(group, seed_);
    SeededRandom random(seed_ + 2);
    for (int round = 0; round < 4; ++round) {
        for (int i = 0; i < 200; ++i) model.step();
        const auto slot = static_cast<std::uint32_t>(random.below(GetParam().shape.members));
        group.faults(slot).gone = true;
        for (int i = 0; i < 100; ++i) model.step();
        model.drain();
        if ((group.missing_mask() >> slot & 1) == 0) group.lose(slot);
        for (int i = 0; i < 50; ++i) model.step();
        group.give_back(slot);
        ASSERT_TRUE(group.rebuild([&] { model.step(); }));
        model.drain();
        ASSERT_EQ(group.count_mismatches(), 0u) << "round " << round;
    }
    model.check_all();
}

TEST_P(RedundantModel, read_errors_are_answered_from_redundancy) {
    TestGroup group(GetParam().shape, GetParam().region_stripes, {}, GetParam().parity);
    Model model(group, seed_);
    // Every member in turn: a mirror may prefer one copy for all of a small group.
    for (std::uint32_t slot = 0; slot < GetParam().shape.members; ++slot) {
        group.faults(slot).fail_reads = true;
        for (int i = 0; i < 200; ++i) model.step();
        model.drain();
        group.faults(slot).fail_reads = false;
    }
    EXPECT_GT(group.faults_seen, 0u);
    model.check_all();
    EXPECT_EQ(group.count_mismatches(), 0u);
}

TEST_P(RedundantModel, every_promised_loss_is_survived_afterwards) {
    const std::uint32_t members = GetParam().shape.members;
    for (std::uint32_t first = 0; first < members; ++first) {
        const bool pairs = GetParam().shape.level == Level::kRaid6;
        for (std::uint32_t second = pairs ? first + 1 : first;
             second < (pairs ? members : first + 1); ++second) {
            TestGroup group(GetParam().shape, GetParam().region_stripes, {}, GetParam().parity);
            Model model(group, seed_ + first * 100 + second);
            for (int i = 0; i < 150; ++i) model.step();
            model.drain();
            group.lose(first);
            if (second != first) group.lose(second);
            for (int i = 0; i < 100; ++i) model.step();
            model.check_all();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Levels, EngineModel, testing::ValuesIn(all_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Levels, RedundantModel, testing::ValuesIn(redundant_cases()), name_of);

TEST(Engine, whole_stripe_writes_read_nothing_and_send_one_command_per_member) {
    const Shape shape{Level::kRaid6, 10, 1, 4096, 4096, 4096 * 256};
    TestGroup group(shape, 16);
    AlignedBuffer buffer(2 * kMiB);
    std::memset(buffer.data, 7, 2 * kMiB);
    ASSERT_EQ(group.execute(block::Operation::kWrite, 0, 2 * kMiB, buffer.data), 0);
    const EngineCounters& counters = group.engine().counters();
    EXPECT_EQ(counters.member_bytes_read, 0u);
    EXPECT_EQ(counters.member_commands, 10u);
    EXPECT_EQ(counters.full_stripes, 64u);
}

TEST(Engine, small_writes_that_wait_for_one_stripe_go_together) {
    const Shape shape{Level::kRaid5, 5, 1, 65536, 4096, 65536 * 16};
    TestGroup group(shape, 4);
    AlignedBuffer buffer(256 * kKiB);
    std::vector<block::Request> requests(64);
    std::size_t done = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        block::Request& request = requests[i];
        request.operation = block::Operation::kWrite;
        request.offset = i * 4096;
        request.length_bytes = 4096;
        request.data = buffer.data + i * 4096;
        request.owner = &done;
        request.complete = [](block::Request& finished) {
            ++*static_cast<std::size_t*>(finished.owner);
        };
        group.engine().submit(request);
    }
    group.run_until([&] { return done == requests.size(); });
    // 64 writes of one stripe: two batches of at most 32, never 64 read-modify-writes.
    EXPECT_EQ(group.engine().counters().joined_writes, 62u);
    EXPECT_LE(group.engine().counters().read_modify_writes, 2u);
}

TEST(Engine, more_losses_than_redundancy_end_in_errors_not_in_hangs) {
    const Shape shape{Level::kRaid5, 4, 1, 65536, 4096, 65536 * 16};
    TestGroup group(shape, 4);
    AlignedBuffer buffer(kMiB);
    ASSERT_EQ(group.execute(block::Operation::kWrite, 0, kMiB, buffer.data), 0);
    group.faults(0).gone = true;
    group.faults(2).gone = true;
    EXPECT_EQ(group.execute(block::Operation::kWrite, 0, kMiB, buffer.data), EIO);
    EXPECT_TRUE(group.failed());
    EXPECT_EQ(group.execute(block::Operation::kRead, 0, 4096, buffer.data), EIO);
    EXPECT_EQ(group.execute(block::Operation::kFlush, 0, 0, nullptr), EIO);
}

TEST(Engine, requests_that_do_not_fit_are_refused_before_anything_is_done) {
    const Shape shape{Level::kRaid5, 3, 1, 65536, 4096, 65536 * 16};
    TestGroup group(shape, 4);
    const std::uint64_t size = group.engine().limits().size_bytes;
    AlignedBuffer buffer(64 * kKiB);
    EXPECT_EQ(group.execute(block::Operation::kWrite, size, 4096, buffer.data), ENOSPC);
    EXPECT_EQ(group.execute(block::Operation::kWrite, size - 4096, 8192, buffer.data), ENOSPC);
    EXPECT_EQ(group.execute(block::Operation::kRead, size, 4096, buffer.data), EINVAL);
    EXPECT_EQ(group.execute(block::Operation::kRead, 512, 4096, buffer.data), EINVAL);
    EXPECT_EQ(group.execute(block::Operation::kRead, 0, 100, buffer.data), EINVAL);
    EXPECT_EQ(group.execute(block::Operation::kRead, 0, 0, buffer.data), EINVAL);
    EXPECT_EQ(group.execute(block::Operation::kWrite, ~0ull - 4095, 8192, buffer.data), ENOSPC);
    EXPECT_EQ(group.engine().counters().member_commands, 0u);
}

TEST(Engine, resync_makes_members_agree_and_keeps_data) {
    for (const Level level : {Level::kRaid1, Level::kRaid5, Level::kRaid6, Level::kRaid10}) {
        const Shape shape{level, 4, 2, 65536, 4096, 65536 * 16};
        TestGroup group(shape, 4);
        Model model(group, test_seed());
        for (int i = 0; i < 300; ++i) model.step();
        model.drain();
        // What an unclean stop may leave: parity or later copies out of step with the data.
        const geometry::Layout& layout = group.layout();
        for (std::uint64_t stripe = 0; stripe < layout.stripes(); stripe += 3) {
            const geometry::Placement place = layout.has_parity()
                                                  ? layout.parity_placement(Stripe(stripe), 0)
                                                  : layout.data_placement(Stripe(stripe), 0, 1);
            std::byte* at = group.bytes(place.slot.get()) + TestGroup::kDataOffset;
            std::memset(at + place.data_offset, 0x5a, 4096);
        }
        EXPECT_GT(group.count_mismatches(), 0u);
        const std::uint64_t all = ~std::uint64_t{0};
        group.engine().set_suspect_regions(std::span(&all, 1));
        for (int i = 0; i < 300; ++i)
            model.step();  // writes in suspect regions must not trust parity
        model.drain();
        group.resync();
        EXPECT_EQ(group.count_mismatches(), 0u);
        model.check_all();
    }
}

}  // namespace
}  // namespace warpraid::array
