// Makes GGUF files of the nano model from what train.py wrote:
//   nano_export <folder of train.py> <output folder> [type of the text matrices: Q6_K (default), Q8_0, ...]
// nano.gguf has everything in one file, as Ollama lays it out; nano-text.gguf and nano-mmproj.gguf are the
// same in llama.cpp's two. Run from the repository's root.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/format_text.h"
#include "gguf/quant.h"
#include "gguf/writer.h"
#include "io/files.h"
#include "io/source.h"

namespace bezel {
namespace {

using Json = nlohmann::json;

struct Tensor {
  std::vector<u64> shape;  // outermost first, as in PyTorch
  std::vector<f32> values;
};
using Tensors = std::map<std::string, Tensor>;

Result<Json> parse(const std::string& path) {
  const std::string text = TRY(read_text(path, 64 << 20));
  auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return invalid("{} is not JSON.", path);
  return json;
}

Status read_weights(const std::string& path, Tensors& out) {
  auto source = TRY(open_file(path));
  std::vector<std::byte> bytes(source->size());
  TRY(run_now(source->read(0, bytes)));
  u64 length = 0;
  if (bytes.size() < 8) return invalid("{} is too short for safetensors.", path);
  std::memcpy(&length, bytes.data(), 8);
  if (length > bytes.size() - 8) return invalid("The header of {} ends past the file.", path);
  const char* text = reinterpret_cast<const char*>(bytes.data()) + 8;
  const auto header = Json::parse(text, text + length, nullptr, false);
  if (!header.is_object()) return invalid("The header of {} is not JSON.", path);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    Tensor tensor{entry["shape"].get<std::vector<u64>>(), {}};
    const auto range = entry["data_offsets"].get<std::vector<u64>>();
    if (range.size() != 2 || range[0] > range[1] || range[1] > bytes.size() - 8 - length) {
      return invalid("Tensor '{}' of {} lies outside of the file.", name, path);
    }
    const std::byte* data = bytes.data() + 8 + length + range[0];
    u64 count = 1;
    for (const u64 n : tensor.shape) count *= n;
    tensor.values.resize(count);
    const bool half = entry["dtype"] == "F16";
    if (range[1] - range[0] != count * (half ? 2 : 4)) return invalid("Tensor '{}' has another size.", name);
    for (u64 i = 0; i < count; ++i) {
      u16 bits = 0;
      if (half) {
        std::memcpy(&bits, data + 2 * i, 2);
        tensor.values[i] = f16_to_f32(bits);
      } else {
        std::memcpy(&tensor.values[i], data + 4 * i, 4);
      }
    }
    out[name] = std::move(tensor);
  }
  return {};
}

// One tensor under the names of transformers, Ollama and llama.cpp. `#` is the number of a layer.
struct Name {
  const char* from;
  const char* ollama;
  const char* llama;  // null: the same as Ollama's
};

constexpr Name kText[] = {
    {"embed_tokens.weight", "token_embd.weight", nullptr},
    {"embed_tokens_per_layer.weight", "per_layer_token_embd.weight", nullptr},
    {"per_layer_model_projection.weight", "per_layer_model_proj.weight", nullptr},
    {"per_layer_projection_norm.weight", "per_layer_proj_norm.weight", nullptr},
    {"norm.weight", "output_norm.weight", nullptr},
    {"layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", nullptr},
    {"layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight", nullptr},
    {"layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight", nullptr},
    {"layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight", nullptr},
    {"layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight", nullptr},
    {"layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight", nullptr},
    {"layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight", nullptr},
    {"layers.#.post_attention_layernorm.weight", "blk.#.post_attention_norm.weight", nullptr},
    {"layers.#.pre_feedforward_layernorm.weight", "blk.#.ffn_norm.weight", nullptr},
    {"layers.#.mlp.gate_proj.weight", "blk.#.ffn_gate.weight", nullptr},
    {"layers.#.mlp.up_proj.weight", "blk.#.ffn_up.weight", nullptr},
    {"layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight", nullptr},
    {"layers.#.post_feedforward_layernorm.weight", "blk.#.post_ffw_norm.weight", nullptr},
    {"layers.#.layer_scalar", "blk.#.layer_output_scale.weight", nullptr},
    {"layers.#.per_layer_input_gate.weight", "blk.#.inp_gate.weight", nullptr},
    {"layers.#.per_layer_projection.weight", "blk.#.proj.weight", nullptr},
    {"layers.#.post_per_layer_input_norm.weight", "blk.#.post_norm.weight", nullptr},
};

constexpr Name kVision[] = {
    {"vision_tower.patch_embedder.input_proj.weight", "v.patch_embd.weight", nullptr},
    {"vision_tower.patch_embedder.position_embedding_table", "v.position_embd.weight", nullptr},
    {"vision_tower.encoder.layers.#.input_layernorm.weight", "v.blk.#.ln1.weight", nullptr},
    {"vision_tower.encoder.layers.#.self_attn.q_proj.linear.weight", "v.blk.#.attn_q.weight", nullptr},
    {"vision_tower.encoder.layers.#.self_attn.k_proj.linear.weight", "v.blk.#.attn_k.weight", nullptr},
    {"vision_tower.encoder.layers.#.self_attn.v_proj.linear.weight", "v.blk.#.attn_v.weight", nullptr},
    {"vision_tower.encoder.layers.#.self_attn.o_proj.linear.weight", "v.blk.#.attn_out.weight", nullptr},
    {"vision_tower.encoder.layers.#.self_attn.q_norm.weight", "v.blk.#.attn_q_norm.weight", nullptr},
    {"vision_tower.encoder.layers.#.self_attn.k_norm.weight", "v.blk.#.attn_k_norm.weight", nullptr},
    {"vision_tower.encoder.layers.#.post_attention_layernorm.weight", "v.blk.#.attn_post_norm.weight",
     nullptr},
    {"vision_tower.encoder.layers.#.pre_feedforward_layernorm.weight", "v.blk.#.ln2.weight", nullptr},
    {"vision_tower.encoder.layers.#.mlp.gate_proj.linear.weight", "v.blk.#.ffn_gate.weight", nullptr},
    {"vision_tower.encoder.layers.#.mlp.up_proj.linear.weight", "v.blk.#.ffn_up.weight", nullptr},
    {"vision_tower.encoder.layers.#.mlp.down_proj.linear.weight", "v.blk.#.ffn_down.weight", nullptr},
    {"vision_tower.encoder.layers.#.post_feedforward_layernorm.weight", "v.blk.#.ffn_post_norm.weight",
     nullptr},
    {"embed_vision.embedding_projection.weight", "mm.input_projection.weight", nullptr},
};

constexpr Name kAudio[] = {
    {"audio_tower.subsample_conv_projection.layer0.conv.weight", "a.conv1d.0.weight", nullptr},
    {"audio_tower.subsample_conv_projection.layer0.norm.weight", "a.conv1d.0.norm.weight", nullptr},
    {"audio_tower.subsample_conv_projection.layer1.conv.weight", "a.conv1d.1.weight", nullptr},
    {"audio_tower.subsample_conv_projection.layer1.norm.weight", "a.conv1d.1.norm.weight", nullptr},
    {"audio_tower.subsample_conv_projection.input_proj_linear.weight", "a.pre_encode.out.weight",
     "a.input_projection.weight"},
    {"audio_tower.layers.#.feed_forward1.pre_layer_norm.weight", "a.blk.#.ffn_norm.weight", nullptr},
    {"audio_tower.layers.#.feed_forward1.ffw_layer_1.linear.weight", "a.blk.#.ffn_up.weight", nullptr},
    {"audio_tower.layers.#.feed_forward1.ffw_layer_2.linear.weight", "a.blk.#.ffn_down.weight", nullptr},
    {"audio_tower.layers.#.feed_forward1.post_layer_norm.weight", "a.blk.#.ffn_post_norm.weight", nullptr},
    {"audio_tower.layers.#.norm_pre_attn.weight", "a.blk.#.ln1.weight", "a.blk.#.attn_pre_norm.weight"},
    {"audio_tower.layers.#.self_attn.q_proj.linear.weight", "a.blk.#.attn_q.weight", nullptr},
    {"audio_tower.layers.#.self_attn.k_proj.linear.weight", "a.blk.#.attn_k.weight", nullptr},
    {"audio_tower.layers.#.self_attn.v_proj.linear.weight", "a.blk.#.attn_v.weight", nullptr},
    {"audio_tower.layers.#.self_attn.per_dim_scale", "a.blk.#.per_dim_scale.weight", nullptr},
    {"audio_tower.layers.#.self_attn.relative_k_proj.weight", "a.blk.#.linear_pos.weight",
     "a.blk.#.attn_k_rel.weight"},
    {"audio_tower.layers.#.self_attn.post.linear.weight", "a.blk.#.attn_out.weight", nullptr},
    {"audio_tower.layers.#.norm_post_attn.weight", "a.blk.#.ln2.weight", "a.blk.#.attn_post_norm.weight"},
    {"audio_tower.layers.#.lconv1d.pre_layer_norm.weight", "a.blk.#.conv_norm.weight", nullptr},
    {"audio_tower.layers.#.lconv1d.linear_start.linear.weight", "a.blk.#.conv_pw1.weight", nullptr},
    {"audio_tower.layers.#.lconv1d.depthwise_conv1d.weight", "a.blk.#.conv_dw.weight", nullptr},
    {"audio_tower.layers.#.lconv1d.conv_norm.weight", "a.blk.#.norm_conv.weight", nullptr},
    {"audio_tower.layers.#.lconv1d.linear_end.linear.weight", "a.blk.#.conv_pw2.weight", nullptr},
    {"audio_tower.layers.#.feed_forward2.pre_layer_norm.weight", "a.blk.#.ffn_norm_1.weight", nullptr},
    {"audio_tower.layers.#.feed_forward2.ffw_layer_1.linear.weight", "a.blk.#.ffn_up_1.weight", nullptr},
    {"audio_tower.layers.#.feed_forward2.ffw_layer_2.linear.weight", "a.blk.#.ffn_down_1.weight", nullptr},
    {"audio_tower.layers.#.feed_forward2.post_layer_norm.weight", "a.blk.#.ffn_post_norm_1.weight", nullptr},
    {"audio_tower.layers.#.norm_out.weight", "a.blk.#.layer_pre_norm.weight", "a.blk.#.ln2.weight"},
    {"audio_tower.output_proj.weight", "mm.a.fc.weight", "a.pre_encode.out.weight"},
    {"audio_tower.output_proj.bias", "mm.a.fc.bias", "a.pre_encode.out.bias"},
    {"embed_audio.embedding_projection.weight", "mm.a.input_projection.weight", nullptr},
};

std::string numbered(std::string text, u32 number) {
  const auto at = text.find('#');
  return at == std::string::npos ? text : text.replace(at, 1, std::to_string(number));
}

// What GGUF stores differently from transformers.
void convert(const std::string& name, Tensor& tensor) {
  if (name == "v.patch_embd.weight") {
    // A patch's values are pixel by pixel there, channel by channel here.
    const u64 out = tensor.shape[0];
    std::vector<f32> moved(tensor.values.size());
    for (u64 o = 0; o < out; ++o) {
      for (u64 pixel = 0; pixel < 256; ++pixel) {
        for (u64 c = 0; c < 3; ++c) moved[(o * 3 + c) * 256 + pixel] = tensor.values[o * 768 + pixel * 3 + c];
      }
    }
    tensor = {{out, 3, 16, 16}, std::move(moved)};
  } else if (name.ends_with("per_dim_scale.weight")) {
    for (f32& value : tensor.values) value = std::log1p(std::exp(value));
  } else if (name.ends_with("conv_dw.weight")) {
    tensor.shape = {tensor.shape[0], tensor.shape[2]};
  }
}

// Matrices are quantised; what is small and sensitive is not. model.py rounds by the same rule.
DType type_of(const std::string& name, const Tensor& tensor, DType wanted) {
  if (name == "v.patch_embd.weight") return DType::kF16;
  if (tensor.shape.size() != 2 || tensor.shape[1] % 32 != 0) return DType::kF32;
  if (wanted == DType::kF32 || wanted == DType::kF16) return wanted;
  const bool tower = name.starts_with("a.") || name.starts_with("v.") || name.starts_with("mm.");
  const bool embedding = name == "token_embd.weight" || name == "per_layer_token_embd.weight";
  if (tower || embedding || tensor.shape[1] % dtype_info(wanted).block_elements != 0) return DType::kQ8_0;
  return wanted;
}

// Collects a file's tensors and keys. Ollama writes its keys in alphabetical order.
class File {
 public:
  using Set = std::function<void(GgufWriter&, const std::string&)>;
  void key(const std::string& name, Set set) { keys_.emplace_back(name, std::move(set)); }
  void number(const std::string& name, u32 v) {
    key(name, [v](GgufWriter& w, const std::string& k) { w.set_uint(k, v); });
  }
  void real(const std::string& name, f32 v) {
    key(name, [v](GgufWriter& w, const std::string& k) { w.set_float(k, v); });
  }
  void truth(const std::string& name, bool v) {
    key(name, [v](GgufWriter& w, const std::string& k) { w.set_bool(k, v); });
  }
  void text(const std::string& name, std::string v) {
    key(name, [v = std::move(v)](GgufWriter& w, const std::string& k) { w.set_string(k, v); });
  }
  void sort_keys() {
    std::ranges::sort(keys_, {}, [](const auto& entry) { return entry.first; });
  }

