#include "base/turns.h"

#include <gtest/gtest.h>

#include <numbers>

namespace bezel {
namespace {

TEST(Turns, AgreeWithTheLibraryWithinTheLastDigit) {
  for (int i = -5000; i <= 5000; ++i) {
    const f64 turns = i / 1237.0;
    const SinCos got = sin_cos_turns(turns);
    EXPECT_NEAR(got.sin, std::sin(2 * std::numbers::pi * turns), 1e-14);
    EXPECT_NEAR(got.cos, std::cos(2 * std::numbers::pi * turns), 1e-14);
    EXPECT_NEAR(got.sin * got.sin + got.cos * got.cos, 1, 1e-15);
  }
}

TEST(Turns, QuartersAreExact) {
  for (int i = -9; i <= 9; ++i) {
    const SinCos got = sin_cos_turns(i * 0.25);
    const int quarter = i & 3;
    EXPECT_EQ(got.sin, quarter == 1 ? 1 : quarter == 3 ? -1 : 0) << i;
    EXPECT_EQ(got.cos, quarter == 0 ? 1 : quarter == 2 ? -1 : 0) << i;
  }
  EXPECT_NEAR(sin_cos_turns(1e9 + 1.0 / 12).sin, 0.5, 1e-6);
}

}  // namespace
}  // namespace bezel
