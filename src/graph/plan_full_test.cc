// The shapes of the published models, for a real GPU: with BEZEL_FULL_SHAPES=1 these tests exist, without it
// they do not.
#ifndef __wasm__
#include <numeric>

#include "base/format_text.h"
#include "plan_fixture.h"

namespace bezel {
namespace {

bool wanted() {
  const char* set = std::getenv("BEZEL_FULL_SHAPES");
  return set != nullptr && *set != '\0' && std::string_view(set) != "0";
}

// Weights repeat so many different rows, so that their products are known from these alone. A prime number: a
// row that a kernel takes from the wrong tile or buffer is another one.
constexpr u32 kDifferent = 61;

constexpr DType kTypes[] = {DType::kF32,   DType::kF16,   DType::kBF16,  DType::kQ4_0,   DType::kQ4_1,
                            DType::kQ5_0,  DType::kQ5_1,  DType::kQ8_0,  DType::kQ2_K,   DType::kQ3_K,
                            DType::kQ4_K,  DType::kQ5_K,  DType::kQ6_K,  DType::kIQ4_NL, DType::kIQ4_XS,
                            DType::kMXFP4, DType::kNVFP4, DType::kIQ2_S, DType::kIQ3_XXS};

struct Shape {
  DType type;
  u32 cols, rows;
};

std::vector<Shape> with_every_type(std::vector<std::pair<u32, u32>> shapes) {
  std::vector<Shape> out;
  if (!wanted()) return out;
  for (const auto& [cols, rows] : shapes) {
    for (const DType type : kTypes) {
      if (cols % dtype_info(type).block_elements == 0) out.push_back({type, cols, rows});
    }
  }
  return out;
}

std::string name_of(const testing::TestParamInfo<Shape>& info) {
  return format_text("{}_{}x{}", dtype_name(info.param.type), info.param.rows, info.param.cols);
}

class FullShapes : public PlanTest {
 protected:
  static u64 largest_tile() {
    return std::min({test_device()->info().max_binding, test_device()->info().max_buffer, u64{1} << 31});
  }

  // What `pattern` times input 0 gives, (rows of the input, kDifferent).
  std::vector<f64> products(const Weight& pattern, u32 rows) {
    Graph g;
    const Tensor out = g.mat_mul(g.input(0, rows, pattern.cols), pattern);
    Reference reference(weights_);
    reference.run(g, inputs_, {});
    return reference.values(out);
  }

