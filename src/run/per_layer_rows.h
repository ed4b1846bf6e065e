// The table of per-layer embeddings, left in the file: a pass reads only the rows of its tokens.
#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gguf/gguf.h"
#include "model/text_model.h"
#include "run/backend.h"

namespace bezel {

class PerLayerRows {
 public:
  // `file` must outlive it.
  PerLayerRows(Gguf& file, const TextModel& model)
      : file_(&file), table_(model.tensors[model.per_layer_token_embd.index]) {}

  // One row for each id, (T, L * P), dequantised. A row that is asked for twice is read once.
  Task<Result<std::vector<f32>>> read(std::span<const u32> ids);

 private:
  Gguf* file_;
  TensorInfo table_;
};

// Decides, by the options, whether the model's table stays in the file, and gives the bytes of all that is to
// be loaded. `bytes` are the sizes of the model's tensors where they will be. kMemory when the rest alone is
// more than options.memory_budget.
Result<u64> choose_per_layer_table(TextModel& model, std::span<const u64> bytes, const LoadOptions& options);

}  // namespace bezel
