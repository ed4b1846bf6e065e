#ifndef __wasm__

#include "base/format_text.h"
#include "plan_fixture.h"

namespace bezel {
namespace {

using Experts = PlanTest;

TEST_F(Experts, OneByOne) {
  for (const auto& [type, down] :
       {std::pair{DType::kF32, DType::kF16}, {DType::kQ4_K, DType::kQ5_0}, {DType::kQ6_K, DType::kQ8_0}}) {
    for (const u32 tokens : {1u, 7u}) {
      Graph g;
      start();
      const Tensor x = random_input(g, tokens, 256);
      const Tensor logits = random_input(g, tokens, 9);
      const auto [ids, weights] = g.top_experts(logits, 3);
      const Tensor both = g.expert_mat_mul(x, ids, weights_.make(type, 256, 64, 9));
      const Tensor gated = g.gelu_mul(Graph::cols(both, 0, 32), Graph::cols(both, 32, 32));
      const Tensor y =
          g.expert_mat_mul(gated, ids, weights_.make(down, 32, 30, 9), weights_.make(DType::kF32, 9));
      g.set_name("out", g.expert_sum(y, weights));
      expect_same(g, 5e-6);
      expect_same(g, 5e-6, {}, 1 << 15);
    }
  }
}

// Which experts the tokens choose; each row names three different ones of nine.
std::vector<f64> everybody_the_same(u32 tokens) {
  std::vector<f64> ids;
  for (u32 t = 0; t < tokens; ++t) ids.insert(ids.end(), {7, 0, 4});
  return ids;
}
std::vector<f64> in_turn(u32 tokens) {
  std::vector<f64> ids;
  for (u32 t = 0; t < tokens; ++t) ids.insert(ids.end(), {f64(t % 9), f64((t + 4) % 9), f64((t + 1) % 9)});
  return ids;
}
std::vector<f64> mostly_the_last(u32 tokens) {
  std::vector<f64> ids;
  for (u32 t = 0; t < tokens; ++t) ids.insert(ids.end(), {8, f64(t == 3 ? 1 : 5), f64(t % 2 == 0 ? 2 : 3)});
  return ids;
}

TEST_F(Experts, PairsAreGrouped) {
  for (const auto route : {everybody_the_same, in_turn, mostly_the_last}) {
    for (const u32 tokens : {1u, 5u, 32u, 33u, 70u}) {
      SCOPED_TRACE(tokens);
      Graph g;
      start();
      const auto [order, runs] = g.group_experts(input(g, 3, route(tokens)), 9);
      g.set_name("order", order);
      g.set_name("runs", runs);
      expect_same(g, 0);
    }
  }
}

TEST_F(Experts, InGroups) {
  for (const auto& [route, tokens, type, down] :
       {std::tuple{everybody_the_same, 40u, DType::kF32, DType::kF16},
        {in_turn, 40u, DType::kF32, DType::kF16},
        {mostly_the_last, 70u, DType::kF32, DType::kF16},
        {mostly_the_last, 11u, DType::kQ4_K, DType::kQ5_0},
        {everybody_the_same, 11u, DType::kQ6_K, DType::kQ8_0},
        {in_turn, 6u, DType::kBF16, DType::kQ4_0}}) {
    SCOPED_TRACE(format_text("{} tokens, {}", tokens, dtype_name(type)));
    start();
    Graph g;
    const Tensor x = random_input(g, tokens, 256);
    const Tensor weights = random_input(g, tokens, 3);
    const Tensor ids = input(g, 3, route(tokens));
    const auto groups = g.group_experts(ids, 9);
    const Tensor both = g.expert_mat_mul(x, ids, weights_.make(type, 256, 70, 9), {}, groups);
    const Tensor gated = g.gelu_mul(Graph::cols(both, 0, 32), Graph::cols(both, 37, 32));
    const Tensor y =
        g.expert_mat_mul(gated, ids, weights_.make(down, 32, 30, 9), weights_.make(DType::kF32, 9), groups);
    g.set_name("out", g.expert_sum(y, weights));
    expect_same(g, 5e-6);
    expect_same(g, 5e-6, {}, 1 << 16);  // the experts in several buffers
    if (tokens == 70)
      compare_with_reference(g, 5e-6, {.tiles = {TileOptions::Kind::kF32, 64, 64, 32}}, ~u64{0});
  }
}

}  // namespace
}  // namespace bezel
#endif
