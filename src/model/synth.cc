#include "model/synth.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format_text.h"
#include "gguf/writer.h"
#include "model/synth_audio.h"
#include "model/synth_file.h"
#include "model/synth_vision.h"
#include "model/synth_vocabulary.h"

namespace bezel {
namespace {

struct Preset {
  std::string_view name;
  u32 layers, width, vocab;
  u32 heads, kv_sliding, kv_global;
  u32 head_sliding, head_global;
  u32 period;  // every period-th layer is global
  u32 window, context;
  u32 ffn, ffn_shared;  // the width of layers that share K and V
  u32 ple, shared;
  u32 experts, experts_used, expert_ffn;
  bool k_is_v;
};

constexpr std::array kPresets = {
    Preset{"tiny", 6, 256, 2048, 4, 2, 1, 64, 128, 3, 32, 4096, 512, 1024, 64, 3, 0, 0, 0, false},
    Preset{"tiny-moe", 6, 256, 2048, 4, 2, 1, 64, 128, 3, 32, 4096, 512, 512, 0, 0, 8, 2, 96, true},
    Preset{"e2b", 35, 1536, 262144, 8, 1, 1, 256, 512, 5, 512, 131072, 6144, 12288, 256, 20, 0, 0, 0, false},
    Preset{"e4b", 42, 2560, 262144, 8, 2, 2, 256, 512, 6, 512, 131072, 10240, 10240, 256, 18, 0, 0, 0, false},
    Preset{"12b", 48, 3840, 262144, 16, 8, 1, 256, 512, 6, 1024, 262144, 15360, 15360, 0, 0, 0, 0, 0, true},
    Preset{"26b", 30, 2816, 262144, 16, 8, 2, 256, 512, 6, 1024, 262144, 2112, 2112, 0, 0, 128, 8, 704, true},
    Preset{"31b", 60, 5376, 262144, 32, 16, 4, 256, 512, 6, 1024, 262144, 21504, 21504, 0, 0, 0, 0, 0, true},
};

// What a name such as "q4_k_m" means: the type of most matrices, of those that get more bits, and of the
// embeddings.
struct Quant {
  std::string_view name;
  DType base, more, embedding;
  u32 file_type;  // general.file_type
};

constexpr std::array kQuants = {
    Quant{"f32", DType::kF32, DType::kF32, DType::kF32, 0},
    Quant{"f16", DType::kF16, DType::kF16, DType::kF16, 1},
    Quant{"bf16", DType::kBF16, DType::kBF16, DType::kBF16, 32},
    Quant{"q8_0", DType::kQ8_0, DType::kQ8_0, DType::kQ8_0, 7},
    Quant{"q6_k", DType::kQ6_K, DType::kQ6_K, DType::kQ6_K, 18},
    Quant{"q4_0", DType::kQ4_0, DType::kQ4_0, DType::kQ6_K, 2},
    Quant{"q4_k_m", DType::kQ4_K, DType::kQ6_K, DType::kQ6_K, 15},
};

// llama.cpp's rule for the layers whose attn_v and ffn_down get more bits.
bool more_bits(u32 i, u32 n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

class TextSynth {
 public:
  TextSynth(const Preset& preset, const Quant& quant, SynthFile& file)
      : p_(preset), quant_(quant), file_(file), writer_(file.writer()) {}

  void run() {
    metadata();
    tensors();
  }

 private:
  bool global(u32 layer) const { return (layer + 1) % p_.period == 0; }
  u32 owned() const { return p_.layers - p_.shared; }
  u32 ffn(u32 layer) const { return layer < owned() ? p_.ffn : p_.ffn_shared; }
  u32 kv_heads(u32 layer) const { return global(layer) ? p_.kv_global : p_.kv_sliding; }
  u32 head_size(u32 layer) const { return global(layer) ? p_.head_global : p_.head_sliding; }

  void metadata() {
    writer_.set_string("general.architecture", "gemma4");
    writer_.set_string("general.type", "model");
    writer_.set_string("general.name", format_text("synthetic {}", p_.name));
    writer_.set_uint("general.file_type", quant_.file_type);
    writer_.set_uint("general.quantization_version", 2);
    writer_.set_uint("gemma4.block_count", p_.layers);
    writer_.set_uint("gemma4.context_length", p_.context);
    writer_.set_uint("gemma4.embedding_length", p_.width);
    std::vector<i32> ffns, kvs;
    std::vector<bool> sliding;
    for (u32 i = 0; i < p_.layers; ++i) {
      ffns.push_back(static_cast<i32>(ffn(i)));
      kvs.push_back(static_cast<i32>(kv_heads(i)));
      sliding.push_back(!global(i));
    }
    writer_.set_ints("gemma4.feed_forward_length", ffns);
    writer_.set_uint("gemma4.attention.head_count", p_.heads);
    writer_.set_ints("gemma4.attention.head_count_kv", kvs);
    writer_.set_uint("gemma4.attention.key_length", p_.head_global);
    writer_.set_uint("gemma4.attention.value_length", p_.head_global);
    writer_.set_uint("gemma4.attention.key_length_swa", p_.head_sliding);
    writer_.set_uint("gemma4.attention.value_length_swa", p_.head_sliding);
    writer_.set_float("gemma4.attention.layer_norm_rms_epsilon", 1e-6f);
    writer_.set_uint("gemma4.attention.sliding_window", p_.window);
    writer_.set_bools("gemma4.attention.sliding_window_pattern", sliding);
    writer_.set_uint("gemma4.attention.shared_kv_layers", p_.shared);
    writer_.set_uint("gemma4.embedding_length_per_layer_input", p_.ple);
    writer_.set_float("gemma4.final_logit_softcapping", 30);
    writer_.set_float("gemma4.rope.freq_base", 1e6f);
    writer_.set_float("gemma4.rope.freq_base_swa", 1e4f);
    writer_.set_uint("gemma4.rope.dimension_count", p_.head_global);
    writer_.set_uint("gemma4.rope.dimension_count_swa", p_.head_sliding);
    if (p_.experts > 0) {
      writer_.set_uint("gemma4.expert_count", p_.experts);
      writer_.set_uint("gemma4.expert_used_count", p_.experts_used);
      writer_.set_uint("gemma4.expert_feed_forward_length", p_.expert_ffn);
    }
    const SynthVocabulary vocabulary = make_synth_vocabulary(p_.vocab);
    writer_.set_string("tokenizer.ggml.model", "gemma4");
    writer_.set_strings("tokenizer.ggml.tokens", vocabulary.pieces);
    writer_.set_floats("tokenizer.ggml.scores", std::vector<f32>(p_.vocab, -1000.0f));
    writer_.set_ints("tokenizer.ggml.token_type", vocabulary.types);
    writer_.set_strings("tokenizer.ggml.merges", vocabulary.merges);
    writer_.set_uint("tokenizer.ggml.bos_token_id", 2);
    writer_.set_uint("tokenizer.ggml.eos_token_id", 1);
    writer_.set_uint("tokenizer.ggml.unknown_token_id", 3);
    writer_.set_uint("tokenizer.ggml.padding_token_id", 0);
    writer_.set_bool("tokenizer.ggml.add_bos_token", true);
    writer_.set_bool("tokenizer.ggml.add_space_prefix", false);
  }

  void tensors() {
    const u32 d = p_.width;
    // Logits of about standard deviation 3, so that sampling has something to choose from.
    file_.matrix("token_embd.weight", quant_.embedding, {d, p_.vocab}, 3 / std::sqrt(static_cast<f32>(d)));
    file_.vector("output_norm.weight", d, 1);
    // A quarter of the pairs of a global head rotates.
    std::vector<f32> factors(p_.head_global / 2, 1e30f);
    std::fill_n(factors.begin(), factors.size() / 4, 1.0f);
    file_.constant("rope_freqs.weight", std::move(factors));
    if (p_.ple > 0) {
      file_.matrix("per_layer_token_embd.weight", quant_.embedding, {p_.ple * p_.layers, p_.vocab},
                   1 / std::sqrt(static_cast<f32>(p_.ple)));
      const bool whole = quant_.base == DType::kF32 || quant_.base == DType::kF16;
      file_.linear("per_layer_model_proj.weight", whole ? quant_.base : DType::kBF16,
                   {d, p_.ple * p_.layers});
      file_.vector("per_layer_proj_norm.weight", p_.ple, 1);
    }
    for (u32 i = 0; i < p_.layers; ++i) layer(i);
  }

  void layer(u32 i) {
    const u32 d = p_.width, head = head_size(i), query = p_.heads * head, kv = kv_heads(i) * head;
    const auto name = [&](std::string_view suffix) { return format_text("blk.{}.{}", i, suffix); };
    const DType down = more_bits(i, p_.layers) ? quant_.more : quant_.base;
    // Keys and queries sized so that scores have a standard deviation near one, without a scale in attention.
    const f32 qk = std::pow(static_cast<f32>(head), -0.25f);
    file_.vector(name("attn_norm.weight"), d, 1);
    file_.linear(name("attn_q.weight"), quant_.base, {d, query});
    file_.linear(name("attn_k.weight"), quant_.base, {d, kv});
    if (!p_.k_is_v || !global(i)) {
      const u32 count = p_.k_is_v ? p_.layers - p_.layers / p_.period : p_.layers;
      file_.linear(name("attn_v.weight"), more_bits(values_++, count) ? quant_.more : quant_.base, {d, kv});
    }
    file_.linear(name("attn_output.weight"), quant_.base, {query, d});
    file_.vector(name("attn_q_norm.weight"), head, qk);
    file_.vector(name("attn_k_norm.weight"), head, qk);
    file_.vector(name("post_attention_norm.weight"), d, 1);
    file_.vector(name("ffn_norm.weight"), d, 1);
    file_.linear(name("ffn_gate.weight"), quant_.base, {d, ffn(i)});
    file_.linear(name("ffn_up.weight"), quant_.base, {d, ffn(i)});
    file_.linear(name("ffn_down.weight"), down, {ffn(i), d});
    file_.vector(name("post_ffw_norm.weight"), d, 1);
    // Over all layers the token's own embedding fades to a fiftieth; otherwise the head, which is the same
    // matrix, would answer every token with itself.
    file_.vector(name("layer_output_scale.weight"), 1, std::pow(0.02f, 1 / static_cast<f32>(p_.layers)));
    if (p_.ple > 0) {
      file_.linear(name("inp_gate.weight"), quant_.base, {d, p_.ple});
      file_.linear(name("proj.weight"), quant_.base, {p_.ple, d});
      file_.vector(name("post_norm.weight"), d, 1);
    }
    if (p_.experts > 0) {
      file_.linear(name("ffn_gate_inp.weight"), DType::kF32, {d, p_.experts});
      file_.vector(name("ffn_gate_inp.scale"), d, std::sqrt(static_cast<f32>(d)));
      file_.vector(name("pre_ffw_norm_2.weight"), d, 1);
      file_.vector(name("post_ffw_norm_1.weight"), d, 1);
      file_.vector(name("post_ffw_norm_2.weight"), d, 1);
      file_.linear(name("ffn_gate_up_exps.weight"), quant_.base, {d, 2 * p_.expert_ffn, p_.experts});
      file_.linear(name("ffn_down_exps.weight"), down, {p_.expert_ffn, d, p_.experts});
      file_.vector(name("ffn_down_exps.scale"), p_.experts, 1);
    }
  }

  const Preset& p_;
  const Quant& quant_;
  SynthFile& file_;
  GgufWriter& writer_;
  u32 values_ = 0;  // attn_v tensors so far
};

template <class Table>
std::vector<std::string_view> names_of(const Table& table) {
  std::vector<std::string_view> names;
  names.reserve(table.size());
  for (const auto& entry : table) names.push_back(entry.name);
  return names;
}

std::unexpected<Error> unknown(const char* what, const std::string& name,
                               const std::vector<std::string_view>& names) {
  std::string known;
  for (const auto entry : names) known += format_text("{}{}", known.empty() ? "" : ", ", entry);
  return invalid("There is no {} '{}'; choose one of {}.", what, name, known);
}

Result<SynthFile> make(const SynthOptions& options) {
  const auto quant = std::ranges::find(kQuants, options.quant, &Quant::name);
  const auto preset = std::ranges::find(kPresets, options.preset, &Preset::name);
  const VisionPreset* vision = find_vision_preset(options.preset);
  const AudioPreset* audio = find_audio_preset(options.preset);
  if (preset == kPresets.end() && vision == nullptr && audio == nullptr)
    return unknown("preset", options.preset, synth_presets());
  if (quant == kQuants.end()) return unknown("quantisation", options.quant, synth_quants());
  SynthFile file(options.seed);
  if (vision != nullptr) {
    add_synthetic_vision(file, *vision, quant->base);
  } else if (audio != nullptr) {
    add_synthetic_audio(file, *audio, quant->base);
  } else {
    TextSynth(*preset, *quant, file).run();
  }
  return file;
}

}  // namespace

std::vector<std::string_view> synth_presets() {
  auto names = names_of(kPresets);
  names.append_range(vision_preset_names());
  names.append_range(audio_preset_names());
  return names;
}
std::vector<std::string_view> synth_quants() { return names_of(kQuants); }

Result<GgufWriter> describe_synthetic_model(const SynthOptions& options) {
  return TRY(make(options)).writer();
}

Status write_synthetic_model(const std::string& path, const SynthOptions& options,
                             const std::function<bool(u64, u64)>& progress) {
  return TRY(make(options)).write(path, progress);
}

}  // namespace bezel
