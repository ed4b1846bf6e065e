#include "run/bench_layouts.h"

#include <algorithm>
#include <chrono>

#include "base/random.h"
#include "gguf/quant.h"
#include "graph/device_weights.h"
#include "graph/wide_form.h"

namespace bezel {
namespace {

constexpr size_t kWeights = 1 << 23;  // in all rows: more than caches hold

template <class Work>
f64 seconds(u32 repetitions, const Work& work) {
  std::vector<f64> times;
  for (u32 i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    times.push_back(std::chrono::duration<f64>(std::chrono::steady_clock::now() - begin).count());
  }
  std::ranges::nth_element(times, times.begin() + repetitions / 2);
  return times[repetitions / 2];
}

}  // namespace

std::vector<LayoutRate> bench_layouts(u32 cols, u32 repetitions) {
  std::vector<LayoutRate> rates;
  Random random(1);
  const size_t rows = std::max<size_t>(2, kWeights / cols);
  for (u32 id = 0; id <= static_cast<u32>(DType::kQ2_0); ++id) {
    const DTypeInfo* info = find_dtype(id);
    if (info == nullptr || cols % info->block_elements != 0) continue;
    const DType type = info->type;
    if (!has_wide_form(type) || !product_weight(type, cols, rows).wide) continue;
    const auto row = static_cast<size_t>(dtype_bytes(type, cols)),
               wide = static_cast<size_t>(wide_row_bytes(type, cols));
    const size_t halves = size_t{cols} * 2;
    std::vector<std::byte> file(rows * row);  // any bytes are blocks
    for (std::byte& byte : file) byte = static_cast<std::byte>(random.next());
    std::vector<std::byte> out(std::max(wide, halves) * rows);
    const f64 widening = seconds(repetitions, [&] {
      for (size_t r = 0; r < rows; ++r)
        widen_row(type, Bytes(file).subspan(r * row, row), MutableBytes(out).subspan(r * wide, wide));
    });
    std::vector<f32> values(cols);
    const f64 halving = seconds(repetitions, [&] {
      for (size_t r = 0; r < rows; ++r) {
        dequantize(type, Bytes(file).subspan(r * row, row), values);
        quantize(DType::kF16, values, MutableBytes(out).subspan(r * halves, halves));
      }
    });
    const auto weights = static_cast<f64>(rows * cols);
    rates.push_back({type, static_cast<f64>(rows * row) / widening, weights / widening, weights / halving});
  }
  return rates;
}

}  // namespace bezel
