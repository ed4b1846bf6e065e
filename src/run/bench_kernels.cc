#include "run/bench_kernels.h"

#include <algorithm>

#include "base/format_text.h"
#include "base/random.h"
#include "graph/fuse.h"
#include "graph/tuning.h"

namespace bezel {
namespace {

constexpr u32 kRounds = 5;
// Runs before the first that counts: a GPU that has just been idle is slow.
constexpr u32 kWarm = 40;
// Of weights, in bytes: more than caches hold, in at most so many copies.
constexpr u64 kMuch = 200 << 20;
constexpr u32 kMostCopies = 64;

struct Variant {
  std::string name;
  PlanOptions options;
};

// Those that a product may be computed by, and some that are not exact enough.
std::vector<Variant> all_tiles(const DeviceInfo& info) {
  using Kind = TileOptions::Kind;
  std::vector<Variant> out{{"default", {}}};
  for (const KernelVariant& variant : tile_variants(info))
    out.push_back({variant.name, {.tiles = variant.tiles}});
  if (info.software) return out;
  constexpr TileOptions kHalves{Kind::kF16, 128, 128, 32};
  if (tiles_fit(info, kHalves)) out.push_back({"f16, 128 x 128, step 32", {.tiles = kHalves}});
  for (const auto& [split, tokens] : {std::pair{1u, 128u}, {1u, 256u}, {2u, 128u}}) {
    const TileOptions tiles{Kind::kMatrix, 128, tokens, 32, split};
    if (tiles_fit(info, tiles))
      out.push_back({format_text("matrices, 128 x {}, step 32, split {}", tokens, split), {.tiles = tiles}});
  }
  return out;
}

std::vector<Variant> variants(const Device& device, const KernelShape& shape) {
  if (shape.tokens > kVectorTokens) return all_tiles(device.info());
  std::vector<Variant> out{{"default", {}}, {"direct", {.vector = {.units = false, .held = false}}}};
  if (device.info().software) return out;
  for (const KernelVariant& variant : vector_variants(device.info()))
    out.push_back({variant.name, {.vector = variant.vector}});
  return out;
}

// Anything but zeros, which some GPUs multiply faster.
std::vector<u32> make_noise() {
  std::vector<u32> noise(1 << 18);
  Random random(7);
  for (u32& word : noise) word = static_cast<u32>(random.next());
  return noise;
}

// In seconds, of nanoseconds; 0 where there are none.
f64 median(std::vector<u64>& times) {
  if (times.empty()) return 0;
  std::ranges::sort(times);
  return static_cast<f64>(times[times.size() / 2]) * 1e-9;
}

}  // namespace

void fill(Device& device, const Buffer& buffer, Bytes piece) {
  for (u64 at = 0; at < buffer.bytes(); at += piece.size()) {
    const u64 count = std::min<u64>(piece.size(), buffer.bytes() - at);
    device.write(buffer, at, piece.first(static_cast<std::size_t>(count)));
  }
}

std::vector<KernelShape> published_shapes(const Device& device, bool tiles) {
  if (device.info().software) {
    return tiles ? std::vector<KernelShape>{{DType::kQ4_K, 64, 256, 8}}
                 : std::vector<KernelShape>{{DType::kQ4_K, 256, 512, 1}, {DType::kQ6_K, 64, 256, 8}};
  }
  constexpr u32 kPrompt = 512;
  std::vector<KernelShape> shapes;
  for (const DType type : {DType::kQ4_K, DType::kQ6_K}) {
    if (tiles) break;
    for (const auto& [rows, cols] :
         {std::pair{21504u, 5376u}, {5376u, 21504u}, {12288u, 1536u}, {1536u, 6144u}, {2048u, 1536u}})
      shapes.push_back({type, rows, cols, 1});
  }
  for (const DType type : {DType::kQ5_K, DType::kQ8_0, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ5_0,
                           DType::kQ3_K, DType::kQ2_K, DType::kIQ4_XS, DType::kIQ2_S}) {
    if (!tiles) shapes.push_back({type, 21504, 5376, 1});
  }
  for (const auto& [rows, cols] :
       {std::pair{21504u, 5376u}, {6144u, 1536u}, {1536u, 6144u}, {12288u, 1536u}, {2048u, 1536u}})
    shapes.push_back({DType::kQ4_K, rows, cols, kPrompt});
  shapes.push_back({DType::kQ6_K, 21504, 5376, kPrompt});
  return shapes;
}

Task<Status> bench_kernels(Device& device, std::vector<KernelShape> shapes,
                           std::function<bool(const KernelRate&)> report) {
  if (!device.info().timestamps)
    co_return invalid("This GPU has no timestamps: the times of kernels are unknown.");
  const std::vector<u32> noise = make_noise();
  for (const KernelShape& shape : shapes) {
    Graph g;
    const Tensor x = g.input(0, shape.tokens, shape.cols);
    DeviceWeights weights;
    weights.ones = CO_TRY(device.make_buffer(16, "ones"));
    const u64 row_bytes =
        dtype_bytes(shape.type, shape.cols);  // the file's, which are what matters to a user
    const u64 copies = std::clamp<u64>(kMuch / (row_bytes * shape.rows), 4, kMostCopies);
    for (u32 i = 0; i < (device.info().software ? 4 : copies); ++i) {
      DeviceWeight& w = weights.tensors.emplace_back(product_weight(shape.type, shape.cols, shape.rows));
      w.tiles.push_back(
          {CO_TRY(device.make_buffer(u64{w.row_bytes} * shape.rows, "weights")), 0, shape.rows});
      fill(device, *w.tiles[0].buffer, std::as_bytes(std::span(noise)));
      CO_TRY(co_await device.settle());  // lest all copies wait in memory
      g.set_name(format_text("out {}", i), g.mat_mul(x, {i, shape.type, shape.rows, shape.cols}));
    }
    const std::vector<std::vector<f32>> inputs(
        1, std::vector<f32>(std::size_t{shape.tokens} * shape.cols, 1.0f));
    const Arena layout = lay_out(g, {}, 1);
    const Buffer arena = CO_TRY(device.make_buffer(layout.elements * sizeof(f32), "arena"));
    for (const Variant& variant : variants(device, shape)) {
      Plan plan = CO_TRY(Plan::build(device, g, layout, arena, weights, {}, variant.options));
      CO_TRY(co_await device.settle());
      for (u32 i = 0; i < (device.info().software ? 0 : kWarm); ++i) CO_TRY(plan.run(inputs));
      CO_TRY(co_await device.settle());
      std::vector<u64> times, before;
      for (u32 round = 0; round <= kRounds; ++round) {
        const auto now = CO_TRY(co_await plan.profile(inputs));
        if (round == 0) continue;
        for (std::size_t i = 0; i < now.size(); ++i)
          (plan.labels()[i].starts_with("mat_") ? times : before).push_back(now[i]);
      }
      const f64 seconds = std::max(median(times), 1e-9);
      const bool go_on = report({shape, variant.name, seconds * 1e3, median(before) * 1e3,
                                 static_cast<f64>(row_bytes) * shape.rows / seconds,
                                 2.0 * shape.rows * shape.cols * shape.tokens / seconds});
      if (!go_on) co_return Status{};
    }
  }
  co_return Status{};
}

}  // namespace bezel
