// The layout against a model that fills a table of chunks in the order in which Linux MD does,
// cell by cell and without any formula of ours, and against tables of MD written out by hand.
#include "geometry/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/base_test_support.h"

namespace warpraid::geometry {
namespace {

constexpr std::uint32_t kChunk = 4096;

/// What one chunk of one member holds: user chunk `data` of the group, or a parity.
struct Cell {
    ChunkRole::Kind kind = ChunkRole::Kind::kData;
    std::uint64_t data = 0;
    std::uint32_t copy = 0;
};

using Row = std::vector<Cell>;  // by member

// Parity starts on the last member and moves one to the left with each row; Q is on its right; the
// data follow on the right of the last parity, around the end.
std::vector<Row> fill_parity(std::uint32_t members, std::uint32_t parities, std::size_t rows) {
    std::vector<Row> table;
    std::uint64_t next_data = 0;
    std::uint32_t p = members - 1;
    for (std::size_t row = 0; row < rows; ++row) {
        Row cells(members);
        std::uint32_t member = p;
        const auto step = [&] { member = member + 1 == members ? 0 : member + 1; };
        cells[member].kind = ChunkRole::Kind::kP;
        step();
        if (parities == 2) {
            cells[member].kind = ChunkRole::Kind::kQ;
            step();
        }
        for (; member != p; step()) cells[member].data = next_data++;
        table.push_back(cells);
        p = p == 0 ? members - 1 : p - 1;
    }
    return table;
}

// Each chunk is written `copies` times in a row, row by row.
std::vector<Row> fill_near(std::uint32_t members, std::uint32_t copies, std::size_t rows) {
    std::vector<Row> table(rows, Row(members));
    std::uint64_t data = 0;
    std::uint32_t copy = 0;
    for (Row& row : table) {
        for (Cell& cell : row) {
            cell.data = data;
            cell.copy = copy;
            if (++copy == copies) {
                copy = 0;
                ++data;
            }
        }
    }
    return table;
}

std::vector<Row> fill(const Shape& shape, std::size_t rows) {
    switch (shape.level) {
        case Level::kRaid0:
            return fill_near(shape.members, 1, rows);
        case Level::kRaid1:
            return fill_near(shape.members, shape.members, rows);
        case Level::kRaid5:
            return fill_parity(shape.members, 1, rows);
        case Level::kRaid6:
            return fill_parity(shape.members, 2, rows);
        case Level::kRaid10:
            return fill_near(shape.members, shape.copies, rows);
    }
    return {};
}

std::string describe(const Shape& shape) {
    return std::string(to_text(shape.level)) + " over " + std::to_string(shape.members) + ", " +
           std::to_string(shape.copies) + " copies, chunk " + std::to_string(shape.chunk_bytes);
}

Shape make_shape(Level level, std::uint32_t members, std::uint32_t copies = 1) {
    Shape shape;
    shape.level = level;
    shape.members = members;
    shape.copies = copies;
    shape.chunk_bytes = kChunk;
    shape.block_bytes = 512;
    shape.member_data_bytes = 1 * kMiB;
    return shape;
}

Layout make(const Shape& shape) {
    auto layout = Layout::make(shape);
    EXPECT_TRUE(layout.ok()) << describe(shape);
    return std::move(layout).value();
}

/// Every level, member count and copy count there is.
std::vector<Shape> all_shapes(std::uint32_t members_most = limits::kMembersMax) {
    std::vector<Shape> shapes;
    for (Level level : {Level::kRaid0, Level::kRaid1, Level::kRaid5, Level::kRaid6}) {
        for (std::uint32_t members = members_min(level); members <= members_most; ++members) {
            shapes.push_back(make_shape(level, members));
        }
    }
    for (std::uint32_t members = 3; members <= members_most; ++members) {
        for (std::uint32_t copies = 2; copies <= members; ++copies) {
            shapes.push_back(make_shape(Level::kRaid10, members, copies));
        }
    }
    return shapes;
}

// One row of a table as text, such as "D3 D4 P Q".
std::string row_text(const Layout& layout, std::uint64_t row) {
    std::string text;
    for (std::uint32_t member = 0; member < layout.members(); ++member) {
        const ChunkRole role = layout.role_of(Slot(static_cast<std::uint8_t>(member)), row);
        if (member != 0) text += ' ';
        if (role.kind == ChunkRole::Kind::kP) {
            text += 'P';
        } else if (role.kind == ChunkRole::Kind::kQ) {
            text += 'Q';
        } else {
            text += 'D';
            text += std::to_string(role.stripe.get() * layout.data_columns() + role.column);
        }
    }
    return text;
}

void expect_rows(const Shape& shape, const std::vector<std::string>& rows) {
    const Layout layout = make(shape);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        EXPECT_EQ(row_text(layout, row), rows[row]) << "row " << row;
    }
}

TEST(Layout, is_left_symmetric_raid5_of_linux_md) {
    expect_rows(make_shape(Level::kRaid5, 4), {
                                                  "D0 D1 D2 P",
                                                  "D4 D5 P D3",
                                                  "D8 P D6 D7",
                                                  "P D9 D10 D11",
                                                  "D12 D13 D14 P",
                                              });
}

TEST(Layout, is_left_symmetric_raid6_of_linux_md) {
    expect_rows(make_shape(Level::kRaid6, 5), {
                                                  "Q D0 D1 D2 P",
                                                  "D3 D4 D5 P Q",
                                                  "D7 D8 P Q D6",
                                                  "D11 P Q D9 D10",
                                                  "P Q D12 D13 D14",
                                                  "Q D15 D16 D17 P",
                                              });
}

TEST(Layout, is_near_raid10_of_linux_md) {
    expect_rows(make_shape(Level::kRaid10, 3, 2), {"D0 D0 D1", "D1 D2 D2", "D3 D3 D4", "D4 D5 D5"});
    expect_rows(make_shape(Level::kRaid10, 4, 2), {"D0 D0 D1 D1", "D2 D2 D3 D3"});
    expect_rows(make_shape(Level::kRaid10, 5, 3),
                {"D0 D0 D0 D1 D1", "D1 D2 D2 D2 D3", "D3 D3 D4 D4 D4", "D5 D5 D5 D6 D6"});
}

TEST(Layout, is_the_model_in_every_chunk_of_every_shape) {
    for (const Shape& shape : all_shapes()) {
        SCOPED_TRACE(describe(shape));
        const Layout layout = make(shape);
        const std::uint64_t depth = layout.stripe_depth_bytes() / kChunk;
        const std::size_t rows =
            std::min<std::size_t>(3 * depth * shape.members, layout.stripes() * depth);
        const std::vector<Row> table = fill(shape, rows / depth * depth);
        for (std::size_t row = 0; row < table.size(); ++row) {
            for (std::uint32_t member = 0; member < shape.members; ++member) {
                const Cell& cell = table[row][member];
                const Slot slot(static_cast<std::uint8_t>(member));
                const ChunkRole role = layout.role_of(slot, row);
                ASSERT_EQ(role.kind, cell.kind) << row << ", " << member;
                ASSERT_EQ(role.stripe.get(), row / depth);
                const Placement here{slot, row * kChunk};
                if (cell.kind != ChunkRole::Kind::kData) {
                    const std::uint32_t parity = cell.kind == ChunkRole::Kind::kP ? 0 : 1;
                    ASSERT_TRUE(layout.parity_placement(role.stripe, parity) == here);
                    continue;
                }
                const Position position = layout.locate(cell.data * kChunk);
                ASSERT_EQ(position.stripe, role.stripe) << row << ", " << member;
                ASSERT_EQ(position.column, role.column);
                ASSERT_EQ(position.offset_in_chunk, 0u);
                ASSERT_EQ(role.copy, cell.copy);
                ASSERT_TRUE(layout.data_placement(role.stripe, role.column, role.copy) == here);
            }
        }
    }
}

TEST(Layout, addresses_every_block_of_small_groups_once_and_back) {
    for (Shape shape : all_shapes(7)) {
        shape.member_data_bytes = 12 * 6 * kChunk;
        SCOPED_TRACE(describe(shape));
        const Layout layout = make(shape);
        // By member and block: how often a (data block, copy) lies there.
        const std::uint64_t blocks = shape.member_data_bytes / shape.block_bytes;
        std::vector<std::vector<int>> used(shape.members, std::vector<int>(blocks));
        for (std::uint64_t offset = 0; offset < layout.capacity_bytes();
             offset += shape.block_bytes) {
            const Position position = layout.locate(offset);
            ASSERT_EQ(layout.group_offset_of(position), offset);
            for (std::uint32_t copy = 0; copy < layout.copies(); ++copy) {
                const Placement placement =
                    layout.data_placement(position.stripe, position.column, copy);
                const std::uint64_t at = placement.data_offset + position.offset_in_chunk;
                ASSERT_LT(at, shape.member_data_bytes);
                ASSERT_EQ(used[placement.slot.get()][at / shape.block_bytes]++, 0);
            }
        }
        std::uint64_t data_blocks = 0;
        for (const auto& member : used) {
            data_blocks += static_cast<std::uint64_t>(std::ranges::count(member, 1));
        }
        const std::uint64_t parity_blocks =
            layout.stripes() * layout.parity_columns() * (kChunk / shape.block_bytes);
        const std::uint64_t stripes_blocks =
            layout.stripes() * layout.stripe_depth_bytes() / shape.block_bytes * shape.members;
        EXPECT_EQ(data_blocks + parity_blocks, stripes_blocks);
    }
}

TEST(Layout, puts_the_copies_of_a_column_on_different_members) {
    for (const Shape& shape : all_shapes()) {
        const Layout layout = make(shape);
        for (std::uint32_t column = 0; column < layout.data_columns(); ++column) {
            std::uint64_t slots = 0;
            for (std::uint32_t copy = 0; copy < layout.copies(); ++copy) {
                slots |= std::uint64_t{1}
                         << layout.data_placement(Stripe(0), column, copy).slot.get();
            }
            ASSERT_EQ(static_cast<std::uint32_t>(std::popcount(slots)), layout.copies())
                << describe(shape);
        }
    }
}

TEST(Layout, counts_columns_and_capacity_as_documented) {
    struct Expected {
        Shape shape;
        std::uint32_t data, parity, copies, losses;
        std::uint64_t depth_chunks, capacity_chunks;
    };
    const Expected rows[] = {
        {make_shape(Level::kRaid0, 3), 3, 0, 1, 0, 1, 3 * 25},
        {make_shape(Level::kRaid1, 3), 1, 0, 3, 2, 1, 25},
        {make_shape(Level::kRaid5, 3), 2, 1, 1, 1, 1, 2 * 25},
        {make_shape(Level::kRaid6, 8), 6, 2, 1, 2, 1, 6 * 25},
        {make_shape(Level::kRaid10, 4, 2), 2, 0, 2, 1, 1, 2 * 25},
        {make_shape(Level::kRaid10, 3, 2), 3, 0, 2, 1, 2, 3 * 12},  // the odd row is left out
        {make_shape(Level::kRaid10, 6, 4), 3, 0, 4, 3, 2, 3 * 12},  // 6 and 4 share a factor
        {make_shape(Level::kRaid10, 5, 3), 5, 0, 3, 2, 3, 5 * 8},
        {make_shape(Level::kRaid10, 32, 31), 32, 0, 31, 30, 31, 0},  // capacity: see below
    };
    for (Expected row : rows) {
        SCOPED_TRACE(describe(row.shape));
        row.shape.member_data_bytes = 26 * kChunk - 1;  // 25 whole chunks
        if (row.capacity_chunks == 0) {
            row.shape.member_data_bytes = 62 * kChunk;
            row.capacity_chunks = 2 * 32;
        }
        const Layout layout = make(row.shape);
        EXPECT_EQ(layout.data_columns(), row.data);
        EXPECT_EQ(layout.parity_columns(), row.parity);
        EXPECT_EQ(layout.has_parity(), row.parity != 0);
        EXPECT_EQ(layout.copies(), row.copies);
        EXPECT_EQ(layout.losses_always_survived(), row.losses);
        EXPECT_EQ(layout.stripe_depth_bytes(), row.depth_chunks * kChunk);
        EXPECT_EQ(layout.stripe_data_bytes(), std::uint64_t{row.data} * kChunk);
        EXPECT_EQ(layout.capacity_bytes(), row.capacity_chunks * kChunk);
    }
}

TEST(Layout, survives_exactly_the_losses_that_leave_every_chunk_readable) {
    for (const Shape& shape : all_shapes(9)) {
        SCOPED_TRACE(describe(shape));
        const Layout layout = make(shape);
        const std::vector<Row> table = fill(shape, layout.stripe_depth_bytes() / kChunk);
        std::uint32_t always = shape.members;
        for (std::uint32_t missing = 0; missing < 1u << shape.members; ++missing) {
            std::vector<bool> readable(layout.data_columns(), false);
            std::uint32_t parities_left = 0;
            for (const Row& row : table) {
                for (std::uint32_t member = 0; member < shape.members; ++member) {
                    if ((missing >> member & 1) != 0) continue;
                    const Cell& cell = row[member];
                    if (cell.kind == ChunkRole::Kind::kData) readable[cell.data] = true;
                    if (cell.kind != ChunkRole::Kind::kData) ++parities_left;
                }
            }
            const auto lost = static_cast<std::uint32_t>(std::ranges::count(readable, false));
            const bool expected = lost <= parities_left;
            ASSERT_EQ(layout.survives(missing), expected) << "missing " << missing;
            if (!expected) {
                always = std::min(always, static_cast<std::uint32_t>(std::popcount(missing)) - 1);
            }
        }
        EXPECT_EQ(layout.losses_always_survived(), always);
    }
}

TEST(Layout, survives_losses_among_32_members) {
    const Layout raid6 = make(make_shape(Level::kRaid6, 32));
    EXPECT_TRUE(raid6.survives(0x8000'0001));
    EXPECT_FALSE(raid6.survives(0x8000'0003));
    const Layout raid10 = make(make_shape(Level::kRaid10, 32, 2));
    EXPECT_TRUE(raid10.survives(0xaaaa'aaaa));
    EXPECT_FALSE(raid10.survives(0xc000'0000));
    const Layout raid1 = make(make_shape(Level::kRaid1, 32));
    EXPECT_TRUE(raid1.survives(0x7fff'ffff));
    EXPECT_FALSE(raid1.survives(0xffff'ffff));
    EXPECT_FALSE(make(make_shape(Level::kRaid0, 32)).survives(0x8000'0000));
}

TEST(Layout, addresses_drives_up_to_128_tib) {
    SeededRandom random(test_seed());
    for (Shape shape : all_shapes()) {
        for (std::uint32_t chunk : {4096u, 65536u, 1048576u}) {
            for (std::uint64_t size : {64 * kMiB, 128 * kTiB - 4096, 128 * kTiB}) {
                shape.chunk_bytes = chunk;
                shape.member_data_bytes = size;
                SCOPED_TRACE(describe(shape) + ", " + std::to_string(size));
                const Layout layout = make(shape);
                const std::uint64_t end = layout.capacity_bytes();
                // Less than a stripe of each member is left over.
                const std::uint64_t used = layout.stripes() * layout.stripe_depth_bytes();
                ASSERT_LE(used, size);
                ASSERT_GT(used + layout.stripe_depth_bytes(), size);
                for (std::uint64_t offset :
                     {std::uint64_t{0}, end - 1, end / 2, random.below(end)}) {
                    const Position position = layout.locate(offset);
                    ASSERT_LT(position.stripe.get(), layout.stripes());
                    ASSERT_EQ(layout.group_offset_of(position), offset);
                    const std::uint32_t copy =
                        static_cast<std::uint32_t>(random.below(layout.copies()));
                    const Placement at =
                        layout.data_placement(position.stripe, position.column, copy);
                    ASSERT_LE(at.data_offset + chunk, size);
                    const ChunkRole role = layout.role_of(at.slot, at.data_offset / chunk);
                    ASSERT_EQ(role.stripe, position.stripe);
                    ASSERT_EQ(role.column, position.column);
                    ASSERT_EQ(role.copy, copy);
                }
            }
        }
    }
    Shape largest = make_shape(Level::kRaid0, 32);
    largest.member_data_bytes = 128 * kTiB;
    EXPECT_EQ(make(largest).capacity_bytes(), 4096 * kTiB);
}

}  // namespace
}  // namespace warpraid::geometry
