#include "model/audio_model.h"

#include <cmath>
#include <functional>

#include "graph/reference.h"
#include "memory_file.h"
#include "model/audio_graph.h"

namespace bezel {
namespace {

// What differs between the two kinds of files; everything else has the same name.
struct Form {
  std::string input, output, attn_norm, attn_post_norm, relative, out_norm;
};
constexpr u32 kWidth = 32;  // of the text model

const Form kLlamaCpp{"a.input_projection", "a.pre_encode.out", "attn_pre_norm",
                     "attn_post_norm",     "attn_k_rel",       "ln2"};
const Form kOllama{"a.pre_encode.out", "mm.a.fc", "ln1", "ln2", "linear_pos", "layer_pre_norm"};

// Every tensor of a small encoder in a fixed order, so that both forms have the same numbers. All widths are
// 32: a norm or a projection taken for another would fit.
void visit(const Form& form, const std::function<void(const std::string&, const std::vector<u64>&)>& tensor) {
  tensor("a.conv1d.0.weight", {3, 3, 1, 4});
  tensor("a.conv1d.0.norm.weight", {4});
  tensor("a.conv1d.1.weight", {3, 3, 4, 1});
  tensor("a.conv1d.1.norm.weight", {1});
  tensor(form.input + ".weight", {32, 32});
  for (const std::string block : {"a.blk.0.", "a.blk.1."}) {
    for (const std::string suffix : {"", "_1"}) {
      tensor(block + "ffn_norm" + suffix + ".weight", {32});
      tensor(block + "ffn_up" + suffix + ".weight", {32, 64});
      tensor(block + "ffn_down" + suffix + ".weight", {64, 32});
      tensor(block + "ffn_post_norm" + suffix + ".weight", {32});
    }
    for (const std::string& name : {form.attn_norm, form.attn_post_norm, form.out_norm,
                                    std::string("conv_norm"), std::string("norm_conv")}) {
      tensor(block + name + ".weight", {32});
    }
    for (const std::string& name : {std::string("attn_q"), std::string("attn_k"), std::string("attn_v"),
                                    std::string("attn_out"), std::string("conv_pw2"), form.relative}) {
      tensor(block + name + ".weight", {32, 32});
    }
    tensor(block + "per_dim_scale.weight", {16});
    tensor(block + "conv_pw1.weight", {32, 64});
    tensor(block + "conv_dw.weight", {5, 32});
  }
  tensor(form.output + ".weight", {32, 32});
  tensor(form.output + ".bias", {32});
  tensor("mm.a.input_projection.weight", {32, kWidth});
}

struct Change {
  std::string without = {};   // a tensor
  std::string reshaped = {};  // a tensor that gets another shape
  std::string added = {};     // one more, of 32 numbers
  std::function<void(GgufWriter&)> keys = {};
  std::string architecture = "clip";
  std::string prefix = "clip.audio.";
};

Result<Gguf> make(const Form& form, const Change& change = {}) {
  MemoryFile file;
  file.writer.set_string("general.architecture", change.architecture);
  file.writer.set_uint(change.prefix + "block_count", 2);
  file.writer.set_uint(change.prefix + "embedding_length", 32);
  file.writer.set_uint(change.prefix + "feed_forward_length", 64);
  file.writer.set_uint(change.prefix + "attention.head_count", 2);
  file.writer.set_float(change.prefix + "attention.layer_norm_epsilon", 1e-5f);
  if (change.keys) change.keys(file.writer);
  visit(form, [&](const std::string& name, std::vector<u64> ne) {
    if (name == change.without) return;
    if (name == change.reshaped) ne.back() += 1;
    if (ne.size() == 1) {
      file.add_random(name, ne, 0.2f, 1);
    } else {
      file.add_linear(name, ne);
    }
  });
  if (!change.added.empty()) file.add_random(change.added, {32});
  return file.open();
}

std::vector<f64> soft_tokens(Gguf& file) {
  auto model = run_now(load_audio_model(file, kWidth));
  EXPECT_TRUE(model) << model.error().message;
  if (!model) return {};
  struct All final : WeightBytes {
    std::vector<std::vector<std::byte>> tensors;
    Bytes bytes(u32 index) const override { return tensors[index]; }
  } weights;
  for (const TensorInfo& info : model->tensors) {
    EXPECT_TRUE(run_now(file.read(info, 0, weights.tensors.emplace_back(info.bytes))));
  }
  std::vector<f32> frames(20 * 128);
  for (std::size_t i = 0; i < frames.size(); ++i) frames[i] = std::sin(0.7f * static_cast<f32>(i));
  const auto positions = audio_positions(model->config);
  const std::vector<f64> inputs[] = {{frames.begin(), frames.end()}, {positions.begin(), positions.end()}};
  const Graph g = build_audio_graph(*model, 20);
  Reference reference(weights);
  reference.run(g, inputs, {});
  return reference.values(*g.find("soft"));
}

void expect_error(const Form& form, const Change& change, const std::string& message,
                  ErrorKind kind = ErrorKind::kInvalid) {
  auto file = make(form, change);
  ASSERT_OK(file);
  const auto model = run_now(load_audio_model(*file, kWidth));
  ASSERT_FALSE(model) << "expected: " << message;
  EXPECT_EQ(model.error().message, message);
  EXPECT_EQ(static_cast<int>(model.error().kind), static_cast<int>(kind));
}

TEST(AudioModel, BothFormsOfAFileAreOneModel) {
  auto llama_cpp = make(kLlamaCpp);
  auto ollama = make(kOllama, {.architecture = "gemma4", .prefix = "gemma4.audio."});
  ASSERT_OK(llama_cpp);
  ASSERT_OK(ollama);
  const auto soft = soft_tokens(*llama_cpp);
  EXPECT_EQ(soft.size(), 5u * 32);
  EXPECT_EQ(soft, soft_tokens(*ollama));
}

// "ln2" and "a.pre_encode.out" are in both, and mean different things.
TEST(AudioModel, ATensorDecidesAboutNamesAndNotTheArchitecture) {
  auto file = make(kOllama, {.architecture = "clip"});
  ASSERT_OK(file);
  const auto model = run_now(load_audio_model(*file, kWidth));
  ASSERT_OK(model);
  EXPECT_EQ(model->tensors[model->blocks[1].attn_post_norm.index].name, "a.blk.1.ln2.weight");
  EXPECT_EQ(model->tensors[model->blocks[1].out_norm.index].name, "a.blk.1.layer_pre_norm.weight");
  EXPECT_EQ(model->tensors[model->input.index].name, "a.pre_encode.out.weight");
  EXPECT_EQ(model->tensors[model->output.index].name, "mm.a.fc.weight");
  file = make(kLlamaCpp, {.architecture = "gemma4"});
  const auto other = run_now(load_audio_model(*file, kWidth));
  ASSERT_OK(other);
  EXPECT_EQ(other->tensors[other->blocks[1].attn_post_norm.index].name, "a.blk.1.attn_post_norm.weight");
  EXPECT_EQ(other->tensors[other->blocks[1].out_norm.index].name, "a.blk.1.ln2.weight");
  EXPECT_EQ(other->tensors[other->input.index].name, "a.input_projection.weight");
  EXPECT_EQ(other->tensors[other->output.index].name, "a.pre_encode.out.weight");
}

TEST(AudioModel, FilesOfNeitherOrBothForms) {
  expect_error(kLlamaCpp, {.without = "a.blk.0.attn_pre_norm.weight"},
               "memory has none of the tensors 'a.blk.0.attn_pre_norm.weight' and "
               "'a.blk.0.layer_pre_norm.weight'; an audio encoder has one of them.");
  expect_error(kOllama, {.added = "a.blk.0.attn_pre_norm.weight"},
               "memory has both of the tensors 'a.blk.0.attn_pre_norm.weight' and "
               "'a.blk.0.layer_pre_norm.weight'; an audio encoder has one of them.");
}

TEST(AudioModel, EveryTensorIsNeededAndHasItsShape) {
  for (const Form* form : {&kLlamaCpp, &kOllama}) {
    visit(*form, [&](const std::string& name, const std::vector<u64>&) {
      for (const Change& change : {Change{.without = name}, Change{.reshaped = name}}) {
        // Without its first kernel a file has no encoder, but the last linear of one.
        auto file = make(*form, change);
        ASSERT_OK(file);
        const auto model = run_now(load_audio_model(*file, kWidth));
        EXPECT_FALSE(model) << change.without << change.reshaped;
      }
    });
  }
}

TEST(AudioModel, SettingsAreChecked) {
  const auto with = [](const std::string& key, u32 value) {
    return Change{.keys = [=](GgufWriter& w) { w.set_uint("clip.audio." + key, value); }};
  };
  expect_error(
      kLlamaCpp, with("attention.head_count", 3),
      "The audio encoder has a width of 32 and 3 heads; the width must be even and a multiple of the "
      "heads, and a head may have 512 numbers.");
  expect_error(kLlamaCpp, with("num_mel_bins", 80),
               "clip.audio.num_mel_bins is 80, but must be from 128 to 128.");
  expect_error(kLlamaCpp, with("conv_kernel_size", 16),
               "clip.audio.conv_kernel_size is 16, but must be from 1 to 15.");
  expect_error(kLlamaCpp, with("block_count", 1000),
               "clip.audio.block_count is 1000, but must be from 1 to 128.");
  expect_error(kLlamaCpp, with("block_count", 3), "memory has no tensor 'a.blk.2.ffn_norm.weight'.");
  expect_error(kLlamaCpp, {.prefix = "other."},
               "memory has no key gemma4.audio.embedding_length, which a Gemma 4 model needs.");
}

TEST(AudioModel, RefusesWhatItDoesNotCompute) {
  for (const std::string name : {"a.blk.0.per_dim_k_scale.weight", "a.blk.1.attn_q.bias", "a.conv1d.0.bias",
                                 "mm.a.soft_emb_norm.weight"}) {
    expect_error(kLlamaCpp, {.added = name},
                 "Tensor '" + name + "' is part of an audio encoder that bezel does not compute.",
                 ErrorKind::kUnsupported);
  }
}

TEST(AudioModel, FilesWithoutSound) {
  MemoryFile file;
  file.add_random("v.patch_embd.weight", {4});
  auto opened = file.open();
  ASSERT_OK(opened);
  EXPECT_FALSE(has_audio(*opened));
  const auto model = run_now(load_audio_model(*opened, kWidth));
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message, "memory has no audio tower (tensor 'mm.a.input_projection.weight').");
}

TEST(AudioModel, CountsTokens) {
  AudioConfig config;
  // Samples, and the frames of 10 ms that they are, at 16 kHz.
  for (const auto& [samples, tokens] : {std::pair{161u, 1u},
                                        {321u, 1u},
                                        {8000u, 13u},
                                        {38560u, 60u},
                                        {48000u, 75u},
                                        {48800u, 76u},
                                        {99360u, 155u},
                                        {480000u, 750u}}) {
    EXPECT_EQ(audio_tokens(config, (samples - 161) / 160 + 1), tokens) << samples;
  }
  config.kind = AudioKind::kUnified;
  EXPECT_EQ(audio_tokens(config, 7), 7u);
}

TEST(AudioModel, SinesOfDistances) {
  AudioConfig config;
  config.width = 1024;
  const auto table = audio_positions(config);
  ASSERT_EQ(table.size(), 12u * 1024);
  const auto at = [&](u32 distance, u32 i) { return table[distance * 1024 + i]; };
  EXPECT_EQ(at(0, 7), 0);
  EXPECT_EQ(at(0, 512 + 7), 1);
  EXPECT_NEAR(at(1, 0), 0.841471, 1e-6);
  EXPECT_NEAR(at(1, 1), 0.831686, 1e-6);
  EXPECT_NEAR(at(1, 255), 0.010090, 1e-6);
  EXPECT_NEAR(at(11, 1), -0.981612, 1e-6);
  EXPECT_NEAR(at(11, 512), 0.004426, 1e-6);
  EXPECT_NEAR(at(11, 512 + 255), 0.993846, 1e-6);
}

}  // namespace
}  // namespace bezel
