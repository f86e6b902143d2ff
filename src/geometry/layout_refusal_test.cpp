// Every refusal of a shape: its code, and what was found and needed in its message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "geometry/layout.h"

namespace warpraid::geometry {
namespace {

using ::testing::HasSubstr;

Shape good() {
    Shape shape;
    shape.level = Level::kRaid6;
    shape.members = 6;
    shape.chunk_bytes = 65536;
    shape.block_bytes = 4096;
    shape.member_data_bytes = 1 * kGiB;
    return shape;
}

void expect_refused(const Shape& shape, ErrorCode code, const std::string& found,
                    const std::string& needed) {
    const auto layout = Layout::make(shape);
    ASSERT_FALSE(layout.ok()) << found;
    EXPECT_EQ(layout.error().code, code) << layout.error().message;
    EXPECT_THAT(layout.error().message, HasSubstr(found));
    EXPECT_THAT(layout.error().message, HasSubstr(needed));
}

TEST(LayoutRefusal, good_shapes_are_accepted_up_to_their_limits) {
    for (std::uint64_t chunk = 4 * kKiB; chunk <= 1 * kMiB; chunk *= 2) {
        for (std::uint32_t block : {512u, 4096u}) {
            Shape shape = good();
            shape.chunk_bytes = static_cast<std::uint32_t>(chunk);
            shape.block_bytes = block;
            const auto layout = Layout::make(shape);
            ASSERT_TRUE(layout.ok());
            EXPECT_EQ(layout->chunk_bytes(), chunk);
            EXPECT_EQ(layout->block_bytes(), block);
            EXPECT_EQ(layout->level(), Level::kRaid6);
            EXPECT_EQ(layout->members(), 6u);
        }
    }
}

TEST(LayoutRefusal, levels_that_do_not_exist) {
    Shape shape = good();
    for (int level : {2, 3, 4, 7, 60, 255}) {
        shape.level = static_cast<Level>(level);
        expect_refused(shape, ErrorCode::kBadLevel, std::to_string(level), "0, 1, 5, 6 or 10");
    }
}

TEST(LayoutRefusal, too_few_and_too_many_members) {
    struct Row {
        Level level;
        std::uint32_t least;
    };
    for (Row row : {Row{Level::kRaid0, 2}, Row{Level::kRaid1, 2}, Row{Level::kRaid5, 3},
                    Row{Level::kRaid6, 4}, Row{Level::kRaid10, 3}}) {
        EXPECT_EQ(members_min(row.level), row.least);
        EXPECT_EQ(members_max(row.level), 32u);
        Shape shape = good();
        shape.level = row.level;
        shape.copies = 2;
        const std::string needed = std::to_string(row.least) + " to 32";
        for (std::uint32_t members : {0u, row.least - 1, 33u, 0xffff'ffffu}) {
            shape.members = members;
            expect_refused(shape, ErrorCode::kMemberCount, std::to_string(members) + " members",
                           std::string(to_text(row.level)) + " needs " + needed);
        }
        for (std::uint32_t members : {row.least, 32u}) {
            shape.members = members;
            EXPECT_TRUE(Layout::make(shape).ok()) << to_text(row.level) << members;
        }
    }
}

TEST(LayoutRefusal, copies_of_raid10_only) {
    Shape shape = good();
    shape.level = Level::kRaid10;
    for (std::uint32_t copies : {0u, 1u, 7u, 0xffff'ffffu}) {
        shape.copies = copies;
        expect_refused(shape, ErrorCode::kInvalidArgument, std::to_string(copies) + " copies",
                       "2 to 6");
    }
    for (Level level : {Level::kRaid0, Level::kRaid1, Level::kRaid5, Level::kRaid6}) {
        shape.level = level;
        shape.copies = 99;
        EXPECT_TRUE(Layout::make(shape).ok()) << to_text(level);
    }
}

TEST(LayoutRefusal, chunks_of_other_sizes) {
    for (std::uint32_t chunk : {0u, 512u, 2048u, 4097u, 12288u, 98304u, 1u << 21, 1u << 31}) {
        Shape shape = good();
        shape.chunk_bytes = chunk;
        expect_refused(shape, ErrorCode::kBadChunk, "chunk of " + std::to_string(chunk),
                       "power of two from 4096 to 1048576");
    }
}

TEST(LayoutRefusal, blocks_of_other_sizes) {
    for (std::uint32_t block : {0u, 511u, 520u, 1024u, 2048u, 8192u}) {
        Shape shape = good();
        shape.block_bytes = block;
        expect_refused(shape, ErrorCode::kInvalidArgument, "block of " + std::to_string(block),
                       "512 or 4096");
    }
}

TEST(LayoutRefusal, members_smaller_than_a_stripe_or_larger_than_128_tib) {
    Shape shape = good();
    for (std::uint64_t size : {std::uint64_t{0}, std::uint64_t{65535}, 128 * kTiB + 1}) {
        shape.member_data_bytes = size;
        expect_refused(shape, ErrorCode::kBadSize, std::to_string(size),
                       "from 65536 to 140737488355328");
    }
    shape.level = Level::kRaid10;
    shape.members = 5;
    shape.copies = 3;  // a stripe is three chunks deep
    shape.member_data_bytes = 3 * 65536 - 1;
    expect_refused(shape, ErrorCode::kBadSize, "196607", "from 196608 to");
    shape.member_data_bytes = 3 * 65536;
    EXPECT_EQ(Layout::make(shape).value().capacity_bytes(), 5u * 65536);
}

TEST(LevelText, reads_what_people_write_and_prints_one_form) {
    struct Row {
        const char* text;
        Level level;
    };
    for (Row row :
         {Row{"0", Level::kRaid0}, Row{"raid0", Level::kRaid0}, Row{"RAID1", Level::kRaid1},
          Row{"Raid5", Level::kRaid5}, Row{"6", Level::kRaid6}, Row{"raid10", Level::kRaid10},
          Row{"10", Level::kRaid10}}) {
        const auto level = parse_level(row.text);
        ASSERT_TRUE(level.ok()) << row.text;
        EXPECT_EQ(*level, row.level);
        EXPECT_EQ(parse_level(to_text(*level)).value(), row.level);
    }
    EXPECT_EQ(to_text(Level::kRaid6), "raid6");
}

TEST(LevelText, refuses_everything_else) {
    for (const char* text : {"", "raid", "4", "raid4", "60", "raidraid6", " 6", "6 ", "06",
                             "raid-6", "raid6raid6raid6raid6raid6", "1\n"}) {
        const auto level = parse_level(text);
        ASSERT_FALSE(level.ok()) << text;
        EXPECT_EQ(level.error().code, ErrorCode::kBadLevel);
        EXPECT_THAT(level.error().message, HasSubstr(std::string(text).substr(0, 16)));
        EXPECT_THAT(level.error().message, HasSubstr("raid0, raid1, raid5, raid6 or raid10"));
    }
}

}  // namespace
}  // namespace warpraid::geometry
