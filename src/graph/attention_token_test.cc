// Attention of one token with the norms and rotation of its heads and its write into the rings, in one
// dispatch.
#ifndef __wasm__
#include <algorithm>

#include "base/format_text.h"
#include "graph/fuse.h"
#include "plan_fixture.h"

namespace bezel {
namespace {

struct TokenCase {
  u32 heads, kv_heads, head_size, slots, window, position;
  bool one_projection = false;  // keys and values of one product
};

class AttentionOfOneToken : public PlanTest {
 protected:
  // Norms give numbers of size one; times this, scores of about 5, whose exponential turns an error of 1e-6
  // into one of 5e-6.
  Weight norm_weight(u32 size, f64 scale) {
    std::vector<f32> values(size);
    for (f32& v : values) v = static_cast<f32>(random_.normal() * scale);
    std::vector<std::byte> bytes(size * sizeof(f32));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return weights_.add(std::move(bytes), {0, DType::kF32, 1, size, 1});
  }

  // Two layers: one with keys and values of its own, and one that reads those of the first.
  Graph make(const TokenCase& c) {
    start();
    Graph g;
    const Tensor positions = input(g, 1, {static_cast<f64>(c.position)});
    std::vector<f64> frequencies;
    for (u32 i = 0; i < c.head_size / 2; ++i) frequencies.push_back(std::pow(1e4, -2.0 * i / c.head_size));
    const u32 table = g.add_table(frequencies);
    const Tensor keys = random_state(g, c.slots, c.kv_heads * c.head_size);
    const Tensor values = random_state(g, c.slots, c.kv_heads * c.head_size);
    for (const bool own : {true, false}) {
      Tensor q = random_input(g, 1, c.heads * c.head_size, 3);
      q = g.rms_norm(q, norm_weight(c.head_size, 0.3), 1e-6f, c.head_size);
      q = g.rope(q, positions, c.head_size, table);
      if (own) {
        const Tensor k = random_input(g, 1, keys.cols, 0.5);
        const Tensor v = c.one_projection ? k : random_input(g, 1, keys.cols, 2);
        const Tensor normed = g.rms_norm(k, norm_weight(c.head_size, 1), 1e-6f, c.head_size);
        g.kv_write(g.rope(normed, positions, c.head_size, table), positions, keys);
        g.kv_write(g.rms_norm(v, {}, 1e-6f, c.head_size), positions, values);
      }
      g.set_name(own ? "own" : "shared", g.attention(q, keys, values, positions, positions, c.heads,
                                                     c.kv_heads, c.head_size, c.window));
    }
    return g;
  }

