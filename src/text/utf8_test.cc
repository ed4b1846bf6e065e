#include "text/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace bezel {
namespace {

using State = Utf8Char::State;

std::string clean(std::string_view bytes) {
  Utf8Stream stream;
  std::string out;
  stream.push(bytes, out);
  stream.finish(out);
  return out;
}

TEST(Utf8, EveryCodePointSurvivesARoundTrip) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(c, text);
    const Utf8Char decoded = decode_utf8(text);
    ASSERT_EQ(decoded.state, State::kValid) << u32{c};
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.length, text.size());
    ASSERT_EQ(utf8_length(static_cast<u8>(text[0])), text.size());
    for (u32 length = 0; length < text.size(); ++length) {
      const Utf8Char cut = decode_utf8(std::string_view(text).substr(0, length));
      ASSERT_EQ(cut.state, State::kIncomplete) << u32{c};
      ASSERT_EQ(cut.length, length);
    }
  }
}

TEST(Utf8, ValuesThatAreNoCharacterBecomeTheReplacement) {
  for (const char32_t c : {0xD800, 0xDFFF, 0x110000, 0x7FFFFFFF}) {
    std::string text;
    append_utf8(c, text);
    EXPECT_EQ(text, "\uFFFD");
  }
}

TEST(Utf8, RefusesWhatTheStandardForbids) {
  struct Case {
    std::string_view bytes;
    u32 length;
  };
  const Case cases[] = {
      {"\x80", 1},              // a continuation on its own
      {"\xBF\x80", 1},          //
      {"\xC0\x80", 1},          // overlong NUL
      {"\xC1\xBF", 1},          //
      {"\xE0\x80\x80", 1},      // overlong, three bytes
      {"\xE0\x9F\xBF", 1},      //
      {"\xF0\x8F\xBF\xBF", 1},  // overlong, four bytes
      {"\xED\xA0\x80", 1},      // first surrogate
      {"\xED\xBF\xBF", 1},      // last surrogate
      {"\xF4\x90\x80\x80", 1},  // U+110000
      {"\xF5\x80\x80\x80", 1},  //
      {"\xFF", 1},              //
      {"\xC3(", 1},             // broken off by another character
      {"\xE2\x96(", 2},         //
      {"\xF0\x9F\xA6(", 3},     //
  };
  for (const Case& c : cases) {
    const Utf8Char decoded = decode_utf8(c.bytes);
    EXPECT_EQ(decoded.state, State::kInvalid) << testing::PrintToString(c.bytes);
    EXPECT_EQ(decoded.length, c.length) << testing::PrintToString(c.bytes);
  }
  for (const char first : std::string_view("\x80\xBF\xC0\xC1\xF5\xFF")) {
    EXPECT_EQ(utf8_length(static_cast<u8>(first)), 0u);
  }
}

TEST(Utf8Stream, ReplacesWhatIsInvalid) {
  EXPECT_EQ(clean("a\xFF"
                  "b"),
            "a\uFFFDb");
  EXPECT_EQ(clean("\xF0\x9F\xA6(x"), "\uFFFD(x");
  EXPECT_EQ(clean("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(clean("ok \xE2\x96"), "ok \uFFFD");
  EXPECT_EQ(clean(""), "");
}

TEST(Utf8Stream, HoldsAnUnfinishedCharacterBack) {
  Utf8Stream stream;
  std::string out;
  stream.push("a\xF0\x9F", out);
  EXPECT_EQ(out, "a");
  stream.push("\xA6", out);
  EXPECT_EQ(out, "a");
  stream.push("\x99.", out);
  EXPECT_EQ(out, "a🦙.");
  stream.finish(out);
  EXPECT_EQ(out, "a🦙.");
}

// Bytes are drawn so that valid, broken and invalid sequences are all frequent.
TEST(Utf8Stream, GivesTheSameForAnySlicingAndOnlyValidText) {
  const std::string_view alphabet = "a\n\x80\xBF\xC3\xA9\xE2\x96\x81\xED\xA0\xF0\x9F\xA6\x99\xF4\x90\xFF";
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 24, ' ');
    for (char& byte : bytes) byte = alphabet[random() % alphabet.size()];
    Utf8Stream stream;
    std::string out;
    for (size_t at = 0; at < bytes.size();) {
      const size_t count = 1 + random() % 5;
      const size_t before = out.size();
      stream.push(std::string_view(bytes).substr(at, count), out);
      const std::string emitted = out.substr(before);
      ASSERT_EQ(clean(emitted), emitted) << "not valid by itself";
      at += count;
    }
    stream.finish(out);
    ASSERT_EQ(out, clean(bytes)) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace bezel
