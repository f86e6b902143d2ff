// What a power cut may take: nothing of a write with FUA once it is answered, and nothing that was
// answered before a flush, on no member that holds data, a copy or parity of it.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "array/test_group.h"
#include "base/base_test_support.h"

namespace warpraid::array {
namespace {

using block::Operation;
using geometry::Level;
using geometry::Shape;

constexpr std::uint32_t kChunk = 64 * 1024;
constexpr std::size_t kBufferBytes = 4 * kMiB;

struct DurabilityCase {
    std::string name;
    Shape shape;
    std::vector<std::uint32_t> lost;
};
void PrintTo(const DurabilityCase& one, std::ostream* out) {
    *out << one.name;
}

class Durability : public testing::TestWithParam<DurabilityCase> {
  public:
    /// Whether the range is durable wherever a live member holds data, a copy or parity of it.
    testing::AssertionResult is_durable(std::uint64_t offset, std::uint64_t length) const {
        const geometry::Layout& layout = group_.layout();
        for (std::uint64_t at = offset; at < offset + length; at += 4096) {
            const geometry::Position position = layout.locate(at);
            std::vector<geometry::Placement> places;
            for (std::uint32_t copy = 0; copy < layout.copies(); ++copy) {
                places.push_back(layout.data_placement(position.stripe, position.column, copy));
            }
            for (std::uint32_t parity = 0; parity < layout.parity_columns(); ++parity) {
                places.push_back(layout.parity_placement(position.stripe, parity));
            }
            for (const geometry::Placement& place : places) {
                const std::uint32_t slot = place.slot.get();
                const std::uint64_t on_member = place.data_offset + position.offset_in_chunk;
                if (!is_live(slot) || group_.is_flushed(slot, on_member, 4096)) continue;
                return testing::AssertionFailure()
                       << "byte " << at << " is not durable on member " << slot;
            }
        }
        return testing::AssertionSuccess();
    }

  protected:
    Durability() {
        std::memset(buffer_.data, 0x5a, kBufferBytes);
        for (const std::uint32_t slot : GetParam().lost) group_.lose(slot);
    }
    std::byte* data() { return buffer_.data; }
    std::uint64_t stripe_bytes() const { return group_.layout().stripe_data_bytes(); }
    /// One block, in the middle of a chunk, over two chunks, whole stripes, and a bit of each.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges() const {
        const std::uint64_t stripe = stripe_bytes();
        return {{0, 4096},
                {kChunk + 8192, 16384},
                {kChunk - 4096, 8192},
                {0, stripe},
                {stripe, 2 * stripe},
                {stripe / 2, 2 * stripe},
                {4096, stripe - 4096}};
    }
    bool is_live(std::uint32_t slot) const { return ((group_.missing_mask() >> slot) & 1) == 0; }
    std::uint64_t unflushed_bytes() const {
        std::uint64_t sum = 0;
        for (std::uint32_t slot = 0; slot < group_.layout().members(); ++slot) {
            if (is_live(slot)) sum += group_.unflushed_bytes(slot);
        }
        return sum;
    }

