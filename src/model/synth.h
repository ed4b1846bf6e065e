// Random models of the exact shape of real ones: for speed measurements, memory tests and fixtures.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "gguf/writer.h"

namespace bezel {

struct SynthOptions {
  std::string preset;            // one of synth_presets()
  std::string quant = "q4_k_m";  // one of synth_quants()
  u64 seed = 1;
};

std::vector<std::string_view> synth_presets();
std::vector<std::string_view> synth_quants();

// Everything of the file but the tensors' data.
Result<GgufWriter> describe_synthetic_model(const SynthOptions& options);

// Writes the model to `path`, whole or not at all. `progress` gets bytes done and in all; false stops.
Status write_synthetic_model(const std::string& path, const SynthOptions& options,
                             const std::function<bool(u64, u64)>& progress = {});

}  // namespace bezel
