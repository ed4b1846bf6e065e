#include "model/vision_graph.h"

#include <cmath>

#include "base/check.h"
#include "base/format_text.h"
#include "gguf/quant.h"

namespace bezel {
namespace {

constexpr f32 kLayerNormEps = 1e-5f;
constexpr f32 kProjectorEps = 1e-6f;

class VisionGraphBuilder {
 public:
  explicit VisionGraphBuilder(const VisionModel& model) : model_(model), config_(model.config) {}

  Graph build(u32 width, u32 height) {
    const u32 patches = width * height;
    const Tensor pixels = g_.input(kVisionPixels, patches, 3 * config_.patch * config_.patch);
    const Tensor rows = g_.input(kVisionPositionRows, patches, config_.width);
    Tensor x = config_.kind == VisionKind::kVit ? encode(pixels, rows, width) : embed(pixels, rows);
    x = g_.rms_norm(x, {}, kProjectorEps);
    g_.set_name("soft", g_.mat_mul(x, model_.projection));
    return std::move(g_);
  }

 private:
  Tensor norm(Tensor x, Weight weight) { return g_.rms_norm(x, weight, config_.eps); }
  Tensor head_norm(Tensor x, Weight weight) { return g_.rms_norm(x, weight, config_.eps, config_.head_size); }

  // kVit: (N, 3 * patch * patch) -> (N / pool^2, d)
  Tensor encode(Tensor pixels, Tensor rows, u32 width) {
    grid_ = g_.input(kVisionGrid, pixels.rows, 2);
    frequencies_ = g_.add_table(model_.frequencies);
    Tensor x = g_.add(g_.mat_mul(pixels, model_.patch_embd), rows);
    for (u32 i = 0; i < model_.blocks.size(); ++i) {
      g_.set_name(format_text("hidden.{}", i), x);
      x = block(model_.blocks[i], x);
    }
    x = g_.average_pool(x, width, config_.pool, std::sqrt(static_cast<f32>(config_.width)));
    return model_.std_bias ? g_.shift_scale(x, model_.std_bias, -1, model_.std_scale) : x;
  }

  Tensor block(const VisionBlock& b, Tensor x) {
    const Tensor h = norm(x, b.ln1);
    const Tensor q = rope(head_norm(apply(g_, h, b.attn_q), b.attn_q_norm));  // (N, H * D)
    const Tensor k = rope(head_norm(apply(g_, h, b.attn_k), b.attn_k_norm));
    const Tensor v = head_norm(apply(g_, h, b.attn_v), {});
    const Tensor a = apply(g_, g_.full_attention(q, k, v, config_.head_size), b.attn_out);
    x = g_.add(x, norm(a, b.attn_post_norm));
    const Tensor f = norm(x, b.ln2);
    const Tensor gate = apply(g_, f, b.ffn_gate);  // (N, F), the largest
    const Tensor gated = g_.gelu_mul(gate, apply(g_, f, b.ffn_up), true);
    return g_.add(x, norm(apply(g_, gated, b.ffn_down), b.ffn_post_norm), 1, b.out_scale);
  }

  Tensor rope(Tensor x) { return g_.rope(x, grid_, config_.head_size / 2, frequencies_); }

  // kUnified: (N, 3 * patch * patch) -> (N, d)
  Tensor embed(Tensor pixels, Tensor rows) {
    const Tensor x = g_.mat_mul(layer_norm(pixels, 0), model_.patch_embd);
    const Tensor embedded = layer_norm(g_.shift_scale(x, model_.patch_bias), 1);
    return layer_norm(g_.add(embedded, rows), 2);
  }

  Tensor layer_norm(Tensor x, u32 which) {
    const auto& [weight, bias] = model_.patch_norms[which];
    return g_.layer_norm(x, weight, bias, kLayerNormEps);
  }

