// How fast single kernels run, each in several variants and with the shapes of the published models.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gpu/device.h"
#include "graph/plan.h"

namespace bezel {

struct KernelShape {
  DType type;
  u32 rows, cols, tokens;
};

struct KernelRate {
  KernelShape shape;
  std::string variant;
  f64 milliseconds = 0;           // of one product, the median
  f64 preparation = 0;            // of what precedes the products with the same tokens, in milliseconds
  f64 bytes_per_second = 0;       // of weights
  f64 operations_per_second = 0;  // two for each weight and token
};

// Writes `piece` into a buffer, again and again.
void fill(Device& device, const Buffer& buffer, Bytes piece);

// The largest matrices of 31B, and those of E2B, with one token and with a prompt's; or with the latter
// alone. Small ones where the GPU is software.
std::vector<KernelShape> published_shapes(const Device& device, bool only_tiles);

// The product of each shape, in every variant that the device can run: with up to kVectorTokens tokens those
// of vector kernels, with more those of tiles; on a software adapter only a few. Weights are noise, in
// several copies so that no cache holds them. Needs info().timestamps. What `report` gets is not kept; where
// it returns false, the rest is left out.
Task<Status> bench_kernels(Device& device, std::vector<KernelShape> shapes,
                           std::function<bool(const KernelRate&)> report);

}  // namespace bezel
