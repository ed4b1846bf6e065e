#include "api/bench_json.h"

#include "api/arguments.h"
#include "base/quote.h"

namespace bezel {
namespace {

using nlohmann::json;

json optional_number(const std::optional<f64>& value) { return value ? json(*value) : json(); }

json to_json(const BenchPart& part) {
  json out{{"tokens_per_second", part.tokens_per_second},
           {"pass_tokens", part.pass_tokens},
           {"dispatches", part.dispatches},
           {"kernels", json::array()}};
  for (const KernelTotal& kernel : part.kernels) {
    out["kernels"].push_back({{"label", kernel.label},
                              {"dispatches", kernel.dispatches},
                              {"milliseconds", optional_number(kernel.milliseconds)}});
  }
  return out;
}

}  // namespace

json to_json(const BenchReport& report) {
  return {{"prefill", to_json(report.prefill)},
          {"decode", to_json(report.decode)},
          {"bytes_per_token", report.bytes_per_token},
          {"read_bandwidth", optional_number(report.read_bandwidth)},
          {"bandwidth_share", optional_number(report.bandwidth_share)}};
}

json to_json(const KernelRate& rate) {
  return {{"type", dtype_name(rate.shape.type)},
          {"rows", rate.shape.rows},
          {"cols", rate.shape.cols},
          {"tokens", rate.shape.tokens},
          {"variant", rate.variant},
          {"milliseconds", rate.milliseconds},
          {"preparation", rate.preparation},
          {"bytes_per_second", rate.bytes_per_second},
          {"operations_per_second", rate.operations_per_second}};
}

Result<KernelShape> read_kernel_shape(const json& shape) {
  const Arguments in(shape);
  const auto name = TRY(in.get<std::string>("type"));
  const DTypeInfo* type = find_dtype(name);
  if (type == nullptr) return invalid("There is no tensor type {}.", quote(name));
  return KernelShape{type->type, TRY(in.get<u32>("rows")), TRY(in.get<u32>("cols")),
                     TRY(in.get<u32>("tokens", 1))};
}

}  // namespace bezel
