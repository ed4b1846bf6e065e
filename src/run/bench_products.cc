#include "run/bench_products.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "gguf/quant.h"
#include "gguf/random_blocks.h"
#include "graph/wide_form.h"

namespace bezel {
namespace {

constexpr u32 kPieceBlocks = 4096;  // of weights, repeated: enough for values to look random
constexpr u32 kMostProducts = 1024;

Status check(const Device& device, const KernelShape& shape, const BenchProductsOptions& options) {
  const std::string_view type = dtype_name(shape.type);
  if (shape.rows == 0 || shape.cols == 0 || shape.tokens == 0)
    return invalid("A product needs at least one row, one column and one token.");
  if (options.products == 0 || options.products > kMostProducts)
    return invalid("A run has from 1 to {} products, not {}.", kMostProducts, options.products);
  if (options.repetitions == 0) return invalid("At least one repetition is needed.");
  if (!can_quantize(shape.type) || product_weight(shape.type, shape.cols, shape.rows).type != shape.type)
    return fail(ErrorKind::kUnsupported, "Products of {} are not measured.", type);
  const u32 block = dtype_info(shape.type).block_elements;
  if (shape.cols % block != 0)
    return invalid("{} has blocks of {} elements: {} columns are not whole ones.", type, block, shape.cols);
  const u64 most = device.info().max_binding;
  // Tokens first: their number times a row fits into 64 bits, whatever was asked for.
  if (u64{shape.tokens} * std::max(shape.rows, shape.cols) > most / sizeof(f32) / 4)
    return invalid("{} tokens of {} x {} are too many for this GPU.", shape.tokens, shape.rows, shape.cols);
  if (product_weight(shape.type, shape.cols, shape.rows).row_bytes > most / shape.rows)
    return invalid("A {} matrix of {} x {} is larger than what this GPU binds, {} bytes.", type, shape.rows,
                   shape.cols, most);
  return {};
}

// Whole rows of these blocks, at least one, as products read them.
std::vector<std::byte> widened(const DeviceWeight& form, u32 cols, Bytes blocks) {
  const auto row = static_cast<std::size_t>(dtype_bytes(form.type, cols));
  const std::size_t rows = std::max<std::size_t>(blocks.size() / row, 1);
  std::vector<std::byte> out(rows * form.row_bytes);
  for (std::size_t r = 0; r < rows; ++r)
    widen_row(form.type, blocks.subspan(r * row, std::min(row, blocks.size())),
              MutableBytes(out).subspan(r * form.row_bytes, form.row_bytes));
  return out;
}

Task<Result<f64>> seconds_of(Device& device, const KernelShape& shape, const BenchProductsOptions& options) {
  Graph g;
  DeviceWeights weights;
  weights.ones = CO_TRY(device.make_buffer(16, "ones"));
  // Of this deviation, products neither grow nor vanish along a chain.
  RandomBlocks random(shape.type, 1 / std::sqrt(static_cast<f32>(shape.cols)), 1);
  const DeviceWeight form = product_weight(shape.type, shape.cols, shape.rows);
  std::vector<std::byte> piece(std::size_t{kPieceBlocks} * dtype_info(shape.type).block_bytes);
  random.fill(piece);
  if (form.wide) piece = widened(form, shape.cols, piece);
  const Tensor x = g.input(0, shape.tokens, shape.cols);
  Tensor out = x;
  for (u32 i = 0; i < options.products; ++i) {
    DeviceWeight& w = weights.tensors.emplace_back(product_weight(shape.type, shape.cols, shape.rows));
    w.tiles.push_back({CO_TRY(device.make_buffer(u64{w.row_bytes} * shape.rows, "weights")), 0, shape.rows});
    fill(device, *w.tiles[0].buffer, piece);
    CO_TRY(co_await device.settle());
    out = g.mat_mul(shape.rows == shape.cols ? out : x, {i, shape.type, shape.rows, shape.cols});
  }
  g.set_name("out", out);
  static constexpr std::string_view kKeep[] = {"out"};
  const Arena layout = lay_out(g, kKeep, 1);
  const Buffer arena = CO_TRY(device.make_buffer(layout.elements * sizeof(f32), "arena"));
  Plan plan =
      CO_TRY(Plan::build(device, g, layout, arena, weights, {}, {.vector = {.units = options.units}}));
  CO_TRY(co_await device.settle());
  const std::vector<std::vector<f32>> inputs(1,
                                             std::vector<f32>(std::size_t{shape.tokens} * shape.cols, 1.0f));
  std::vector<f32> result;
  std::vector<f64> times;
  for (u32 round = 0; round <= options.repetitions; ++round) {
    if (options.go_on && !options.go_on()) co_return fail(ErrorKind::kCancelled, "Measuring was stopped.");
    const auto begin = std::chrono::steady_clock::now();
    CO_TRY(plan.run(inputs));
    CO_TRY(co_await plan.read(out, result));
    const std::chrono::duration<f64> passed = std::chrono::steady_clock::now() - begin;
    if (round > 0) times.push_back(passed.count());  // the first one compiles kernels
  }
  std::ranges::sort(times);
  co_return std::max(times[times.size() / 2], 1e-9) / options.products;
}

}  // namespace

Task<Result<std::vector<KernelRate>>> bench_products(Device& device, std::vector<KernelShape> shapes,
                                                     BenchProductsOptions options) {
  for (const KernelShape& shape : shapes) CO_TRY(check(device, shape, options));
  std::vector<KernelRate> rates;
  for (const KernelShape& shape : shapes) {
    const f64 seconds = CO_TRY(co_await seconds_of(device, shape, options));
    const f64 elements = static_cast<f64>(shape.rows) * shape.cols;
    rates.push_back({shape, "default", seconds * 1e3,
                     static_cast<f64>(dtype_bytes(shape.type, shape.cols)) * shape.rows / seconds,
                     2 * elements * shape.tokens / seconds});
  }
  co_return rates;
}

}  // namespace bezel
