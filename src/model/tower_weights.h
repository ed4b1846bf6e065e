// What the encoders of pictures and of sound share: linears with bounds, found in a file.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gguf/gguf.h"
#include "graph/graph.h"
#include "model/tensor_binder.h"

namespace bezel {

// The bounds of a file's linears by name, "v.blk.0.attn_q"; those that have none are not there.
using ClampTable = std::map<std::string, Clamp, std::less<>>;

// Reads all tensors "<prefix>...input_min", "input_max", "output_min" and "output_max", a few large reads in
// all. A bound that is missing or infinite is none.
Task<Result<ClampTable>> read_clamps(Gguf& file, std::string_view prefix);

struct ClampedLinear {
  Weight weight;
  Clamp clamp;
  explicit operator bool() const { return static_cast<bool>(weight); }
};

inline Tensor apply(Graph& g, Tensor x, const ClampedLinear& linear) {
  return g.mat_mul(x, linear.weight, {}, 1, linear.clamp);
}

class TowerBinder : public TensorBinder {
 public:
  TowerBinder(const Gguf& file, std::vector<TensorInfo>& tensors, const ClampTable& clamps,
              std::span<const Alias> aliases = {})
      : TensorBinder(file, tensors, aliases), clamps_(clamps) {}

  // "<name>.weight" and its bounds.
  ClampedLinear linear(std::string_view name, TensorShape shape);

 private:
  const ClampTable& clamps_;
};

}  // namespace bezel
