#include "run/per_layer_rows.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "gguf/quant.h"

namespace bezel {

Task<Result<std::vector<f32>>> PerLayerRows::read(std::span<const u32> ids) {
  std::vector<u32> rows_of(ids.begin(), ids.end());
  std::ranges::replace(rows_of, Batch::kSoft, 0u);  // soft tokens have the row of padding
  std::vector<u32> wanted = rows_of;
  std::ranges::sort(wanted);
  wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
  const auto row_bytes = static_cast<std::size_t>(table_.row_bytes());
  std::vector<std::byte> bytes(wanted.size() * row_bytes);
  std::vector<ReadRange> ranges;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(wanted[i] < table_.rows());
    ranges.push_back({table_.offset + wanted[i] * table_.row_bytes(),
                      MutableBytes(bytes).subspan(i * row_bytes, row_bytes)});
  }
  if (const Status status = co_await read_ranges(file_->source(table_.part), ranges); !status) {
    co_return fail(status.error().kind, "Rows of '{}' could not be read: {}", table_.name,
                   status.error().message);
  }
  const auto cols = static_cast<std::size_t>(table_.ne[0]);
  std::vector<f32> rows(ids.size() * cols);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const auto at = static_cast<std::size_t>(std::ranges::lower_bound(wanted, rows_of[t]) - wanted.begin());
    dequantize(table_.type, Bytes(bytes).subspan(at * row_bytes, row_bytes),
               std::span(rows).subspan(t * cols, cols));
  }
  co_return rows;
}

Result<u64> choose_per_layer_table(TextModel& model, std::span<const u64> bytes, const LoadOptions& options) {
  const u64 budget = options.memory_budget;
  const bool has_table = static_cast<bool>(model.per_layer_token_embd);
  const u64 all = std::accumulate(bytes.begin(), bytes.end(), u64{0});
  const bool fits = budget == 0 || all <= budget;
  model.per_layer_rows_from_file = has_table && (options.per_layer_table == PerLayerTable::kSource ||
                                                 (options.per_layer_table == PerLayerTable::kAuto && !fits));
  const u64 loaded = model.per_layer_rows_from_file ? all - bytes[model.per_layer_token_embd.index] : all;
  if (budget == 0 || loaded <= budget) return loaded;
  return fail(ErrorKind::kMemory,
              "The model's weights take {} bytes, more than the memory that there is for them ({} bytes).",
              loaded, budget);
}

}  // namespace bezel