  void tensor(const std::string& name, const Tensor& tensor, DType type) {
    const std::vector<u64> ne(tensor.shape.rbegin(), tensor.shape.rend());
    writer_.add_tensor(name, type, ne);
    std::vector<std::byte> bytes(writer_.tensors().back().bytes);
    quantize(type, tensor.values, bytes);
    data_.push_back(std::move(bytes));
  }

  Status write(const std::string& path) {
    for (const auto& [name, set] : keys_) set(writer_, name);
    const std::vector<Bytes> views(data_.begin(), data_.end());
    TRY(write_gguf(path, writer_, views));
    std::printf("%s: %zu tensors, %llu bytes\n", path.c_str(), data_.size(),
                static_cast<unsigned long long>(TRY(file_size(path))));
    return {};
  }

 private:
  GgufWriter writer_;
  std::vector<std::pair<std::string, Set>> keys_;
  std::vector<std::vector<std::byte>> data_;
};

class Exporter {
 public:
  Exporter(Tensors tensors, Json config, Json vocabulary, std::string chat_template, DType type)
      : tensors_(std::move(tensors)),
        text_(config["text_config"]),
        vision_(config["vision_config"]),
        audio_(config["audio_config"]),
        vocabulary_(std::move(vocabulary)),
        template_(std::move(chat_template)),
        type_(type) {}

