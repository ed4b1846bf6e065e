#include "model/text_config.h"

#include <algorithm>
#include <cmath>

#include "model/config_keys.h"

namespace bezel {
namespace {

constexpr u32 kMaxWidth = 1 << 17;

// Which layer's K and V each layer reads: its own, or those of the last owning layer of its kind.
Status assign_kv_layers(std::vector<LayerConfig>& layers, u32 shared) {
  const u32 owned = static_cast<u32>(layers.size()) - shared;
  u32 donor[2] = {~0u, ~0u};
  for (u32 i = 0; i < layers.size(); ++i) {
    if (i < owned) donor[layers[i].sliding] = i;
    layers[i].kv_layer = i < owned ? i : donor[layers[i].sliding];
    if (layers[i].kv_layer == ~0u) {
      return invalid("Layer {} shares keys and values, but none of the first {} layers is of its kind.", i,
                     owned);
    }
    if (layers[i].kv_heads != layers[layers[i].kv_layer].kv_heads) {
      return invalid("Layer {} has {} KV heads, but layer {}, whose keys it reads, has {}.", i,
                     layers[i].kv_heads, layers[i].kv_layer, layers[layers[i].kv_layer].kv_heads);
    }
  }
  return {};
}

}  // namespace

u32 TextConfig::owned_kv_layers() const {
  u32 owned = 0;
  while (owned < layers.size() && owns_kv(owned)) ++owned;
  return owned;
}

Result<TextConfig> read_text_config(const Gguf& file) {
  const auto architecture = TRY(file.get_string("general.architecture"));
  if (!architecture) return invalid("{} does not say which model it is (general.architecture).", file.name());
  if (*architecture != "gemma4") {
    return fail(ErrorKind::kUnsupported, "{} is a '{}' model; bezel runs 'gemma4'.", file.name(),
                *architecture);
  }
  const ConfigKeys keys(file, "gemma4.");
  TextConfig config;
  const u32 count = TRY(keys.get("block_count", 1, 512));
  config.width = TRY(keys.get("embedding_length", 1, kMaxWidth));
  config.context = TRY(keys.get("context_length", 1, 1 << 24));
  config.window = TRY(keys.get("attention.sliding_window", 1, 1 << 24));
  config.ple = TRY(keys.get("embedding_length_per_layer_input", 0, 4096, 0));
  config.experts = TRY(keys.get("expert_count", 0, 4096, 0));
  if (config.experts > 0) {
    constexpr u32 kMostUsed = 64;  // kernels keep those of a token side by side
    config.experts_used = TRY(keys.get("expert_used_count", 1, std::min(config.experts, kMostUsed)));
    config.expert_ffn = TRY(keys.get("expert_feed_forward_length", 1, kMaxWidth));
  }
  config.eps = static_cast<f32>(TRY(keys.get_float("attention.layer_norm_rms_epsilon", 0, 1, 1e-6)));
  config.soft_cap = static_cast<f32>(TRY(keys.get_float("final_logit_softcapping", 0, 1e6, 30)));
  config.rope_base = TRY(keys.get_float("rope.freq_base", 1, 1e12, 1e6));
  config.rope_base_sliding = TRY(keys.get_float("rope.freq_base_swa", 1, 1e12, 1e4));

  const u32 head_size = TRY(keys.get("attention.key_length", 2, 4096, 512));
  const u32 head_size_sliding = TRY(keys.get("attention.key_length_swa", 2, 4096, 256));
  const u32 value_size = TRY(keys.get("attention.value_length", 2, 4096, head_size));
  const u32 value_size_sliding = TRY(keys.get("attention.value_length_swa", 2, 4096, head_size_sliding));
  if (head_size != value_size || head_size_sliding != value_size_sliding) {
    return invalid("Keys and values must have heads of one size, but {}/{} and {}/{} are given.", head_size,
                   value_size, head_size_sliding, value_size_sliding);
  }
  if (head_size % 2 != 0 || head_size_sliding % 2 != 0) {
    return invalid("Head sizes must be even, but {} and {} are given.", head_size, head_size_sliding);
  }

  const auto sliding = TRY(keys.per_layer("attention.sliding_window_pattern", count, 0, 1));
  const auto ffn = TRY(keys.per_layer("feed_forward_length", count, 1, kMaxWidth));
  const auto heads = TRY(keys.per_layer("attention.head_count", count, 1, 1024));
  const auto kv_heads = file.find(keys.full("attention.head_count_kv")) == nullptr
                            ? heads
                            : TRY(keys.per_layer("attention.head_count_kv", count, 1, 1024));
  for (u32 i = 0; i < count; ++i) {
    if (heads[i] % kv_heads[i] != 0) {
      return invalid("Layer {} has {} query heads, not a multiple of its {} KV heads.", i, heads[i],
                     kv_heads[i]);
    }
    config.layers.push_back({.sliding = sliding[i] != 0,
                             .heads = heads[i],
                             .kv_heads = kv_heads[i],
                             .head_size = sliding[i] != 0 ? head_size_sliding : head_size,
                             .ffn = ffn[i]});
  }
  if (config.layers.back().sliding) return invalid("The last layer of a Gemma 4 model must attend globally.");
  TRY(assign_kv_layers(config.layers, TRY(keys.get("attention.shared_kv_layers", 0, count - 1, 0))));

  const TensorInfo* embedding = file.tensor("token_embd.weight");
  if (embedding == nullptr) return invalid("{} has no tensor token_embd.weight.", file.name());
  if (embedding->ne[1] > (1 << 24)) {
    return invalid("The vocabulary has {} tokens; the limit is {}.", embedding->ne[1], 1 << 24);
  }
  config.vocab = static_cast<u32>(embedding->ne[1]);
  return config;
}

std::string text_model_name(const TextConfig& config) {
  struct Shape {
    u32 layers, width, experts;
    const char* name;
  };
  constexpr Shape kPublished[] = {{35, 1536, 0, "E2B"},
                                  {42, 2560, 0, "E4B"},
                                  {48, 3840, 0, "12B"},
                                  {30, 2816, 128, "26B-A4B"},
                                  {60, 5376, 0, "31B"}};
  for (const Shape& shape : kPublished) {
    if (shape.layers == config.layers.size() && shape.width == config.width &&
        shape.experts == config.experts) {
      return shape.name;
    }
  }
  return "custom";
}

}  // namespace bezel