  const VisionModel& model_;
  const VisionConfig& config_;
  Graph g_;
  Tensor grid_;
  u32 frequencies_ = 0;
};

// The sum of the position table's rows of x and of y for every patch, (w * h, d).
Task<Result<std::vector<f32>>> position_rows(Gguf& file, const VisionModel& model, u32 width, u32 height) {
  const TensorInfo& table = model.position_embd;
  const std::size_t d = model.config.width;
  std::vector<f32> axes[2];
  for (u32 axis = 0; axis < 2; ++axis) {
    const u32 count = axis == 0 ? width : height;
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * table.row_bytes()));
    CO_TRY(co_await file.read(table, u64{axis} * model.config.positions * table.row_bytes(), bytes));
    axes[axis].resize(count * d);
    dequantize(table.type, bytes, axes[axis]);
  }
  std::vector<f32> out;
  out.reserve(std::size_t{width} * height * d);
  for (u32 y = 0; y < height; ++y) {
    for (u32 x = 0; x < width; ++x) {
      for (std::size_t i = 0; i < d; ++i) out.push_back(axes[0][x * d + i] + axes[1][y * d + i]);
    }
  }
  co_return out;
}

}  // namespace

Graph build_vision_graph(const VisionModel& model, u32 width_patches, u32 height_patches) {
  const VisionConfig& config = model.config;
  CHECK(width_patches > 0 && height_patches > 0);
  CHECK(width_patches % config.pool == 0 && height_patches % config.pool == 0);
  return VisionGraphBuilder(model).build(width_patches, height_patches);
}

Status check_picture(const VisionConfig& config, u32 width, u32 height) {
  const u32 unit = config.unit();
  if (width == 0 || height == 0 || width % unit != 0 || height % unit != 0) {
    return invalid("A picture of {} x {} pixels cannot be cut into squares of {}.", width, height, unit);
  }
  if (width / config.patch > config.positions || height / config.patch > config.positions) {
    return invalid(
        "A picture of {} x {} pixels is too large: the vision tower knows {} positions of {} pixels.", width,
        height, config.positions, config.patch);
  }
  if (const u64 tokens = u64{width / unit} * (height / unit); tokens > kMostSoftTokens) {
    return invalid("A picture of {} x {} pixels makes {} soft tokens; the limit is {}.", width, height,
                   tokens, kMostSoftTokens);
  }
  return {};
}

std::vector<f32> vision_pixels(const VisionConfig& config, std::span<const u8> rgb, u32 width, u32 height) {
  const std::size_t patch = config.patch;
  CHECK(rgb.size() == u64{3} * width * height && width % patch == 0 && height % patch == 0);
  // The transformer's pixels are from -1 to 1, the unified kind's from 0 to 1.
  const f32 scale = config.kind == VisionKind::kVit ? 2.0f : 1.0f;
  const f32 shift = config.kind == VisionKind::kVit ? -1.0f : 0.0f;
  f32 levels[256];
  for (u32 i = 0; i < 256; ++i) levels[i] = scale * (static_cast<f32>(i) / 255.0f) + shift;
  std::vector<f32> out;
  out.reserve(rgb.size());
  for (std::size_t top = 0; top < height; top += patch) {
    for (std::size_t left = 0; left < width; left += patch) {
      for (std::size_t channel = 0; channel < 3; ++channel) {
        for (std::size_t y = top; y < top + patch; ++y) {
          for (std::size_t x = left; x < left + patch; ++x) {
            out.push_back(levels[rgb[(y * width + x) * 3 + channel]]);
          }
        }
      }
    }
  }
  return out;
}

Task<Result<std::vector<std::vector<f32>>>> vision_inputs(Gguf& file, const VisionModel& model,
                                                          std::span<const u8> rgb, u32 width, u32 height) {
  const VisionConfig& config = model.config;
  CO_TRY(check_picture(config, width, height));
  if (rgb.size() != u64{3} * width * height) {
    co_return invalid("A picture of {} x {} pixels has {} bytes of colours, but {} are given.", width, height,
                      u64{3} * width * height, rgb.size());
  }
  std::vector<std::vector<f32>> inputs(kVisionInputs);
  const u32 across = width / config.patch, down = height / config.patch;
  for (u32 y = 0; y < down; ++y) {
    for (u32 x = 0; x < across; ++x) {
      inputs[kVisionGrid].push_back(static_cast<f32>(x));
      inputs[kVisionGrid].push_back(static_cast<f32>(y));
    }
  }
  inputs[kVisionPositionRows] = CO_TRY(co_await position_rows(file, model, across, down));
  inputs[kVisionPixels] = vision_pixels(config, rgb, width, height);
  co_return inputs;
}

}  // namespace bezel