  Status run(const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    File whole;
    general(whole, "model");
    text_keys(whole);
    tower_keys(whole, "gemma4");
    tokenizer(whole, true);
    TRY(text_tensors(whole));
    TRY(tower_tensors(whole, false));
    whole.sort_keys();
    TRY(whole.write(folder + "/nano.gguf"));

    File text;
    general(text, "model");
    text_keys(text);
    tokenizer(text, false);
    TRY(text_tensors(text));
    TRY(text.write(folder + "/nano-text.gguf"));

    File towers;
    general(towers, "mmproj");
    tower_keys(towers, "clip");
    TRY(tower_tensors(towers, true));
    return towers.write(folder + "/nano-mmproj.gguf");
  }

 private:
  static u32 number(const Json& from, const char* key) { return from.value(key, 0U); }

  void general(File& file, const char* kind) const {
    const bool model = std::string_view(kind) == "model";
    file.text("general.architecture", model ? "gemma4" : "clip");
    file.text("general.type", kind);
    file.text("general.name", "nano");
    file.text("general.size_label", "15M");
    file.text("general.license", "apache-2.0");
    file.text("general.description", "A toy with Gemma 4's architecture, trained from scratch for bezel.");
    file.number("general.quantization_version", 2);
    // Informational: llama.cpp's number for the commonest type.
    const u32 kind_number = type_ == DType::kQ6_K   ? 18
                            : type_ == DType::kQ8_0 ? 7
                            : type_ == DType::kQ5_0 ? 8
                            : type_ == DType::kQ4_0 ? 2
                            : type_ == DType::kF16  ? 1
                                                    : 0;
    file.number("general.file_type", kind_number);
  }

