#include "model/tower_weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace bezel {
namespace {

struct Bound {
  std::string_view suffix;
  f32 Clamp::* member;
};

constexpr Bound kBounds[] = {{".input_min", &Clamp::in_min},
                             {".input_max", &Clamp::in_max},
                             {".output_min", &Clamp::out_min},
                             {".output_max", &Clamp::out_max}};

struct Found {
  const TensorInfo* info;
  const Bound* bound;
  f32 value = 0;
};

Result<std::vector<Found>> find_bounds(const Gguf& file, std::string_view prefix) {
  std::vector<Found> found;
  for (const TensorInfo& info : file.tensors()) {
    if (!info.name.starts_with(prefix)) continue;
    const auto* bound =
        std::ranges::find_if(kBounds, [&](const Bound& b) { return info.name.ends_with(b.suffix); });
    if (bound == std::end(kBounds)) continue;
    if (info.type != DType::kF32 || info.elements() != 1) {
      return invalid("Tensor '{}' must hold one F32 number, but holds {} of type {}.", info.name,
                     info.elements(), dtype_name(info.type));
    }
    found.push_back({&info, bound});
  }
  return found;
}

}  // namespace

Task<Result<ClampTable>> read_clamps(Gguf& file, std::string_view prefix) {
  std::vector<Found> found = CO_TRY(find_bounds(file, prefix));
  std::map<u32, std::vector<ReadRange>> ranges;  // by part
  for (Found& f : found) {
    ranges[f.info->part].push_back({f.info->offset, std::as_writable_bytes(std::span(&f.value, 1))});
  }
  for (const auto& [part, of_part] : ranges) CO_TRY(co_await read_ranges(file.source(part), of_part));

  ClampTable clamps;
  for (const Found& f : found) {
    if (std::isnan(f.value)) {
      co_return invalid("Tensor '{}' holds a bound that is not a number.", f.info->name);
    }
    const auto name = f.info->name.substr(0, f.info->name.size() - f.bound->suffix.size());
    clamps[std::string(name)].*f.bound->member = std::clamp(f.value, -Clamp::kNoBound, Clamp::kNoBound);
  }
  for (const auto& [name, clamp] : clamps) {
    for (const auto& [low, high, what] : {std::tuple{clamp.in_min, clamp.in_max, "input"},
                                          std::tuple{clamp.out_min, clamp.out_max, "output"}}) {
      if (low > high) {
        co_return invalid("The bounds of the {} of {} are {} and {}; the lower one is the larger.", what,
                          quote(name), low, high);
      }
    }
  }
  co_return clamps;
}

ClampedLinear TowerBinder::linear(std::string_view name, TensorShape shape) {
  const auto clamp = clamps_.find(prefix() + std::string(name));
  return {required(std::string(name) + ".weight", shape), clamp == clamps_.end() ? Clamp{} : clamp->second};
}

}  // namespace bezel