  void expect(const Graph& g, const std::vector<f64>& expected, f64 tolerance) {
    GpuRun gpu;
    ASSERT_NO_FATAL_FAILURE(run_on_gpu(g, {}, largest_tile(), gpu));
    compare(gpu.named[0], expected, tolerance);
  }
};

class FullShapesMatMul : public FullShapes, public testing::WithParamInterface<Shape> {};

TEST_P(FullShapesMatMul, EqualsTheReference) {
  const auto& [type, cols, rows] = GetParam();
  for (const u32 tokens : {1u, 40u}) {
    start();
    Graph g;
    const Tensor x = random_input(g, tokens, cols);
    const Weight pattern = weights_.make(type, cols, kDifferent);
    g.set_name("out", g.mat_mul(x, weights_.repeat(pattern, rows)));
    const auto different = products(pattern, tokens);
    std::vector<f64> expected;
    for (u32 t = 0; t < tokens; ++t) {
      for (u32 r = 0; r < rows; ++r) expected.push_back(different[t * kDifferent + r % kDifferent]);
    }
    expect(g, expected, 1e-5);
  }
}

// E2B: Q, K and V of 256 and 512, O, both FFNs, the head; 31B likewise.
INSTANTIATE_TEST_SUITE_P(Published, FullShapesMatMul,
                         testing::ValuesIn(with_every_type({{1536, 2048},
                                                            {1536, 4096},
                                                            {1536, 256},
                                                            {1536, 512},
                                                            {2048, 1536},
                                                            {4096, 1536},
                                                            {1536, 6144},
                                                            {6144, 1536},
                                                            {1536, 12288},
                                                            {12288, 1536},
                                                            {1536, 262144},
                                                            {5376, 8192},
                                                            {5376, 16384},
                                                            {8192, 5376},
                                                            {16384, 5376},
                                                            {5376, 21504},
                                                            {21504, 5376},
                                                            {5376, 262144}})),
                         name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullShapesMatMul);

class FullShapesEmbedding : public FullShapes, public testing::WithParamInterface<Shape> {};

TEST_P(FullShapesEmbedding, EqualsTheReference) {
  const auto& [type, cols, rows] = GetParam();
  const std::vector<f64> ids{0, 1, 77'777, 131'072, 200'003, f64(rows - 1)};
  Graph g;
  const Weight pattern = weights_.make(type, cols, kDifferent);
  g.set_name("out", g.embed_rows(input(g, 1, ids), weights_.repeat(pattern, rows), 2));
  std::vector<f64> different;
  for (const f64 id : ids) different.push_back(f64(static_cast<u32>(id) % kDifferent));
  Graph small;
  const Tensor out = small.embed_rows(small.input(0, static_cast<u32>(ids.size()), 1), pattern, 2);
  Reference reference(weights_);
  reference.run(small, std::span(&different, 1), {});
  expect(g, reference.values(out), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Published, FullShapesEmbedding,
                         testing::ValuesIn(with_every_type({{1536, 262144}, {5376, 262144}})), name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullShapesEmbedding);

class FullShapesExperts : public FullShapes, public testing::WithParamInterface<Shape> {};

// 128 experts, of which each token uses 8 at random; one by one and in groups.
TEST_P(FullShapesExperts, EqualTheReference) {
  constexpr u32 kExperts = 128, kUsed = 8;
  const auto& [type, cols, rows] = GetParam();
  for (const u32 tokens : {1u, 64u}) {
    for (const bool per_token : {true, false}) {
      start();
      Graph g;
      const u32 x_rows = per_token ? tokens : tokens * kUsed;
      const Tensor x = random_input(g, x_rows, cols);
      std::vector<f64> ids;
      std::vector<u32> all(kExperts);
      std::iota(all.begin(), all.end(), 0);
      for (u32 t = 0; t < tokens; ++t) {
        for (u32 a = 0; a < kUsed; ++a) {
          std::swap(all[a], all[a + random_.below(kExperts - a)]);
          ids.push_back(all[a]);
        }
      }
      const Weight pattern = weights_.make(type, cols, kDifferent);
      const Weight stack = weights_.repeat(pattern, rows, kExperts);
      const Tensor chosen = input(g, kUsed, ids);
      const ExpertGroups groups = tokens > 1 ? g.group_experts(chosen, kExperts) : ExpertGroups{};
      g.set_name("out", g.expert_mat_mul(x, chosen, stack, {}, groups));
      const auto different = products(pattern, x_rows);
      std::vector<f64> expected;
      for (u32 n = 0; n < ids.size(); ++n) {
        const u64 from = u64{per_token ? n / kUsed : n} * kDifferent;
        for (u32 r = 0; r < rows; ++r)
          expected.push_back(different[from + (static_cast<u32>(ids[n]) * rows + r) % kDifferent]);
      }
      expect(g, expected, 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Published, FullShapesExperts,
                         testing::ValuesIn(with_every_type({{2816, 704}, {2816, 1408}, {704, 2816}})),
                         name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullShapesExperts);

struct Context {
  u32 heads, kv_heads, head_size, context;
};

class FullShapesAttention : public FullShapes, public testing::WithParamInterface<Context> {};

TEST_P(FullShapesAttention, EqualsTheReference) {
  const auto& [heads, kv_heads, head_size, context] = GetParam();
  for (const u32 tokens : {1u, 6u}) {
    start();
    Graph g;
    const Tensor q = random_input(g, tokens, heads * head_size, 4 / std::sqrt(f64(head_size)));
    std::vector<f64> at;
    for (u32 t = 0; t < tokens; ++t) at.push_back(context - tokens + t);
    const Tensor positions = input(g, 1, at);
    const Tensor keys = random_state(g, context, kv_heads * head_size);
    const Tensor values = random_state(g, context, kv_heads * head_size);
    g.set_name("out", g.attention(q, keys, values, positions, positions, heads, kv_heads, head_size, 0));
    for (const KvType kv : kKvTypes) {
      for (auto& state : states_) state = kv_decode(kv, kv_encode(kv, state));
      Reference reference(weights_);
      reference.run(g, inputs_, states_);
      const auto expected = reference.values(g.names()[0].second);
      for (const u32 parts : {1u, 8u, attention_parts_for(test_device()->info())}) {
        GpuRun gpu;
        ASSERT_NO_FATAL_FAILURE(run_on_gpu(g, {.kv = kv, .attention_parts = parts}, largest_tile(), gpu));
        compare(gpu.named[0], expected, 5e-5);
      }
    }
  }
}

std::vector<Context> contexts() {
  std::vector<Context> out;
  if (!wanted()) return out;
  for (const u32 context : {512u, 2048u, 8192u, 32768u}) {
    out.push_back({8, 1, 256, context});  // E2B
    out.push_back({8, 1, 512, context});
    out.push_back({32, 16, 256, context});  // 31B
    out.push_back({32, 4, 512, context});
  }
  out.push_back({8, 1, 512, 131'072});
  out.push_back({16, 1, 512, 2048});  // 12B
  return out;
}

INSTANTIATE_TEST_SUITE_P(Published, FullShapesAttention, testing::ValuesIn(contexts()),
                         [](const auto& param) {
                           const Context& c = param.param;
                           return format_text("{}heads_{}kv_{}_context{}", c.heads, c.kv_heads, c.head_size,
                                              c.context);
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullShapesAttention);

class FullShapesTopK : public FullShapes, public testing::WithParamInterface<u32> {};

TEST_P(FullShapesTopK, EqualsTheReference) {
  Graph g;
  const Tensor top = g.top_k(random_input(g, 2, 262'144, 5), GetParam());
  const u32 k = GetParam();
  g.set_name("columns", Graph::cols(top, 0, k));
  g.set_name("values", Graph::cols(top, k, k));
  g.set_name("log_total", Graph::cols(top, 2 * k, 1));
  expect_same(g, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Published, FullShapesTopK,
                         testing::ValuesIn(wanted() ? std::vector<u32>{1, 64, 128} : std::vector<u32>{}));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullShapesTopK);

}  // namespace
}  // namespace bezel
#endif