  void text_keys(File& file) const {
    const std::string p = "gemma4.";
    const u32 layers = number(text_, "num_hidden_layers"), head = number(text_, "head_dim");
    const u32 shared = number(text_, "num_kv_shared_layers"), ffn = number(text_, "intermediate_size");
    std::vector<bool> sliding;
    for (const auto& kind : text_["layer_types"]) sliding.push_back(kind == "sliding_attention");
    std::vector<i32> widths(layers, static_cast<i32>(ffn));
    const bool wide = text_.value("use_double_wide_mlp", false);
    for (u32 i = layers - shared; wide && i < layers; ++i) widths[i] *= 2;
    const u32 global_head = global_head_size();
    file.number(p + "block_count", layers);
    file.number(p + "context_length", number(text_, "max_position_embeddings"));
    file.number(p + "embedding_length", number(text_, "hidden_size"));
    file.number(p + "embedding_length_per_layer_input", number(text_, "hidden_size_per_layer_input"));
    file.key(p + "feed_forward_length",
             [widths](GgufWriter& w, const std::string& k) { w.set_ints(k, widths); });
    file.number(p + "attention.head_count", number(text_, "num_attention_heads"));
    file.number(p + "attention.head_count_kv", number(text_, "num_key_value_heads"));
    file.number(p + "attention.key_length", global_head);
    file.number(p + "attention.value_length", global_head);
    file.number(p + "attention.key_length_swa", head);
    file.number(p + "attention.value_length_swa", head);
    file.real(p + "attention.layer_norm_rms_epsilon", 1e-6F);
    file.number(p + "attention.shared_kv_layers", shared);
    file.number(p + "attention.sliding_window", number(text_, "sliding_window"));
    file.key(p + "attention.sliding_window_pattern",
             [sliding](GgufWriter& w, const std::string& k) { w.set_bools(k, sliding); });
    file.real(p + "final_logit_softcapping", 30);
    file.number(p + "rope.dimension_count", global_head);
    file.number(p + "rope.dimension_count_swa", head);
    file.real(p + "rope.freq_base", 1e6F);
    file.real(p + "rope.freq_base_swa", 1e4F);
  }

