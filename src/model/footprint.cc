#include "model/footprint.h"

#include <algorithm>

#include "graph/device_weights.h"
#include "model/text_graph.h"

namespace bezel {

bool is_text_tensor(std::string_view name) {
  constexpr std::string_view kOthers[] = {"v.", "a.", "mm.", "model.vision_tower."};
  return std::ranges::none_of(kOthers, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Footprint footprint(const Gguf& file, const TextModel& model, u32 batch) {
  const TextConfig& config = model.config;
  Footprint out;
  for (const TensorInfo& info : file.tensors()) {
    if (is_text_tensor(info.name)) out.parameters += info.elements();
  }
  for (u32 i = 0; i < model.tensors.size(); ++i) {
    const TensorInfo& info = model.tensors[i];
    out.weight_bytes += info.bytes;
    const bool table = i == model.per_layer_token_embd.index;
    const u64 row = (table ? table_weight : product_weight)(info.type, info.ne[0], info.rows()).row_bytes;
    if (table) out.table_bytes = info.rows() * row;
    out.padding_bytes += info.rows() * row - std::min(info.rows() * row, info.bytes);
    out.largest_piece = std::max(out.largest_piece, row * (info.ne[2] > 1 ? info.ne[1] : 1));
    if (table || (i == model.token_embd.index && i != model.output.index)) {
      out.bytes_per_token += info.row_bytes();
    } else if (info.ne[2] > 1) {
      out.bytes_per_token += info.bytes / info.ne[2] * config.experts_used;
    } else {
      out.bytes_per_token += info.bytes;
    }
  }
  const auto rings = kv_rings(config, config.window + batch, batch);
  for (u32 i = 0; i < rings.size(); ++i) {
    const u64 pair = u64{2} * rings[i].cols;
    if (config.layers[i].sliding) {
      out.kv_fixed += pair * rings[i].slots;
    } else {
      out.kv_per_token += pair;
    }
  }
  return out;
}

std::map<DType, TypeCount> quant_mix(const Gguf& file) {
  std::map<DType, TypeCount> mix;
  for (const TensorInfo& info : file.tensors()) {
    ++mix[info.type].tensors;
    mix[info.type].bytes += info.bytes;
  }
  return mix;
}

}  // namespace bezel
