// How long products take from the submission until their result is back: on any GPU, for comparisons with
// other engines. bench_kernels.h times single dispatches, where the GPU has timestamps.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gpu/device.h"
#include "run/bench_kernels.h"

namespace bezel {

struct BenchProductsOptions {
  u32 products = 16;  // of one run, each with a matrix of its own
  u32 repetitions = 5;
  std::optional<bool> units;    // as in VectorOptions
  std::function<bool()> go_on;  // optional; false stops with kCancelled
};

// One product of each shape: the median time of a run, writing its input and reading its last result
// included, divided by its products. Where a matrix is square, a product multiplies the result of the one
// before. Weights are random.
Task<Result<std::vector<KernelRate>>> bench_products(Device& device, std::vector<KernelShape> shapes,
                                                     BenchProductsOptions options);

}  // namespace bezel
