#include "gguf/random_blocks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gguf/quant.h"

namespace bezel {
namespace {

constexpr DType kTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0,
                            DType::kQ4_0, DType::kQ5_0, DType::kQ4_K, DType::kQ6_K};
constexpr u64 kElements = 256 * 2048;

std::vector<std::byte> filled(RandomBlocks& source, DType type, u64 elements = kElements) {
  std::vector<std::byte> blocks(dtype_bytes(type, elements));
  source.fill(blocks);
  return blocks;
}

u64 checksum(const std::vector<std::byte>& bytes) {  // FNV-1a
  u64 hash = 0xCBF29CE484222325;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<u64>(byte)) * 0x100000001B3;
  return hash;
}

TEST(Random, IsSplitMix64) {
  Random random(1234567);  // the published sequence of this seed
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
}

TEST(Random, StaysWithinItsRangesAndCoversThem) {
  Random random(1);
  f64 sum = 0;
  std::array<u32, 7> counts = {};
  for (int i = 0; i < 70000; ++i) {
    const f64 u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    ++counts.at(random.below(7));
  }
  EXPECT_NEAR(sum / 70000, 0.5, 0.005);
  for (const u32 count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(random.below(1), 0);
}

TEST(RandomBlocks, HaveTheMomentsOfANormalDistribution) {
  for (const DType type : kTypes) {
    for (const f32 deviation : {0.02F, 1.5F}) {
      SCOPED_TRACE(dtype_name(type));
      RandomBlocks source(type, deviation, 11);
      std::vector<f32> values(kElements);
      dequantize(type, filled(source, type), values);
      f64 m1 = 0;
      f64 m2 = 0;
      f64 m3 = 0;
      f64 m4 = 0;
      for (const f32 value : values) {
        const f64 x = value / deviation;
        m1 += x / kElements;
        m2 += x * x / kElements;
        m3 += x * x * x / kElements;
        m4 += x * x * x * x / kElements;
      }
      EXPECT_NEAR(m1, 0, 0.01);
      EXPECT_NEAR(m2, 1, 0.02);
      EXPECT_NEAR(m3, 0, 0.05);
      EXPECT_NEAR(m4, 2.9, 0.12);  // twelve uniforms: a little below the 3 of the normal distribution
    }
  }
}

TEST(RandomBlocks, DependOnNothingButTheSeed) {
  for (const DType type : kTypes) {
    SCOPED_TRACE(dtype_name(type));
    RandomBlocks a(type, 0.02F, 5);
    RandomBlocks b(type, 0.02F, 5);
    RandomBlocks c(type, 0.02F, 6);
    const auto first = filled(a, type, 1024);
    EXPECT_EQ(filled(b, type, 1024), first);
    EXPECT_NE(filled(c, type, 1024), first);
    EXPECT_NE(filled(a, type, 1024), first) << "the second call";
  }
}

// The same bytes on every platform and in every build.
TEST(RandomBlocks, AreTheSameEverywhere) {
  constexpr u64 kSums[] = {0xD864DC9E72DD044D, 0xA48DD07F7C314D89, 0xB9F6347C9BB4ABFB, 0x0D866F135E29F2A9,
                           0x55C94A0E2CB8196D, 0xF9B781AE59CE3639, 0x60665A987B377CCD, 0xAC8E0571E91DE5B8};
  for (std::size_t i = 0; i < std::size(kTypes); ++i) {
    RandomBlocks source(kTypes[i], 0.02F, 2024);
    EXPECT_EQ(checksum(filled(source, kTypes[i])), kSums[i]) << dtype_name(kTypes[i]);
  }
}

TEST(RandomBlocks, FillTensorsOfAnySize) {
  for (const DType type : kTypes) {
    const DTypeInfo& info = dtype_info(type);
    RandomBlocks source(type, 0.02F, 7);
    for (const u32 blocks : {0U, 1U, 3U, 33U}) {
      std::vector<std::byte> out(blocks * info.block_bytes + 1, std::byte{0xAB});
      source.fill(std::span(out).first(out.size() - 1));
      EXPECT_EQ(out.back(), std::byte{0xAB});
    }
  }
}

}  // namespace
}  // namespace bezel
