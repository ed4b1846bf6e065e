#include "model/audio_model.h"

#include "base/format_text.h"
#include "model/config_keys.h"

namespace bezel {
namespace {

constexpr u32 kSamples = 640;  // of a soft token without an encoder: 1/25 s
constexpr u32 kMelBins = 128;  // what the encoder gets
constexpr u32 kMostBlocks = 128;
constexpr u32 kMostTaps = 15;  // no whole run of 16, so that op::ConvTime gets its kernels as F32

// Names that differ between llama.cpp's projector files and Ollama's single files.
struct Names {
  std::string_view input, output;                                  // of the whole
  std::string_view attn_norm, attn_post_norm, relative, out_norm;  // of a block
};

constexpr Names kLlamaCpp = {.input = "a.input_projection",
                             .output = "a.pre_encode.out",
                             .attn_norm = "attn_pre_norm",
                             .attn_post_norm = "attn_post_norm",
                             .relative = "attn_k_rel",
                             .out_norm = "ln2"};
constexpr Names kOllama = {.input = "a.pre_encode.out",
                           .output = "mm.a.fc",
                           .attn_norm = "ln1",
                           .attn_post_norm = "ln2",
                           .relative = "linear_pos",
                           .out_norm = "layer_pre_norm"};

constexpr std::string_view kFirstConv = "a.conv1d.0.weight";
constexpr std::string_view kEmbedding = "mm.a.input_projection.weight";
constexpr std::string_view kOnlyLlamaCpp = "a.blk.0.attn_pre_norm.weight";
constexpr std::string_view kOnlyOllama = "a.blk.0.layer_pre_norm.weight";

Result<Names> names_of(const Gguf& file) {
  const bool llama_cpp = file.tensor(kOnlyLlamaCpp) != nullptr;
  const bool ollama = file.tensor(kOnlyOllama) != nullptr;
  if (llama_cpp == ollama) {
    return invalid("{} has {} of the tensors '{}' and '{}'; an audio encoder has one of them.", file.name(),
                   llama_cpp ? "both" : "none", kOnlyLlamaCpp, kOnlyOllama);
  }
  return llama_cpp ? kLlamaCpp : kOllama;
}

// A size that no key gives.
Result<u32> dimension(const Gguf& file, std::string_view tensor, u32 axis, u32 high) {
  const TensorInfo* info = file.tensor(tensor);
  if (info == nullptr) return invalid("{} has no tensor '{}'.", file.name(), tensor);
  if (info->ne[axis] > high) {
    return invalid("Tensor '{}' has {} numbers along dimension {}; the limit is {}.", info->name,
                   info->ne[axis], axis, high);
  }
  return static_cast<u32>(info->ne[axis]);
}

// Projector files have their own keys.
ConfigKeys keys_of(const Gguf& file) {
  const bool projector = file.find("clip.audio.block_count") != nullptr;
  return {file, projector ? "clip.audio." : "gemma4.audio."};
}

Status read_conformer_config(const Gguf& file, const Names& names, AudioConfig& config) {
  const ConfigKeys keys = keys_of(file);
  config.width = TRY(keys.get("embedding_length", 2, 8192));
  config.heads = TRY(keys.get("attention.head_count", 1, 1024));
  config.ffn = TRY(keys.get("feed_forward_length", 1, 32768));
  config.taps = TRY(keys.get("conv_kernel_size", 1, kMostTaps, 5));
  config.frame = TRY(keys.get("num_mel_bins", kMelBins, kMelBins, kMelBins));
  for (u32 i = 0; i < 2; ++i) {
    config.channels[i] = TRY(dimension(file, format_text("a.conv1d.{}.weight", i), 3, 256));
  }
  config.output = TRY(dimension(file, std::string(names.output) + ".weight", 1, 1 << 17));
  if (config.width % 2 != 0 || config.width % config.heads != 0 ||
      config.head_size() > op::LocalAttention::kMaxHeadSize) {
    return invalid(
        "The audio encoder has a width of {} and {} heads; the width must be even and a multiple of the "
        "heads, and a head may have {} numbers.",
        config.width, config.heads, op::LocalAttention::kMaxHeadSize);
  }
  return {};
}

AudioFeedForward bind_feed_forward(TowerBinder& bind, const AudioConfig& config, std::string_view suffix) {
  const auto name = [&](std::string_view stem) { return std::string(stem).append(suffix); };
  AudioFeedForward w;
  w.norm = bind.required(name("ffn_norm") + ".weight", {config.width});
  w.up = bind.linear(name("ffn_up"), {config.width, config.ffn});
  w.down = bind.linear(name("ffn_down"), {config.ffn, config.width});
  w.post_norm = bind.required(name("ffn_post_norm") + ".weight", {config.width});
  return w;
}

AudioBlock bind_block(TowerBinder& bind, const AudioConfig& config, const Names& names) {
  const u32 d = config.width;
  const auto weight = [](std::string_view stem) { return std::string(stem) + ".weight"; };
  AudioBlock w;
  w.before = bind_feed_forward(bind, config, "");
  w.attn_norm = bind.required(weight(names.attn_norm), {d});
  w.attn_q = bind.linear("attn_q", {d, d});
  w.attn_k = bind.linear("attn_k", {d, d});
  w.attn_v = bind.linear("attn_v", {d, d});
  w.query_scale = bind.required("per_dim_scale.weight", {config.head_size()});
  w.relative = bind.required(weight(names.relative), {d, d});
  w.attn_out = bind.linear("attn_out", {d, d});
  w.attn_post_norm = bind.required(weight(names.attn_post_norm), {d});
  w.conv_norm = bind.required("conv_norm.weight", {d});
  w.conv_in = bind.linear("conv_pw1", {d, 2 * d});
  w.conv_time = bind.required("conv_dw.weight", {config.taps, d});
  w.conv_time_norm = bind.required("norm_conv.weight", {d});
  w.conv_out = bind.linear("conv_pw2", {d, d});
  w.after = bind_feed_forward(bind, config, "_1");
  w.out_norm = bind.required(weight(names.out_norm), {d});
  return w;
}

// Parts that the format knows and no published model has.
Status refuse_what_is_not_computed(const Gguf& file) {
  for (const TensorInfo& info : file.tensors()) {
    const bool audio = info.name.starts_with("a.") || info.name.starts_with("mm.a.");
    const bool known_bias = info.name == "a.pre_encode.out.bias" || info.name == "mm.a.fc.bias";
    if (audio &&
        ((info.name.ends_with(".bias") && !known_bias) || info.name.ends_with(".per_dim_k_scale.weight") ||
         info.name == "mm.a.soft_emb_norm.weight")) {
      return fail(ErrorKind::kUnsupported,
                  "Tensor '{}' is part of an audio encoder that bezel does not compute.", info.name);
    }
  }
  return {};
}

Task<Status> bind_conformer(Gguf& file, AudioModel& model) {
  const Names names = CO_TRY(names_of(file));
  CO_TRY(read_conformer_config(file, names, model.config));
  const u32 blocks = CO_TRY(keys_of(file).get("block_count", 1, kMostBlocks));
  const AudioConfig& config = model.config;
  const ClampTable clamps = CO_TRY(co_await read_clamps(file, "a."));
  TowerBinder bind(file, model.tensors, clamps);
  u32 inner = 1;
  for (u32 i = 0; i < 2; ++i) {
    const u32 outer = config.channels[i];
    model.conv[i] =
        bind.flattened(format_text("a.conv1d.{}.weight", i), {3, 3, inner, outer}, {9 * inner, outer});
    model.conv_norm[i] = bind.required(format_text("a.conv1d.{}.norm.weight", i), {outer});
    inner = outer;
  }
  model.input = bind.required(std::string(names.input) + ".weight", {config.bands() * inner, config.width});
  for (u32 i = 0; i < blocks; ++i) {
    bind.set_prefix(format_text("a.blk.{}.", i));
    model.blocks.push_back(bind_block(bind, config, names));
  }
  bind.set_prefix("");
  model.output = bind.required(std::string(names.output) + ".weight", {config.width, config.output});
  model.output_bias = bind.required(std::string(names.output) + ".bias", {config.output});
  model.embedding = bind.required(kEmbedding, {config.output, config.text_width});
  co_return bind.status();
}

Status bind_unified(const Gguf& file, AudioModel& model) {
  model.config.kind = AudioKind::kUnified;
  model.config.frame = kSamples;  // what the file says of mel bins has no meaning here
  TensorBinder bind(file, model.tensors);
  model.embedding = bind.required(kEmbedding, {kSamples, model.config.text_width});
  return bind.status();
}

}  // namespace

bool has_audio(const Gguf& file) {
  return file.tensor(kFirstConv) != nullptr || file.tensor(kEmbedding) != nullptr;
}

Task<Result<AudioModel>> load_audio_model(Gguf& file, u32 text_width) {
  if (!has_audio(file)) {
    co_return fail(ErrorKind::kNotFound, "{} has no audio tower (tensor '{}').", file.name(), kEmbedding);
  }
  CO_TRY(refuse_what_is_not_computed(file));
  AudioModel model;
  model.config.text_width = CO_TRY(dimension(file, kEmbedding, 1, 1 << 17));
  if (model.config.text_width != text_width) {
    co_return invalid("{} makes soft tokens of {} numbers, but the model's width is {}.", file.name(),
                      model.config.text_width, text_width);
  }
  if (file.tensor(kFirstConv) != nullptr) {
    CO_TRY(co_await bind_conformer(file, model));
  } else {
    CO_TRY(bind_unified(file, model));
  }
  co_return model;
}

}  // namespace bezel
