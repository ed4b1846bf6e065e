#include "text/stop.h"

#include <gtest/gtest.h>

namespace bezel {
namespace {

// The shown text, the same for every way to cut the input in up to three pieces and for single bytes.
std::string run(const std::vector<std::string>& stops, std::string_view text, bool expect_stop) {
  const auto feed = [&](std::initializer_list<std::string_view> pieces) {
    StopMatcher matcher(stops);
    std::string shown;
    for (const std::string_view piece : pieces) shown += matcher.push(piece);
    shown += matcher.finish();
    EXPECT_EQ(matcher.stopped(), expect_stop);
    return shown;
  };
  const std::string whole = feed({text});
  for (std::size_t i = 0; i <= text.size(); ++i) {
    for (std::size_t j = i; j <= text.size(); ++j) {
      EXPECT_EQ(feed({text.substr(0, i), text.substr(i, j - i), text.substr(j)}), whole) << i << " " << j;
    }
  }
  StopMatcher matcher(stops);
  std::string shown;
  for (const char c : text) shown += matcher.push(std::string_view(&c, 1));
  EXPECT_EQ(shown + matcher.finish(), whole);
  return whole;
}

TEST(StopMatcher, CutsAtTheStopString) {
  EXPECT_EQ(run({"STOP"}, "one STOP two", true), "one ");
  EXPECT_EQ(run({"STOP"}, "STSTOSTOP!", true), "STSTO");
  EXPECT_EQ(run({"\n\n", "User:"}, "a\nUser:b\n\n", true), "a\n");
  EXPECT_EQ(run({"aab"}, "aaaab", true), "aa");
}

TEST(StopMatcher, TheFirstCompleteOneWins) {
  EXPECT_EQ(run({"abcd", "bc"}, "xabcdx", true), "xa");
  EXPECT_EQ(run({"bc", "abc"}, "xabcx", true), "x");
}

TEST(StopMatcher, PassesEverythingElse) {
  EXPECT_EQ(run({"STOP"}, "no STO", false), "no STO");
  EXPECT_EQ(run({}, "text", false), "text");
  EXPECT_EQ(run({""}, "text", false), "text");
}

TEST(StopMatcher, HoldsBackNoMoreThanNeeded) {
  StopMatcher matcher({"abab", "xyz"});
  EXPECT_EQ(matcher.push("hello aba"), "hello ");
  EXPECT_EQ(matcher.push("a"), "aba");
  EXPECT_EQ(matcher.push("x"), "a");
  EXPECT_EQ(matcher.push("y!"), "xy!");
  EXPECT_EQ(matcher.finish(), "");
}

}  // namespace
}  // namespace bezel
