#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/crc32c.h"
#include "base/intrusive_list.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "base/random.h"
#include "base/result.h"
#include "base/size_text.h"
#include "base/time_text.h"
#include "base/units.h"
#include "base/uuid.h"

namespace warpraid {
namespace {

TEST(NumberText, takes_digits_only_and_all_of_them) {
    EXPECT_EQ(parse_whole_number<std::uint32_t>("4294967295"), 4294967295U);
    EXPECT_EQ(parse_whole_number<std::uint64_t>("007"), 7U);
    EXPECT_EQ(parse_whole_number<std::size_t>("fF", 16), 255U);
    for (const char* text :
         {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "4294967296", "9999999999999999999999"}) {
        EXPECT_EQ(parse_whole_number<std::uint32_t>(text), std::nullopt) << text;
    }
    EXPECT_TRUE(is_whole_number("99999999999999999999999"));
    for (const char* text : {"", "-1", "1a", " 1"}) EXPECT_FALSE(is_whole_number(text)) << text;
}

TEST(Crc32c, matches_the_published_check_value_and_continues) {
    const char* text = "123456789";
    const auto bytes = std::as_bytes(std::span(text, 9));
    EXPECT_EQ(crc32c(bytes), 0xe3069283u);
    EXPECT_EQ(crc32c(bytes.subspan(4), crc32c(bytes.first(4))), 0xe3069283u);
    EXPECT_EQ(crc32c({}), 0u);
}

TEST(SizeText, reads_what_people_write) {
    EXPECT_EQ(parse_size("4096").value(), 4096u);
    EXPECT_EQ(parse_size("64K").value(), 65536u);
    EXPECT_EQ(parse_size("64KiB").value(), 65536u);
    EXPECT_EQ(parse_size("1.5m").value(), 1572864u);
    EXPECT_EQ(parse_size("2T").value(), 2 * kTiB);
    EXPECT_EQ(parse_size("0").value(), 0u);
    EXPECT_EQ(parse_size("18446744073709551615").value(),
              std::numeric_limits<std::uint64_t>::max());
}

TEST(SizeText, refuses_everything_else) {
    for (const char* text : {"", "K", "-1", "1X", "1.2.3", ".5K", "64 K", "1KiBB", "99999999P",
                             "18446744073709551616", "0.3", "1e3", "1iB", "0x10"}) {
        const auto result = parse_size(text);
        ASSERT_FALSE(result.ok()) << text;
        EXPECT_EQ(result.error().code, ErrorCode::kBadSize) << text;
    }
}

TEST(SizeText, prints_one_decimal) {
    EXPECT_EQ(format_size(512), "512 B");
    EXPECT_EQ(format_size(65536), "64.0 KiB");
    EXPECT_EQ(format_size(3 * kGiB), "3.0 GiB");
}

TEST(Printable, keeps_text_and_hides_what_moves_cursors) {
    EXPECT_EQ(printable("a\nb\x1b[31m\t\x7f"), "a?b?[31m??");
    EXPECT_EQ(printable("\xc2\x9b[m\xc2\x80\xc2\x9f"), "?[m??");
    for (const char* text : {"", "vol1", "\xc3\xbcn\xc3\xaf", "\xc2\xa0", "\xc2"}) {
        EXPECT_EQ(printable(text), text);
    }
}

TEST(TimeText, is_rfc_3339) {
    EXPECT_EQ(format_time(0), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(format_time(1'700'000'000'123'456'789ULL), "2023-11-14T22:13:20.123Z");
    EXPECT_EQ(format_duration(59), "59s");
    EXPECT_EQ(format_duration(200), "3m20s");
    EXPECT_EQ(format_duration(7500), "2h05m");
}

TEST(UuidText, round_trips_and_refuses_other_text) {
    SeededRandom random(7);
    const Uuid uuid = Uuid::make(random);
    EXPECT_EQ(Uuid::parse(uuid.to_text()), uuid);
    EXPECT_FALSE(uuid.is_nil());
    EXPECT_FALSE(Uuid::parse("").has_value());
    EXPECT_FALSE(Uuid::parse(uuid.to_text() + "0").has_value());
    std::string broken = uuid.to_text();
    broken[8] = '0';
    EXPECT_FALSE(Uuid::parse(broken).has_value());
}

TEST(ErrorTable, has_a_text_an_errno_and_a_status_for_each_code) {
    EXPECT_EQ(to_text(ErrorCode::kMemberTooSmall), "member-too-small");
    EXPECT_EQ(to_errno(ErrorCode::kIo), EIO);
    EXPECT_EQ(to_http_status(ErrorCode::kNotFound), 404);
}

struct Item : FifoLink<Item> {
    int value = 0;
};

TEST(IntrusiveFifo, keeps_order_through_removal) {
    Item items[4];
    IntrusiveFifo<Item> fifo;
    for (int i = 0; i < 4; ++i) {
        items[i].value = i;
        fifo.push_back(items[i]);
    }
    fifo.remove_after(&items[0], items[1]);
    fifo.remove_after(&items[2], items[3]);
    EXPECT_EQ(fifo.size(), 2u);
    fifo.push_back(items[1]);
    EXPECT_EQ(fifo.pop_front(), &items[0]);
    EXPECT_EQ(fifo.pop_front(), &items[2]);
    EXPECT_EQ(fifo.pop_front(), &items[1]);
    EXPECT_EQ(fifo.pop_front(), nullptr);
    EXPECT_TRUE(fifo.empty());
}

}  // namespace
}  // namespace warpraid
