#include "model/text_model.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/format_text.h"
#include "header_source.h"
#include "model/synth.h"
#include "support.h"

namespace bezel {
namespace {

// A synthetic model's header, changed. Nothing of it has data: see HeaderSource.
struct Change {
  std::string drop = {};                                 // a key to leave out
  std::function<void(GgufWriter&)> keys = {};            // called after all keys were copied
  std::function<bool(GgufWriter::Placed&)> tensor = {};  // called for each tensor; false leaves it out
  f32 fill = 1;                                          // what every number of the data is
  std::string preset = "tiny";                           // 6 layers: 2 and 5 global, 3 to 5 share
};

struct Model {
  Result<Gguf> file;
  Result<TextModel> text;
};

Model load(const Change& change) {
  const auto original = describe_synthetic_model({.preset = change.preset, .quant = "f32"});
  EXPECT_TRUE(original);
  const auto from = open_header(*original);
  EXPECT_TRUE(from);
  GgufWriter writer;
  for (const KeyValue& entry : from->values()) {
    if (entry.key != change.drop && !entry.key.starts_with("tokenizer."))
      writer.set_value(entry.key, entry.value);
  }
  if (change.keys) change.keys(writer);
  for (GgufWriter::Placed tensor : original->tensors()) {
    if (!change.tensor || change.tensor(tensor)) writer.add_tensor(tensor.name, tensor.type, tensor.ne);
  }
  auto file = open_header(writer, change.fill);
  auto text = file ? run_now(load_text_model(*file)) : Result<TextModel>(std::unexpected(file.error()));
  return {std::move(file), std::move(text)};
}

void expect_error(const Change& change, const std::string& message, ErrorKind kind = ErrorKind::kInvalid) {
  const Model model = load(change);
  ASSERT_FALSE(model.text) << "expected: " << message;
  EXPECT_EQ(model.text.error().message, message);
  EXPECT_EQ(static_cast<int>(model.text.error().kind), static_cast<int>(kind)) << message;
}

Change with(std::function<void(GgufWriter&)> keys) { return {.keys = std::move(keys)}; }
Change with_uint(const std::string& key, u32 value, const std::string& preset = "tiny") {
  return {.keys = [=](GgufWriter& w) { w.set_uint("gemma4." + key, value); }, .preset = preset};
}
Change with_float(const std::string& key, f32 value) {
  return with([=](GgufWriter& w) { w.set_float("gemma4." + key, value); });
}
Change with_ints(const std::string& key, const std::vector<i32>& values) {
  return with([=](GgufWriter& w) { w.set_ints("gemma4." + key, values); });
}
Change without(const std::string& key) { return {.drop = key}; }
Change without_tensor(const std::string& name, const std::string& preset = "tiny") {
  return {.tensor = [=](GgufWriter::Placed& t) { return t.name != name; }, .preset = preset};
}
Change with_tensor(const std::string& name, std::function<void(GgufWriter::Placed&)> edit,
                   const std::string& preset = "tiny") {
  return {.tensor =
              [=](GgufWriter::Placed& t) {
                if (t.name == name) edit(t);
                return true;
              },
          .preset = preset};
}
Change renamed(const std::vector<std::pair<std::string, std::string>>& names, const std::string& preset) {
  return {.tensor =
              [=](GgufWriter::Placed& t) {
                for (const auto& [from, to] : names) {
                  if (t.name.ends_with(from)) t.name.replace(t.name.size() - from.size(), from.size(), to);
                }
                return true;
              },
          .preset = preset};
}

TEST(TextModel, ReadsASyntheticOne) {
  const Model model = load({});
  ASSERT_OK(model.text);
  const TextConfig& c = model.text->config;
  ASSERT_EQ(c.layers.size(), 6u);
  EXPECT_EQ(c.owned_kv_layers(), 3u);
  for (u32 i = 0; i < 6; ++i) {
    EXPECT_EQ(c.layers[i].sliding, i % 3 != 2) << i;
    EXPECT_EQ(c.layers[i].kv_layer, (std::array<u32, 6>{0, 1, 2, 1, 1, 2}[i])) << i;
    EXPECT_EQ(static_cast<bool>(model.text->layers[i].attn_k), i < 3) << i;  // those of others are not used
  }
  EXPECT_EQ(text_model_name(c), "custom");
  EXPECT_EQ(model.text->output.index, model.text->token_embd.index);
  // Sliding pairs turn by powers of the base, global ones by those divided by rope_freqs, here all 1.
  ASSERT_EQ(model.text->frequencies[0].size(), 64u);
  ASSERT_EQ(model.text->frequencies[1].size(), 32u);
  EXPECT_DOUBLE_EQ(model.text->frequencies[0][16], std::pow(1e6, -0.25));
  EXPECT_DOUBLE_EQ(model.text->frequencies[1][16], std::pow(1e4, -0.5));
}

TEST(TextModel, RefusesOtherArchitectures) {
  expect_error(with([](GgufWriter& w) { w.set_string("general.architecture", "gemma3"); }),
               "model.gguf is a 'gemma3' model; bezel runs 'gemma4'.", ErrorKind::kUnsupported);
  expect_error(without("general.architecture"),
               "model.gguf does not say which model it is (general.architecture).");
}

TEST(TextModel, NamesTheKeyThatIsMissing) {
  for (const std::string key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
        "attention.sliding_window", "attention.sliding_window_pattern"}) {
    expect_error(without("gemma4." + key),
                 "model.gguf has no key gemma4." + key + ", which a Gemma 4 model needs.");
  }
  for (const std::string key : {"expert_used_count", "expert_feed_forward_length"}) {
    expect_error({.drop = "gemma4." + key, .preset = "tiny-moe"},
                 "model.gguf has no key gemma4." + key + ", which a Gemma 4 model needs.");
  }
}

TEST(TextModel, AssumesWhatMayBeMissing) {
  for (const std::string key :
       {"attention.layer_norm_rms_epsilon", "final_logit_softcapping", "rope.freq_base", "rope.freq_base_swa",
        "rope.dimension_count", "rope.dimension_count_swa", "attention.value_length",
        "attention.value_length_swa"}) {
    const Model model = load(without("gemma4." + key));
    ASSERT_OK(model.text);
    const TextConfig& c = model.text->config;
    EXPECT_EQ(c.eps, 1e-6f);
    EXPECT_EQ(c.soft_cap, 30);
    EXPECT_EQ(c.rope_base, 1e6);
    EXPECT_EQ(c.rope_base_sliding, 1e4);
  }
  // Heads are then 512 and 256 wide, which this model's tensors are not.
  expect_error(
      {.drop = "gemma4.attention.key_length",
       .keys = [](GgufWriter& w) { w.set_uint("gemma4.attention.value_length", 512); }},
      "Tensor 'blk.2.attn_q.weight' has the shape [256, 512, 1, 1], but the model's settings ask for "
      "[256, 2048, 1].");
  // As many KV heads as heads.
  expect_error(
      without("gemma4.attention.head_count_kv"),
      "Tensor 'blk.0.attn_k.weight' has the shape [256, 128, 1, 1], but the model's settings ask for "
      "[256, 256, 1].");
  // No sharing: then every layer's K and V are used.
  const Model unshared = load(without("gemma4.attention.shared_kv_layers"));
  ASSERT_OK(unshared.text);
  EXPECT_EQ(unshared.text->config.owned_kv_layers(), 6u);
  EXPECT_TRUE(unshared.text->layers[5].attn_k);
  // No per-layer embeddings: their tensors are left alone.
  const Model plain = load(without("gemma4.embedding_length_per_layer_input"));
  ASSERT_OK(plain.text);
  EXPECT_EQ(plain.text->config.ple, 0u);
  EXPECT_FALSE(plain.text->layers[0].inp_gate);
}

TEST(TextModel, RefusesNumbersOutOfRange) {
  struct Bad {
    const char* key;
    u32 value;
    const char* range;
  };
  for (const Bad& bad : {Bad{"block_count", 0, "1 to 512"},
                         {"block_count", 4'000'000'000, "1 to 512"},
                         {"embedding_length", 0, "1 to 131072"},
                         {"embedding_length", 1 << 30, "1 to 131072"},
                         {"context_length", 0, "1 to 16777216"},
                         {"attention.sliding_window", 0, "1 to 16777216"},
                         {"attention.sliding_window", ~0u, "1 to 16777216"},
                         {"embedding_length_per_layer_input", 5000, "0 to 4096"},
                         {"expert_count", 1 << 20, "0 to 4096"},
                         {"attention.key_length", 1, "2 to 4096"},
                         {"attention.key_length_swa", 8192, "2 to 4096"},
                         {"attention.value_length", 0, "2 to 4096"},
                         {"feed_forward_length", 0, "1 to 131072"},
                         {"attention.head_count", 0, "1 to 1024"},
                         {"attention.head_count", 1025, "1 to 1024"},
                         {"attention.head_count_kv", 0, "1 to 1024"},
                         {"attention.shared_kv_layers", 6, "0 to 5"}}) {
    expect_error(with_uint(bad.key, bad.value),
                 format_text("gemma4.{} is {}, but must be from {}.", bad.key, bad.value, bad.range));
  }
  expect_error(with_uint("expert_used_count", 9, "tiny-moe"),
               "gemma4.expert_used_count is 9, but must be from 1 to 8.");
  expect_error(with_uint("expert_feed_forward_length", 0, "tiny-moe"),
               "gemma4.expert_feed_forward_length is 0, but must be from 1 to 131072.");
}

TEST(TextModel, RefusesFloatsOutOfRange) {
  expect_error(with_float("attention.layer_norm_rms_epsilon", -1),
               "gemma4.attention.layer_norm_rms_epsilon is -1, but must be from 0 to 1.");
  expect_error(with_float("attention.layer_norm_rms_epsilon", NAN),
               "gemma4.attention.layer_norm_rms_epsilon is nan, but must be from 0 to 1.");
  expect_error(with_float("final_logit_softcapping", INFINITY),
               "gemma4.final_logit_softcapping is inf, but must be from 0 to 1e+06.");
  expect_error(with_float("rope.freq_base", 0), "gemma4.rope.freq_base is 0, but must be from 1 to 1e+12.");
  expect_error(with_float("rope.freq_base_swa", -10000),
               "gemma4.rope.freq_base_swa is -10000, but must be from 1 to 1e+12.");
}

TEST(TextModel, RefusesValuesOfAnotherKind) {
  const Model text = load(with([](GgufWriter& w) { w.set_string("gemma4.block_count", "six"); }));
  ASSERT_FALSE(text.text);
  EXPECT_TRUE(text.text.error().message.contains("gemma4.block_count")) << text.text.error().message;
  const Model number = load(with([](GgufWriter& w) { w.set_int("gemma4.embedding_length", -256); }));
  ASSERT_FALSE(number.text);
  EXPECT_TRUE(number.text.error().message.contains("gemma4.embedding_length")) << number.text.error().message;
  expect_error(with([](GgufWriter& w) {
                 const std::vector<std::string> words(6, "x");
                 w.set_strings("gemma4.feed_forward_length", words);
               }),
               "gemma4.feed_forward_length must hold 6 integers, one for each layer.");
}

TEST(TextModel, ChecksWhatIsGivenForEachLayer) {
  for (const std::string key : {"attention.head_count_kv", "feed_forward_length", "attention.head_count"}) {
    for (const std::size_t length : {0, 5, 7, 1000}) {
      expect_error(with_ints(key, std::vector<i32>(length, 1)),
                   "gemma4." + key + " must hold 6 integers, one for each layer.");
    }
  }
  expect_error(with([](GgufWriter& w) {
                 w.set_bools("gemma4.attention.sliding_window_pattern", std::vector<bool>(4));
               }),
               "gemma4.attention.sliding_window_pattern must hold 6 integers, one for each layer.");
  expect_error(with_ints("attention.head_count_kv", {2, 2, 1, -2, 2, 1}),
               "gemma4.attention.head_count_kv contains -2, but its values must be from 1 to 1024.");
  expect_error(with_ints("attention.head_count_kv", {2, 3, 1, 2, 2, 1}),
               "Layer 1 has 4 query heads, not a multiple of its 3 KV heads.");
  expect_error(with_ints("attention.sliding_window_pattern", {1, 1, 0, 1, 2, 0}),
               "gemma4.attention.sliding_window_pattern contains 2, but its values must be from 0 to 1.");
}

TEST(TextModel, ChecksHeadSizes) {
  expect_error(with_uint("attention.value_length", 64),
               "Keys and values must have heads of one size, but 128/64 and 64/64 are given.");
  expect_error(with_uint("attention.value_length_swa", 128),
               "Keys and values must have heads of one size, but 128/128 and 64/128 are given.");
  expect_error(with([](GgufWriter& w) {
                 w.set_uint("gemma4.attention.key_length", 127);
                 w.set_uint("gemma4.attention.value_length", 127);
               }),
               "Head sizes must be even, but 127 and 64 are given.");
}

TEST(TextModel, ChecksWhoReadsWhoseKeys) {
  const auto pattern = [](const std::vector<bool>& sliding) {
    return with([=](GgufWriter& w) {
      w.set_bools("gemma4.attention.sliding_window_pattern", sliding);
      w.set_uint("gemma4.attention.head_count_kv", 2);
    });
  };
  expect_error(pattern({true, true, false, true, true, true}),
               "The last layer of a Gemma 4 model must attend globally.");
  expect_error(pattern({true, true, true, true, true, false}),
               "Layer 5 shares keys and values, but none of the first 3 layers is of its kind.");
  expect_error(pattern({false, false, false, true, false, false}),
               "Layer 3 shares keys and values, but none of the first 3 layers is of its kind.");
  expect_error(with_ints("attention.head_count_kv", {2, 2, 1, 4, 2, 1}),
               "Layer 3 has 4 KV heads, but layer 1, whose keys it reads, has 2.");
}

TEST(TextModel, NamesTheTensorThatIsMissing) {
  for (const std::string name :
       {"output_norm.weight",         "per_layer_token_embd.weight", "per_layer_model_proj.weight",
        "per_layer_proj_norm.weight", "blk.0.attn_norm.weight",      "blk.1.attn_q.weight",
        "blk.0.attn_q_norm.weight",   "blk.0.attn_k.weight",         "blk.1.attn_v.weight",
        "blk.0.attn_k_norm.weight",   "blk.0.attn_output.weight",    "blk.0.post_attention_norm.weight",
        "blk.5.ffn_norm.weight",      "blk.0.ffn_gate.weight",       "blk.0.ffn_up.weight",
        "blk.0.ffn_down.weight",      "blk.0.post_ffw_norm.weight",  "blk.0.inp_gate.weight",
        "blk.0.proj.weight",          "blk.0.post_norm.weight"}) {
    expect_error(without_tensor(name), "model.gguf has no tensor '" + name + "'.");
  }
  for (const std::string name :
       {"ffn_gate_inp.weight", "ffn_gate_inp.scale", "pre_ffw_norm_2.weight", "post_ffw_norm_1.weight",
        "post_ffw_norm_2.weight", "ffn_gate_up_exps.weight", "ffn_down_exps.weight"}) {
    expect_error(without_tensor("blk.3." + name, "tiny-moe"),
                 "model.gguf has no tensor 'blk.3." + name + "'.");
  }
  expect_error(without_tensor("token_embd.weight"), "model.gguf has no tensor token_embd.weight.");
}

TEST(TextModel, DoesWithoutOptionalTensors) {
  // K and V of layers that share them, the scale of a layer, V where it is K.
  for (const std::string name : {"blk.3.attn_k.weight", "blk.4.attn_v.weight", "blk.5.attn_k_norm.weight",
                                 "blk.0.layer_output_scale.weight", "blk.2.attn_v.weight"}) {
    const Model model = load(without_tensor(name));
    EXPECT_TRUE(model.text) << model.text.error().message;
  }
  const Model without_scale = load(without_tensor("blk.0.ffn_down_exps.scale", "tiny-moe"));
  ASSERT_OK(without_scale.text);
  EXPECT_FALSE(without_scale.text->layers[0].ffn_down_exps.scale);
  EXPECT_TRUE(without_scale.text->layers[1].ffn_down_exps.scale);
  // Without rope_freqs a quarter of the pairs turns.
  const Model no_factors = load(without_tensor("rope_freqs.weight"));
  ASSERT_OK(no_factors.text);
  const auto& global = no_factors.text->frequencies[0];
  EXPECT_DOUBLE_EQ(global[15], std::pow(1e6, -15.0 / 64));
  EXPECT_LT(global[16], 1e-29);
}

TEST(TextModel, RefusesWrongShapes) {
  expect_error(
      with_tensor("blk.0.attn_q.weight", [](auto& t) { t.ne = {256, 257}; }),
      "Tensor 'blk.0.attn_q.weight' has the shape [256, 257, 1, 1], but the model's settings ask for "
      "[256, 256, 1].");
  expect_error(
      with_tensor("blk.4.ffn_norm.weight", [](auto& t) { t.ne = {255}; }),
      "Tensor 'blk.4.ffn_norm.weight' has the shape [255, 1, 1, 1], but the model's settings ask for "
      "[256, 1, 1].");
  expect_error(with_tensor("blk.0.ffn_down.weight", [](auto& t) { std::swap(t.ne[0], t.ne[1]); }),
               "Tensor 'blk.0.ffn_down.weight' has the shape [256, 512, 1, 1], but the model's settings ask "
               "for [512, 256, 1].");
  expect_error(
      with_tensor("blk.0.ffn_up.weight", [](auto& t) { t.ne = {256, 512, 1, 2}; }),
      "Tensor 'blk.0.ffn_up.weight' has the shape [256, 512, 1, 2], but the model's settings ask for "
      "[256, 512, 1].");
  expect_error(
      with_tensor("per_layer_token_embd.weight", [](auto& t) { t.ne[1] = 2047; }),
      "Tensor 'per_layer_token_embd.weight' has the shape [384, 2047, 1, 1], but the model's settings "
      "ask for [384, 2048, 1].");
  expect_error(with_tensor(
                   "blk.1.ffn_down_exps.scale", [](auto& t) { t.ne = {1}; }, "tiny-moe"),
               "Tensor 'blk.1.ffn_down_exps.scale' has the shape [1, 1, 1, 1], but the model's settings ask "
               "for [8, 1, 1].");
  expect_error(with_tensor("rope_freqs.weight", [](auto& t) { t.ne = {32}; }),
               "Tensor 'rope_freqs.weight' must hold 64 F32 numbers, but holds 32 of type F32.");
}

TEST(TextModel, RefusesTypesItCannotRead) {
  expect_error(with_tensor("blk.0.attn_q.weight", [](auto& t) { t.type = DType::kTQ1_0; }),
               "Tensor 'blk.0.attn_q.weight' has the type TQ1_0, which bezel cannot read.",
               ErrorKind::kUnsupported);
  expect_error(with_tensor("token_embd.weight", [](auto& t) { t.type = DType::kI8; }),
               "Tensor 'token_embd.weight' has the type I8, which bezel cannot read.",
               ErrorKind::kUnsupported);
  expect_error(with_tensor("rope_freqs.weight", [](auto& t) { t.type = DType::kF16; }),
               "Tensor 'rope_freqs.weight' must hold 64 F32 numbers, but holds 64 of type F16.");
}

TEST(TextModel, RefusesRotaryFactorsThatAreNotPositive) {
  for (const auto& [fill, text] : {std::pair{NAN, "nan"}, {-1.0f, "-1"}, {0.0f, "0"}, {-INFINITY, "-inf"}}) {
    expect_error(
        {.fill = fill},
        format_text("Tensor 'rope_freqs.weight' contains {}, but its values must be positive.", text));
  }
  const Model none_turns = load({.fill = INFINITY});
  ASSERT_OK(none_turns.text);
  EXPECT_EQ(none_turns.text->frequencies[0][0], 0);
}

TEST(TextModel, KnowsOtherNamesOfTensors) {
  const Model dense = load(renamed({{"post_attention_norm.weight", "attn_post_norm.weight"},
                                    {"ffn_norm.weight", "ffn_pre_norm.weight"},
                                    {"post_ffw_norm.weight", "ffn_post_norm.weight"},
                                    {"layer_output_scale.weight", "layer_scalar.weight"}},
                                   "tiny"));
  ASSERT_OK(dense.text);
  EXPECT_TRUE(dense.text->layers[0].layer_output_scale);
  const Model experts = load(renamed({{"pre_ffw_norm_2.weight", "ffn_pre_norm_2.weight"},
                                      {"post_ffw_norm_1.weight", "ffn_post_norm_1.weight"},
                                      {"post_ffw_norm_2.weight", "ffn_post_norm_2.weight"},
                                      {"ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale"}},
                                     "tiny-moe"));
  ASSERT_OK(experts.text);
  EXPECT_TRUE(experts.text->layers[0].ffn_down_exps.scale);
}

TEST(TextModel, TakesWhatSomeFilesAdd) {
  // Tensors that the model does not need make room for a head of its own and a scale.
  const Model model = load({.tensor = [](GgufWriter::Placed& t) {
    if (t.name == "blk.3.attn_k.weight") t = {"output.weight", DType::kF32, {256, 2048}, 0, 0};
    if (t.name == "blk.3.attn_v.weight") t = {"blk.0.attn_q.scale", DType::kF32, {1}, 0, 0};
    return true;
  }});
  ASSERT_OK(model.text);
  EXPECT_NE(model.text->output.index, model.text->token_embd.index);
  EXPECT_TRUE(model.text->layers[0].attn_q.scale);
  EXPECT_FALSE(model.text->layers[1].attn_q.scale);
}

TEST(TextModel, TakesSplitExperts) {
  const auto split = [](const std::string& second) {
    return Change{.tensor =
                      [=](GgufWriter::Placed& t) {
                        if (t.name.ends_with("ffn_gate_up_exps.weight")) {
                          t.name.replace(t.name.find("gate_up"), 7, "gate");
                          t.ne = {256, 96, 8};
                        } else if (t.name.ends_with("layer_output_scale.weight")) {
                          t.name.replace(t.name.find("layer"), std::string::npos, second);
                          t.ne = {256, 96, 8};
                        }
                        return true;
                      },
                  .preset = "tiny-moe"};
  };
  const Model model = load(split("ffn_up_exps.weight"));
  ASSERT_OK(model.text);
  EXPECT_FALSE(model.text->layers[0].ffn_gate_up_exps);
  EXPECT_TRUE(model.text->layers[5].ffn_up_exps);
  expect_error(split("unknown.weight"), "model.gguf has no tensor 'blk.0.ffn_up_exps.weight'.");
}

// The claim costs nothing: what does not fit the file is refused before anything is allocated for it.
TEST(TextModel, HugeCountsDoNotAllocate) {
  expect_error(with_ints("attention.head_count_kv", std::vector<i32>(100'000, 1)),
               "gemma4.attention.head_count_kv must hold 6 integers, one for each layer.");
  Change many = with_uint("block_count", 512);
  expect_error(many, "gemma4.attention.sliding_window_pattern must hold 512 integers, one for each layer.");
  expect_error(with_tensor("token_embd.weight", [](auto& t) { t.ne = {256, (1 << 24) + 1}; }),
               "The vocabulary has 16777217 tokens; the limit is 16777216.");
}

}  // namespace
}  // namespace bezel
