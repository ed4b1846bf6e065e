#include "run/bench_kernels.h"

#include <algorithm>
#include <format>

#include "graph/fuse.h"

namespace bezel {
namespace {

constexpr u32 kCopies = 4, kRounds = 5;

struct Variant {
  std::string name;
  VectorOptions options;
};

std::vector<Variant> variants(const Device& device, const KernelShape& shape) {
  if (shape.tokens > kVectorTokens) return {{"tiles", {}}};
  std::vector<Variant> out{{"default", {}}, {"direct", {.staged = false}}};
  if (device.info().software) return out;
  for (const auto& [threads, lanes, rows] : {std::tuple{64u, 16u, 1u},
                                             {64u, 16u, 2u},
                                             {64u, 16u, 4u},
                                             {64u, 32u, 2u},
                                             {64u, 32u, 4u},
                                             {64u, 64u, 4u},
                                             {128u, 32u, 2u},
                                             {128u, 32u, 4u},
                                             {128u, 32u, 8u},
                                             {256u, 32u, 4u}}) {
    for (const bool subgroups : {false, true}) {
      if (subgroups && !device.info().subgroups) continue;
      for (const bool mantissa : {false, true}) {
        out.push_back({std::format("{} threads, {} lanes, {} rows{}{}", threads, lanes, rows,
                                   subgroups ? ", subgroups" : "", mantissa ? ", mantissa" : ""),
                       {true, threads, lanes, rows, subgroups, mantissa}});
      }
    }
  }
  return out;
}

}  // namespace

Task<Status> bench_kernels(Device& device, std::vector<KernelShape> shapes,
                           std::function<bool(const KernelRate&)> report) {
  if (!device.info().timestamps)
    co_return invalid("This GPU has no timestamps: the times of kernels are unknown.");
  for (const KernelShape& shape : shapes) {
    Graph g;
    const Tensor x = g.input(0, shape.tokens, shape.cols);
    DeviceWeights weights;
    weights.ones = CO_TRY(device.make_buffer(16, "ones"));
    const u64 row_bytes = dtype_bytes(shape.type, shape.cols);
    for (u32 i = 0; i < kCopies; ++i) {
      DeviceWeight& w = weights.tensors.emplace_back();
      w.type = shape.type;
      w.row_bytes = static_cast<u32>(row_bytes);
      w.tiles.push_back({CO_TRY(device.make_buffer(row_bytes * shape.rows, "weights")), 0, shape.rows});
      g.set_name(std::format("out {}", i), g.mat_mul(x, {i, shape.type, shape.rows, shape.cols}));
    }
    const std::vector<std::vector<f32>> inputs(
        1, std::vector<f32>(std::size_t{shape.tokens} * shape.cols, 1.0f));
    const Arena layout = lay_out(g, {}, 1);
    const Buffer arena = CO_TRY(device.make_buffer(layout.elements * sizeof(f32), "arena"));
    for (const Variant& variant : variants(device, shape)) {
      if (variant.options.threads > device.info().max_invocations) continue;
      Plan plan = CO_TRY(Plan::build(device, g, layout, arena, weights, {}, {.vector = variant.options}));
      CO_TRY(co_await device.settle());
      std::vector<u64> times;
      for (u32 round = 0; round <= kRounds; ++round) {
        const auto now = CO_TRY(co_await plan.profile(inputs));
        if (round > 0) times.insert(times.end(), now.begin(), now.end());
      }
      std::ranges::sort(times);
      const f64 seconds = std::max(static_cast<f64>(times[times.size() / 2]) * 1e-9, 1e-9);
      const bool go_on =
          report({shape, variant.name, seconds * 1e3, static_cast<f64>(row_bytes) * shape.rows / seconds,
                  2.0 * shape.rows * shape.cols * shape.tokens / seconds});
      if (!go_on) co_return Status{};
    }
  }
  co_return Status{};
}

}  // namespace bezel
