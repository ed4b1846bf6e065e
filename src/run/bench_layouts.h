// How fast rows are put in the order in which products read them, see graph/wide_form.h: what loading costs
// besides reading.
#pragma once
#include <vector>

#include "gguf/dtype.h"

namespace bezel {

struct LayoutRate {
  DType type;
  f64 file_bytes_per_second = 0;
  f64 weights_per_second = 0;
  f64 halves_per_second = 0;  // weights, were they made F16 instead
};

// Of every type whose rows are put in another order, on one core; rows of `cols` weights, medians.
std::vector<LayoutRate> bench_layouts(u32 cols, u32 repetitions);

}  // namespace bezel
