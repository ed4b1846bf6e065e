// A benchmark's figures as JSON, for the command line and for hosts.
#pragma once
#include <nlohmann/json.hpp>

#include "run/bench.h"
#include "run/bench_kernels.h"

namespace bezel {

nlohmann::json to_json(const BenchReport& report);
nlohmann::json to_json(const KernelRate& rate);
// Of {"type": "Q4_K", "rows": ..., "cols": ..., "tokens": 1}.
Result<KernelShape> read_kernel_shape(const nlohmann::json& shape);

}  // namespace bezel
