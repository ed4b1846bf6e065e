#include "graph/kv_type.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace bezel {
namespace {

std::vector<f64> numbers(std::size_t count) {
  Random random{3};
  std::vector<f64> out(count);
  for (f64& v : out) v = random.normal();
  return out;
}

TEST(KvTypes, HaveNamesAndSizes) {
  for (const KvType type : {KvType::kQ8, KvType::kF16, KvType::kF32})
    EXPECT_EQ(kv_type_named(kv_name(type)), type);
  EXPECT_FALSE(kv_type_named("f64"));  // no GPU has it
  EXPECT_FALSE(kv_type_named("q4"));
  EXPECT_EQ(kv_name(static_cast<KvType>(77)), "unknown");  // of a damaged file
  EXPECT_EQ(kv_bytes(KvType::kF16, 64), 128);
  EXPECT_EQ(kv_bytes(KvType::kQ8, 64), 72);
}

TEST(KvTypes, BytesAreWithinHalfAStepOfTheirBlocksLargest) {
  auto x = numbers(3 * kKvBlock);
  for (std::size_t i = kKvBlock; i < 2 * kKvBlock; ++i) x[i] *= 1e-3;  // another block, another scale
  const auto stored = kv_encode(KvType::kQ8, x);
  ASSERT_EQ(stored.size(), kv_bytes(KvType::kQ8, x.size()));
  const auto back = kv_decode(KvType::kQ8, stored);
  ASSERT_EQ(back.size(), x.size());
  for (std::size_t block = 0; block < x.size(); block += kKvBlock) {
    f64 largest = 0;
    for (std::size_t i = block; i < block + kKvBlock; ++i) largest = std::max(largest, std::abs(x[i]));
    for (std::size_t i = block; i < block + kKvBlock; ++i)
      EXPECT_NEAR(back[i], x[i], largest * (0.5 / 127 + 1e-6)) << i;
  }
  EXPECT_EQ(kv_encode(KvType::kQ8, back), stored);  // what was stored once stays as it is
}

TEST(KvTypes, ZerosStayZeros) {
  for (const f64 v : kv_decode(KvType::kQ8, kv_encode(KvType::kQ8, std::vector<f64>(kKvBlock))))
    EXPECT_EQ(v, 0);
}

TEST(KvTypes, WhatIsNoNumberSpreadsOverItsBlock) {
  for (const f64 bad : {std::nan(""), -HUGE_VAL, 1e300}) {
    auto x = numbers(2 * kKvBlock);
    x[5] = bad;
    const auto back = kv_decode(KvType::kQ8, kv_encode(KvType::kQ8, x));
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(std::isnan(back[i]), i < kKvBlock) << bad << " at " << i;
  }
}

TEST(KvTypes, HalvesAndSinglesAreRounded) {
  const auto x = numbers(40);
  const auto half = kv_decode(KvType::kF16, kv_encode(KvType::kF16, x));
  const auto single = kv_decode(KvType::kF32, kv_encode(KvType::kF32, x));
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(half[i], x[i], std::abs(x[i]) * 0x1p-11 + 0x1p-25);
    EXPECT_EQ(single[i], static_cast<f32>(x[i]));
  }
}

}  // namespace
}  // namespace bezel