  void expect_together(const TokenCase& c, PlanOptions options) {
    SCOPED_TRACE(format_text("{} of {} heads of {} at {}, {}, parts {}", c.heads, c.kv_heads, c.head_size,
                             c.position, kv_name(options.kv), options.attention_parts));
    Graph g = make(c);
    options.attention_token = true;
    GpuRun gpu;
    ASSERT_NO_FATAL_FAILURE(run_on_gpu(g, options, ~u64{0}, gpu));
    EXPECT_EQ(std::ranges::count(labels_, "attention_token"), 2);
    EXPECT_EQ(std::ranges::count(labels_, "attention_merge"), labels_.size() - 2);
    // The token's own key and value are rounded; where the executors differ in the last bit before that, an
    // element may become another half, 2^-11 of it away, or another byte.
    const f64 rounded = options.kv == KvType::kQ8 ? kv_tolerance(options.kv) : 5e-4;
    compare_with_reference(g, options.kv == KvType::kF32 ? 2e-5 : rounded, options, gpu);
  }
};

TEST_F(AttentionOfOneToken, IsOneStep) {
  Graph g = make({4, 2, 32, 16, 0, 5});
  std::vector<std::size_t> counts;
  for (const Step& step : fuse(g)) counts.push_back(step.count);
  EXPECT_EQ(counts, (std::vector<std::size_t>{8, 3}));
}

// Several tokens, or queries that something else reads, are steps of their own.
TEST_F(AttentionOfOneToken, IsNoStepOfOthers) {
  for (const u32 tokens : {1u, 2u}) {
    start();
    Graph g;
    const Tensor positions = input(g, 1, std::vector<f64>(tokens, 3));
    const u32 table = g.add_table(std::vector<f64>(16, 0.1));
    const Tensor ring = random_state(g, 8, 32);
    const Tensor q = g.rope(g.rms_norm(random_input(g, tokens, 64), {}, 1e-6f, 32), positions, 32, table);
    if (tokens == 1) g.set_name("q", q);
    g.set_name("out", g.attention(q, ring, ring, positions, positions, 2, 1, 32, 0));
    EXPECT_EQ(fuse(g).size(), 2u);
    compare_with_reference(g, 2e-5, {.attention_token = true}, ~u64{0});
  }
}

// Heads of every number for a key head, also more than a workgroup takes; the newest key alone in its part,
// the only one of all, first and last of a ring, and past the first time around.
TEST_F(AttentionOfOneToken, EqualsItsOperations) {
  for (const TokenCase& c :
       {TokenCase{8, 1, 32, 130, 0, 100}, TokenCase{16, 1, 32, 60, 0, 48},
        TokenCase{8, 2, 32, 70, 48, 100, true}, TokenCase{4, 2, 32, 40, 16, 79},
        TokenCase{4, 2, 32, 40, 16, 80}, TokenCase{2, 1, 32, 16, 16, 90}, TokenCase{8, 1, 32, 8, 0, 0},
        TokenCase{4, 2, 32, 300, 0, 250}, TokenCase{6, 2, 32, 20, 0, 9}, TokenCase{32, 16, 32, 40, 16, 79}}) {
    for (const KvType kv : kKvTypes) {
      if (kv != KvType::kF32 && c.heads != 4)
        continue;  // each number of heads is a kernel that takes long to compile
      for (const u32 parts : {1u, 12u}) expect_together(c, {.kv = kv, .attention_parts = parts});
    }
  }
}

TEST_F(AttentionOfOneToken, OfLargeHeads) {
  expect_together({8, 1, 256, 70, 48, 100}, {.attention_parts = 4});
  expect_together({2, 1, 512, 60, 0, 40}, {.kv = KvType::kF16, .attention_parts = 3});
  expect_together({2, 1, 256, 60, 0, 40}, {.kv = KvType::kQ8, .attention_parts = 3});
}

// Other numbers of threads: one share of values, or fewer threads than a head has fours.
TEST_F(AttentionOfOneToken, InSmallWorkgroups) {
  expect_together({2, 1, 256, 90, 0, 70}, {.workgroup = 64, .attention_parts = 3});
  expect_together({4, 2, 512, 70, 0, 60}, {.workgroup = 64, .attention_parts = 3});
  expect_together({4, 1, 16, 70, 0, 60}, {.workgroup = 32, .attention_parts = 3});
}

// As in plan_full_test.cc.
class FullShapesToken : public AttentionOfOneToken, public testing::WithParamInterface<TokenCase> {};

TEST_P(FullShapesToken, EqualsTheReference) {
  for (const KvType kv : kKvTypes)
    expect_together(GetParam(), {.kv = kv, .attention_parts = attention_parts_for(test_device()->info())});
}

std::vector<TokenCase> published() {
  std::vector<TokenCase> out;
  const char* set = std::getenv("BEZEL_FULL_SHAPES");
  if (set == nullptr || *set == '\0' || std::string_view(set) == "0") return out;
  for (const u32 position : {0u, 511u, 2047u, 32767u}) {
    const u32 slots = position + 1;
    out.push_back({8, 1, 256, 1535, 512, position});  // E2B
    out.push_back({8, 1, 512, slots, 0, position});
    out.push_back({32, 16, 256, 2047, 1024, position});  // 31B
    out.push_back({32, 4, 512, slots, 0, position, true});
    out.push_back({16, 1, 512, slots, 0, position, true});  // 12B
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Published, FullShapesToken, testing::ValuesIn(published()), [](const auto& param) {
  const TokenCase& c = param.param;
  return format_text("{}heads_{}kv_{}_position{}", c.heads, c.kv_heads, c.head_size, c.position);
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullShapesToken);

}  // namespace
}  // namespace bezel
#endif
