// Steps of several operations: which there are, and that one dispatch gives what the operations give one by
// one.
#ifndef __wasm__
#include "graph/fuse.h"

#include <cmath>

#include "base/format_text.h"
#include "plan_fixture.h"

namespace bezel {
namespace {

class FusedPlanTest : public PlanTest {
 protected:
  static std::vector<std::size_t> counts(const Graph& g) {
    std::vector<std::size_t> out;
    for (const Step& step : fuse(g)) out.push_back(step.count);
    return out;
  }
  void expect_same_either_way(Graph& g, f64 tolerance, KvType kv = KvType::kF32) {
    for (const bool fuse : {true, false}) expect_same(g, tolerance, {.kv = kv, .fuse = fuse});
  }
};

TEST_F(FusedPlanTest, Residuals) {
  for (const u32 cols : {300u, 77u, 64u}) {
    for (const u32 tokens : {1u, 5u}) {
      start();
      Graph g;
      const Tensor x = random_input(g, tokens, cols), a = random_input(g, tokens, cols, 30);
      const Weight w = weights_.make(DType::kF32, cols), v = weights_.make(DType::kF32, cols);
      const Tensor sum = g.add(x, g.rms_norm(a, w, 1e-6f), 0.5f, weights_.make(DType::kF32, 1));
      const Tensor next = g.rms_norm(sum, v, 1e-5f, 0, 2);
      const Tensor last = g.add(sum, g.rms_norm(next, w, 1e-6f));
      EXPECT_EQ(counts(g), (std::vector<std::size_t>{3, 2}));
      g.set_name("sum", sum);
      g.set_name("last", last);
      expect_same_either_way(g, 2e-6);
      ASSERT_TRUE(test_device()->info().subgroups);
      expect_same(g, 2e-6, {.vector = {.subgroups = true}});
    }
  }
}

TEST_F(FusedPlanTest, ExpertsAndTheDenseBranch) {
  for (const u32 cols : {300u, 77u}) {
    for (const u32 tokens : {1u, 5u}) {
      start();
      Graph g;
      const Tensor x = random_input(g, tokens, cols), f = random_input(g, tokens, cols, 30);
      const Tensor y = random_input(g, tokens * 3, cols), weights = random_input(g, tokens, 3);
      const auto norm = [&](Tensor of) { return g.rms_norm(of, weights_.make(DType::kF32, cols), 1e-6f); };
      const Tensor mixed = g.expert_sum(y, weights), dense = norm(f);
      const Tensor both = g.add(dense, norm(mixed));
      g.set_name("out", g.add(x, norm(both), 0.5f, weights_.make(DType::kF32, 1)));
      EXPECT_EQ(counts(g), (std::vector<std::size_t>{6}));
      expect_same_either_way(g, 2e-6);
      expect_same(g, 2e-6, {.vector = {.subgroups = true}});
      g.set_name("both", both);
      EXPECT_EQ(counts(g), (std::vector<std::size_t>{1, 1, 3, 1}));
      expect_same(g, 2e-6);
    }
  }
}

TEST_F(FusedPlanTest, GatedExperts) {
  for (const u32 tokens : {1u, 5u}) {
    for (const u32 half : {32u, 37u}) {
      start();
      Graph g;
      const Tensor x = random_input(g, tokens, 256);
      const auto [ids, weights] = g.top_experts(random_input(g, tokens, 9), 3);
      g.set_name("ids", ids);
      g.set_name("weights", weights);
      const Weight w = weights_.make(DType::kQ4_K, 256, 2 * half, 9), scales = weights_.make(DType::kF32, 9);
      const Tensor both = g.expert_mat_mul(x, ids, w, scales);
      g.set_name("out", g.gelu_mul(Graph::cols(both, 0, half), Graph::cols(both, half, half)));
      EXPECT_EQ(counts(g), (std::vector<std::size_t>{3}));
      expect_same_either_way(g, 2e-6);
      if (tokens == 1 && half == 32)
        compare_with_reference(g, 2e-6, {.vector = {true, 64, 16, 2, false, true}}, ~u64{0});
      g.set_name("both", both);
      EXPECT_EQ(counts(g), (std::vector<std::size_t>{1, 1, 1}));
    }
  }
}

// A norm that something else reads too, or that has a name, must be there after the step.
TEST_F(FusedPlanTest, WhatOthersReadIsWritten) {
  Graph g;
  const Tensor x = random_input(g, 2, 64);
  const Tensor norm = g.rms_norm(x, {}, 1e-6f);
  const Tensor sum = g.add(x, norm);
  g.set_name("norm", norm);
  g.set_name("sum", sum);
  EXPECT_EQ(counts(g), (std::vector<std::size_t>{1, 1}));
  expect_same_either_way(g, 2e-6);
}

TEST_F(FusedPlanTest, HeadsAndRings) {
  struct Case {
    u32 tokens, heads, kv_heads, head_size;
    bool queries, one_projection;  // keys and values of one product
  };
  for (const Case c : {Case{1, 4, 2, 64, true, false}, Case{5, 2, 1, 32, true, true},
                       Case{3, 3, 1, 12, true, false}, Case{2, 1, 2, 64, false, false}}) {
    for (const KvType kv : kKvTypes) {
      if (kv == KvType::kQ8 && c.head_size % kKvBlock != 0) continue;
      start();
      Graph g;
      const Tensor q = random_input(g, c.tokens, c.heads * c.head_size, 3);
      const Tensor k = random_input(g, c.tokens, c.kv_heads * c.head_size, 3);
      const Tensor v = c.one_projection ? k : uneven_input(g, c.tokens, c.kv_heads * c.head_size);
      std::vector<f64> at;
      for (u32 t = 0; t < c.tokens; ++t) at.push_back(6 + t);
      const Tensor positions = input(g, 1, at);
      std::vector<f64> frequencies;
      for (u32 i = 0; i < c.head_size / 2; ++i) frequencies.push_back(std::pow(1e4, -2.0 * i / c.head_size));
      const u32 table = g.add_table(frequencies);
      const Tensor keys = random_state(g, 8, k.cols), values = random_state(g, 8, k.cols);
      const Weight w = weights_.make(DType::kF32, c.head_size), u = weights_.make(DType::kF32, c.head_size);
      if (c.queries)
        g.set_name("q", g.rope(g.rms_norm(q, w, 1e-6f, c.head_size), positions, c.head_size, table));
      g.kv_write(g.rope(g.rms_norm(k, u, 1e-6f, c.head_size), positions, c.head_size, table), positions,
                 keys);
      g.kv_write(g.rms_norm(v, {}, 1e-6f, c.head_size), positions, values);
      EXPECT_EQ(counts(g), (std::vector<std::size_t>{c.queries ? 7u : 5u}));
      expect_same_either_way(g, 2e-6, kv);
    }
  }
}

TEST_F(FusedPlanTest, GatedProducts) {
  for (const DType type : {DType::kQ4_K, DType::kF16}) {
    for (const u32 tokens : {1u, 3u, 5u}) {
      start();
      Graph g;
      const Tensor x = random_input(g, tokens, 256), y = random_input(g, tokens, 70);
      const Weight scale = weights_.make(DType::kF32, 1);
      const Tensor gate = g.mat_mul(x, weights_.make(type, 256, 70), scale);
      const Tensor up = g.mat_mul(x, weights_.make(type, 256, 70), {}, 0.5f);
      g.set_name("both", g.gelu_mul(gate, up));
      g.set_name("one", g.gelu_mul(g.mat_mul(x, weights_.make(type, 256, 37)), Graph::cols(y, 33, 37)));
      const bool vectors = tokens <= kVectorTokens;
      EXPECT_EQ(counts(g), vectors ? (std::vector<std::size_t>{3, 2}) : std::vector<std::size_t>(5, 1));
      expect_same_either_way(g, 2e-6);
      expect_same(g, 2e-6, {}, 9000);  // in several buffers
    }
  }
}

// Matrices lie side by side where their sizes are multiples of 256 bytes: of 2,048 columns two rows are, of
// 512 eight.
TEST_F(FusedPlanTest, ProductsOfOneVector) {
  for (const DType type : {DType::kQ4_K, DType::kQ6_K}) {
    for (const u32 tokens : {1u, 4u, 5u}) {
      start();
      Graph g;
      const Tensor x = random_input(g, tokens, 2048);
      const Weight scale = weights_.make(DType::kF32, 1);
      g.set_name("other type", g.mat_mul(x, weights_.make(DType::kF16, 2048, 6)));
      g.set_name("v", g.mat_mul(x, weights_.make(type, 2048, 46), scale));
      g.set_name("k", g.mat_mul(x, weights_.make(type, 2048, 6), {}, 0.5f));
      g.set_name("q", g.mat_mul(x, weights_.make(type, 2048, 70)));
      const Tensor y = random_input(g, tokens, 512);
      g.set_name("a", g.mat_mul(y, weights_.make(type, 512, 40)));
      g.set_name("b", g.mat_mul(y, weights_.make(type, 512, 16)));
      g.set_name("gated", g.gelu_mul(g.mat_mul(y, weights_.make(type, 512, 9)),
                                     g.mat_mul(y, weights_.make(type, 512, 9))));
      const bool vectors = tokens <= kVectorTokens;
      EXPECT_EQ(counts(g), vectors ? (std::vector<std::size_t>{1, 3, 2, 3}) : std::vector<std::size_t>(9, 1));
      expect_same_either_way(g, 2e-6);
      expect_same(g, 2e-6, {}, 9000);  // in several buffers
      if (!vectors) continue;
      compare_with_reference(g, 2e-6, {.vector = {true, 64, 16, 2}}, ~u64{0});
      EXPECT_EQ(labels_.size(), 4u);
    }
  }
}

class NormsInProducts : public FusedPlanTest {
 protected:
  static constexpr u64 kAll = ~u64{0};

