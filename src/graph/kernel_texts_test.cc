// Kernels for GPUs that tests have not got. A device that only notes texts shows which would be chosen there;
// with $BEZEL_KERNEL_TEXTS, a folder, they are written into it, and tools/check_kernels.mjs compiles them.
#ifndef __wasm__
#include <cstdlib>
#include <fstream>

#include "base/format_text.h"
#include "graph/plan.h"
#include "graph/tuning.h"
#include "noting_device.h"
#include "support.h"

namespace bezel {
namespace {

// After those that are there, in the same buffer.
Weight add_weight(NotingDevice& device, DeviceWeights& weights, DType type, u32 rows, u32 cols,
                  u32 depth = 1) {
  u64 offset = 0;
  if (!weights.tensors.empty()) {
    const BufferView last = weights.tensors.back().tiles[0].view();
    offset = last.offset + last.bytes;
  }
  DeviceWeight& w = weights.tensors.emplace_back(product_weight(type, cols, rows));
  w.tiles.push_back({Buffer(device, 1, u64{w.row_bytes} * rows * depth), 0, depth > 1 ? depth : rows});
  w.tiles[0].offset = offset;
  return {static_cast<u32>(weights.tensors.size() - 1), type, rows, cols, depth};
}

// Products of 300 tokens, in every format, and attention of as many queries and of one; products of one
// token.
void lower_all(NotingDevice& device, const PlanOptions& options) {
  Graph g;
  DeviceWeights weights;
  const Tensor x = g.input(0, 300, 512);
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
        DType::kQ8_0, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL,
        DType::kIQ4_XS, DType::kMXFP4, DType::kNVFP4, DType::kIQ2_S, DType::kIQ1_M})
    g.mat_mul(x, add_weight(device, weights, type, 2048, 512), {}, 1, {.in_max = 5});
  std::vector<Buffer> rings;
  for (u32 i = 0; i < 2; ++i) rings.emplace_back(device, 1, 4096);
  const Tensor positions = g.input(1, 300, 1);
  g.attention(x, g.state(0, 600, 512), g.state(1, 600, 512), positions, positions, 2, 2, 256, 0);
  const Tensor one = Graph::rows(positions, 0, 1);
  g.attention(g.input(2, 1, 4096), g.state(0, 600, 512), g.state(1, 600, 512), one, one, 8, 1, 512, 0);
  const u32 table = g.add_table(std::vector<f64>(256, 0.1));
  const Tensor q = g.rope(g.rms_norm(g.input(4, 1, 4096), {}, 1e-6f, 512), one, 512, table);
  g.attention(q, g.state(0, 600, 512), g.state(1, 600, 512), one, one, 8, 1, 512, 0);
  // A residual, a norm, and products of one token with what they give.
  weights.ones = Buffer(device, 1, 4096);
  const Tensor token = g.input(3, 1, 512), sum = g.add(token, g.rms_norm(token, {}, 1e-6f));
  const Tensor h = g.rms_norm(sum, {}, 1e-6f);
  const auto matrix = [&](DType type, u32 rows, u32 cols, u32 depth = 1) {
    return add_weight(device, weights, type, rows, cols, depth);
  };
  for (const DType type : {DType::kQ4_K, DType::kQ4_K, DType::kQ6_K, DType::kQ8_0})
    g.mat_mul(h, matrix(type, 64, 512));
  // Experts, and where they join the dense branch.
  const Tensor logits = g.mat_mul(h, matrix(DType::kF32, 128, 512)), z = g.rms_norm(sum, {}, 1e-6f);
  const auto [ids, shares] = g.top_experts(logits, 8);
  const Tensor both = g.expert_mat_mul(z, ids, matrix(DType::kQ4_K, 512, 512, 128));
  const Tensor gated = g.gelu_mul(Graph::cols(both, 0, 256), Graph::cols(both, 256, 256));
  const Tensor mixed =
      g.expert_sum(g.expert_mat_mul(gated, ids, matrix(DType::kQ8_0, 512, 256, 128)), shares);
  const Tensor dense = g.rms_norm(token, {}, 1e-6f);
  g.add(sum, g.rms_norm(g.add(dense, g.rms_norm(mixed, {}, 1e-6f)), {}, 1e-6f));
  const Arena layout = lay_out(g, {}, options.attention_parts);
  const Buffer arena(device, 1, layout.elements * sizeof(f32));
  const auto plan = Plan::build(device, g, layout, arena, weights, rings, options);
  ASSERT_OK(plan);
}

bool has_label(const NotingDevice& device, std::string_view label) {
  return std::ranges::any_of(device.texts, [&](const auto& text) { return text.second == label; });
}

