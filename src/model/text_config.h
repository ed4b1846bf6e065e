// The hyper-parameters of Gemma 4's text model, read from GGUF metadata and checked.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "gguf/gguf.h"

namespace bezel {

struct LayerConfig {
  bool sliding = false;  // attends to the last `window` tokens; otherwise to all
  u32 heads = 0;
  u32 kv_heads = 0;
  u32 head_size = 0;
  u32 ffn = 0;
  u32 kv_layer = 0;  // the layer whose keys and values it reads: itself, or the donor it shares with
};

struct TextConfig {
  u32 width = 0;    // d
  u32 vocab = 0;    // V
  u32 context = 0;  // trained
  u32 window = 0;
  u32 ple = 0;  // width of the per-layer embeddings, 0 without
  u32 experts = 0, experts_used = 0, expert_ffn = 0;
  f32 eps = 1e-6f;
  f32 soft_cap = 30;
  f64 rope_base = 1e6, rope_base_sliding = 1e4;
  std::vector<LayerConfig> layers;

  u32 owned_kv_layers() const;  // layers before this one compute K and V; those from it on share
  // In sliding layers the tokens of a picture see all of it. No key says so: it is the rule by which the
  // published models differ.
  bool pictures_see_ahead() const { return ple == 0; }
  bool owns_kv(u32 layer) const { return layers[layer].kv_layer == layer; }
};

// Everything but the vocabulary size comes from the keys; that one is the height of token_embd.
Result<TextConfig> read_text_config(const Gguf& file);

// "E2B", "31B" ... where the shape is that of a published model, else "custom".
std::string text_model_name(const TextConfig& config);

}  // namespace bezel
