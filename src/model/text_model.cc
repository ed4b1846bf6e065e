#include "model/text_model.h"

#include <algorithm>
#include <cmath>

#include "base/format_text.h"
#include "gguf/quant.h"
#include "io/sha256.h"
#include "model/tensor_binder.h"

namespace bezel {
namespace {

// Names that Ollama's converter has used for the same tensors.
constexpr TensorBinder::Alias kAliases[] = {
    {"post_attention_norm.weight", "attn_post_norm.weight"},
    {"ffn_norm.weight", "ffn_pre_norm.weight"},
    {"post_ffw_norm.weight", "ffn_post_norm.weight"},
    {"pre_ffw_norm_2.weight", "ffn_pre_norm_2.weight"},
    {"post_ffw_norm_1.weight", "ffn_post_norm_1.weight"},
    {"post_ffw_norm_2.weight", "ffn_post_norm_2.weight"},
    {"layer_output_scale.weight", "layer_scalar.weight"},
    {"ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale"},
};

// A linear may have its companion scale, see Linear.
class TextBinder : public TensorBinder {
 public:
  TextBinder(const Gguf& file, std::vector<TensorInfo>& tensors) : TensorBinder(file, tensors, kAliases) {}

  void set_layer(u32 layer) { set_prefix(format_text("blk.{}.", layer)); }

  Linear linear(std::string_view name, TensorShape shape) {
    return with_scale(name, required(with(name), shape), shape);
  }
  Linear optional_linear(std::string_view name, TensorShape shape) {
    return with_scale(name, optional(with(name), shape), shape);
  }

 private:
  static std::string with(std::string_view name) { return std::string(name) + ".weight"; }

