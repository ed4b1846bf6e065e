// Products by integers, which the plan chooses on a hardware GPU: with the vector's digits in workgroup
// memory (lib_chunk_digits.wgsl) and, for large matrices, held by threads (lib_product_held.wgsl). Here
// small ones, and few threads, so that there are several passes, teams and batches.
#ifndef __wasm__
#include <cmath>
#include <limits>

#include "plan_fixture.h"

namespace bezel {
namespace {

class HeldProducts : public PlanTest {
 protected:
  static constexpr PlanOptions kInMemory{
      .vector = {.units = true, .threads = 32, .lanes = 8, .rows = 2, .digits = true}};
  static PlanOptions with(u32 threads) { return {.vector = {.threads = threads, .held = true}}; }
  // Quarters of the vector by two.
  static PlanOptions paired(PlanOptions options) {
    options.vector.subgroups = true;
    return options;
  }
  void expect(Graph& g, u32 threads) {
    SCOPED_TRACE(threads);
    for (const PlanOptions& options : {with(threads), paired(with(threads)), kInMemory, paired(kInMemory)})
      compare_with_reference(g, 2e-6, options, ~u64{0});
  }
};

constexpr DType kHeld[] = {DType::kQ4_K, DType::kQ5_K,   DType::kQ6_K,   DType::kQ8_0, DType::kQ2_K,
                           DType::kQ5_1, DType::kIQ4_XS, DType::kIQ4_NL, DType::kNVFP4};
// Each of these is like one of those.
constexpr DType kHeldToo[] = {DType::kQ3_K,   DType::kQ4_0,  DType::kQ4_1,  DType::kQ5_0,
                              DType::kMXFP4,  DType::kIQ1_S, DType::kIQ1_M, DType::kIQ2_XXS,
                              DType::kIQ2_XS, DType::kIQ2_S, DType::kIQ3_S, DType::kIQ3_XXS};

TEST_F(HeldProducts, EveryTypeThatCan) {
  ASSERT_TRUE(test_device()->info().integer_dots);
  for (const DType type : kHeld) {
    SCOPED_TRACE(dtype_name(type));
    for (const u32 tokens : {1u, 3u}) {
      start();
      Graph g;
      const Tensor x = random_input(g, tokens, 768);
      g.set_name("out", g.mat_mul(x, weights_.make(type, 768, 44), {}, 0.5f));
      expect(g, 64);                  // 12 lanes, 5 teams
      if (tokens == 1) expect(g, 8);  // two passes of 6 lanes
    }
  }
}

TEST_F(HeldProducts, TheOtherTypes) {
  for (const DType type : kHeldToo) {
    SCOPED_TRACE(dtype_name(type));
    start();
    Graph g;
    g.set_name("out", g.mat_mul(random_input(g, 1, 768), weights_.make(type, 768, 44)));
    expect(g, 64);
  }
}

TEST_F(HeldProducts, MoreUnitsThanWholePasses) {
  for (const DType type : kHeld) {
    SCOPED_TRACE(dtype_name(type));
    start();
    Graph g;
    g.set_name("out", g.mat_mul(random_input(g, 1, 1792), weights_.make(type, 1792, 20)));
    expect(g, 10);  // 28 units in passes of 10, 10 and 8
  }
}

TEST_F(HeldProducts, SeveralMatrices) {
  start();
  Graph g;
  const Tensor x = random_input(g, 1, 512);
  for (const u32 rows : {40u, 8u, 24u})
    g.set_name(std::to_string(rows), g.mat_mul(x, weights_.make(DType::kQ4_K, 512, rows)));
  const Tensor y = random_input(g, 1, 512);
  g.set_name("gated", g.gelu_mul(g.mat_mul(y, weights_.make(DType::kQ6_K, 512, 28)),
                                 g.mat_mul(y, weights_.make(DType::kQ6_K, 512, 28))));
  expect(g, 24);
}

// More numbers than workgroup memory takes at a time, which are normed each time they are brought.
TEST_F(HeldProducts, NormsOfMoreThanATile) {
  for (const DType type : {DType::kQ4_K, DType::kQ6_K, DType::kQ8_0}) {
    SCOPED_TRACE(dtype_name(type));
    start();
    Graph g;
    const Tensor norm = g.rms_norm(random_input(g, 1, 4352, 10), weights_.make(DType::kF32, 4352), 1e-5f);
    g.set_name("out", g.mat_mul(norm, weights_.make(type, 4352, 36)));
    PlanOptions options = kInMemory;
    options.norm_in_product = ~u64{0};
    compare_with_reference(g, 2e-6, options, ~u64{0});
    EXPECT_EQ(labels_.size(), 1u);
    for (const u32 threads : {34u, 72u}) {  // two passes, one
      options.vector = (threads == 72 ? with(threads) : paired(with(threads))).vector;
      compare_with_reference(g, 2e-6, options, ~u64{0});
      EXPECT_EQ(labels_.size(), 1u);
    }
  }
}

// Sixteen numbers, or 32, share a power of two: those that are far apart, and those whose power does not
// exist.
TEST_F(HeldProducts, NumbersOfAnySize) {
  for (const DType type : kHeld) {
    SCOPED_TRACE(dtype_name(type));
    start();
    Graph g;
    std::vector<f64> x(512);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = std::ldexp(std::sin(static_cast<f64>(i)), i % 37 == 0 ? 12 : static_cast<int>(i / 16) - 24);
    for (std::size_t i = 64; i < 80; ++i) x[i] = 0;
    for (std::size_t i = 128; i < 144; ++i) x[i] = 1e-38 * static_cast<f64>(i);
    g.set_name("out", g.mat_mul(input(g, 512, x), weights_.make(type, 512, 16)));
    expect(g, 32);
  }
}

// What is no number must not come out as one.
TEST_F(HeldProducts, WhatIsNoNumberStaysSo) {
  for (const DType type : kHeld) {
    SCOPED_TRACE(dtype_name(type));
    for (const f64 bad : {std::numeric_limits<f64>::quiet_NaN(), std::numeric_limits<f64>::infinity()}) {
      start();
      Graph g;
      std::vector<f64> x(512, 0.25);
      x[type == DType::kQ5_K ? 300 : 310] = bad;  // in the first or the second quarter of two
      g.set_name("out", g.mat_mul(input(g, 512, x), weights_.make(type, 512, 16)));
      for (const PlanOptions& options : {with(32), paired(with(32)), kInMemory, paired(kInMemory)}) {
        GpuRun gpu;
        ASSERT_NO_FATAL_FAILURE(run_on_gpu(g, options, ~u64{0}, gpu));
        for (const f32 v : gpu.named[0]) EXPECT_FALSE(std::isfinite(v));
      }
    }
  }
}

}  // namespace
}  // namespace bezel
#endif
