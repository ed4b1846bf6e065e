// Gemma 4's text model as found in a file: configuration and the weights that its graph uses, shapes checked.
#pragma once
#include <array>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gguf/gguf.h"
#include "graph/graph.h"
#include "model/text_config.h"

namespace bezel {

// A matrix, and the optional companion tensor "<name>.scale" that multiplies its output: one number, or one
// for each expert. NVFP4 files carry it on every linear, all mixture-of-experts files on ffn_down_exps.
struct Linear {
  Weight weight, scale;
  explicit operator bool() const { return static_cast<bool>(weight); }
};

struct LayerWeights {
  Weight attn_norm, attn_q_norm, attn_k_norm, post_attention_norm;  // k: only where the layer owns K and V
  Linear attn_q, attn_k, attn_v, attn_output;                       // no attn_v: V is the raw K
  Weight ffn_norm, post_ffw_norm;
  Linear ffn_gate, ffn_up, ffn_down;
  Weight layer_output_scale;  // optional
  // With per-layer embeddings.
  Linear inp_gate, proj;
  Weight post_norm;
  // With experts; gate and up are fused or split.
  Weight ffn_gate_inp, ffn_gate_inp_scale, pre_ffw_norm_2, post_ffw_norm_1, post_ffw_norm_2;
  Linear ffn_gate_up_exps, ffn_gate_exps, ffn_up_exps, ffn_down_exps;
};

struct TextModel {
  TextConfig config;
  // SHA-256 of the file's settings and tensor table: tells models apart without reading their weights.
  std::array<u8, 32> identity{};
  std::vector<TensorInfo> tensors;         // by Weight::index
  Weight token_embd, output, output_norm;  // output is token_embd where the head is tied
  Weight per_layer_token_embd, per_layer_proj_norm;
  // The per-layer table is not loaded: its rows are an input of the graph (see kPerLayerRows).
  bool per_layer_rows_from_file = false;
  Linear per_layer_model_proj;
  std::vector<LayerWeights> layers;
  // Angle of each rotary pair per position, D/2 numbers; [0] for global layers, [1] for sliding ones.
  std::array<std::vector<f64>, 2> frequencies;

  // Whether a backend holds tensors[index].
  bool loads(u32 index) const { return !per_layer_rows_from_file || index != per_layer_token_embd.index; }
};

// The views in `tensors` point into `file`, which must outlive the model.
Task<Result<TextModel>> load_text_model(Gguf& file);

// What the rotary frequencies become when PyTorch casts a whole model to bfloat16, buffers included. No
// published model wants it: it is for comparing with expected values that were made so.
void round_frequencies_to_bf16(TextModel& model);

}  // namespace bezel
