// Products that follow each other as one dispatch (relay.wgsl): what they give is what the operations give
// one by one, whoever computes which rows.
#ifndef __wasm__
#include <cmath>
#include <cstdlib>
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
  // Of large ones so many different rows, again and again: making numbers takes longer than multiplying them.
  u32 different_ = ~u32{0};
  Weight matrix(DType type, u32 cols, u32 rows) {
    if (rows <= different_) return weights_.make(type, cols, rows);
    return weights_.repeat(weights_.make(type, cols, different_), rows);
  }
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
  for (const auto& [type, odd] : {std::pair{DType::kQ4_K, DType::kQ6_K},
                                  {DType::kQ8_0, DType::kQ8_0},
                                  {DType::kQ5_K, DType::kQ4_K},
                                  {DType::kQ4_0, DType::kQ5_1},
                                  {DType::kIQ4_XS, DType::kQ3_K},
                                  {DType::kNVFP4, DType::kIQ3_S}}) {
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

// Two layers of attention, one that reads keys and values of its own and one that reads those of the first,
// and what comes after each. Positions whose keys are one part, some of them, and all.
TEST_F(Relays, JoinThePartsOfAttention) {
  constexpr u32 kHeads = 4, kHead = 64, kWidth = 512;
  for (const u32 position : {3u, 40u, 199u}) {
    for (const u32 window : {0u, 64u}) {
      SCOPED_TRACE(format_text("position {}, window {}", position, window));
      start();
      Graph g;
      const Tensor positions = input(g, 1, {static_cast<f64>(position)});
      const u32 table = g.add_table(std::vector<f64>(kHead / 2, 0.1));
      const Tensor keys = random_state(g, 200, kHead), values = random_state(g, 200, kHead);
      Tensor x = random_input(g, 1, kWidth);
      for (const char* name : {"first", "second"}) {
        Tensor q = g.rms_norm(random_input(g, 1, kHeads * kHead), {}, 1e-6f, kHead);
        q = g.rope(q, positions, kHead, table);
        const Tensor a = g.attention(q, keys, values, positions, positions, kHeads, 1, kHead, window);
        x = layer(g, x, a, 512, DType::kQ4_K, DType::kQ4_K, name);
        g.set_name(name, a);
      }
      PlanOptions options = with(1);
      options.attention_parts = 8;
      // Attention itself is computed to 2e-5, see AttentionOfOneToken.
      compare_with_reference(g, 5e-5, options, ~u64{0});
      EXPECT_EQ(relays(), 2u);
      EXPECT_EQ(std::ranges::count(labels_, "attention_merge"), 0);
    }
  }
}

// Who reads a part of what a leg gives, or one of several results, or gates with one, is no leg after it.
TEST_F(Relays, EndWhereAResultIsReadInAnotherWay) {
  for (const std::string kind : {"all of it", "a part", "one of two", "to be gated with"}) {
    SCOPED_TRACE(kind);
    start();
    Graph g;
    for (const char* name : {"first", "second"}) {
      begin_relay();
      const Tensor x = g.soft_cap(random_input(g, 1, 256), 30);
      Tensor y = g.mat_mul(x, matrix(DType::kQ8_0, 256, 512));
      if (kind == "one of two")
        g.set_name(name + std::string(" too"), g.mat_mul(x, matrix(DType::kQ8_0, 256, 512)));
      y = g.mat_mul(y, matrix(DType::kQ8_0, 512, 256));
      const Tensor z = g.mat_mul(kind == "a part" ? Graph::cols(y, 64, 192) : y,
                                 matrix(DType::kQ8_0, kind == "a part" ? 192 : 256, 256));
      g.set_name(name, kind == "to be gated with" ? g.gelu_mul(z, y) : z);
    }
    compare_with_reference(g, kTolerance, with(1), ~u64{0});
    EXPECT_EQ(relays(), 2u);
    EXPECT_EQ(labels_.size(), kind == "all of it" ? 4u : 6u);
  }
}

// Numbers of every kind are handed over, a zero and what is none too.
TEST_F(Relays, HandOverZerosAndWhatIsNoNumber) {
  for (const f64 value : {0.0, std::numeric_limits<f64>::quiet_NaN()}) {
    start();
    Graph g;
    for (const char* name : {"first", "second"}) {
      begin_relay();
      const Tensor x = g.soft_cap(input(g, 256, std::vector<f64>(256, value)), 30);
      const Tensor y = g.mat_mul(x, matrix(DType::kQ8_0, 256, 256));
      g.set_name(name, g.mat_mul(y, matrix(DType::kQ8_0, 256, 64)));
    }
    GpuRun gpu;
    ASSERT_NO_FATAL_FAILURE(run_on_gpu(g, with(1), ~u64{0}, gpu));
    EXPECT_EQ(relays(), 2u);
    for (const auto& named : gpu.named)
      for (const f32 v : named) EXPECT_TRUE(value == 0 ? v == 0 : std::isnan(v)) << v;
  }
}

// As many workgroups as this adapter may run at a time, and more: they meet, or they wait in vain and say so.
// Wrong numbers are not among what may come out.
TEST_F(Relays, GiveUpRatherThanBeWrong) {
  start();
  Graph g;
  Tensor x = random_input(g, 1, 512);
  for (u32 i = 0; i < 2; ++i) {
    const Tensor attention = g.soft_cap(random_input(g, 1, 256), 30);
    x = layer(g, x, attention, 512, DType::kQ4_K, DType::kQ4_K, std::to_string(i));
  }
  Reference reference(weights_, KvType::kF32);
  auto states = states_;
  reference.run(g, inputs_, states);
  for (const u32 groups : {2u, 2u, 2u, 16u}) {
    GpuRun gpu;
    ASSERT_NO_FATAL_FAILURE(run_on_gpu(g, with(groups, 32), ~u64{0}, gpu));
    for (std::size_t i = 0; i < g.names().size(); ++i) {
      const auto& expected = reference.values(g.names()[i].second);
      f64 size = 0;
      for (const f64 v : expected) size = std::max(size, std::abs(v));
      for (std::size_t n = 0; n < expected.size(); ++n) {
        const f32 got = gpu.named[i][n];
        EXPECT_TRUE(std::isnan(got) || std::abs(got - expected[n]) <= 2 * kTolerance * size)
            << got << " where " << expected[n] << " is expected, with " << groups;
      }
    }
  }
}

TEST_F(Relays, CountWorkgroupsThatRunAtATime) {
  for (const bool relays : {true, false}) {
    start();
    Graph g;
    for (u32 i = 0; i < 2; ++i) {
      if (relays) begin_relay();
      const Tensor y = g.mat_mul(g.soft_cap(random_input(g, 1, 256), 30), matrix(DType::kQ8_0, 256, 256));
      g.set_name(std::to_string(i), g.mat_mul(y, matrix(DType::kQ8_0, 256, 64)));
    }
    Device& device = *test_device();
    const Arena layout = lay_out(g, {}, 1, true);
    const auto arena = device.make_buffer(layout.elements * sizeof(f32), "arena");
    ASSERT_OK(arena);
    weights_.join = false;
    const DeviceWeights weights = weights_.upload(device);
    const auto groups = run_now(Plan::relay_groups(device, g, layout, *arena, weights, {}));
    ASSERT_OK(groups);
    if (relays) {
      EXPECT_GE(*groups, 1u);
      EXPECT_LE(*groups, 1024u);
    } else {
      EXPECT_EQ(*groups, 0u);
    }
  }
}

// On a real GPU, with BEZEL_FULL_SHAPES=1: two layers of published shapes, with as many workgroups as it runs
// at a time, again and again.
struct FullLayer {
  const char* name;
  u32 width, attention, ffn;
};

class FullShapesRelays : public Relays, public testing::WithParamInterface<FullLayer> {};

TEST_P(FullShapesRelays, GiveTheSameEveryTime) {
  constexpr u32 kTimes = 200;
  const auto& [name, width, attention, ffn] = GetParam();
  different_ = 61;
  Graph g;
  Tensor x = random_input(g, 1, width);
  for (const auto& [label, type] : {std::pair{"first", DType::kQ6_K}, {"second", DType::kQ4_K}})
    x = layer(g, x, g.soft_cap(random_input(g, 1, attention), 30), ffn, DType::kQ4_K, type, label);
  std::vector<std::string_view> keep;
  for (const auto& [named, tensor] : g.names()) keep.push_back(named);
  Reference reference(weights_, KvType::kF32);
  auto states = states_;
  reference.run(g, inputs_, states);
  Device& device = *test_device();
  const Arena layout = lay_out(g, keep, 1, true);
  const auto arena = device.make_buffer(layout.elements * sizeof(f32), "arena");
  ASSERT_OK(arena);
  const DeviceWeights weights = weights_.upload(device);
  std::vector<std::vector<f32>> inputs;
  for (const auto& values : inputs_) inputs.emplace_back(values.begin(), values.end());
  for (const u32 threads : {512u, 256u}) {
    PlanOptions options{.relay = {.threads = threads}};
    const auto groups = run_now(Plan::relay_groups(device, g, layout, *arena, weights, options));
    ASSERT_OK(groups);
    ASSERT_GT(*groups, 0u);
    options.relay.groups = *groups;
    auto plan = Plan::build(device, g, layout, *arena, weights, {}, options);
    ASSERT_OK(plan);
    EXPECT_EQ(std::ranges::count(plan->labels(), "relay"), 2);
    for (u32 i = 0; i < kTimes; ++i) {
      ASSERT_OK(plan->run(inputs));
      for (const auto& [named, tensor] : g.names()) {
        std::vector<f32> got;
        const Status read = run_now(plan->read(tensor, got));
        ASSERT_OK(read);
        SCOPED_TRACE(format_text("{}, {} of {} threads, time {}", named, *groups, threads, i));
        compare(got, reference.values(tensor), 2 * kTolerance);
        if (HasFailure()) return;
      }
    }
  }
}

std::vector<FullLayer> full_layers() {
  const char* wanted = std::getenv("BEZEL_FULL_SHAPES");
  if (wanted == nullptr || *wanted == '\0' || std::string_view(wanted) == "0") return {};
  return {{"e2b", 1536, 2048, 6144},
          {"e4b", 2560, 2048, 10240},
          {"12b", 3840, 4096, 15360},
          {"31b", 5376, 16384, 21504}};
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullShapesRelays);
INSTANTIATE_TEST_SUITE_P(Full, FullShapesRelays, testing::ValuesIn(full_layers()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace bezel
#endif
