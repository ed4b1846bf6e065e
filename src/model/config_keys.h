// Reads a model's settings with bounds that keep every later product inside 32 bits.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"

namespace bezel {

// Keys "<prefix><key>": "gemma4.block_count".
class ConfigKeys {
 public:
  ConfigKeys(const Gguf& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  Result<std::optional<u32>> find(std::string_view key, u32 low, u32 high) const;
  Result<u32> get(std::string_view key, u32 low, u32 high, std::optional<u32> otherwise = {}) const;
  Result<f64> get_float(std::string_view key, f64 low, f64 high, f64 otherwise) const;
  // One number for all layers, or an array with one each.
  Result<std::vector<u32>> per_layer(std::string_view key, u32 layers, u32 low, u32 high) const;

  std::string full(std::string_view key) const { return prefix_ + std::string(key); }

 private:
  const Gguf& file_;
  std::string prefix_;
};

}  // namespace bezel
