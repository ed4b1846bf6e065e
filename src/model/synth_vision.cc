#include "model/synth_vision.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format_text.h"

namespace bezel {

struct VisionPreset {
  std::string_view name;
  u32 blocks, width, heads, ffn;  // no blocks: the kind without an encoder
  u32 text_width;
  u32 positions;
  bool clamps, standardised;
};

namespace {

constexpr std::array kPresets = {
    VisionPreset{"e2b-vision", 16, 768, 12, 3072, 1536, 10240, true, false},
    VisionPreset{"e4b-vision", 16, 768, 12, 3072, 2560, 10240, true, false},
    VisionPreset{"12b-vision", 0, 3840, 0, 0, 3840, 1120, false, false},
    VisionPreset{"26b-vision", 27, 1152, 16, 4304, 2816, 10240, false, true},
    VisionPreset{"31b-vision", 27, 1152, 16, 4304, 5376, 10240, false, true},
};

constexpr u32 kPatch = 16, kPool = 3;

class VisionSynth {
 public:
  VisionSynth(SynthFile& file, const VisionPreset& preset, DType type)
      : file_(file), p_(preset), type_(type) {}

  void run() {
    metadata();
    if (p_.blocks > 0) {
      encoder();
    } else {
      unified();
    }
    // As small as the published table's values.
    file_.matrix("v.position_embd.weight", DType::kF32, {p_.width, p_.positions, 2}, 0.03f);
    file_.linear("mm.input_projection.weight", type_, {p_.width, p_.text_width});
  }

 private:
  void metadata() {
    GgufWriter& w = file_.writer();
    w.set_string("general.architecture", "clip");
    w.set_string("general.type", "mmproj");
    w.set_string("general.name", format_text("synthetic {}", p_.name));
    w.set_bool("clip.has_vision_encoder", true);
    w.set_string("clip.vision.projector_type", p_.blocks > 0 ? "gemma4v" : "gemma4uv");
    w.set_uint("clip.vision.projection_dim", p_.text_width);
    w.set_uint("clip.vision.image_size", 224);
    w.set_uint("clip.vision.patch_size", kPatch);
    w.set_uint("clip.vision.embedding_length", p_.width);
    w.set_uint("clip.vision.feed_forward_length", p_.ffn);
    w.set_uint("clip.vision.block_count", p_.blocks);
    w.set_uint("clip.vision.attention.head_count", p_.heads);
    w.set_float("clip.vision.attention.layer_norm_epsilon", 1e-6f);
  }

  // llama.cpp's converter leaves it whole unless all is F16.
  DType patch_type() const { return type_ == DType::kF16 ? DType::kF16 : DType::kF32; }

  void encoder() {
    file_.linear("v.patch_embd.weight", patch_type(), {kPatch, kPatch, 3, p_.width}, 3);
    if (p_.standardised) {
      file_.vector("v.std_bias", p_.width, 0.1f);
      file_.vector("v.std_scale", p_.width, 1);
    }
    for (u32 i = 0; i < p_.blocks; ++i) block(format_text("v.blk.{}.", i));
  }

  void block(const std::string& prefix) {
    const u32 d = p_.width, head = d / p_.heads;
    // Scores with a standard deviation near one, without a scale in attention.
    const f32 qk = std::pow(static_cast<f32>(head), -0.25f);
    for (const char* norm : {"ln1", "attn_post_norm", "ln2", "ffn_post_norm"})
      file_.vector(prefix + norm + ".weight", d, 1);
    for (const char* norm : {"attn_q_norm", "attn_k_norm"}) file_.vector(prefix + norm + ".weight", head, qk);
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_out"}) clamped(prefix + name, d, d);
    clamped(prefix + "ffn_gate", d, p_.ffn);
    clamped(prefix + "ffn_up", d, p_.ffn);
    clamped(prefix + "ffn_down", p_.ffn, d);
  }

  void clamped(const std::string& name, u32 in, u32 out) {
    if (p_.clamps) return file_.clamped(name, type_, in, out);
    file_.linear(name + ".weight", type_, {in, out});
  }

  void unified() {
    const u32 side = kPatch * kPool, pixels = 3 * side * side;
    file_.linear("v.patch_embd.weight", patch_type(), {pixels, p_.width});
    file_.vector("v.patch_embd.bias", p_.width, 0.1f);
    for (u32 i = 1; i <= 3; ++i) {
      const u32 width = i == 1 ? pixels : p_.width;
      file_.vector(format_text("v.patch_norm.{}.weight", i), width, 1);
      file_.vector(format_text("v.patch_norm.{}.bias", i), width, 0.1f);
    }
  }

  SynthFile& file_;
  const VisionPreset& p_;
  DType type_;
};

}  // namespace

std::vector<std::string_view> vision_preset_names() {
  std::vector<std::string_view> names;
  for (const VisionPreset& preset : kPresets) names.push_back(preset.name);
  return names;
}

const VisionPreset* find_vision_preset(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name, &VisionPreset::name);
  return found == kPresets.end() ? nullptr : &*found;
}

void add_synthetic_vision(SynthFile& file, const VisionPreset& preset, DType type) {
  VisionSynth(file, preset, tower_type(type)).run();
}

}  // namespace bezel
