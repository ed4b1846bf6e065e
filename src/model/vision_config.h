// The hyper-parameters of Gemma 4's vision tower, read from GGUF metadata and checked.
#pragma once
#include "base/result.h"
#include "base/types.h"
#include "gguf/gguf.h"

namespace bezel {

enum class VisionKind {
  kVit,      // a transformer over patches of 16 pixels, 3 x 3 of which become a soft token
  kUnified,  // no encoder: a patch of 48 pixels is projected
};

struct VisionConfig {
  VisionKind kind = VisionKind::kVit;
  u32 patch = 16;     // pixels of a patch's side
  u32 pool = 3;       // patches of a soft token's side
  u32 width = 0;      // d of the tower
  u32 positions = 0;  // rows of the position table, for each axis
  u32 text_width = 0;
  // Of kVit.
  u32 blocks = 0, heads = 0, head_size = 0, ffn = 0;
  f32 eps = 1e-6f;

  // Pixels of a soft token's side: the sides of a picture are multiples of it.
  u32 unit() const { return patch * pool; }
};

// Whether the file has a vision tower: a model in one file as Ollama's, or an mmproj of llama.cpp.
bool has_vision(const Gguf& file);

// `text_width` is that of the model which will read the soft tokens.
Result<VisionConfig> read_vision_config(const Gguf& file, u32 text_width);

}  // namespace bezel