  void tower_keys(File& file, const std::string& prefix) const {
    const bool clip = prefix == "clip";
    const auto tower = [&](const std::string& p, const Json& from, u32 ffn) {
      file.number(p + "block_count", number(from, "num_hidden_layers"));
      file.number(p + "embedding_length", number(from, "hidden_size"));
      file.number(p + "feed_forward_length", ffn);
      file.number(p + "attention.head_count", number(from, "num_attention_heads"));
      file.real(p + "attention.layer_norm_epsilon", 1e-6F);
      if (clip) file.number(p + "projection_dim", number(text_, "hidden_size"));
    };
    const std::string v = prefix + ".vision.", a = prefix + ".audio.";
    tower(v, vision_, number(vision_, "intermediate_size"));
    tower(a, audio_, 4 * number(audio_, "hidden_size"));
    file.number(v + "patch_size", 16);
    // The pictures of training came to this many soft tokens at most; an engine may use it as its default.
    file.number("bezel.vision.token_budget", 70);
    if (!clip) {
      file.number(v + "num_channels", 3);
      file.number(v + "projector.scale_factor", 3);
      file.number(a + "conv_kernel_size", number(audio_, "conv_kernel_size"));
      return;
    }
    file.truth("clip.has_vision_encoder", true);
    file.truth("clip.has_audio_encoder", true);
    file.text(v + "projector_type", "gemma4v");
    file.text(a + "projector_type", "gemma4a");
    file.number(v + "image_size", 224);
    file.number(a + "num_mel_bins", 128);
    const auto three = [](f32 x) {
      return [x](GgufWriter& w, const std::string& k) { w.set_floats(k, std::array<f32, 3>{x, x, x}); };
    };
    file.key(v + "image_mean", three(0));
    file.key(v + "image_std", three(1));
  }

  void tokenizer(File& file, bool ollama) const {
    const std::string p = "tokenizer.ggml.";
    auto pieces = vocabulary_["pieces"].get<std::vector<std::string>>();
    auto types = vocabulary_["types"].get<std::vector<i32>>();
    std::vector<f32> scores(pieces.size(), -1000);
    if (ollama) {
      // There the specials are all control tokens, and bytes are like any other piece.
      for (size_t i = 0; i < types.size(); ++i) {
        types[i] = types[i] == 1 || types[i] == 6 ? 1 : 3;
        scores[i] = static_cast<f32>(i);
      }
      std::vector<i32> ends;
      for (const char* end : {"<eos>", "<turn|>", "<|tool_response>"}) {
        ends.push_back(static_cast<i32>(std::ranges::find(pieces, end) - pieces.begin()));
      }
      file.text(p + "pre", "gemma4");
      file.key(p + "eos_token_ids", [ends](GgufWriter& w, const std::string& k) { w.set_ints(k, ends); });
    } else {
      file.truth(p + "add_space_prefix", false);
    }
    file.text("tokenizer.chat_template", template_);
    file.text(p + "model", ollama ? "llama" : "gemma4");
    file.key(p + "tokens", [pieces](GgufWriter& w, const std::string& k) { w.set_strings(k, pieces); });
    file.key(p + "scores", [scores](GgufWriter& w, const std::string& k) { w.set_floats(k, scores); });
    file.key(p + "token_type", [types](GgufWriter& w, const std::string& k) { w.set_ints(k, types); });
    const auto merges = vocabulary_["merges"].get<std::vector<std::string>>();
    file.key(p + "merges", [merges](GgufWriter& w, const std::string& k) { w.set_strings(k, merges); });
    file.number(p + "bos_token_id", 2);
    file.number(p + "eos_token_id", 1);
    file.number(p + "unknown_token_id", 3);
    file.number(p + "padding_token_id", 0);
    file.number(p + "mask_token_id", 4);
    file.truth(p + "add_bos_token", !ollama);
  }

