// Gemma 4's vision tower as found in a file: configuration and the weights that its graph uses, shapes
// checked.
#pragma once
#include <array>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gguf/gguf.h"
#include "graph/graph.h"
#include "model/tower_weights.h"
#include "model/vision_config.h"

namespace bezel {

struct VisionBlock {
  Weight ln1, attn_q_norm, attn_k_norm, attn_post_norm, ln2, ffn_post_norm;
  ClampedLinear attn_q, attn_k, attn_v, attn_out, ffn_gate, ffn_up, ffn_down;
  Weight out_scale;  // optional
};

struct VisionModel {
  VisionConfig config;
  std::vector<TensorInfo> tensors;  // by Weight::index
  Weight patch_embd;                // (d, 3 * patch * patch), a pixel's column: channel, y, x
  Weight projection;
  // (2, positions, d), not loaded: of its rows a picture needs but a few. See vision_inputs().
  TensorInfo position_embd;
  // Of VisionKind::kVit.
  std::vector<VisionBlock> blocks;
  std::vector<f64> frequencies;  // D/4 numbers: half a head turns by x, the other by y
  Weight std_bias, std_scale;    // both or neither
  // Of VisionKind::kUnified.
  struct Norm {
    Weight weight, bias;
  };
  Weight patch_bias;
  std::array<Norm, 3> patch_norms;
};

// Reads the bounds of linears, nothing else. The views in the model point into `file`, which must outlive it.
Task<Result<VisionModel>> load_vision_model(Gguf& file, u32 text_width);

// See the one of TextModel.
void round_frequencies_to_bf16(VisionModel& model);

}  // namespace bezel