  // A residual: its sum, and what it is added to and from.
  Tensor residual(Graph& g, u32 tokens, u32 cols) {
    const Tensor x = random_input(g, tokens, cols), a = random_input(g, tokens, cols, 30);
    return g.add(x, norm(g, a), 0.5f, weights_.make(DType::kF32, 1));
  }
  Tensor norm(Graph& g, Tensor x) {
    return g.rms_norm(x, weights_.make(DType::kF32, x.cols), 1e-5f, 0, 0.7f);
  }
  Tensor product(Graph& g, Tensor x, DType type, u32 rows) {
    return g.mat_mul(x, weights_.make(type, x.cols, rows));
  }

  // So many dispatches where products compute norms, so many where they do not. Kernels for units take long
  // to compile, so that each test names those it wants.
  void expect_dispatches(Graph& g, std::size_t together, std::size_t apart,
                         std::initializer_list<VectorOptions> kinds) {
    for (const VectorOptions& kind : kinds) {
      SCOPED_TRACE(kind.threads);
      compare_with_reference(g, 2e-6, {.norm_in_product = kAll, .vector = kind}, ~u64{0});
      EXPECT_EQ(labels_.size(), together);
    }
    compare_with_reference(g, 2e-6, {.norm_in_product = 0}, ~u64{0});
    EXPECT_EQ(labels_.size(), apart);
  }
};

TEST_F(NormsInProducts, GateAndUp) {
  for (const u32 tokens : {1u, 3u}) {
    start();
    Graph g;
    const Tensor sum = residual(g, tokens, 512), h = norm(g, sum);
    const Tensor out = g.gelu_mul(product(g, h, DType::kQ4_K, 72), product(g, h, DType::kQ4_K, 72));
    EXPECT_EQ(counts(g), (std::vector<std::size_t>{6}));
    EXPECT_FALSE(fuse(g)[0].keep);
    g.set_name("sum", sum);
    g.set_name("out", out);
    if (tokens == 1) {
      ASSERT_TRUE(test_device()->info().subgroups);  // by which the last kind adds up
      expect_dispatches(g, 1, 2,
                        {{true, 64, 16, 2}, {true, 32, 8, 2, false, true}, {true, 32, 8, 2, true, true}});
    } else {
      expect_dispatches(g, 1, 2, {{}});
      compare_with_reference(g, 2e-6, {.norm_in_product = kAll}, 9000);  // in several buffers
      EXPECT_EQ(labels_.size(), 1 + 2 * 3);
    }
  }
}

// Two sides of which one number is large and cancels, as happens in real models: what is left is normed by
// its own squares. That number is left with 14 bits, hence the tolerance; found from the sides, the norm
// would be off by 1e-3.
TEST_F(NormsInProducts, OfAResidualThatCancels) {
  Graph g;
  std::vector<f64> x(512), a(512);  // single precision has all of them
  for (std::size_t i = 1; i < 512; ++i) {
    const f32 angle = static_cast<f32>(i);
    x[i] = std::sin(angle), a[i] = 1e-4f * std::cos(angle);
  }
  x[0] = 1024, a[0] = -1;
  const Tensor away = g.rms_norm(input(g, 512, a), {}, 1e-9f, 0, 1024 / std::sqrt(512.0f));
  const Tensor h = norm(g, g.add(input(g, 512, x), away));
  g.set_name("out", product(g, h, DType::kQ4_K, 72));
  for (const VectorOptions& kind :
       {VectorOptions{true, 32, 8, 2, false, true}, {true, 32, 8, 2, true, true}}) {
    compare_with_reference(g, 1e-4, {.norm_in_product = kAll, .vector = kind}, ~u64{0});
    EXPECT_EQ(labels_.size(), 1u);
  }
}

// The sum itself is multiplied, then gated by something else.
TEST_F(NormsInProducts, AGateOfTheSum) {
  Graph g;
  const Tensor other = random_input(g, 2, 200);
  const Tensor sum = residual(g, 2, 256);
  const Tensor out = g.gelu_mul(product(g, sum, DType::kQ5_K, 100), Graph::cols(other, 100, 100));
  EXPECT_EQ(counts(g), (std::vector<std::size_t>{4}));
  g.set_name("sum", sum);
  g.set_name("out", out);
  expect_dispatches(g, 1, 2, {{true, 32, 16, 4}, {true, 64, 16, 4, false, true}});
}

// Values of another type than keys and queries: these read what the first step keeps.
TEST_F(NormsInProducts, QueriesKeysAndValues) {
  for (const DType values : {DType::kQ4_K, DType::kQ6_K}) {
    start();
    Graph g;
    const Tensor sum = residual(g, 1, 512), h = norm(g, sum);
    const Tensor v = product(g, h, values, 32), k = product(g, h, DType::kQ4_K, 32);
    const Tensor q = product(g, h, DType::kQ4_K, 104);
    const bool one_type = values == DType::kQ4_K;
    EXPECT_EQ(counts(g), one_type ? (std::vector<std::size_t>{6}) : (std::vector<std::size_t>{4, 2}));
    EXPECT_EQ(fuse(g)[0].keep, !one_type);
    g.set_name("sum", sum);
    g.set_name("v", v);
    g.set_name("k", k);
    g.set_name("q", q);
    expect_dispatches(g, one_type ? 1 : 2, one_type ? 2 : 3,
                      {{true, 64, 16, 2}, {true, 32, 16, 2, false, true}, {}});
  }
}

// One dispatch multiplies with matrices that lie one after the other, in whatever order; with others each has
// its own, and so has the norm.
TEST_F(NormsInProducts, WhereverMatricesLie) {
  for (const auto& [order, together] :
       {std::pair{std::array{2u, 0u, 1u}, true}, {std::array{3u, 0u, 1u}, false}}) {
    for (const bool join : {true, false}) {
      start();
      weights_.join = join;
      Graph g;
      const Tensor sum = residual(g, 1, 512), h = norm(g, sum);
      std::vector<Weight> weights;
      for (const u32 rows : {48u, 8u, 104u, 24u}) weights.push_back(weights_.make(DType::kQ4_K, 512, rows));
      g.set_name("sum", sum);
      for (const u32 i : order)
        g.set_name(std::to_string(i), g.mat_mul(h, weights[i], {}, static_cast<f32>(1 + i)));
      EXPECT_EQ(counts(g), (std::vector<std::size_t>{6}));
      const bool one = together && join;
      expect_dispatches(g, one ? 1 : 4, one ? 2 : 4, {{}});
    }
  }
}

// Of four experts of each token, those of one buffer after those of another.
TEST_F(NormsInProducts, GatedExperts) {
  for (const u32 tokens : {1u, 3u}) {
    start();
    Graph g;
    const Tensor h = norm(g, random_input(g, tokens, 512));
    const auto [ids, weights] = g.top_experts(random_input(g, tokens, 12), 4);
    g.set_name("ids", ids);
    g.set_name("weights", weights);
    const Weight w = weights_.make(DType::kQ4_K, 512, 72, 12), scales = weights_.make(DType::kF32, 12);
    const Tensor both = g.expert_mat_mul(h, ids, w, scales);
    g.set_name("out", g.gelu_mul(Graph::cols(both, 0, 36), Graph::cols(both, 36, 36)));
    EXPECT_EQ(counts(g), (std::vector<std::size_t>{4}));
    if (tokens == 1) {
      expect_dispatches(g, 1, 2, {{true, 32, 8, 2, true, true}});
    } else {
      expect_dispatches(g, 1, 2, {{}});
      compare_with_reference(g, 2e-6, {.norm_in_product = kAll}, 1 << 16);
      EXPECT_GT(labels_.size(), 1u);
    }
    g.set_name("h", h);
    EXPECT_EQ(counts(g), (std::vector<std::size_t>{1, 3}));
  }
}

// No residual before it; and a norm that must be there because it has a name. More columns than a chunk, a
// number of fours that no workgroup divides.
TEST_F(NormsInProducts, ANormAlone) {
  for (const bool named : {false, true}) {
    start();
    Graph g;
    const Tensor x = random_input(g, 2, 3360, 10), h = norm(g, x);
    if (named) g.set_name("norm", h);
    g.set_name("out", product(g, h, DType::kQ8_0, 36));
    EXPECT_EQ(counts(g), (std::vector<std::size_t>{2}));
    EXPECT_EQ(fuse(g)[0].keep, named);
    expect_dispatches(g, 1, 2, {{true, 128, 8, 2, true}, {}});
  }
}

// What a step writes in one workgroup, it must not read in another.
TEST_F(NormsInProducts, NotWhereTheSumGatesItself) {
  Graph g;
  const Tensor sum = residual(g, 1, 256);
  g.set_name("out", g.gelu_mul(product(g, sum, DType::kF16, 256), sum));
  EXPECT_EQ(counts(g), (std::vector<std::size_t>{2, 2}));
  expect_same_either_way(g, 2e-6);
}

// Rows that are no whole fours, norms of parts of a row, many tokens.
TEST_F(NormsInProducts, OnlyWhatFits) {
  for (const u32 rows : {70u, 72u}) {
    start();
    Graph g;
    g.set_name("out", product(g, norm(g, random_input(g, 1, 256)), DType::kF16, rows));
    compare_with_reference(g, 2e-6, {.norm_in_product = kAll}, ~u64{0});
    EXPECT_EQ(labels_.size(), rows % 4 == 0 ? 1 : 2);
  }
  start();
  Graph parts, many;
  product(parts, parts.rms_norm(random_input(parts, 1, 256), {}, 1e-6f, 64), DType::kF16, 8);
  product(many, norm(many, random_input(many, kVectorTokens + 1, 256)), DType::kF16, 8);
  EXPECT_EQ(counts(parts), (std::vector<std::size_t>{1, 1}));
  EXPECT_EQ(counts(many), (std::vector<std::size_t>{1, 1}));
}

// Every way to multiply with a vector, with rows that do not fill the last workgroup and more than one chunk
// of columns.
TEST_F(FusedPlanTest, EveryKindOfVectorKernel) {
  for (const DType type : {DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kQ8_0, DType::kBF16}) {
    start();
    Graph g;
    const Tensor x = random_input(g, 1, 3328);
    g.set_name("out", g.mat_mul(x, weights_.make(type, 3328, 45)));
    for (const VectorOptions& options :
         {VectorOptions{true, 64, 8, 2, true}, VectorOptions{true, 32, 16, 4},
          VectorOptions{true, 16, 8, 2, false, true}, VectorOptions{false, 32, 16, 4}}) {
      SCOPED_TRACE(format_text("{} threads {}", dtype_name(type), options.threads));
      compare_with_reference(g, 2e-6, {.vector = options}, ~u64{0});
    }
  }
}

// As floats; by integers plan_held_test.cc has them.
TEST_F(FusedPlanTest, EveryTypeInUnits) {
  for (const DType type : {DType::kQ2_K, DType::kQ3_K, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                           DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4, DType::kNVFP4, DType::kIQ2_S}) {
    SCOPED_TRACE(dtype_name(type));
    start();
    Graph g;
    g.set_name("out", g.mat_mul(random_input(g, 1, 3328), weights_.make(type, 3328, 45)));
    compare_with_reference(g, 2e-6, {.vector = {true, 32, 16, 4, false, false}}, ~u64{0});
  }
}

// A table lies as in the file.
TEST_F(FusedPlanTest, BlocksAsInTheFile) {
  for (const DType type :
       {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ2_K, DType::kQ3_K,
        DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4, DType::kNVFP4}) {
    SCOPED_TRACE(dtype_name(type));
    for (const u32 tokens : {1u, 6u}) {
      start();
      weights_.widen = false;
      Graph g;
      const Tensor x = random_input(g, tokens, 512);
      g.set_name("out", g.mat_mul(x, weights_.make(type, 512, 45)));
      expect_same_either_way(g, 2e-6);
      compare_with_reference(g, 2e-6, {.vector = {true, 64, 16, 2}}, ~u64{0});
    }
  }
}

// Eight small blocks lie together, four of Q2_K and NVFP4, or fewer at the end of a row: in products, tiles
// and tables.
TEST_F(FusedPlanTest, RowsThatEndInTheMiddle) {
  ASSERT_TRUE(product_weight(DType::kQ8_0, 704, 45).wide);
  ASSERT_FALSE(product_weight(DType::kQ8_0, 64, 45).wide);
  for (const auto& [type, cols] : {std::pair{DType::kQ8_0, 704u},
                                   {DType::kQ8_0, 736u},
                                   {DType::kQ8_0, 64u},
                                   {DType::kQ4_0, 736u},
                                   {DType::kQ4_1, 704u},
                                   {DType::kQ5_0, 704u},
                                   {DType::kQ5_1, 736u},
                                   {DType::kMXFP4, 736u},
                                   {DType::kNVFP4, 704u},
                                   {DType::kNVFP4, 64u},
                                   {DType::kQ2_K, 768u},
                                   {DType::kQ2_K, 1280u}}) {
    SCOPED_TRACE(format_text("{} {}", dtype_name(type), cols));
    for (const u32 tokens : {1u, 6u}) {
      start();
      Graph g;
      const Weight w = weights_.make(type, cols, 45);
      g.set_name("out", g.mat_mul(random_input(g, tokens, cols), w));
      g.set_name("rows", g.embed_rows(input(g, 1, {44, 0, 7}), w, 0.5f));
      expect_same_either_way(g, 2e-6);
      for (const bool digits : {false, true})
        compare_with_reference(g, 2e-6, {.vector = {true, 32, 8, 2, false, digits}}, ~u64{0});
    }
  }
}

TEST_F(FusedPlanTest, ExpertsAndGatesInUnits) {
  Graph g;
  const Tensor x = random_input(g, 1, 256);
  const Tensor ids = input(g, 3, {7, 0, 4});
  const Tensor both = g.expert_mat_mul(x, ids, weights_.make(DType::kQ4_K, 256, 64, 9));
  g.set_name("experts", both);
  g.set_name("gated",
             g.gelu_mul(g.mat_mul(x, weights_.make(DType::kQ4_K, 256, 64)), Graph::rows(both, 1, 1)));
  compare_with_reference(g, 2e-6, {.vector = {true, 64, 16, 2, false, true}}, ~u64{0});
  compare_with_reference(g, 2e-6, {.vector = {true, 64, 16, 2}}, ~u64{0});
}

}  // namespace
}  // namespace bezel
#endif
