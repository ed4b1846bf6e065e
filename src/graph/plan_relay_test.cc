// Products that follow each other as one dispatch (relay.wgsl): what they give is what the operations give
// one by one, whoever computes which rows.
#ifndef __wasm__
#include <cmath>
#include <limits>

#include "base/format_text.h"
#include "plan_fixture.h"

namespace bezel {
namespace {

class Relays : public PlanTest {
 protected:
  static PlanOptions with(u32 groups, u32 threads = 64, u32 units = 16, bool subgroups = false) {
    PlanOptions options{.norm_in_product = ~u64{0}, .relay = {groups, threads, units}};
    options.vector.subgroups = subgroups;
    return options;
  }
  // Every product a dispatch of several workgroups, which share its rows: the rows of one that waits for
  // others would be the same.
  static PlanOptions apart(u32 groups, u32 threads, u32 units) {
    PlanOptions options = with(groups, threads, units);
    options.relay.apart = true;
    return options;
  }
  Weight matrix(DType type, u32 cols, u32 rows) { return weights_.make(type, cols, rows); }
  Tensor norm(Graph& g, Tensor x, f32 scale = 1) {
    return g.rms_norm(x, weights_.make(DType::kF32, x.cols), 1e-6f, 0, scale);
  }
  void begin_relay() { weights_.relays.push_back(weights_.count()); }

  // The products of a layer after its attention, and the first of the next one. With `odd`, values are of
  // another type.
  Tensor layer(Graph& g, Tensor x, Tensor attention, u32 ffn, DType type, DType odd,
               const std::string& name) {
    begin_relay();
    const u32 width = x.cols;
    x = g.add(x, norm(g, g.mat_mul(attention, matrix(type, attention.cols, width))));
    const Tensor h = norm(g, x);
    const Tensor gate = g.mat_mul(h, matrix(type, width, ffn)),
                 up = g.mat_mul(h, matrix(type, width, ffn), {}, 0.5f);
    x = g.add(x, norm(g, g.mat_mul(g.gelu_mul(gate, up), matrix(odd, ffn, width)), 1.5f));
    const Tensor per_layer = random_input(g, 1, 256);
    const Tensor gated = g.gelu_mul(g.mat_mul(x, matrix(type, width, 256)), per_layer);
    x = g.add(x, norm(g, g.mat_mul(gated, matrix(type, 256, width))), 0.75f);
    const Tensor next = norm(g, x);
    g.set_name(name + " v", g.mat_mul(next, matrix(odd, width, 64)));
    g.set_name(name + " k", g.mat_mul(next, matrix(type, width, 64)));
    g.set_name(name + " q", g.mat_mul(next, matrix(type, width, 192)));
    return x;
  }
  u64 relays() const { return static_cast<u64>(std::ranges::count(labels_, "relay")); }
};

// Of one layer. A product's is 2e-6, and in a layer four of them and as many norms follow each other.
constexpr f64 kTolerance = 4e-6;

TEST_F(Relays, LayersOfEveryKind) {
  for (const auto& [type, odd] :
       {std::pair{DType::kQ4_K, DType::kQ6_K}, {DType::kQ8_0, DType::kQ8_0}, {DType::kQ5_K, DType::kQ4_K}}) {
    for (const u32 layers : {2u, 3u}) {
      start();
      SCOPED_TRACE(dtype_name(type));
      Graph g;
      Tensor x = random_input(g, 1, 512);
      for (u32 i = 0; i < layers; ++i)
        x = layer(g, x, g.soft_cap(random_input(g, 1, 768), 30), 1536, type, odd, std::to_string(i));
      g.set_name("x", x);
      const std::size_t products = type == odd ? 6 : 7;
      for (const PlanOptions& options : {with(1), with(1, 32, 8, true), apart(5, 64, 16), apart(3, 48, 24)}) {
        SCOPED_TRACE(
            format_text("{} layers, {} groups of {}", layers, options.relay.groups, options.relay.threads));
        compare_with_reference(g, layers * kTolerance, options, ~u64{0});
        EXPECT_EQ(relays(), layers * (options.relay.apart ? products : 1));
        EXPECT_EQ(labels_.size(), relays() + layers);
      }
    }
  }
}

}  // namespace
}  // namespace bezel
#endif
