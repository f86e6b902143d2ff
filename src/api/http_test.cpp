// The reader of requests: whole, in single bytes, and wrong.
#include "api/http.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace warpraid::api {

namespace {

using State = RequestReader::State;

struct Read {
    State state;
    std::string method, target, body;
    int refused_with;
};

Read read(const std::string& bytes, std::size_t step, bool read_only = false) {
    RequestReader reader(read_only);
    for (std::size_t at = 0; at < bytes.size(); at += step) reader.push(bytes.substr(at, step));
    const Request request = reader.request();
    return {reader.state(), std::string(request.method), std::string(request.target),
            std::string(request.body), reader.refusal().http_status};
}

TEST(RequestReader, bodies_come_in_any_pieces) {
    const std::string head = "POST /a?b=%20 HTTP/1.1\r\nHost: x\r\n";
    for (const std::string& rest :
         {std::string("Content-Length: 5\r\n\r\n{\r\n1}"),
          std::string("content-length:5 \r\nContent-Type: application/x-www-form-urlencoded\r\n"
                      "Range: bytes=0-1\r\n\r\n{\r\n1}"),
          std::string("Transfer-Encoding: Chunked\r\n\r\n3;x=y\r\n{\r\n\r\n2\r\n1}\r\n"
                      "0\r\nTrailer: a\r\n\r\n")}) {
        for (const std::size_t step : {1UL, 2UL, 3UL, 7UL, 1000UL}) {
            const Read got = read(head + rest, step);
            ASSERT_EQ(got.state, State::kComplete) << rest << step;
            EXPECT_EQ(got.method, "POST");
            EXPECT_EQ(got.target, "/a?b=%20");
            EXPECT_EQ(got.body, "{\r\n1}");
            // Without its last byte nothing is complete.
            EXPECT_EQ(read((head + rest).substr(0, (head + rest).size() - 1), step).state,
                      State::kBody);
        }
    }
}

TEST(RequestReader, what_is_not_understood_is_refused) {
    for (const char* bytes :
         {"\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2\r\n\r\n",
          "GET  / HTTP/1.1\r\n\r\n", " GET / HTTP/1.1\r\n\r\n",
          "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\nA : b\r\n\r\n",
          "GET / HTTP/1.1\r\nA: b\r\n folded: c\r\n\r\n", "GET / HTTP/1.1\r\n: b\r\n\r\n",
          "POST / HTTP/1.1\r\nContent-Encoding: gzip\r\n\r\n",
          "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
          "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
          "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
          "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
          "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"}) {
        for (const std::size_t step : {1UL, 1000UL}) {
            const Read got = read(bytes, step);
            EXPECT_EQ(got.state, State::kRefused) << bytes;
            EXPECT_EQ(got.refused_with, 400) << bytes;
        }
    }
}

TEST(RequestReader, sizes_are_limited_without_waiting_for_the_end) {
    const std::string post = "POST / HTTP/1.1\r\n";
    const std::string more = std::to_string(limits::kHttpBodyBytesMax + 1);
    EXPECT_EQ(read(post + "Content-Length: " + more + "\r\n\r\n", 1).refused_with, 413);
    const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
    EXPECT_EQ(read(chunked + "100001\r\n", 1).refused_with, 413);
    EXPECT_EQ(read(chunked + "ffffffffffffffff\r\n", 1).refused_with, 413);
    // Together with what the body holds already these would be 0 and less than 0.
    const std::string begun = chunked + "20\r\n" + std::string(32, ' ') + "\r\n";
    for (const char* const size : {"ffffffffffffffe0", "fffffffffffffffe", "ffffffffffffffff"}) {
        for (const std::size_t step : {1UL, begun.size(), 1000UL}) {
            EXPECT_EQ(read(begun + size + "\r\n", step).refused_with, 413) << size << step;
        }
    }
    const std::string half(0x80000, ' ');
    EXPECT_EQ(read(chunked + "80000\r\n" + half + "\r\n80000\r\n" + half + "\r\n1\r\n ", 4096)
                  .refused_with,
              413);
    std::string trailers = chunked + "0\r\n";
    for (int i = 0; i < 9000; ++i) trailers += "A: " + std::string(1000, 'a') + "\r\n";
    EXPECT_EQ(read(trailers, 4096).refused_with, 413);
    EXPECT_EQ(read(chunked + std::string(2000, '0'), 100).refused_with, 400);
    EXPECT_EQ(read(post + "A: " + std::string(40'000, 'a'), 1000).refused_with, 431);
    EXPECT_EQ(read("GET /" + std::string(5000, 'a') + " HTTP/1.1\r\n\r\n", 1000).refused_with, 400);
}

TEST(RequestReader, what_others_may_take_for_a_lines_end_is_refused) {
    const std::string_view lone[] = {"\n", "\r", std::string_view("\0", 1)};
    for (const std::string_view end : lone) {
        const std::string hidden =
            "POST /a HTTP/1.1\r\nX: y" + std::string(end) + "Content-Length: 2\r\n\r\n{}";
        EXPECT_EQ(read(hidden, 1000).refused_with, 400);
        const std::string target = "GET /a" + std::string(end) + "b HTTP/1.1\r\n\r\n";
        EXPECT_EQ(read(target, 1000).refused_with, 400);
    }
}

TEST(RequestReader, a_byte_at_a_time_is_not_searched_again_and_again) {
    const std::string head =
        "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nA: " + std::string(30'000, 'a');
    std::string whole = head + "\r\n\r\n";
    for (int i = 0; i < 30; ++i) whole += "1;" + std::string(1000, 'x') + "\r\n\r\r\n";
    whole += "0\r\n\r\n";
    RequestReader reader(false);
    for (const char byte : whole) reader.push({&byte, 1});
    EXPECT_EQ(reader.state(), State::kComplete);
    EXPECT_EQ(reader.request().body, std::string(30, '\r'));
    // Each byte once, and the beginning of a head's end with each of the bytes behind it.
    EXPECT_LE(reader.searched_bytes(), 5 * whole.size());
}

TEST(RequestReader, a_query_is_complete_with_its_head) {
    const Read got = read("GET /a HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 1, true);
    EXPECT_EQ(got.state, State::kComplete);
    EXPECT_EQ(read("HEAD /a HTTP/1.0\r\n\r\n", 1, true).method, "GET");
    EXPECT_EQ(read("POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 1, true).refused_with, 403);
}

TEST(RequestReader, an_early_end_is_told) {
    RequestReader reader(false);
    reader.end();
    EXPECT_EQ(reader.state(), State::kRefused);
    EXPECT_FALSE(RequestReader(false).has_begun());
}

}  // namespace

}  // namespace warpraid::api
