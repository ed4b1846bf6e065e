// Small random vision towers as files.
#pragma once

#include "base/format_text.h"
#include "memory_file.h"

namespace bezel {

struct TowerShape {
  u32 width = 32, heads = 2, ffn = 48, blocks = 2, patch = 4, pool = 3, positions = 64, text_width = 24;
  bool clamps = false, standardised = false, out_scale = false;
};

// As llama.cpp's converter lays it out.
inline MemoryFile vit_file(const TowerShape& s) {
  MemoryFile file;
  GgufWriter& w = file.writer;
  w.set_string("general.architecture", "clip");
  w.set_string("clip.vision.projector_type", "gemma4v");
  w.set_uint("clip.vision.projection_dim", s.text_width);
  w.set_uint("clip.vision.embedding_length", s.width);
  w.set_uint("clip.vision.feed_forward_length", s.ffn);
  w.set_uint("clip.vision.block_count", s.blocks);
  w.set_uint("clip.vision.attention.head_count", s.heads);
  w.set_uint("clip.vision.patch_size", s.patch);
  w.set_uint("clip.vision.projector.scale_factor", s.pool);
  file.add_linear("v.patch_embd.weight", {s.patch, s.patch, 3, s.width}, DType::kF16);
  file.add_random("v.position_embd.weight", {s.width, s.positions, 2}, 0.3f);
  file.add_linear("mm.input_projection.weight", {s.width, s.text_width}, DType::kBF16);
  if (s.standardised) {
    file.add_random("v.std_bias", {s.width});
    file.add_random("v.std_scale", {s.width}, 0.2f, 1);
  }
  for (u32 i = 0; i < s.blocks; ++i) {
    const auto name = [&](std::string_view suffix) { return format_text("v.blk.{}.{}", i, suffix); };
    for (const char* norm : {"ln1", "attn_post_norm", "ln2", "ffn_post_norm"})
      file.add_random(name(norm) + ".weight", {s.width}, 0.2f, 1);
    for (const char* norm : {"attn_q_norm", "attn_k_norm"})
      file.add_random(name(norm) + ".weight", {s.width / s.heads}, 0.2f, 1);
    const auto linear = [&](const char* which, u32 in, u32 out) {
      file.add_linear(name(which) + ".weight", {in, out}, DType::kF16);
      if (!s.clamps) return;
      file.add(name(which) + ".input_min", {1}, {-1.5f});
      file.add(name(which) + ".input_max", {1}, {1.25f});
      file.add(name(which) + ".output_min", {1}, {-1.75f});
      file.add(name(which) + ".output_max", {1}, {1.5f});
    };
    for (const char* which : {"attn_q", "attn_k", "attn_v", "attn_out"}) linear(which, s.width, s.width);
    linear("ffn_gate", s.width, s.ffn);
    linear("ffn_up", s.width, s.ffn);
    linear("ffn_down", s.ffn, s.width);
    if (s.out_scale) file.add_random(name("out_scale.weight"), {1}, 0.1f, 0.7f);
  }
  return file;
}

// The kind without an encoder; its norms are counted from `first_norm`.
inline MemoryFile unified_file(const TowerShape& s, u32 first_norm = 1) {
  MemoryFile file;
  GgufWriter& w = file.writer;
  w.set_string("general.architecture", "clip");
  w.set_string("clip.vision.projector_type", "gemma4uv");
  w.set_uint("clip.vision.projection_dim", s.text_width);
  w.set_uint("clip.vision.embedding_length", s.width);
  w.set_uint("clip.vision.feed_forward_length", 0);
  w.set_uint("clip.vision.block_count", 0);
  w.set_uint("clip.vision.attention.head_count", 0);
  w.set_uint("clip.vision.patch_size", s.patch);
  const u64 pixels = u64{3} * s.patch * s.pool * s.patch * s.pool;
  file.add_linear("v.patch_embd.weight", {pixels, s.width}, DType::kF16);
  file.add_random("v.patch_embd.bias", {s.width});
  file.add_random("v.position_embd.weight", {s.width, s.positions, 2});
  file.add_linear("mm.input_projection.weight", {s.width, s.text_width}, DType::kBF16);
  for (u32 i = 0; i < 3; ++i) {
    const u64 width = i == 0 ? pixels : s.width;
    file.add_random(format_text("v.patch_norm.{}.weight", first_norm + i), {width}, 0.2f, 1);
    file.add_random(format_text("v.patch_norm.{}.bias", first_norm + i), {width}, 0.5f);
  }
  return file;
}

}  // namespace bezel
