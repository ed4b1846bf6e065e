// The operations of the audio tower on the GPU against the reference executor.
#ifndef __wasm__
#include "plan_fixture.h"

namespace bezel {
namespace {

TEST_F(PlanTest, ConvOfEveryFormatAndOddShapes) {
  struct Case {
    u32 height, width, channels, rows;
  };
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    for (const Case c : {Case{9, 7, 32, 5}, Case{1, 1, 32, 3}, Case{6, 10, 64, 70}, Case{2, 33, 32, 33}}) {
      start();
      Graph g;
      const Tensor x = random_input(g, c.height, c.width * c.channels);
      g.set_name("out", g.conv(x, weights_.make(type, 9 * c.channels, c.rows), c.channels));
      expect_same(g, 2e-6);
    }
  }
}

TEST_F(PlanTest, ConvOfOneChannelAndOfViews) {
  Graph g;
  const Tensor x = random_input(g, 13, 40);
  const Tensor first = g.conv(Graph::cols(Graph::rows(x, 1, 11), 3, 31), weights_.make(DType::kF32, 9, 6), 1);
  EXPECT_EQ(first.rows, 6u);
  EXPECT_EQ(first.cols, 16u * 6);
  g.set_name("first", first);
  g.set_name("second", g.conv(first, weights_.make(DType::kF32, 54, 35), 6));
  expect_same(g, 2e-6);
}

TEST_F(PlanTest, LayerNormOfGroups) {
  Graph g;
  const Tensor x = random_input(g, 5, 300, 100);
  const Tensor a = g.layer_norm(x, weights_.make(DType::kF32, 300), weights_.make(DType::kF32, 300), 1e-6f);
  const Tensor b = g.layer_norm(a, weights_.make(DType::kF32, 20), {}, 1e-6f, 20);
  g.set_name("whole", a);
  g.set_name("groups", b);
  g.set_name("relu", g.layer_norm_relu(g.silu(b), weights_.make(DType::kF32, 20), 1e-6f, 20));
  g.set_name("plain", g.layer_norm(b, {}, {}, 1e-5f, 100));
  expect_same(g, 5e-6);
}

// Equal numbers have no variance: only eps is left to divide by.
TEST_F(PlanTest, LayerNormOfConstants) {
  Graph g;
  g.set_name("out", g.layer_norm(input(g, 32, std::vector<f64>(96, -7.5)), {}, {}, 1e-6f, 32));
  expect_same(g, 0);
}

TEST_F(PlanTest, SigmoidMulAndConvTime) {
  for (const u32 rows : {1u, 4u, 11u}) {
    start();
    Graph g;
    const Tensor both = random_input(g, rows, 260, 60);  // exponentials over all of single precision
    const Tensor gated = g.sigmoid_mul(Graph::cols(both, 0, 130), Graph::cols(both, 130, 130));
    g.set_name("glu", gated);
    g.set_name("silu", g.silu(both));
    g.set_name("time", g.conv_time(gated, weights_.make(DType::kF32, 5, 130)));
    expect_same(g, 2e-6);
  }
}

TEST_F(PlanTest, LocalAttention) {
  struct Case {
    u32 tokens, heads, head_size, window;
  };
  for (const Case c : {Case{1, 2, 64, 12}, Case{30, 3, 48, 12}, Case{20, 1, 5, 13}, Case{40, 2, 33, 32},
                       Case{3, 1, 512, 2}}) {
    start();
    Graph g;
    const u32 width = c.heads * c.head_size;
    // Queries large enough for the cap to count.
    const Tensor q = random_input(g, c.tokens, width, 3);
    const Tensor kv = random_input(g, c.tokens, 2 * width);
    const Tensor relative = random_input(g, c.window, width);
    g.set_name("out", g.local_attention(q, Graph::cols(kv, 0, width), Graph::cols(kv, width, width), relative,
                                        weights_.make(DType::kF32, c.head_size), c.heads, 0.7f, 1.9f, 50));
    expect_same(g, 5e-5);
  }
}

}  // namespace
}  // namespace bezel
#endif
