#include "io/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "io/bit_tree.h"

namespace warpraid::io {
namespace {

std::unique_ptr<BufferArena> make_arena(std::size_t bytes) {
    auto arena = BufferArena::make(bytes);
    EXPECT_TRUE(arena.ok());
    return std::move(arena).value();
}

std::size_t offset_of(const BufferArena& arena, const Buffer& buffer) {
    return static_cast<std::size_t>(buffer.data() - arena.memory().data());
}

TEST(BitTree, agrees_with_a_plain_set) {
    for (const std::uint64_t count : {1ul, 63ul, 64ul, 65ul, 4096ul, 4097ul, 300000ul}) {
        SCOPED_TRACE(count);
        BitTree tree(count);
        std::set<std::uint64_t> model;
        SeededRandom random(count);
        for (int step = 0; step < 2000; ++step) {
            const std::uint64_t number = random.below(count);
            ASSERT_EQ(tree.contains(number), model.contains(number));
            if (model.erase(number) != 0) {
                tree.erase(number);
            } else {
                model.insert(number);
                tree.insert(number);
            }
            ASSERT_EQ(tree.lowest(), model.empty() ? BitTree::kNone : *model.begin());
        }
        EXPECT_FALSE(tree.contains(count));
    }
}

TEST(BitTree, of_nothing_holds_nothing) {
    const BitTree tree(0);
    EXPECT_EQ(tree.lowest(), BitTree::kNone);
    EXPECT_FALSE(tree.contains(0));
}

TEST(BufferArena, rounds_up_to_a_power_of_two_and_says_so) {
    const auto arena = make_arena(1 * kMiB);
    const std::pair<std::size_t, std::size_t> cases[] = {{1, 4096},      {4096, 4096},
                                                         {4097, 8192},   {12288, 16384},
                                                         {65536, 65536}, {300 * kKiB, 512 * kKiB}};
    for (const auto& [wanted, given] : cases) {
        const Buffer buffer = arena->try_acquire(wanted);
        ASSERT_TRUE(buffer);
        EXPECT_EQ(buffer.size_bytes(), given);
        EXPECT_EQ(arena->free_bytes(), 1 * kMiB - given);
    }
    EXPECT_EQ(arena->free_bytes(), 1 * kMiB);
}

TEST(BufferArena, refuses_nothing_too_much_and_what_does_not_fit) {
    const auto arena = make_arena(64 * kMiB);
    EXPECT_FALSE(arena->try_acquire(0));
    EXPECT_FALSE(arena->try_acquire(BufferArena::kBlockBytesMax + 1));
    const Buffer first = arena->try_acquire(BufferArena::kBlockBytesMax);
    const Buffer second = arena->try_acquire(BufferArena::kBlockBytesMax);
    ASSERT_TRUE(first && second);
    EXPECT_FALSE(arena->try_acquire(1));
    EXPECT_EQ(arena->free_bytes(), 0u);
}

TEST(BufferArena, of_no_size_or_an_impossible_one_is_an_error) {
    EXPECT_EQ(BufferArena::make(0).error().code, ErrorCode::kBadSize);
    EXPECT_EQ(BufferArena::make(~std::size_t{0}).error().code, ErrorCode::kBadSize);
    EXPECT_EQ(BufferArena::make(std::size_t{1} << 60).error().code, ErrorCode::kOutOfMemory);
}

TEST(BufferArena, uses_every_page_of_an_odd_size_and_becomes_whole_again) {
    constexpr std::size_t kPages = 8192 + 4096 + 37;
    const auto arena = make_arena(kPages * 4096 - 100);
    EXPECT_EQ(arena->memory().size(), kPages * 4096);
    for (int round = 0; round < 2; ++round) {
        std::vector<Buffer> pages;
        while (Buffer page = arena->try_acquire(1)) pages.push_back(std::move(page));
        EXPECT_EQ(pages.size(), kPages);
        EXPECT_EQ(arena->free_bytes(), 0u);
        // Every second one first, so that nothing can be joined until the rest follows.
        for (std::size_t i = 0; i < pages.size(); i += 2) pages[i].release();
        EXPECT_FALSE(arena->try_acquire(8192)) << "alternate pages cannot make a larger block";
        pages.clear();
        EXPECT_EQ(arena->free_bytes(), kPages * 4096);
        const Buffer large = arena->try_acquire(32 * kMiB);
        const Buffer half = arena->try_acquire(16 * kMiB);
        const Buffer tail = arena->try_acquire(32 * 4096);
        EXPECT_TRUE(large && half && tail);
        EXPECT_FALSE(arena->try_acquire(8 * 4096));
        EXPECT_TRUE(arena->try_acquire(4 * 4096));
    }
}

TEST(BufferArena, blocks_are_naturally_aligned_never_overlap_and_coalesce) {
    constexpr std::uint64_t kSeed = 20240611;
    SCOPED_TRACE(kSeed);
    SeededRandom random(kSeed);
    const auto arena = make_arena(100 * kMiB + 12 * kKiB);
    std::vector<Buffer> held;
    std::map<std::size_t, std::size_t> ranges;  // offset -> end
    std::size_t held_bytes = 0;
    std::size_t refused = 0;
    for (int step = 0; step < 50'000; ++step) {
        if (held.empty() || random.below(100) < 55) {
            const std::size_t wanted =
                std::size_t{1} + random.below(std::uint64_t{1} << random.below(24));
            Buffer buffer = arena->try_acquire(wanted);
            if (!buffer) {
                ++refused;
                continue;
            }
            const std::size_t offset = offset_of(*arena, buffer);
            const std::size_t end = offset + buffer.size_bytes();
            ASSERT_GE(buffer.size_bytes(), wanted);
            ASSERT_EQ(offset % buffer.size_bytes(), 0u);
            ASSERT_LE(end, arena->memory().size());
            const auto next = ranges.upper_bound(offset);
            ASSERT_TRUE(next == ranges.end() || end <= next->first);
            ASSERT_TRUE(next == ranges.begin() || std::prev(next)->second <= offset);
            ranges[offset] = end;
            held_bytes += buffer.size_bytes();
            held.push_back(std::move(buffer));
        } else {
            std::swap(held[random.below(held.size())], held.back());
            ranges.erase(offset_of(*arena, held.back()));
            held_bytes -= held.back().size_bytes();
            held.pop_back();
        }
        ASSERT_EQ(arena->free_bytes(), arena->memory().size() - held_bytes);
    }
    EXPECT_GT(refused, 0u) << "the test never exhausted the arena";
    held.clear();
    for (int i = 0; i < 3; ++i) held.push_back(arena->try_acquire(32 * kMiB));
    EXPECT_TRUE(held[0] && held[1] && held[2]) << "freed blocks did not join";
}

TEST(BufferArena, gives_the_lowest_block_so_that_used_memory_is_used_again) {
    const auto arena = make_arena(8 * kMiB);
    Buffer first = arena->try_acquire(64 * kKiB);
    const Buffer second = arena->try_acquire(64 * kKiB);
    std::byte* where = first.data();
    std::memset(where, 7, first.size_bytes());
    first.release();
    EXPECT_FALSE(first);
    EXPECT_EQ(arena->try_acquire(64 * kKiB).data(), where);
    EXPECT_EQ(second.data(), where + 64 * kKiB);
}

TEST(BufferArena, a_moved_lease_is_given_back_once) {
    const auto arena = make_arena(1 * kMiB);
    Buffer first = arena->try_acquire(4096);
    Buffer second = std::move(first);
    EXPECT_TRUE(second);
    Buffer third = arena->try_acquire(8192);
    third = std::move(second);
    EXPECT_EQ(arena->free_bytes(), 1 * kMiB - 4096);
    third.release();
    third.release();
    EXPECT_EQ(arena->free_bytes(), 1 * kMiB);
}

}  // namespace
}  // namespace warpraid::io
