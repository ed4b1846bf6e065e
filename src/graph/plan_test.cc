// Every operation on the GPU against the reference executor: the same one-operation graph on both.
#ifndef __wasm__

#include "base/format_text.h"
#include "plan_fixture.h"

namespace bezel {
namespace {

constexpr DType kTypes[] = {
    DType::kF32,    DType::kF16,     DType::kBF16,   DType::kQ8_0,    DType::kQ4_0,  DType::kQ4_1,
    DType::kQ5_0,   DType::kQ5_1,    DType::kQ2_K,   DType::kQ3_K,    DType::kQ4_K,  DType::kQ5_K,
    DType::kQ6_K,   DType::kIQ4_NL,  DType::kIQ4_XS, DType::kMXFP4,   DType::kIQ1_S, DType::kIQ1_M,
    DType::kIQ2_XS, DType::kIQ2_XXS, DType::kIQ2_S,  DType::kIQ3_XXS, DType::kIQ3_S, DType::kNVFP4,
};

TEST_F(PlanTest, EmbedRows) {
  for (const DType type : kTypes) {
    start();
    Graph g;
    const Tensor ids = input(g, 1, {0, 6, 3, 3, 1});
    g.set_name("out", g.embed_rows(ids, weights_.make(type, 512, 7), 3));
    expect_same(g, 1e-6);
    expect_same(g, 1e-6, {}, 2500);  // in several buffers
  }
}

TEST_F(PlanTest, MatMulOfEveryFormatAndShape) {
  for (const DType type : kTypes) {
    for (const auto& [rows, tokens] : {std::pair{37u, 1u}, {5u, 3u}, {70u, 9u}, {33u, 40u}}) {
      Graph g;
      start();
      const Tensor x = random_input(g, tokens, 512);
      const Weight scale = weights_.make(DType::kF32, 1);
      g.set_name("out", g.mat_mul(x, weights_.make(type, 512, rows), scale, 0.5f));
      expect_same(g, 2e-6);
      expect_same(g, 2e-6, {}, 9000);
    }
  }
}

// Sizes that are no multiples of a tile's; rows in one buffer, and in several that are no multiples of four.
TEST_F(PlanTest, MatMulInTilesOfEverySize) {
  using Kind = TileOptions::Kind;
  const auto expect = [&](DType type, const TileOptions& tiles, u64 max_tile) {
    SCOPED_TRACE(format_text("{} {} x {}", dtype_name(type), tiles.rows, tiles.tokens));
    start();
    Graph g;
    const Tensor x = random_input(g, 70, 256);
    g.set_name("out", g.mat_mul(x, weights_.make(type, 256, 132), {}, 0.5f));
    compare_with_reference(g, 2e-6, {.tiles = tiles}, max_tile);
  };
  for (const DType type : {DType::kF16, DType::kQ8_0, DType::kQ5_K})
    expect(type, {Kind::kF32, 64, 64, 32}, ~u64{0});
  expect(DType::kQ4_K, {Kind::kF32, 64, 64, 32}, 10'000);
  expect(DType::kQ6_K, {Kind::kF32, 128, 128, 16}, ~u64{0});
}

// What surrounds subgroup matrices; where the device has none, they are imitated.
TEST_F(PlanTest, MatMulWithMatrices) {
  using Kind = TileOptions::Kind;
  const auto expect = [&](DType type, const TileOptions& tiles, f64 tolerance) {
    SCOPED_TRACE(format_text("{} {}", dtype_name(type), tiles.split));
    start();
    Graph g;
    const Tensor x = random_input(g, 38, 256);
    g.set_name("out", g.mat_mul(x, weights_.make(type, 256, 77), weights_.make(DType::kF32, 1), 0.5f));
    compare_with_reference(g, tolerance, {.tiles = tiles}, ~u64{0});
  };
  for (const DType type :
       {DType::kF32, DType::kQ6_K, DType::kQ4_0, DType::kQ5_1, DType::kQ3_K, DType::kIQ4_XS, DType::kNVFP4})
    expect(type, {Kind::kMatrix, 64, 32, 32, 3}, 2e-6);
  expect(DType::kQ4_K, {Kind::kMatrix, 128, 64, 32, 3}, 2e-6);
  expect(DType::kQ4_K, {Kind::kMatrix, 64, 32, 32, 1}, 2e-3);
  expect(DType::kQ4_K, {Kind::kMatrix, 64, 256, 32, 1}, 2e-3);
  expect(DType::kQ4_K, {Kind::kMatrix, 64, 256, 16, 2}, 2e-3);
  expect(DType::kQ6_K, {Kind::kMatrix, 64, 64, 16, 3}, 2e-6);
}

// A row's power of two brings any numbers into the range of halves, and is undone exactly.
TEST_F(PlanTest, MatricesTakeNumbersOfAnySize) {
  for (const f64 size : {1e-30, 1e-6, 1e6, 1e30}) {
    start();
    Graph g;
    const Tensor x = random_input(g, 6, 48, size);
    const Weight w = weights_.make(DType::kF16, 48, 37);
    g.set_name("plain", g.mat_mul(x, w, {}, static_cast<f32>(1 / size)));
    g.set_name("again", g.mat_mul(x, w, {}, static_cast<f32>(-1 / size)));
    g.set_name("bounded", g.mat_mul(x, w, {}, 1, {-0.5f, 0.75f, -1, 2}));
    g.set_name("part", g.mat_mul(Graph::cols(Graph::rows(x, 1, 5), 16, 32), weights_.make(DType::kF32, 32, 9),
                                 {}, static_cast<f32>(1 / size)));
    compare_with_reference(g, 2e-6, {.tiles = {.kind = TileOptions::Kind::kMatrix}}, ~u64{0});
  }
}

TEST_F(PlanTest, MatMulOfViews) {
  Graph g;
  const Tensor x = random_input(g, 9, 100);
  const Tensor part = Graph::cols(Graph::rows(x, 2, 6), 33, 48);
  g.set_name("out", g.mat_mul(part, weights_.make(DType::kF32, 48, 11)));
  expect_same(g, 2e-6);
}

TEST_F(PlanTest, MatMulWithinBounds) {
  for (const u32 tokens : {3u, 9u}) {
    Graph g;
    start();
    const Tensor x = random_input(g, tokens, 48);
    const Weight w = weights_.make(DType::kF16, 48, 37);
    g.set_name("both", g.mat_mul(x, w, {}, 0.5f, {-0.5f, 0.75f, -1, 2}));
    g.set_name("above", g.mat_mul(x, w, {}, 1, {.out_max = 0}));
    g.set_name("below", g.mat_mul(x, w, {}, 1, {.in_min = 0}));
    g.set_name("none", g.mat_mul(x, w));
    expect_same(g, 2e-6);
  }
}

// A bound must not make a number of what is none.
TEST_F(PlanTest, BoundsLetNaNsThrough) {
  for (const u32 tokens : {1u, 8u}) {
    Graph g;
    start();
    const Tensor x = random_input(g, tokens, 16);
    inputs_[0][5] = std::numeric_limits<f64>::quiet_NaN();
    g.set_name("out", g.mat_mul(x, weights_.make(DType::kF32, 16, 4), {}, 1, {-1, 1, -1, 1}));
    expect_same(g, 2e-6);
  }
}

TEST_F(PlanTest, RmsNorm) {
  Graph g;
  const Tensor x = random_input(g, 5, 300, 100);
  const Tensor a = g.rms_norm(x, weights_.make(DType::kF32, 300), 1e-6f);
  const Tensor b = g.rms_norm(a, {}, 1e-6f, 20, 0.25f);
  g.set_name("out", g.rms_norm(b, weights_.make(DType::kF32, 100), 1e-6f, 100));
  expect_same(g, 2e-6);
}

TEST_F(PlanTest, RopeIsRightAtEveryPosition) {
  for (const f64 base : {1e4, 1e6}) {
    Graph g;
    start();
    const Tensor x = random_input(g, 6, 3 * 64);
    const Tensor positions = input(g, 1, {0, 1, 77, 4095, 131071, 262143});
    std::vector<f64> frequencies;
    for (u32 i = 0; i < 32; ++i) frequencies.push_back(i < 24 ? std::pow(base, -2.0 * i / 64) : 1e-30);
    g.set_name("out", g.rope(x, positions, 64, g.add_table(frequencies)));
    expect_same(g, 1e-6);
  }
}

TEST_F(PlanTest, KvWriteWraps) {
  for (const KvType kv : kKvTypes) {
    Graph g;
    start();
    const Tensor x = uneven_input(g, 3, 64);
    g.kv_write(x, input(g, 1, {6, 7, 8}), random_state(g, 8, 64));
    expect_same(g, 0, {.kv = kv});
  }
}

struct AttentionCase {
  u32 tokens, heads, kv_heads, head_size, slots, window, first;
  u32 ahead = 0;  // how far all of them see beyond the last
};

class AttentionOnGpu : public PlanTest {
 protected:
  Graph make(const AttentionCase& c) {
    Graph g;
    start();
    const Tensor q = random_input(g, c.tokens, c.heads * c.head_size, 0.3);
    std::vector<f64> at;
    for (u32 t = 0; t < c.tokens; ++t) at.push_back(c.first + t);
    const Tensor positions = input(g, 1, at);
    if (c.ahead > 0) at.assign(c.tokens, c.first + c.tokens - 1 + c.ahead);
    const Tensor last = input(g, 1, at);
    const Tensor keys = random_state(g, c.slots, c.kv_heads * c.head_size);
    const Tensor values = random_state(g, c.slots, c.kv_heads * c.head_size);
    g.set_name("out",
               g.attention(q, keys, values, positions, last, c.heads, c.kv_heads, c.head_size, c.window));
    return g;
  }
  // Scores of about 5 in size, whose exponential turns an error of 1e-6 into one of 5e-6.
  static constexpr f64 kTolerance = 2e-5;
};

TEST_F(AttentionOnGpu, OfOneQueryByOne) {
  using Case = AttentionCase;
  for (const Case c :
       {Case{1, 4, 2, 64, 300, 0, 250}, Case{1, 4, 1, 128, 40, 16, 100}, Case{5, 2, 2, 32, 64, 0, 3},
        Case{20, 4, 2, 64, 40, 16, 90}, Case{1, 2, 1, 512, 200, 0, 180}, Case{3, 2, 1, 256, 90, 33, 70},
        Case{1, 2, 1, 64, 8, 0, 0}, Case{20, 4, 2, 64, 40, 16, 90, 3}, Case{3, 2, 1, 32, 40, 16, 90, 2}}) {
    for (const KvType kv : kKvTypes) {
      for (const u32 parts : {1u, 8u}) {
        Graph g = make(c);
        expect_same(g, kTolerance, {.kv = kv, .attention_parts = parts});
      }
    }
  }
}

// As on a hardware GPU: heads that have the same keys, of every number and size; rings that wrap; parts that
// have no keys, or a single one; more keys than a step takes.
TEST_F(AttentionOnGpu, OfFewQueriesThatShareKeys) {
  using Case = AttentionCase;
  for (const Case c :
       {Case{1, 8, 1, 256, 130, 0, 100}, Case{2, 4, 1, 512, 60, 0, 40}, Case{5, 6, 2, 16, 64, 0, 3},
        Case{1, 16, 1, 32, 70, 48, 100}, Case{1, 4, 2, 64, 300, 0, 250}, Case{3, 4, 2, 64, 60, 32, 90, 5},
        Case{15, 4, 2, 64, 40, 16, 90}, Case{1, 4, 2, 64, 8, 0, 0}}) {
    for (const KvType kv : kKvTypes) {
      if (kv != KvType::kF32 && c.head_size != 64)
        continue;  // each size is a kernel that takes long to compile
      for (const u32 parts : {1u, 12u}) {
        Graph g = make(c);
        compare_with_reference(g, kTolerance, {.kv = kv, .attention_parts = parts, .attention_decode = true},
                               ~u64{0});
      }
    }
  }
}

// Other numbers of threads: one share of values, or fewer threads than a head has fours.
TEST_F(AttentionOnGpu, OfFewQueriesInSmallWorkgroups) {
  for (const AttentionCase c :
       {AttentionCase{1, 8, 1, 256, 90, 0, 70}, AttentionCase{1, 4, 1, 512, 70, 0, 60}}) {
    Graph g = make(c);
    compare_with_reference(g, kTolerance, {.workgroup = 64, .attention_parts = 3, .attention_decode = true},
                           ~u64{0});
  }
}

TEST_F(AttentionOnGpu, OfManyQueriesTogether) {
  using Case = AttentionCase;
  for (const Case c :
       {Case{20, 4, 2, 64, 40, 16, 90}, Case{20, 4, 2, 64, 40, 16, 90, 3}, Case{37, 2, 1, 64, 200, 0, 130},
        Case{33, 4, 1, 64, 140, 100, 90}, Case{18, 4, 2, 32, 40, 16, 90}}) {
    Graph g = make(c);
    for (const KvType kv : {KvType::kF16, KvType::kQ8})
      compare_with_reference(g, kTolerance, {.kv = kv, .attention_tiles = true}, ~u64{0});
  }
}

TEST_F(AttentionOnGpu, OfManyQueriesTogetherWithLargeHeads) {
  for (const u32 size : {256u, 512u}) {
    Graph g = make({17, 2, 1, size, 100, 0, 70});
    compare_with_reference(g, kTolerance, {.attention_tiles = true}, ~u64{0});
  }
}

TEST_F(PlanTest, Elementwise) {
  Graph g;
  const Tensor a = random_input(g, 3, 130, 20);
  const Tensor b = random_input(g, 3, 130);
  const Tensor sum = g.add(a, b, 0.5f, weights_.make(DType::kF32, 1));
  const Tensor gated = g.gelu_mul(a, Graph::cols(random_input(g, 3, 300), 170, 130));
  const Tensor spliced = g.splice(gated, a, input(g, 1, {0, 1, 0}));
  g.set_name("out", g.add(g.soft_cap(sum, 3), spliced));
  expect_same(g, 2e-6);
}

TEST_F(PlanTest, ManyExperts) {
  Graph g;
  const auto [ids, weights] = g.top_experts(random_input(g, 4, 130), 8);
  g.set_name("out", g.add(ids, weights));
  expect_same(g, 1e-6);
}

TEST_F(PlanTest, TiesOfExpertsGoToTheLowerIndex) {
  Graph g;
  const Tensor logits =  // the zeros of the last row are one, whatever their sign
      input(g, 6, {1, 5, 5, 2, 5, 0, 0, 0, 0, 0, 0, 0, -3, -1, -0.0f, 0, -2, -0.0f});
  const auto [ids, weights] = g.top_experts(logits, 3);
  g.set_name("out", g.add(ids, weights));
  expect_same(g, 1e-6);
}

}  // namespace
}  // namespace bezel
#endif
