#include "base/portable_math.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace bezel {
namespace {

TEST(PortableMath, ExpAgreesWithTheLibrary) {
  Random random(1);
  f64 worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const f64 x = (random.uniform() * 2 - 1) * (i % 2 == 0 ? 707 : 30);
    worst = std::max(worst, std::abs(portable_exp(x) / std::exp(x) - 1));
  }
  EXPECT_LT(worst, 1e-14);
}

TEST(PortableMath, LogAgreesWithTheLibrary) {
  Random random(2);
  f64 worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const f64 x = i % 2 == 0 ? std::exp((random.uniform() * 2 - 1) * 700) : 0.5 + random.uniform() * 1.5;
    worst = std::max(worst, std::abs(portable_log(x) - std::log(x)) / std::abs(std::log(x)));
  }
  EXPECT_LT(worst, 1e-14);
}

TEST(PortableMath, Edges) {
  const f64 infinity = std::numeric_limits<f64>::infinity();
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_exp(infinity), infinity);
  EXPECT_EQ(portable_exp(-infinity), 0);
  EXPECT_EQ(portable_exp(710), infinity);
  EXPECT_EQ(portable_exp(-1000), 0);
  EXPECT_NEAR(portable_exp(709.7) / std::exp(709.7), 1, 1e-13);
  EXPECT_NEAR(portable_exp(-740) / std::exp(-740), 1, 0.01);  // subnormal
  EXPECT_TRUE(std::isnan(portable_exp(NAN)));
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_log(0), -infinity);
  EXPECT_EQ(portable_log(infinity), infinity);
  EXPECT_TRUE(std::isnan(portable_log(-1)));
  EXPECT_NEAR(portable_log(5e-324), std::log(5e-324), 1e-11);
}

// The exact bits: they must not change between platforms.
TEST(PortableMath, FixedBits) {
  u64 hash = 0;
  Random random(3);
  for (int i = 0; i < 10000; ++i) {
    const f64 x = (random.uniform() * 2 - 1) * 100;
    hash = hash * 31 + std::bit_cast<u64>(portable_exp(x));
    hash = hash * 31 + std::bit_cast<u64>(portable_log(std::abs(x)));
  }
  EXPECT_EQ(hash, 5236316479000610893U);
}

TEST(Random, FixedValues) {
  Random random(0);
  EXPECT_EQ(random.next(), 16294208416658607535U);
  EXPECT_EQ(random.next(), 7960286522194355700U);
  EXPECT_EQ(random.next(), 487617019471545679U);
  EXPECT_EQ(Random(42).next(), 13679457532755275413U);
  f64 sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const f64 u = random.uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
}

}  // namespace
}  // namespace bezel
