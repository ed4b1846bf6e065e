#include "api/http.h"

#include <gtest/gtest.h>

namespace bezel {
namespace {

HttpHead parse(std::string text) { return parse_head(text); }
int problem(const std::string& text) {
  const HttpHead head = parse_head(text);
  EXPECT_FALSE(head.request) << text;
  return head.problem.status;
}

TEST(HttpHead, ARequest) {
  const auto head = parse("GET /api/m%3Aq8/blob?x=1 HTTP/1.1\r\nHost: a\r\nRANGE:\t bytes=0-1 \r\n\r\nrest");
  ASSERT_TRUE(head.request);
  const HttpRequest& request = *head.request;
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, (std::vector<std::string>{"api", "m:q8", "blob"}));
  ASSERT_NE(request.header("range"), nullptr);
  EXPECT_EQ(*request.header("range"), "bytes=0-1");
  EXPECT_EQ(request.header("origin"), nullptr);
  EXPECT_TRUE(request.keep_alive && request.chunks);
  EXPECT_EQ(head.length, 66u);
}

TEST(HttpHead, OfAnyPrefixMoreIsWanted) {
  const std::string text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n";
  for (std::size_t n = 0; n < text.size(); ++n) {
    const auto head = parse_head(std::string_view(text).substr(0, n));
    EXPECT_FALSE(head.request);
    EXPECT_EQ(head.problem.status, 0);
  }
  EXPECT_EQ(parse(text).request->content_length, 12u);
}

TEST(HttpHead, ConnectionsAreKept) {
  EXPECT_FALSE(parse("GET / HTTP/1.0\r\n\r\n").request->keep_alive);
  EXPECT_FALSE(parse("GET / HTTP/1.0\r\n\r\n").request->chunks);
  EXPECT_TRUE(parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").request->keep_alive);
  EXPECT_FALSE(parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").request->keep_alive);
}

TEST(HttpHead, WhatIsAmbiguousIsRefused) {
  for (const char* line : {"GET /", "GET  / HTTP/1.1", "G\tT / HTTP/1.1", " GET / HTTP/1.1", "GET a HTTP/1.1",
                           "GET http://a/ HTTP/1.1", "GET /%0 HTTP/1.1", "GET /%zz HTTP/1.1",
                           "GET /%00 HTTP/1.1", "GET /\x01 HTTP/1.1", "GET /# HTTP/1.1", "GET / NOPE", "",
                           "GET / HTTP/1.1 x", "OPTIONS * HTTP/1.1", "AMETHODTHATISTOOLONG / HTTP/1.1"}) {
    EXPECT_GE(problem(std::string(line) + "\r\nHost: a\r\n\r\n"), 400) << line;
  }
  for (const char* header :
       {"Host : a", "Host: a\r\nHost: b", " folded: x", "noname", ": x", "Content-Length: -1",
        "Content-Length: 1x", "Content-Length:", "Content-Length: +1", "Content-Length: 99999999999999999999",
        "Content-Length: 1\r\nContent-Length: 1", "X: a\nY: b", "X: \x01", "X: a\rb",
        "Origin: a\r\nOrigin: b"}) {
    EXPECT_EQ(problem(std::string("GET / HTTP/1.1\r\nHost: a\r\n") + header + "\r\n\r\n"), 400) << header;
  }
  EXPECT_EQ(problem("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(problem("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(problem("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), 501);
  EXPECT_EQ(problem("GET /" + std::string(40000, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 200; ++i) many += "x: y\r\n";
  EXPECT_EQ(problem(many + "\r\n"), 431);
}

TEST(HttpRange, Forms) {
  const auto part = [](const char* header, u64 first, u64 length, u64 size = 100) {
    const ByteRange range = choose_range(header, size);
    EXPECT_EQ(range.kind, ByteRange::Kind::kPart) << header;
    EXPECT_EQ(range.first, first) << header;
    EXPECT_EQ(range.length, length) << header;
  };
  part("bytes=0-0", 0, 1);
  part("bytes=10-19", 10, 10);
  part("bytes=10-", 10, 90);
  part("bytes=-10", 90, 10);
  part("bytes=-1000", 0, 100);
  part("bytes=99-1000", 99, 1);
  part(" Bytes=5-6", 5, 2);
  part("bytes=0-18446744073709551615", 0, 100);
  part("bytes=5000000000-5000000001", 5'000'000'000, 2, 6'000'000'000);
  for (const char* header : {"bytes=100-", "bytes=100-200", "bytes=-0"}) {
    EXPECT_EQ(choose_range(header, 100).kind, ByteRange::Kind::kUnsatisfiable) << header;
  }
  EXPECT_EQ(choose_range("bytes=-5", 0).kind, ByteRange::Kind::kUnsatisfiable);
  for (const char* header : {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "bytes=1-2,5-6",
                             "lines=1-2", "bytes=1--2", "bytes=99999999999999999999-", "bytes=+1-2"}) {
    const ByteRange range = choose_range(header, 100);
    EXPECT_EQ(range.kind, ByteRange::Kind::kWhole) << header;
    EXPECT_EQ(range.length, 100u);
  }
}

TEST(HttpTags, Lists) {
  EXPECT_TRUE(etag_listed("\"a\"", "\"a\""));
  EXPECT_TRUE(etag_listed("\"b\", W/\"a\"", "\"a\""));
  EXPECT_TRUE(etag_listed(" * ", "\"a\""));
  EXPECT_FALSE(etag_listed("\"ab\",\"b\"", "\"a\""));
  EXPECT_FALSE(etag_listed("", "\"a\""));
  EXPECT_FALSE(etag_listed(",,", "\"a\""));
}

TEST(HttpEscapes, BothWays) {
  EXPECT_EQ(percent_encode("a/b c:d%"), "a%2Fb%20c:d%25");
  EXPECT_EQ(percent_decode(percent_encode("\xC3\xA4/\\..")), "\xC3\xA4/\\..");
  EXPECT_EQ(percent_decode("%"), std::nullopt);
  EXPECT_EQ(percent_decode("a%4"), std::nullopt);
  EXPECT_EQ(percent_decode("%00"), std::nullopt);
}

}  // namespace
}  // namespace bezel
