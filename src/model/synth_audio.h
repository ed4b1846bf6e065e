// Random audio towers of the exact shape of real ones, as llama.cpp's mmproj files.
#pragma once
#include <string_view>
#include <vector>

#include "gguf/dtype.h"
#include "model/synth_file.h"

namespace bezel {

struct AudioPreset;

std::vector<std::string_view> audio_preset_names();
const AudioPreset* find_audio_preset(std::string_view name);  // or null

// Matrices have tower_type(type).
void add_synthetic_audio(SynthFile& file, const AudioPreset& preset, DType type);

}  // namespace bezel
