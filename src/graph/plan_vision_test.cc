// The operations of the vision tower on the GPU against the reference executor.
#ifndef __wasm__
#include <limits>

#include "plan_fixture.h"

namespace bezel {
namespace {

TEST_F(PlanTest, RopeInTwoDimensions) {
  for (const u32 half : {2u, 8u, 32u, 36u}) {
    Graph g;
    start();
    const Tensor x = random_input(g, 5, 3 * 2 * half);
    const Tensor grid = input(g, 2, {0, 0, 1, 0, 0, 3, 76, 839, 10239, 5});
    std::vector<f64> frequencies;
    for (u32 i = 0; i < half / 2; ++i) frequencies.push_back(std::pow(100.0, -2.0 * i / half));
    g.set_name("out", g.rope(x, grid, half, g.add_table(frequencies)));
    expect_same(g, 1e-6);
  }
}

TEST_F(PlanTest, FullAttention) {
  struct Case {
    u32 rows, heads, head_size;
    f64 size;  // of the elements of q and k
  };
  // Large scores put all weight on one key; they may be in the hundreds.
  for (const Case c :
       {Case{1, 1, 4, 1}, Case{16, 2, 8, 1}, Case{17, 1, 12, 1}, Case{63, 3, 16, 1}, Case{64, 1, 128, 0.3},
        Case{65, 2, 64, 0.4}, Case{130, 2, 72, 0.4}, Case{54, 1, 64, 2.5}}) {
    SCOPED_TRACE(testing::Message() << c.rows << " rows, " << c.heads << " heads of " << c.head_size);
    Graph g;
    start();
    const u32 cols = c.heads * c.head_size;
    const Tensor q = random_input(g, c.rows, cols, c.size);
    const Tensor k = random_input(g, c.rows, cols, c.size);
    const Tensor v = random_input(g, c.rows, cols);
    g.set_name("out", g.full_attention(q, k, v, c.head_size));
    compare_with_reference(g, 2e-5, {}, ~u64{0});
  }
}

// Q, K and V as columns of one buffer.
TEST_F(PlanTest, FullAttentionOfViews) {
  Graph g;
  const Tensor qkv = random_input(g, 40, 3 * 48 + 5, 0.5);
  g.set_name("out", g.full_attention(Graph::cols(qkv, 1, 48), Graph::cols(qkv, 50, 48),
                                     Graph::cols(qkv, 100, 48), 24));
  compare_with_reference(g, 1e-5, {}, ~u64{0});
}

TEST_F(PlanTest, FullAttentionShowsWhatIsNotANumber) {
  Graph g;
  const Tensor q = random_input(g, 20, 8);
  inputs_[0][3 * 8 + 1] = std::numeric_limits<f64>::quiet_NaN();
  const Tensor k = random_input(g, 20, 8);
  g.set_name("out", g.full_attention(q, k, random_input(g, 20, 8), 8));
  GpuRun gpu;
  ASSERT_NO_FATAL_FAILURE(run_on_gpu(g, {}, ~u64{0}, gpu));
  for (u32 i = 0; i < 20 * 8; ++i) EXPECT_EQ(std::isnan(gpu.named[0][i]), i / 8 == 3) << i;
}

TEST_F(PlanTest, ShiftScale) {
  Graph g;
  const Tensor x = random_input(g, 5, 70);
  const Weight shift = weights_.make(DType::kF32, 70), factor = weights_.make(DType::kF32, 70);
  g.set_name("bias", g.shift_scale(x, shift));
  g.set_name("standard", g.shift_scale(x, shift, -1, factor));
  g.set_name("factor", g.shift_scale(x, {}, 1, factor));
  expect_same(g, 1e-6);
}

TEST_F(PlanTest, AveragePool) {
  struct Case {
    u32 width, height, side, cols;
  };
  for (const Case c :
       {Case{3, 3, 3, 20}, Case{12, 6, 3, 70}, Case{3, 15, 3, 7}, Case{4, 8, 2, 33}, Case{5, 2, 1, 16}}) {
    Graph g;
    start();
    const Tensor x = random_input(g, c.width * c.height, c.cols);
    g.set_name("out", g.average_pool(x, c.width, c.side, 27.7f));
    expect_same(g, 1e-6);
  }
}

TEST_F(PlanTest, GeluMulInPlace) {
  Graph g;
  const Tensor doubled = g.add(random_input(g, 3, 40), random_input(g, 3, 40));
  g.set_name("out", g.gelu_mul(doubled, random_input(g, 3, 40), true));
  expect_same(g, 2e-6);
}

}  // namespace
}  // namespace bezel
#endif
