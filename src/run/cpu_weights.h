// Weights in this machine's memory, as they are in the file.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "base/task.h"
#include "gguf/gguf.h"
#include "graph/reference.h"
#include "run/backend.h"

namespace bezel {

class CpuWeights final : public WeightBytes {
 public:
  Bytes bytes(u32 index) const override { return tensors_[index]; }

  // Those that `wanted` names; the others stay empty.
  Task<Status> load(Gguf& file, std::span<const TensorInfo> tensors, std::function<bool(u32)> wanted,
                    const LoadOptions& options);

 private:
  std::vector<std::vector<std::byte>> tensors_;
};

}  // namespace bezel
