// What the wide form is on the way to the GPU; what kernels read of it is in plan_test.cc and
// plan_held_test.cc.
#include "graph/wide_form.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "gguf/lattice.h"
#include "gguf/quant.h"
#include "graph/device_weights.h"

namespace bezel {
namespace {

constexpr DType kLattices[] = {DType::kIQ1_S, DType::kIQ1_M,   DType::kIQ2_XXS, DType::kIQ2_XS,
                               DType::kIQ2_S, DType::kIQ3_XXS, DType::kIQ3_S};

// Of 256 weights, and of fewer at the end of a row.
TEST(WideForm, TakesHardlyMoreThanTheFile) {
  struct Case {
    DType type;
    u64 cols, file, wide;
  };
  for (const Case& c : {Case{DType::kQ4_0, 256, 144, 144},
                        {DType::kQ4_0, 704, 396, 400},
                        {DType::kQ4_1, 256, 160, 160},
                        {DType::kQ5_0, 256, 176, 176},
                        {DType::kQ5_0, 704, 484, 496},
                        {DType::kQ5_1, 256, 192, 192},
                        {DType::kQ8_0, 704, 748, 752},
                        {DType::kIQ4_NL, 256, 144, 144},
                        {DType::kMXFP4, 256, 136, 144},
                        {DType::kIQ4_XS, 256, 136, 144},
                        {DType::kNVFP4, 256, 144, 144},
                        {DType::kNVFP4, 704, 396, 400},
                        {DType::kQ2_K, 1024, 336, 336},
                        {DType::kQ2_K, 5376, 1764, 1776},
                        {DType::kQ3_K, 256, 110, 112},
                        {DType::kQ6_K, 256, 210, 224}}) {
    EXPECT_EQ(dtype_bytes(c.type, c.cols), c.file) << dtype_name(c.type);
    EXPECT_EQ(wide_row_bytes(c.type, c.cols), c.wide) << dtype_name(c.type);
    EXPECT_TRUE(product_weight(c.type, c.cols, 2).wide) << dtype_name(c.type);
  }
  // 32 weights would take a word for one scale.
  EXPECT_FALSE(product_weight(DType::kQ4_0, 32, 2).wide);
  EXPECT_FALSE(product_weight(DType::kQ2_K, 256, 2).wide);
  EXPECT_FALSE(product_weight(DType::kNVFP4, 64, 2).wide);
}

// A lattice's weights are four bits and a scale for sixteen, not halves; in tables, where they are read one
// by one from the file's own blocks, they are.
TEST(WideForm, LatticesAreNotHalves) {
  for (const DType type : kLattices) {
    const DeviceWeight product = product_weight(type, 512, 3);
    EXPECT_EQ(static_cast<u32>(product.type), static_cast<u32>(type));
    EXPECT_EQ(product.row_bytes, 2 * 144u);
    EXPECT_EQ(static_cast<u32>(table_weight(type, 512, 3).type), static_cast<u32>(DType::kF16));
  }
}

// Whatever bytes a file has, the level that stands for a weight's value is that value.
TEST(WideForm, LevelsAreTheLatticesValues) {
  Random random(3);
  for (const DType type : kLattices) {
    SCOPED_TRACE(dtype_name(type));
    const auto levels = lattice_levels(type);
    std::vector<std::byte> block(dtype_info(type).block_bytes), wide(144);
    std::vector<f32> values(256);
    for (int round = 0; round < 50; ++round) {
      for (std::byte& b : block) b = static_cast<std::byte>(random.below(256));
      dequantize(type, block, values);
      widen_row(type, block, wide);
      f32 d = 0;
      std::memcpy(&d, wide.data(), sizeof d);
      if (!std::isfinite(d)) continue;
      for (u32 i = 0; i < 256; ++i) {
        u32 bits = 0;
        for (u32 k = 0; k < 3; ++k) bits |= static_cast<u32>(wide[4 + 4 * k + i / 64]) << (8 * k);
        const f32 scale = static_cast<f32>(bits >> (6 * (i / 16 % 4)) & 63U) - 32;
        const u32 nibbles = static_cast<u32>(wide[16 + i / 32 * 16 + i % 16]);
        ASSERT_EQ(d * scale * levels[nibbles >> (i % 32 / 16 * 4) & 15U], values[i]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace bezel