  u32 global_head_size() const {
    for (u32 i = 0; i < text_["layer_types"].size(); ++i) {
      if (text_["layer_types"][i] != "full_attention") continue;
      const auto found = tensors_.find(numbered("model.language_model.layers.#.self_attn.q_norm.weight", i));
      if (found != tensors_.end()) return static_cast<u32>(found->second.shape[0]);
    }
    return number(text_, "head_dim");
  }

  Status text_tensors(File& file) const {
    for (const Name& name : kText)
      TRY(put(file, "model.language_model.", name, name.ollama, number(text_, "num_hidden_layers")));
    // A quarter of a global head's pairs rotate; dividing by 1e30 leaves the others where they are.
    const u32 pairs = global_head_size() / 2;
    Tensor rope{{pairs}, std::vector<f32>(pairs, 1e30F)};
    std::fill_n(rope.values.begin(), pairs / 4, 1.0F);
    file.tensor("rope_freqs.weight", rope, DType::kF32);
    return {};
  }

  Status tower_tensors(File& file, bool llama) const {
    for (const Name& name : kVision)
      TRY(put(file, "model.", name, name.ollama, number(vision_, "num_hidden_layers")));
    for (const Name& name : kAudio) {
      TRY(put(file, "model.", name, llama && name.llama ? name.llama : name.ollama,
              number(audio_, "num_hidden_layers")));
    }
    return {};
  }

  Status put(File& file, const std::string& prefix, const Name& name, const std::string& to,
             u32 layers) const {
    const bool repeats = to.find('#') != std::string::npos;
    for (u32 i = 0; i < (repeats ? layers : 1); ++i) {
      const std::string from = prefix + numbered(name.from, i);
      const auto found = tensors_.find(from);
      if (found == tensors_.end()) {
        // Layers that share keys and values have no matrices for them.
        if (from.find("self_attn.k_") != std::string::npos || from.find("self_attn.v_") != std::string::npos)
          continue;
        return fail(ErrorKind::kNotFound, "The weights have no tensor '{}'.", from);
      }
      Tensor tensor = found->second;
      convert(numbered(name.ollama, i), tensor);
      file.tensor(numbered(to, i), tensor, type_of(numbered(name.ollama, i), tensor, type_));
    }
    return {};
  }

  Tensors tensors_;
  Json text_, vision_, audio_, vocabulary_;
  std::string template_;
  DType type_;
};

Status export_nano(const std::string& from, const std::string& to, const std::string& type_name) {
  const DTypeInfo* info = find_dtype(type_name);
  if (!info || !can_quantize(info->type))
    return invalid("'{}' is not a type that can be written.", type_name);
  Json config = TRY(parse(from + "/config.json"));
  Tensors tensors;
  for (u32 i = 0; i < config.value("parts", 0U); ++i) {
    TRY(read_weights(format_text("{}/nano-{}.safetensors", from, i), tensors));
  }
  Json vocabulary = TRY(parse("tools/nano/vocabulary.json"));
  std::string chat_template = TRY(read_text("tools/nano/chat_template.jinja", 1 << 20));
  Exporter exporter(std::move(tensors), config["config"], std::move(vocabulary), std::move(chat_template),
                    info->type);
  return exporter.run(to);
}

}  // namespace
}  // namespace bezel

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: nano_export <folder of train.py> <output folder> [type]\n");
    return 2;
  }
  const auto status = bezel::export_nano(argv[1], argv[2], argc == 4 ? argv[3] : "Q6_K");
  if (!status) std::fprintf(stderr, "nano_export: %s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