  Linear with_scale(std::string_view name, Weight weight, TensorShape shape) {
    if (!weight) return {};
    return {weight, optional(std::string(name) + ".scale", {shape.depth})};
  }
};

LayerWeights bind_layer(TextBinder& bind, const TextConfig& config, u32 index) {
  const LayerConfig& layer = config.layers[index];
  const u32 d = config.width;
  const u32 query = layer.heads * layer.head_size;
  const u32 kv = layer.kv_heads * layer.head_size;
  LayerWeights w;
  bind.set_layer(index);
  w.attn_norm = bind.required("attn_norm.weight", {d});
  w.attn_q = bind.linear("attn_q", {d, query});
  w.attn_q_norm = bind.required("attn_q_norm.weight", {layer.head_size});
  // Layers that share K and V often carry the tensors all the same; they are not used.
  if (config.owns_kv(index)) {
    w.attn_k = bind.linear("attn_k", {d, kv});
    w.attn_k_norm = bind.required("attn_k_norm.weight", {layer.head_size});
    // Only global layers may take V from K.
    w.attn_v = layer.sliding ? bind.linear("attn_v", {d, kv}) : bind.optional_linear("attn_v", {d, kv});
  }
  w.attn_output = bind.linear("attn_output", {query, d});
  w.post_attention_norm = bind.required("post_attention_norm.weight", {d});
  w.ffn_norm = bind.required("ffn_norm.weight", {d});
  w.ffn_gate = bind.linear("ffn_gate", {d, layer.ffn});
  w.ffn_up = bind.linear("ffn_up", {d, layer.ffn});
  w.ffn_down = bind.linear("ffn_down", {layer.ffn, d});
  w.post_ffw_norm = bind.required("post_ffw_norm.weight", {d});
  w.layer_output_scale = bind.optional("layer_output_scale.weight", {1});
  if (config.ple > 0) {
    w.inp_gate = bind.linear("inp_gate", {d, config.ple});
    w.proj = bind.linear("proj", {config.ple, d});
    w.post_norm = bind.required("post_norm.weight", {d});
  }
  if (config.experts > 0) {
    const u32 ffn = config.expert_ffn;
    w.ffn_gate_inp = bind.required("ffn_gate_inp.weight", {d, config.experts});
    w.ffn_gate_inp_scale = bind.required("ffn_gate_inp.scale", {d});
    w.pre_ffw_norm_2 = bind.required("pre_ffw_norm_2.weight", {d});
    w.post_ffw_norm_1 = bind.required("post_ffw_norm_1.weight", {d});
    w.post_ffw_norm_2 = bind.required("post_ffw_norm_2.weight", {d});
    if (bind.has("ffn_gate_exps.weight")) {
      w.ffn_gate_exps = bind.linear("ffn_gate_exps", {d, ffn, config.experts});
      w.ffn_up_exps = bind.linear("ffn_up_exps", {d, ffn, config.experts});
    } else {
      w.ffn_gate_up_exps = bind.linear("ffn_gate_up_exps", {d, 2 * ffn, config.experts});
    }
    w.ffn_down_exps = bind.linear("ffn_down_exps", {ffn, d, config.experts});
  }
  return w;
}

// rope_freqs.weight divides the frequencies of global layers: 1 for the pairs that rotate, 1e30 for the rest.
Task<Result<std::vector<f64>>> load_rope_factors(Gguf& file, u32 pairs) {
  std::vector<f64> factors(pairs, 1e30);
  const TensorInfo* info = file.tensor("rope_freqs.weight");
  if (info == nullptr) {
    std::fill_n(factors.begin(), pairs / 4, 1.0);
    co_return factors;
  }
  if (info->type != DType::kF32 || info->elements() != pairs) {
    co_return invalid("Tensor 'rope_freqs.weight' must hold {} F32 numbers, but holds {} of type {}.", pairs,
                      info->elements(), dtype_name(info->type));
  }
  std::vector<f32> values(pairs);
  CO_TRY(co_await file.read(*info, 0, std::as_writable_bytes(std::span(values))));
  for (u32 i = 0; i < pairs; ++i) {
    if (!(values[i] > 0)) {
      co_return invalid("Tensor 'rope_freqs.weight' contains {}, but its values must be positive.",
                        values[i]);
    }
    factors[i] = values[i];
  }
  co_return factors;
}

// Arrays are left out: they are the vocabulary, which is large and the same for all.
std::array<u8, 32> identity_of(const Gguf& file) {
  Sha256 hash;
  const auto add = [&](std::string_view name, std::span<const u64> numbers, Bytes bytes) {
    const u64 lengths[] = {name.size(), numbers.size(), bytes.size()};
    hash.update(std::as_bytes(std::span(lengths)));
    hash.update(std::as_bytes(std::span(name)));
    hash.update(std::as_bytes(numbers));
    hash.update(bytes);
  };
  for (const KeyValue& entry : file.values()) {
    if (entry.value.is_array()) continue;
    const u64 type[] = {static_cast<u64>(entry.value.type())};
    add(entry.key, type, entry.value.raw());
  }
  for (const TensorInfo& info : file.tensors()) {
    const u64 shape[] = {static_cast<u64>(info.type), info.ne[0], info.ne[1], info.ne[2], info.ne[3]};
    add(info.name, shape, {});
  }
  return hash.finish();
}

// Pair i turns by base^(-2i/D) a position.
std::vector<f64> rope_frequencies(f64 base, u32 head_size) {
  std::vector<f64> out(head_size / 2);
  for (u32 i = 0; i < out.size(); ++i) out[i] = std::pow(base, -2.0 * i / head_size);
  return out;
}

}  // namespace

Task<Result<TextModel>> load_text_model(Gguf& file) {
  TextModel model;
  model.config = CO_TRY(read_text_config(file));
  model.identity = identity_of(file);
  const TextConfig& config = model.config;
  const u32 d = config.width;
  const u32 layers = static_cast<u32>(config.layers.size());

  TextBinder bind(file, model.tensors);
  model.token_embd = bind.required("token_embd.weight", {d, config.vocab});
  const Weight output = bind.optional("output.weight", {d, config.vocab});
  model.output = output ? output : model.token_embd;
  model.output_norm = bind.required("output_norm.weight", {d});
  if (config.ple > 0) {
    model.per_layer_token_embd =
        bind.required("per_layer_token_embd.weight", {config.ple * layers, config.vocab});
    model.per_layer_model_proj = bind.linear("per_layer_model_proj", {d, config.ple * layers});
    model.per_layer_proj_norm = bind.required("per_layer_proj_norm.weight", {config.ple});
  }
  for (u32 i = 0; i < layers; ++i) model.layers.push_back(bind_layer(bind, config, i));
  CO_TRY(bind.status());

  for (const LayerConfig& layer : config.layers) {
    model.frequencies[layer.sliding] =
        rope_frequencies(layer.sliding ? config.rope_base_sliding : config.rope_base, layer.head_size);
  }
  auto& global = model.frequencies[0];  // never empty: the last layer is global
  const auto factors = CO_TRY(co_await load_rope_factors(file, static_cast<u32>(global.size())));
  for (u32 i = 0; i < global.size(); ++i) global[i] /= factors[i];
  co_return model;
}

void round_frequencies_to_bf16(TextModel& model) {
  for (auto& table : model.frequencies) {
    for (f64& v : table) v = bf16_to_f32(f32_to_bf16(static_cast<f32>(v)));
  }
}

}  // namespace bezel