    TestGroup group_{GetParam().shape, 4};
    AlignedBuffer buffer_{kBufferBytes};
};

TEST_P(Durability, AFlushReachesEveryMember) {
    for (const auto& [offset, length] : ranges()) {
        ASSERT_EQ(group_.execute(Operation::kWrite, offset, length, data()), 0);
        ASSERT_GT(unflushed_bytes(), 0u);
        ASSERT_EQ(group_.execute(Operation::kFlush, 0, 0, nullptr), 0);
        ASSERT_EQ(unflushed_bytes(), 0u) << "from " << offset << ", " << length << " bytes";
    }
    ASSERT_EQ(group_.execute(Operation::kWriteZeroes, 4096, stripe_bytes(), nullptr), 0);
    ASSERT_EQ(group_.execute(Operation::kFlush, 0, 0, nullptr), 0);
    EXPECT_EQ(unflushed_bytes(), 0u);
}

TEST_P(Durability, FuaReachesEveryMember) {
    for (const auto& [offset, length] : ranges()) {
        for (const Operation operation : {Operation::kWrite, Operation::kWriteZeroes}) {
            std::byte* const from = operation == Operation::kWrite ? data() : nullptr;
            ASSERT_EQ(group_.execute(operation, offset, length, from, /*fua=*/true), 0);
            ASSERT_EQ(unflushed_bytes(), 0u) << "from " << offset << ", " << length << " bytes";
        }
    }
}

// Beside others in the same stripes, which may share its commands and its parity.
TEST_P(Durability, FuaHoldsAmongWritesThatDoNotAskForIt) {
    SeededRandom random(test_seed());
    struct Flight {
        block::Request request;
        Durability* test = nullptr;
        std::size_t* left = nullptr;
        // Later a write of another column may leave the parity of these blocks to the next flush.
        static void complete(block::Request& done) {
            auto& flight = *static_cast<Flight*>(done.owner);
            --*flight.left;
            if (!done.fua) return;
            EXPECT_TRUE(flight.test->is_durable(flight.start, flight.request.length_bytes));
        }
        std::uint64_t start = 0;
    };
    std::size_t asked = 0;
    for (int round = 0; round < 40 && !HasFailure(); ++round) {
        std::vector<std::unique_ptr<Flight>> flights;
        // Every block of three stripes once, in runs of random length and order of arrival.
        std::size_t left = 0;
        for (std::uint64_t at = 0; at < 3 * stripe_bytes(); ++left) {
            auto& flight = *flights.emplace_back(std::make_unique<Flight>());
            flight.test = this;
            flight.left = &left;
            flight.start = at;
            block::Request& request = flight.request;
            request.operation = Operation::kWrite;
            request.offset = at;
            request.length_bytes = std::min((1 + random.below(12)) * 4096, 3 * stripe_bytes() - at);
            request.data = data();
            request.fua = random.below(4) == 0;
            request.owner = &flight;
            request.complete = Flight::complete;
            asked += request.fua ? 1u : 0u;
            at += request.length_bytes;
        }
        for (std::size_t i = flights.size(); i > 1; --i) {
            std::swap(flights[i - 1], flights[random.below(i)]);
        }
        for (const auto& flight : flights) {
            group_.engine().submit(flight->request);
            if (random.below(3) == 0) group_.turn();
        }
        group_.run_until([&] { return left == 0; });
        ASSERT_EQ(group_.execute(Operation::kFlush, 0, 0, nullptr), 0);
        ASSERT_EQ(unflushed_bytes(), 0u);
    }
    EXPECT_GT(asked, 40u);
}

Shape shape(Level level, std::uint32_t members, std::uint32_t copies = 1) {
    return {level, members, copies, kChunk, 4096, std::uint64_t{kChunk} * 24};
}

INSTANTIATE_TEST_SUITE_P(
    Levels, Durability,
    testing::Values(DurabilityCase{"Raid0", shape(Level::kRaid0, 3), {}},
                    DurabilityCase{"Raid1", shape(Level::kRaid1, 3), {}},
                    DurabilityCase{"Raid1Degraded", shape(Level::kRaid1, 3), {1}},
                    DurabilityCase{"Raid5", shape(Level::kRaid5, 4), {}},
                    DurabilityCase{"Raid5Degraded", shape(Level::kRaid5, 4), {2}},
                    DurabilityCase{"Raid6", shape(Level::kRaid6, 6), {}},
                    DurabilityCase{"Raid6Degraded", shape(Level::kRaid6, 6), {0}},
                    DurabilityCase{"Raid6OfTwoLost", shape(Level::kRaid6, 6), {1, 4}},
                    DurabilityCase{"Raid10", shape(Level::kRaid10, 5, 2), {}},
                    DurabilityCase{"Raid10Degraded", shape(Level::kRaid10, 5, 2), {3}}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace warpraid::array
