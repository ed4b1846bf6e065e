#include "model/audio_graph.h"

#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/format_text.h"

namespace bezel {
namespace {

// A row and the 11 before it. The model's settings say 13, and Google's own code reads that as 13 rows;
// transformers and llama.cpp have 12.
constexpr u32 kDistances = 12;
constexpr f32 kCap = 50;

class AudioGraphBuilder {
 public:
  explicit AudioGraphBuilder(const AudioModel& model) : model_(model), config_(model.config) {}

  Graph build(u32 frames) {
    CHECK(frames > 0);
    Tensor x = g_.input(kAudioFrames, frames, config_.frame);
    if (config_.kind == AudioKind::kConformer) x = conformer(x);
    const Tensor soft = g_.mat_mul(norm(x, {}), model_.embedding);
    CHECK(soft.rows == audio_tokens(config_, frames));
    g_.set_name("soft", soft);
    return std::move(g_);
  }

 private:
  Tensor norm(Tensor x, Weight weight, f32 scale = 1) {
    return g_.rms_norm(x, weight, AudioConfig::kEps, 0, scale);
  }
  Tensor linear(Tensor x, const ClampedLinear& w) { return apply(g_, x, w); }

  Tensor conformer(Tensor x) {
    const Tensor positions = g_.input(kAudioPositions, kDistances, config_.width);
    u32 channels = 1;
    for (u32 i = 0; i < 2;
         ++i) {  // (T, bins) -> (T / 2, bins / 2 * channels) -> (T / 4, bins / 4 * channels)
      x = g_.conv(x, model_.conv[i], channels);
      channels = config_.channels[i];
      x = g_.layer_norm_relu(x, model_.conv_norm[i], AudioConfig::kEps, channels);
    }
    x = g_.mat_mul(x, model_.input);
    for (u32 i = 0; i < model_.blocks.size(); ++i) {
      g_.set_name(format_text("hidden.{}", i), x);
      x = block(x, model_.blocks[i], positions);
    }
    g_.set_name(format_text("hidden.{}", model_.blocks.size()), x);
    return g_.shift_scale(g_.mat_mul(x, model_.output), model_.output_bias);
  }

  Tensor block(Tensor x, const AudioBlock& w, Tensor positions) {
    x = g_.add(x, feed_forward(x, w.before));
    x = g_.add(x, norm(attention(norm(x, w.attn_norm), w, positions), w.attn_post_norm));
    x = g_.add(x, convolution(norm(x, w.conv_norm), w));
    x = g_.add(x, feed_forward(x, w.after));
    return norm(x, w.out_norm);
  }

  // With the weight of its residual, one half.
  Tensor feed_forward(Tensor x, const AudioFeedForward& w) {
    return norm(linear(g_.silu(linear(norm(x, w.norm), w.up)), w.down), w.post_norm, 0.5f);
  }

  Tensor attention(Tensor x, const AudioBlock& w, Tensor positions) {
    const f64 query_scale = 1 / (std::sqrt(static_cast<f64>(config_.head_size())) * std::numbers::ln2);
    const f64 key_scale = std::log1p(std::numbers::e) / std::numbers::ln2;
    const Tensor a = g_.local_attention(linear(x, w.attn_q), linear(x, w.attn_k), linear(x, w.attn_v),
                                        g_.mat_mul(positions, w.relative), w.query_scale, config_.heads,
                                        static_cast<f32>(query_scale), static_cast<f32>(key_scale), kCap);
    return linear(a, w.attn_out);
  }

  Tensor convolution(Tensor x, const AudioBlock& w) {
    const Tensor both = linear(x, w.conv_in);  // (T, 2d)
    x = g_.sigmoid_mul(Graph::cols(both, 0, config_.width), Graph::cols(both, config_.width, config_.width));
    x = norm(g_.conv_time(x, w.conv_time), w.conv_time_norm);
    return linear(g_.silu(x), w.conv_out);
  }

  const AudioModel& model_;
  const AudioConfig& config_;
  Graph g_;
};

}  // namespace

u32 audio_tokens(const AudioConfig& config, u32 frames) {
  return config.kind == AudioKind::kUnified ? frames : frames / 4 + (frames % 4 != 0 ? 1 : 0);
}

std::vector<f32> audio_positions(const AudioConfig& config) {
  const u32 half = config.width / 2;
  std::vector<f32> out(std::size_t{kDistances} * config.width);
  for (u32 distance = 0; distance < kDistances; ++distance) {
    f32* row = out.data() + std::size_t{distance} * config.width;
    for (u32 i = 0; i < half; ++i) {
      const f64 angle = distance * std::exp(-std::log(10000.0) * i / std::max(half - 1, 1u));
      row[i] = static_cast<f32>(std::sin(angle));
      row[half + i] = static_cast<f32>(std::cos(angle));
    }
  }
  return out;
}

Graph build_audio_graph(const AudioModel& model, u32 frames) {
  return AudioGraphBuilder(model).build(frames);
}

}  // namespace bezel
