// The audio tower against transformers, on the CPU and on the GPU, and what must hold of it without anybody's
// expected values.
#ifndef __wasm__
#include "memory_file.h"
#include "model/audio_graph.h"
#include "models.h"
#include "plan_fixture.h"
#include "safetensors.h"

namespace bezel {
namespace {

class AudioTower : public PlanTest {
 protected:
  void load(const std::string& path) {
    auto file = open_gguf(path);
    ASSERT_OK(file);
    load(std::move(*file), 256);
  }
  void load(Gguf file, u32 text_width) {
    start();
    file_ = std::make_unique<Gguf>(std::move(file));
    auto model = run_now(load_audio_model(*file_, text_width));
    ASSERT_OK(model);
    model_ = std::move(*model);
    for (const TensorInfo& info : model_.tensors) {
      std::vector<std::byte> bytes(info.bytes);
      const Status status = run_now(file_->read(info, 0, bytes));
      ASSERT_OK(status);
      weights_.add(std::move(bytes),
                   {0, info.type, static_cast<u32>(info.rows()), static_cast<u32>(info.ne[0])});
    }
  }

  Graph graph_of(const std::vector<f32>& frames) {
    const auto positions = bf16_positions_ ? bf16_positions() : audio_positions(model_.config);
    inputs_ = {{frames.begin(), frames.end()}};
    if (model_.config.kind == AudioKind::kConformer) inputs_.emplace_back(positions.begin(), positions.end());
    return build_audio_graph(model_, static_cast<u32>(frames.size() / model_.config.frame));
  }
  std::vector<f64> on_cpu(const std::vector<f32>& frames) {
    const Graph g = graph_of(frames);
    Reference reference(weights_);
    reference.run(g, inputs_, {});
    return reference.values(*g.find("soft"));
  }
  std::vector<f64> on_gpu(const std::vector<f32>& frames) {
    const Graph g = graph_of(frames);
    GpuRun run;
    run_on_gpu(g, {}, ~u64{0}, run);
    for (std::size_t i = 0; i < run.named.size(); ++i) {
      if (g.names()[i].first == "soft") return {run.named[i].begin(), run.named[i].end()};
    }
    return {};
  }
  // What the sines become when PyTorch casts a whole model to bfloat16, buffers included: the tiny model's
  // expected values were made so.
  std::vector<f32> bf16_positions() const {
    const u32 width = model_.config.width;
    auto out = audio_positions(model_.config);
    for (u32 i = 0; i < out.size(); ++i) {
      const u32 column = i % width % (width / 2);
      const f64 exact = std::exp(-std::log(10000.0) * column / (width / 2 - 1));
      const f64 angle = i / width * f64{bf16_to_f32(f32_to_bf16(static_cast<f32>(exact)))};
      out[i] = static_cast<f32>(i % width < width / 2 ? std::sin(angle) : std::cos(angle));
    }
    return out;
  }
  std::vector<f32> random_frames(u32 count, f32 size = 1) {
    std::vector<f32> out(std::size_t{count} * model_.config.frame);
    for (f32& v : out) v = size * random_.normal();
    return out;
  }

