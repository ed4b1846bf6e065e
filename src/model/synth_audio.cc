#include "model/synth_audio.h"

#include <algorithm>
#include <array>

#include "base/format_text.h"

namespace bezel {

struct AudioPreset {
  std::string_view name;
  u32 blocks, width, heads, ffn;  // no blocks: the kind without an encoder
  u32 output, text_width;
};

namespace {

constexpr std::array kPresets = {
    AudioPreset{"e2b-audio", 12, 1024, 8, 4096, 1536, 1536},
    AudioPreset{"e4b-audio", 12, 1024, 8, 4096, 1536, 2560},
    AudioPreset{"12b-audio", 0, 0, 0, 0, 640, 3840},
};

constexpr u32 kMelBins = 128, kTaps = 5, kChannels[] = {128, 32};

class AudioSynth {
 public:
  AudioSynth(SynthFile& file, const AudioPreset& preset, DType type) : file_(file), p_(preset), type_(type) {}

  void run() {
    metadata();
    if (p_.blocks > 0) encoder();
    file_.linear("mm.a.input_projection.weight", type_, {p_.output, p_.text_width});
  }

 private:
  void metadata() {
    GgufWriter& w = file_.writer();
    w.set_string("general.architecture", "clip");
    w.set_string("general.type", "mmproj");
    w.set_string("general.name", format_text("synthetic {}", p_.name));
    w.set_bool("clip.has_audio_encoder", true);
    w.set_string("clip.audio.projector_type", p_.blocks > 0 ? "gemma4a" : "gemma4ua");
    w.set_uint("clip.audio.projection_dim", p_.text_width);
    w.set_uint("clip.audio.embedding_length", p_.width);
    w.set_uint("clip.audio.feed_forward_length", p_.ffn);
    w.set_uint("clip.audio.block_count", p_.blocks);
    w.set_uint("clip.audio.attention.head_count", p_.heads);
    w.set_uint("clip.audio.num_mel_bins", kMelBins);
    w.set_float("clip.audio.attention.layer_norm_epsilon", 1e-6f);
  }

  void encoder() {
    u32 inner = 1;
    for (u32 i = 0; i < 2; ++i) {
      file_.linear(format_text("a.conv1d.{}.weight", i), DType::kF32, {3, 3, inner, kChannels[i]}, 3);
      file_.vector(format_text("a.conv1d.{}.norm.weight", i), kChannels[i], 1);
      inner = kChannels[i];
    }
    file_.linear("a.input_projection.weight", DType::kF32, {kMelBins / 4 * inner, p_.width});
    for (u32 i = 0; i < p_.blocks; ++i) block(format_text("a.blk.{}.", i));
    file_.linear("a.pre_encode.out.weight", type_, {p_.width, p_.output});
    file_.vector("a.pre_encode.out.bias", p_.output, 0.1f);
  }

  void block(const std::string& prefix) {
    const u32 d = p_.width;
    for (const char* norm : {"ffn_norm", "ffn_post_norm", "ffn_norm_1", "ffn_post_norm_1", "attn_pre_norm",
                             "attn_post_norm", "conv_norm", "norm_conv", "ln2"})
      file_.vector(prefix + norm + ".weight", d, 1);
    for (const char* suffix : {"", "_1"}) {
      clamped(prefix + "ffn_up" + suffix, d, p_.ffn);
      clamped(prefix + "ffn_down" + suffix, p_.ffn, d);
    }
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_out", "conv_pw2"})
      clamped(prefix + name, d, d);
    clamped(prefix + "conv_pw1", d, 2 * d);
    file_.linear(prefix + "attn_k_rel.weight", type_, {d, d});
    file_.vector(prefix + "per_dim_scale.weight", d / p_.heads, 0.7f);
    file_.linear(prefix + "conv_dw.weight", DType::kF32, {kTaps, d});
  }

  void clamped(const std::string& name, u32 in, u32 out) { file_.clamped(name, type_, in, out); }

  SynthFile& file_;
  const AudioPreset& p_;
  DType type_;
};

}  // namespace

std::vector<std::string_view> audio_preset_names() {
  std::vector<std::string_view> names;
  for (const AudioPreset& preset : kPresets) names.push_back(preset.name);
  return names;
}

const AudioPreset* find_audio_preset(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name, &AudioPreset::name);
  return found == kPresets.end() ? nullptr : &*found;
}

void add_synthetic_audio(SynthFile& file, const AudioPreset& preset, DType type) {
  AudioSynth(file, preset, tower_type(type)).run();
}

}  // namespace bezel
