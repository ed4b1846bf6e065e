// Random vision towers of the exact shape of real ones, as llama.cpp's mmproj files.
#pragma once
#include <string_view>
#include <vector>

#include "gguf/dtype.h"
#include "model/synth_file.h"

namespace bezel {

struct VisionPreset;

std::vector<std::string_view> vision_preset_names();
const VisionPreset* find_vision_preset(std::string_view name);  // or null

// Matrices have tower_type(type).
void add_synthetic_vision(SynthFile& file, const VisionPreset& preset, DType type);

}  // namespace bezel