  std::unique_ptr<Gguf> file_;
  AudioModel model_;
  bool bf16_positions_ = false;
};

// The length of the difference, in lengths of what is expected.
f64 relative(const std::vector<f64>& got, const std::vector<f32>& expected) {
  EXPECT_EQ(got.size(), expected.size());
  f64 error = 0, size = 0;
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    error += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += f64{expected[i]} * expected[i];
  }
  return std::sqrt(error / size);
}

TEST_F(AudioTower, SoftTokensAreThoseOfTransformers) {
  const Safetensors golden(data_path("media.safetensors"));
  bf16_positions_ = true;
  ASSERT_NO_FATAL_FAILURE(load(data_path("tiny-e2b-mmproj.gguf")));
  EXPECT_LE(relative(on_cpu(golden.get<f32>("audio.features")), golden.get<f32>("audio.soft_tokens")), 2e-6);
  bf16_positions_ = false;
  EXPECT_LE(relative(on_cpu(golden.get<f32>("audio.features")), golden.get<f32>("audio.soft_tokens")), 3e-4);
}

// The same weights in one file with the text model, under Ollama's names.
TEST_F(AudioTower, SoftTokensOfOllamasForm) {
  const std::string path = golden_path("tiny-e2b-ollama.gguf");
  if (!open_file(path)) GTEST_SKIP() << "needs the full goldens";
  const Safetensors golden(data_path("media.safetensors"));
  bf16_positions_ = true;
  ASSERT_NO_FATAL_FAILURE(load(path));
  EXPECT_LE(relative(on_cpu(golden.get<f32>("audio.features")), golden.get<f32>("audio.soft_tokens")), 2e-6);
}

// The expected values are of half-precision weights; rounded to eight bits, those are off by half a percent
// of their size.
TEST_F(AudioTower, SoftTokensOfNano) {
  const Safetensors golden(data_path("nano/golden.safetensors"));
  ASSERT_NO_FATAL_FAILURE(load("models/nano.gguf"));
  for (const std::string name : {"spoken-digits-0.wav", "spoken-words-1.wav"}) {
    const auto soft = on_cpu(golden.get<f32>(name + ".features"));
    EXPECT_LE(relative(soft, golden.get<f32>(name + ".soft")), 0.005) << name;
  }
}

TEST_F(AudioTower, SoftTokensOnTheGpu) {
  const Safetensors golden(data_path("media.safetensors"));
  bf16_positions_ = true;
  ASSERT_NO_FATAL_FAILURE(load(data_path("tiny-e2b-mmproj.gguf")));
  EXPECT_LE(relative(on_gpu(golden.get<f32>("audio.features")), golden.get<f32>("audio.soft_tokens")), 1e-5);
}

// Eight-bit matrices; few frames, and fewer than attention sees.
TEST_F(AudioTower, GpuIsLikeTheReference) {
  ASSERT_NO_FATAL_FAILURE(load("models/nano.gguf"));
  for (const u32 frames : {1u, 2u, 37u}) {
    Graph g = graph_of(random_frames(frames, 3));
    compare_with_reference(g, 2e-5, {}, ~u64{0});
  }
}

// A convolution looks one row ahead, which is still of the same token: changing what comes later changes no
// bit of what came before.
TEST_F(AudioTower, NoTokenDependsOnLaterFrames) {
  ASSERT_NO_FATAL_FAILURE(load(data_path("tiny-e2b-mmproj.gguf")));
  const auto frames = random_frames(90, 3);
  const auto whole = on_cpu(frames);
  const std::size_t width = model_.config.text_width;
  EXPECT_EQ(whole.size(), 23 * width);
  for (const std::size_t token : {0u, 1u, 15u}) {
    auto changed = frames;
    for (std::size_t i = 4 * (token + 1) * 128; i < changed.size(); ++i) changed[i] += 1;
    const auto other = on_cpu(changed);
    const auto same = static_cast<std::ptrdiff_t>((token + 1) * width);
    EXPECT_TRUE(std::equal(whole.begin(), whole.begin() + same, other.begin())) << token;
    EXPECT_NE(whole, other);
    changed.resize(4 * (token + 1) * 128);
    EXPECT_TRUE(std::ranges::equal(on_cpu(changed), std::span(whole).first((token + 1) * width))) << token;
  }
}

TEST_F(AudioTower, BoundsOfTheLinearsCount) {
  ASSERT_NO_FATAL_FAILURE(load(data_path("tiny-e2b-mmproj.gguf")));
  u32 bounded = 0;
  for (AudioBlock& block : model_.blocks) {
    for (ClampedLinear* linear :
         {&block.before.up, &block.before.down, &block.attn_q, &block.attn_k, &block.attn_v, &block.attn_out,
          &block.conv_in, &block.conv_out, &block.after.up, &block.after.down}) {
      bounded += linear->clamp ? 1 : 0;
      EXPECT_LT(linear->clamp.in_min, linear->clamp.in_max);
    }
  }
  EXPECT_EQ(bounded, 20u);
  const auto frames = random_frames(8, 3);
  const auto with = on_cpu(frames);
  for (AudioBlock& block : model_.blocks) block.before.up.clamp = {.in_min = 0};
  EXPECT_NE(with, on_cpu(frames));
}

TEST_F(AudioTower, SilenceAndOneFrameAreFinite) {
  ASSERT_NO_FATAL_FAILURE(load("models/nano.gguf"));
  const f32 silence = std::log(0.001f);
  for (const u32 frames : {1u, 4u, 5u, 100u}) {
    const auto soft = on_cpu(std::vector<f32>(std::size_t{frames} * 128, silence));
    EXPECT_EQ(soft.size(), (frames + 3) / 4 * std::size_t{256});
    EXPECT_TRUE(std::ranges::all_of(soft, [](f64 v) { return std::isfinite(v); }));
  }
}

// Half a minute, the longest that the model is meant for.
TEST_F(AudioTower, ThreeThousandFrames) {
  ASSERT_NO_FATAL_FAILURE(load(data_path("tiny-e2b-mmproj.gguf")));
  const auto frames = random_frames(3000, 3);
  const auto soft = on_cpu(frames);
  ASSERT_EQ(soft.size(), 750u * 256);
  // What is said in the first second does not depend on how long the recording is.
  const auto first = on_cpu({frames.begin(), frames.begin() + 100 * 128});
  EXPECT_TRUE(std::ranges::equal(first, std::span(soft).first(25 * 256)));
}

// The longest recording must fit into what any GPU binds at once, 128 MiB, and leave room.
TEST_F(AudioTower, ThreeThousandFramesFitIntoOneBinding) {
  ASSERT_NO_FATAL_FAILURE(load(data_path("tiny-e2b-mmproj.gguf")));
  const std::string_view keep[] = {"soft"};
  const Graph g = build_audio_graph(model_, 3000);
  EXPECT_LE(lay_out(g, keep, 1).elements * sizeof(f32), 64u << 20);
  EXPECT_LE(Reference::bytes_of(g), 128u << 20);
}

class UnifiedAudio : public AudioTower {
 protected:
  void make(DType type) {
    MemoryFile file;
    file.writer.set_string("general.architecture", "clip");
    file.writer.set_string("clip.audio.projector_type", "gemma4ua");
    file.writer.set_uint("clip.audio.num_mel_bins", 128);
    file.add_linear("mm.a.input_projection.weight", {640, 48}, type);
    auto opened = file.open();
    ASSERT_OK(opened);
    load(std::move(*opened), 48);
    EXPECT_EQ(model_.config.kind, AudioKind::kUnified);
    EXPECT_EQ(model_.config.frame, 640u);
  }
};

TEST_F(UnifiedAudio, IsANormAndALinear) {
  ASSERT_NO_FATAL_FAILURE(make(DType::kF32));
  auto frames = random_frames(3, 0.1f);
  std::fill_n(frames.begin() + 640, 640, 0.0f);  // silence
  const auto soft = on_cpu(frames);
  ASSERT_EQ(soft.size(), 3u * 48);
  std::vector<f32> w(640 * 48);
  std::memcpy(w.data(), weights_.bytes(0).data(), w.size() * sizeof(f32));
  for (const std::size_t t : {0u, 1u, 2u}) {
    f64 squares = 0;
    for (std::size_t i = 0; i < 640; ++i) squares += f64{frames[t * 640 + i]} * frames[t * 640 + i];
    for (std::size_t r = 0; r < 48; ++r) {
      f64 sum = 0;
      for (std::size_t i = 0; i < 640; ++i) sum += f64{w[r * 640 + i]} * frames[t * 640 + i];
      EXPECT_NEAR(soft[t * 48 + r], sum / std::sqrt(squares / 640 + 1e-6), 1e-9);
    }
  }
}

TEST_F(UnifiedAudio, FramesDoNotSeeEachOther) {
  ASSERT_NO_FATAL_FAILURE(make(DType::kBF16));
  const auto frames = random_frames(30, 0.1f);
  const auto all = on_cpu(frames);
  const auto one = on_cpu({frames.begin() + 7 * 640, frames.begin() + 8 * 640});
  EXPECT_TRUE(std::ranges::equal(one, std::span(all).subspan(7 * 48, 48)));
}

TEST_F(UnifiedAudio, GpuIsLikeTheReference) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    ASSERT_NO_FATAL_FAILURE(make(type));
    for (const u32 frames : {1u, 9u}) {
      Graph g = graph_of(random_frames(frames, 0.1f));
      compare_with_reference(g, 5e-6, {}, ~u64{0});
    }
  }
}

}  // namespace
}  // namespace bezel
#endif