// A product alone, two of one vector, and a gated pair.
void lower_vectors(NotingDevice& device, const PlanOptions& options, std::vector<ProductShape>& products) {
  Graph g;
  DeviceWeights weights;
  const Tensor x = g.input(0, 1, 512);
  const auto multiply = [&](const Tensor& by, u32 rows, DType type) {
    return g.mat_mul(by, add_weight(device, weights, type, rows, 512));
  };
  multiply(x, 2048, DType::kQ6_K);
  const Tensor y = g.soft_cap(x, 30);
  multiply(y, 512, DType::kQ4_K);
  multiply(y, 256, DType::kQ4_K);
  const Tensor z = g.soft_cap(y, 30);
  const Tensor gate = multiply(z, 1024, DType::kQ4_K);
  g.gelu_mul(gate, multiply(z, 1024, DType::kQ4_K));
  const Arena layout = lay_out(g, {}, 1);
  const Buffer arena(device, 1, layout.elements * sizeof(f32));
  const auto plan = Plan::build(device, g, layout, arena, weights, {}, options);
  ASSERT_OK(plan);
  for (const auto& [dispatch, shape] : plan->products()) {
    EXPECT_EQ(plan->labels()[dispatch],
              format_text("{} {}", product_name(shape.kind), dtype_name(shape.type)));
    products.push_back(shape);
  }
}

TEST(KernelTexts, MultiplyByIntegersWhereThatIsOneInstruction) {
  for (const char* vendor : {"nvidia", "amd", "apple"}) {
    DeviceInfo info = large_gpu();
    info.vendor = vendor;
    NotingDevice device(info);
    std::vector<ProductShape> products;
    lower_vectors(device, {}, products);
    EXPECT_EQ(products.size(), 3u);
    for (const auto& [text, label] : device.texts) {
      if (!label.contains("mat_vec")) continue;
      EXPECT_EQ(text.contains("dot4I8Packed"), info.vendor != "apple") << vendor << ": " << label;
      // Which GPUs convert subnormal halves is known of NVIDIA's.
      EXPECT_EQ(text.contains("return unpack2x16float(word);"), info.vendor == "nvidia")
          << vendor << ": " << label;
    }
  }
}

TEST(KernelTexts, FollowWhatWasMeasured) {
  std::vector<ProductShape> products;
  NotingDevice usual(large_gpu());
  lower_vectors(usual, {}, products);
  const std::vector<ProductShape> expected{{ProductKind::kOne, DType::kQ6_K, 2048, 512},
                                           {ProductKind::kSeveral, DType::kQ4_K, 768, 512},
                                           {ProductKind::kGated, DType::kQ4_K, 2048, 512}};
  EXPECT_EQ(products, expected);
  // Every variant can compute every product; only that of the measured one changes.
  for (const KernelVariant& variant : vector_variants(large_gpu())) {
    for (const ProductShape& shape : expected) {
      Tuning tuning;
      tuning.set(shape, variant);
      NotingDevice tuned(large_gpu());
      lower_vectors(tuned, {.tuning = &tuning}, products);
      const bool held = variant.vector.held.value();
      const u32 lanes = held ? shape.cols / 64 : variant.vector.lanes;
      const u32 threads = held ? std::min(variant.vector.threads, 32 * lanes) : variant.vector.threads;
      const std::string size = format_text("const WG: u32 = {}u;\nconst LANES: u32 = {}u;\n", threads, lanes);
      std::size_t follow = 0, changed = 0;
      for (const auto& [text, label] : tuned.texts) {
        const bool its = label == format_text("{} {}", product_name(shape.kind), dtype_name(shape.type));
        follow += its && text.contains(size);
        changed += !its && !usual.texts.contains(text);
      }
      EXPECT_EQ(follow, 1u) << variant.name;
      EXPECT_EQ(changed, 0u) << variant.name;
    }
  }
}

u32 constant(std::string_view text, std::string_view name) {
  const std::string begin = format_text("const {}: u32 = ", name);
  const auto at = text.find(begin);
  return at == std::string_view::npos
             ? 0
             : static_cast<u32>(std::strtoul(text.substr(at + begin.size(), 12).data(), nullptr, 10));
}

