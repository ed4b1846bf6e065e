// Runs graphs that keep no state, the encoders of pictures and recordings, where their model computes.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gguf/gguf.h"
#include "gpu/device.h"
#include "graph/graph.h"

namespace bezel {

// Called with what is done and all there is to do; false stops with ErrorKind::kCancelled.
using Progress = std::function<bool(u64 done, u64 total)>;

class GraphRunner {
 public:
  virtual ~GraphRunner() = default;

  // `inputs` by number, `inputs[i]` with as many numbers as input i of the graph; the result is the tensor
  // named `output`, row by row.
  virtual Task<Result<std::vector<f32>>> run(const Graph& graph, std::vector<std::vector<f32>> inputs,
                                             std::string_view output, const Progress& progress) = 0;
};

// With `tensors` of the file as the graphs' weights, on a device or, with null, on the CPU. No norm without a
// weight has more than `longest_plain_norm` columns.
Task<Result<std::unique_ptr<GraphRunner>>> load_graph_runner(Gguf& file, std::span<const TensorInfo> tensors,
                                                             u32 longest_plain_norm, Device* device,
                                                             const Progress& progress);

}  // namespace bezel
