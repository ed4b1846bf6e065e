#include "model/config_keys.h"

namespace bezel {

Result<std::optional<u32>> ConfigKeys::find(std::string_view key, u32 low, u32 high) const {
  const auto value = TRY(file_.get_uint(full(key)));
  if (!value) return std::nullopt;
  if (*value < low || *value > high) {
    return invalid("{} is {}, but must be from {} to {}.", full(key), *value, low, high);
  }
  return static_cast<u32>(*value);
}

Result<u32> ConfigKeys::get(std::string_view key, u32 low, u32 high, std::optional<u32> otherwise) const {
  const auto value = TRY(find(key, low, high));
  if (value) return *value;
  if (otherwise) return *otherwise;
  return invalid("{} has no key {}, which a Gemma 4 model needs.", file_.name(), full(key));
}

Result<f64> ConfigKeys::get_float(std::string_view key, f64 low, f64 high, f64 otherwise) const {
  const auto value = TRY(file_.get_float(full(key)));
  if (!value) return otherwise;
  if (!(*value >= low && *value <= high)) {
    return invalid("{} is {}, but must be from {} to {}.", full(key), *value, low, high);
  }
  return *value;
}

Result<std::vector<u32>> ConfigKeys::per_layer(std::string_view key, u32 layers, u32 low, u32 high) const {
  const Value* value = file_.find(full(key));
  if (value == nullptr || !value->is_array()) return std::vector<u32>(layers, TRY(get(key, low, high)));
  const auto numbers = value->as_ints();
  if (!numbers || numbers->size() != layers) {
    return invalid("{} must hold {} integers, one for each layer.", full(key), layers);
  }
  std::vector<u32> out;
  for (const i64 number : *numbers) {
    if (number < low || number > high) {
      return invalid("{} contains {}, but its values must be from {} to {}.", full(key), number, low, high);
    }
    out.push_back(static_cast<u32>(number));
  }
  return out;
}

}  // namespace bezel