// Products that hold the vector take what workgroup memory a device has, and a thread writes four results.
TEST(KernelTexts, HoldTheVectorInAnyMemory) {
  for (const u32 memory : {16u << 10, 32u << 10, 48u << 10}) {
    for (const u32 threads : {64u, 256u, 1024u}) {
      for (const auto& [rows, cols] : {std::pair{262144u, 1536u},
                                       {262144u, 4096u},
                                       {262144u, 5376u},
                                       {21504u, 5376u},
                                       {5376u, 21504u},
                                       {3840u, 15360u},
                                       {44u, 256u}}) {
        for (const DType type : {DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
          DeviceInfo info = large_gpu();
          info.max_workgroup_memory = memory;
          info.max_invocations = threads;
          NotingDevice device(info);
          Graph g;
          DeviceWeights weights;
          g.mat_mul(g.input(0, 1, cols), add_weight(device, weights, type, rows, cols));
          const Arena layout = lay_out(g, {}, 1);
          const Buffer arena(device, 1, layout.elements * sizeof(f32));
          ASSERT_OK(Plan::build(device, g, layout, arena, weights, {}, {.vector = {.held = true}}));
          ASSERT_EQ(device.texts.size(), 1u);
          const std::string& text = device.texts.begin()->first;
          const u32 wg = constant(text, "WG"), lanes = constant(text, "LANES"), each = constant(text, "EACH");
          const u32 batch = constant(text, "BATCH");
          SCOPED_TRACE(format_text("{} of {} x {}: {} threads, {} lanes, {} each, {} at a time", memory, rows,
                                   cols, wg, lanes, each, batch));
          ASSERT_GT(lanes, 0u);
          const u32 teams = wg / lanes;
          EXPECT_LE(wg, threads);
          EXPECT_EQ(wg % lanes, 0u);
          EXPECT_GE(lanes * constant(text, "PASSES"), cols / 64);
          EXPECT_TRUE(each > 0 && batch > 0 && each % 4 == 0 && batch % 4 == 0 && lanes % 2 == 0);
          EXPECT_LE(teams * each, 4 * wg);
          EXPECT_EQ(teams * each % 4, 0u);
          EXPECT_LE(
              4 * (4 * std::max(12u, batch / 4 * teams) * lanes + 8 * lanes + teams * (each + 8 * batch)),
              memory);
        }
      }
    }
  }
}

// Of types that matrices are not exact enough for, the table's tiles stay.
TEST(KernelTexts, FollowWhatWasMeasuredWithManyTokens) {
  const auto tiles_of = [](const NotingDevice& device, std::string_view label) {
    for (const auto& [text, its] : device.texts)
      if (its == label) return std::pair{constant(text, "TILE_ROWS"), constant(text, "TILE_TOKENS")};
    return std::pair{0u, 0u};
  };
  NotingDevice usual(large_gpu());
  lower_all(usual, {});
  const auto variants = tile_variants(large_gpu());
  EXPECT_GT(variants.size(), 8u);
  for (const KernelVariant& variant : variants) {
    Tuning tuning;
    for (const DType type : {DType::kQ4_K, DType::kQ5_0, DType::kF16})
      tuning.set({ProductKind::kTiles, type, 2048, 512, 300}, variant);
    tuning.set({ProductKind::kTiles, DType::kQ6_K, 2048, 512, 256}, variant);  // another size of a pass
    NotingDevice device(large_gpu());
    lower_all(device, {.tuning = &tuning});
    const bool matrix = variant.tiles.kind == TileOptions::Kind::kMatrix;
    const std::pair wanted{variant.tiles.rows, variant.tiles.tokens};
    EXPECT_EQ(tiles_of(device, matrix ? "mat_mul_matrix Q4_K" : "mat_mul Q4_K"), wanted) << variant.name;
    EXPECT_EQ(tiles_of(device, matrix ? "mat_mul_matrix Q5_0" : "mat_mul Q5_0"), wanted) << variant.name;
    EXPECT_EQ(tiles_of(device, "mat_mul F16"), matrix ? tiles_of(usual, "mat_mul F16") : wanted)
        << variant.name;
    EXPECT_EQ(tiles_of(device, "mat_mul_matrix Q6_K"), tiles_of(usual, "mat_mul_matrix Q6_K"))
        << variant.name;
  }
}

// Few keys: as many workgroups as a large GPU runs at a time, however many heads share them out.
TEST(KernelTexts, AttentionHasAboutAsManyWorkgroupsForAnyHeads) {
  op::Attention op{};
  op.q.rows = 1, op.kv_heads = 1, op.head_size = 256, op.window = 512;
  for (const auto& [heads, parts] : {std::pair{4u, 32u}, {8u, 32u}, {16u, 16u}, {32u, 16u}, {64u, 8u}}) {
    op.heads = heads;
    EXPECT_EQ(parts_of(op, 528), parts) << heads;
  }
}

TEST(KernelTexts, SuitTheGpu) {
  NotingDevice large(large_gpu());
  lower_all(large, {.attention_parts = attention_parts_for(large.info())});
  EXPECT_TRUE(has_label(large, "mat_mul_matrix Q4_K"));
  EXPECT_TRUE(has_label(large, "mat_mul F32"));
  EXPECT_TRUE(has_label(large, "attention_tile"));
  EXPECT_TRUE(has_label(large, "attention_decode"));
  EXPECT_TRUE(has_label(large, "attention_token"));
  EXPECT_TRUE(has_label(large, "attention_merge"));
  EXPECT_TRUE(has_label(large, "mat_vecs Q4_K normed"));
  EXPECT_TRUE(has_label(large, "mat_vec Q6_K"));
  for (const auto& [text, label] : large.texts) {
    if (label.ends_with("normed")) EXPECT_TRUE(text.contains("subgroupAdd")) << label;
  }
  DeviceInfo info = large_gpu();
  info.subgroups = info.subgroup_matrix = false;
  info.max_invocations = 256;
  info.max_workgroup_memory = 16 << 10;
  NotingDevice small(info);
  lower_all(small, {});
  EXPECT_TRUE(has_label(small, "mat_mul Q4_K"));
  EXPECT_FALSE(has_label(small, "halves"));
  EXPECT_TRUE(has_label(small, "residual_norm"));
  EXPECT_TRUE(has_label(small, "mat_vecs Q4_K"));
  for (const auto& [text, label] : small.texts) EXPECT_FALSE(text.contains("enable ")) << label;
}

// Products with matrices of several types, each of what the last one gave.
void lower_relays(NotingDevice& device, const RelayOptions& relay) {
  Graph g;
  DeviceWeights weights;
  for (u32 i = 0; i < 2; ++i) {
    const Tensor x = g.soft_cap(g.input(i, 1, 512), 30);
    Tensor y = x;
    for (const DType type : {DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kQ8_0})
      y = g.mat_mul(y, add_weight(device, weights, type, 512, 512));
    y = g.add(x, g.rms_norm(y, add_weight(device, weights, DType::kF32, 1, 512), 1e-6f));
    y = g.rms_norm(y, add_weight(device, weights, DType::kF32, 1, 512), 1e-6f);
    g.mat_mul(y, add_weight(device, weights, DType::kQ4_K, 64, 512));
  }
  const Arena layout = lay_out(g, {}, 1, true);
  const Buffer arena(device, 1, layout.elements * sizeof(f32));
  ASSERT_OK(Plan::build(device, g, layout, arena, weights, {}, {.relay = relay}));
}

// As many threads and units as there is memory for, or products one by one.
TEST(KernelTexts, RelaysFitTheGpu) {
  for (const auto& [memory, threads, text] : {std::tuple{48u, 512u, "UNITS: u32 = 168u"},
                                              {32u, 512u, "UNITS: u32 = 128u"},
                                              {32u, 256u, "UNITS: u32 = 132u"},
                                              {16u, 256u, "UNITS: u32 = 56u"},
                                              {16u, 512u, ""}}) {
    DeviceInfo info = large_gpu();
    info.max_workgroup_memory = memory << 10;
    NotingDevice device(info);
    lower_relays(device, {.groups = 132, .threads = threads});
    EXPECT_EQ(has_label(device, "relay"), *text != 0) << memory;
    for (const auto& [source, label] : device.texts)
      if (label == "relay") EXPECT_TRUE(source.contains(text)) << source.substr(0, 200);
  }
  DeviceInfo info = large_gpu();
  info.subgroups = info.subgroup_matrix = false;  // neighbours add up what they find
  NotingDevice device(info);
  lower_relays(device, {.groups = 132});
  EXPECT_FALSE(has_label(device, "relay"));
}

TEST(KernelTexts, AreWrittenForTheCompiler) {
  using Kind = TileOptions::Kind;
  NotingDevice device(large_gpu());
  for (const KvType kv : {KvType::kF16, KvType::kQ8})
    lower_all(device, {.kv = kv, .attention_parts = attention_parts_for(device.info())});
  for (const TileOptions tiles :
       {TileOptions{Kind::kF16, 64, 64, 32}, TileOptions{Kind::kF16, 128, 128, 32},
        TileOptions{Kind::kF32, 128, 128, 16}, TileOptions{Kind::kMatrix, 128, 128, 32, 1},
        TileOptions{Kind::kMatrix, 64, 128, 32, 1}, TileOptions{Kind::kMatrix, 128, 128, 32, 2},
        TileOptions{Kind::kMatrix, 128, 128, 32, 3}, TileOptions{Kind::kMatrix, 128, 64, 32, 3},
        TileOptions{Kind::kMatrix, 128, 256, 32, 1}, TileOptions{Kind::kMatrix, 128, 256, 16, 3}})
    lower_all(device, {.tiles = tiles});
  lower_relays(device, {.groups = 132});
  EXPECT_GT(device.texts.size(), 16 * 8);
  const char* folder = std::getenv("BEZEL_KERNEL_TEXTS");
  if (folder == nullptr) return;
  u32 count = 0;
  for (const auto& [text, label] : device.texts) {
    std::ofstream file(format_text("{}/{:03}.wgsl", folder, count++), std::ios::binary);
    file << "// " << label << "\n" << text;
    EXPECT_TRUE(file.good());
  }
}

}  // namespace
}  // namespace bezel
#endif
