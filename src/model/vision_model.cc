#include "model/vision_model.h"

#include <cmath>

#include "base/format_text.h"
#include "gguf/quant.h"

namespace bezel {
namespace {

constexpr f64 kRopeBase = 100;

VisionBlock bind_block(TowerBinder& bind, const VisionConfig& config, u32 index) {
  const u32 d = config.width, ffn = config.ffn;
  VisionBlock b;
  bind.set_prefix(format_text("v.blk.{}.", index));
  b.ln1 = bind.required("ln1.weight", {d});
  b.attn_q = bind.linear("attn_q", {d, d});
  b.attn_k = bind.linear("attn_k", {d, d});
  b.attn_v = bind.linear("attn_v", {d, d});
  b.attn_q_norm = bind.required("attn_q_norm.weight", {config.head_size});
  b.attn_k_norm = bind.required("attn_k_norm.weight", {config.head_size});
  b.attn_out = bind.linear("attn_out", {d, d});
  b.attn_post_norm = bind.required("attn_post_norm.weight", {d});
  b.ln2 = bind.required("ln2.weight", {d});
  b.ffn_gate = bind.linear("ffn_gate", {d, ffn});
  b.ffn_up = bind.linear("ffn_up", {d, ffn});
  b.ffn_down = bind.linear("ffn_down", {ffn, d});
  b.ffn_post_norm = bind.required("ffn_post_norm.weight", {d});
  b.out_scale = bind.optional("out_scale.weight", {1});
  return b;
}

void bind_vit(TowerBinder& bind, VisionModel& model) {
  const VisionConfig& config = model.config;
  const u32 patch = config.patch, d = config.width;
  model.patch_embd = bind.flattened("patch_embd.weight", {patch, patch, 3, d}, {3 * patch * patch, d});
  if (bind.has("std_bias") || bind.has("std_scale")) {
    model.std_bias = bind.required("std_bias", {d});
    model.std_scale = bind.required("std_scale", {d});
  }
  for (u32 i = 0; i < config.blocks; ++i) model.blocks.push_back(bind_block(bind, config, i));
  // Each half of a head is a head of its own to the rotation.
  const u32 half = config.head_size / 2;
  for (u32 i = 0; i < half / 2; ++i) model.frequencies.push_back(std::pow(kRopeBase, -2.0 * i / half));
}

void bind_unified(TowerBinder& bind, VisionModel& model) {
  const u32 pixels = 3 * model.config.patch * model.config.patch, d = model.config.width;
  model.patch_embd = bind.required("patch_embd.weight", {pixels, d});
  model.patch_bias = bind.required("patch_embd.bias", {d});
  // Some files count the norms from 0.
  const u32 first = bind.has("patch_norm.0.weight") ? 0 : 1;
  for (u32 i = 0; i < 3; ++i) {
    const u32 width = i == 0 ? pixels : d;
    model.patch_norms[i] = {bind.required(format_text("patch_norm.{}.weight", first + i), {width}),
                            bind.required(format_text("patch_norm.{}.bias", first + i), {width})};
  }
}

Result<TensorInfo> position_table(const Gguf& file, const VisionConfig& config) {
  std::vector<TensorInfo> found;
  TensorBinder bind(file, found);
  bind.required("v.position_embd.weight", {config.width, config.positions, 2});
  TRY(bind.status());
  return found[0];
}

}  // namespace

Task<Result<VisionModel>> load_vision_model(Gguf& file, u32 text_width) {
  VisionModel model;
  model.config = CO_TRY(read_vision_config(file, text_width));
  model.position_embd = CO_TRY(position_table(file, model.config));
  const ClampTable clamps = CO_TRY(co_await read_clamps(file, "v."));
  TowerBinder bind(file, model.tensors, clamps);
  bind.set_prefix("v.");
  if (model.config.kind == VisionKind::kVit) {
    bind_vit(bind, model);
  } else {
    bind_unified(bind, model);
  }
  bind.set_prefix("");
  model.projection = bind.required("mm.input_projection.weight", {model.config.width, text_width});
  CO_TRY(bind.status());
  co_return model;
}

void round_frequencies_to_bf16(VisionModel& model) {
  for (f64& v : model.frequencies) v = bf16_to_f32(f32_to_bf16(static_cast<f32>(v)));
}

}  // namespace bezel
