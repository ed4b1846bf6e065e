#include "model/vision_config.h"

#include "model/config_keys.h"

namespace bezel {
namespace {

constexpr u32 kMostHeadSize = 128;  // of op::FullAttention

Result<VisionKind> read_kind(const Gguf& file, const ConfigKeys& keys) {
  const auto type = TRY(file.get_string(keys.full("projector_type")));
  if (!type) {
    const bool norms = file.tensor("v.patch_norm.1.weight") != nullptr;
    return norms ? VisionKind::kUnified : VisionKind::kVit;
  }
  if (*type == "gemma4v") return VisionKind::kVit;
  if (*type == "gemma4uv") return VisionKind::kUnified;
  return fail(ErrorKind::kUnsupported,
              "{} has a vision tower of the type {}; bezel runs 'gemma4v' and 'gemma4uv'.", file.name(),
              quote(*type));
}

Status read_blocks(const ConfigKeys& keys, VisionConfig& config) {
  config.blocks = TRY(keys.get("block_count", 1, 512));
  config.ffn = TRY(keys.get("feed_forward_length", 1, 1 << 16));
  config.heads = TRY(keys.get("attention.head_count", 1, 1024));
  config.head_size = config.width / config.heads;
  if (config.width % config.heads != 0 || config.head_size % 4 != 0) {
    return invalid(
        "The vision tower's width, {}, does not make {} heads of a size that is a multiple of 4, as rotation "
        "in "
        "two dimensions needs.",
        config.width, config.heads);
  }
  if (config.head_size > kMostHeadSize) {
    return fail(ErrorKind::kUnsupported, "The vision tower's heads have {} elements; the limit is {}.",
                config.head_size, kMostHeadSize);
  }
  return {};
}

}  // namespace

bool has_vision(const Gguf& file) { return file.tensor("v.patch_embd.weight") != nullptr; }

Result<VisionConfig> read_vision_config(const Gguf& file, u32 text_width) {
  if (!has_vision(file)) {
    return fail(ErrorKind::kNotFound, "{} has no vision tower (tensor 'v.patch_embd.weight').", file.name());
  }
  const auto architecture = TRY(file.get_string("general.architecture"));
  const bool mmproj = architecture == "clip";
  if (!mmproj && architecture != "gemma4") {
    return fail(ErrorKind::kUnsupported, "{} is a {} file; vision towers are in 'gemma4' and 'clip' files.",
                file.name(), quote(architecture.value_or("")));
  }
  const ConfigKeys keys(file, mmproj ? "clip.vision." : "gemma4.vision.");
  VisionConfig config;
  config.text_width = text_width;
  const u32 projects_to = TRY(keys.get("projection_dim", 1, 1 << 17, text_width));
  if (projects_to != text_width) {
    return invalid(
        "{} projects pictures to a width of {}, but the text model has {}: it belongs to another model.",
        file.name(), projects_to, text_width);
  }
  config.kind = TRY(read_kind(file, keys));
  config.width = TRY(keys.get("embedding_length", 4, 1 << 14));
  config.patch = TRY(keys.get("patch_size", 1, 64, 16));
  config.pool = TRY(keys.get("projector.scale_factor", 1, 16, 3));
  config.eps = static_cast<f32>(TRY(keys.get_float("attention.layer_norm_epsilon", 0, 1, 1e-6)));
  if (const u32 channels = TRY(keys.get("num_channels", 1, 16, 3)); channels != 3) {
    return fail(ErrorKind::kUnsupported, "The vision tower reads {} channels; bezel gives it 3.", channels);
  }
  if (config.kind == VisionKind::kUnified) {
    config.patch *= config.pool;
    config.pool = 1;
  } else {
    TRY(read_blocks(keys, config));
  }

  const TensorInfo* table = file.tensor("v.position_embd.weight");
  if (table == nullptr) return invalid("{} has no tensor 'v.position_embd.weight'.", file.name());
  if (table->ne[1] == 0 || table->ne[1] > (1 << 20)) {
    return invalid("The vision tower's position table has {} rows; the limit is {}.", table->ne[1], 1 << 20);
  }
  config.positions = static_cast<u32>(table->ne[1]);
  return config;
}

}  // namespace bezel
