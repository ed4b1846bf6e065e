#include "graph/device_weights.h"

#include <algorithm>

#include "base/check.h"
#include "graph/wide_form.h"
#include "kernels/format_bf16.wgsl.h"
#include "kernels/format_f16.wgsl.h"
#include "kernels/format_f32.wgsl.h"
#include "kernels/format_iq4_nl.wgsl.h"
#include "kernels/format_iq4_xs.wgsl.h"
#include "kernels/format_mxfp4.wgsl.h"
#include "kernels/format_nvfp4.wgsl.h"
#include "kernels/format_q2_k.wgsl.h"
#include "kernels/format_q3_k.wgsl.h"
#include "kernels/format_q4_0.wgsl.h"
#include "kernels/format_q4_1.wgsl.h"
#include "kernels/format_q4_k.wgsl.h"
#include "kernels/format_q5_0.wgsl.h"
#include "kernels/format_q5_1.wgsl.h"
#include "kernels/format_q5_k.wgsl.h"
#include "kernels/format_q6_k.wgsl.h"
#include "kernels/format_q8_0.wgsl.h"

namespace bezel {
namespace {

struct Format {
  DType type;
  std::string_view source;
};

constexpr Format kFormats[] = {
    {DType::kF32, wgsl::format_f32::source},       {DType::kF16, wgsl::format_f16::source},
    {DType::kBF16, wgsl::format_bf16::source},     {DType::kQ4_0, wgsl::format_q4_0::source},
    {DType::kQ4_1, wgsl::format_q4_1::source},     {DType::kQ5_0, wgsl::format_q5_0::source},
    {DType::kQ5_1, wgsl::format_q5_1::source},     {DType::kQ8_0, wgsl::format_q8_0::source},
    {DType::kQ2_K, wgsl::format_q2_k::source},     {DType::kQ3_K, wgsl::format_q3_k::source},
    {DType::kQ4_K, wgsl::format_q4_k::source},     {DType::kQ5_K, wgsl::format_q5_k::source},
    {DType::kQ6_K, wgsl::format_q6_k::source},     {DType::kIQ4_NL, wgsl::format_iq4_nl::source},
    {DType::kIQ4_XS, wgsl::format_iq4_xs::source}, {DType::kMXFP4, wgsl::format_mxfp4::source},
    {DType::kNVFP4, wgsl::format_nvfp4::source},
};

// Whether there is a format for it as it is in the file.
bool has_format(DType type) { return std::ranges::contains(kFormats, type, &Format::type); }

DeviceWeight in_floats(DType type, u64 cols) {
  DeviceWeight out;
  out.type = type;
  out.row_bytes = static_cast<u32>(dtype_bytes(type, (cols + 15) / 16 * 16));
  return out;
}

}  // namespace

DeviceWeight table_weight(DType type, u64 cols, u64 rows) {
  if (rows == 1) return in_floats(DType::kF32, cols);
  if (dtype_info(type).block_elements == 1 && cols % 16 != 0) return in_floats(DType::kF32, cols);
  if (!has_format(type)) return in_floats(DType::kF16, cols);
  DeviceWeight out;
  out.type = type;
  out.row_bytes = static_cast<u32>(dtype_bytes(type, cols));
  return out;
}

DeviceWeight product_weight(DType type, u64 cols, u64 rows) {
  DeviceWeight out = table_weight(type, cols, rows);
  if (rows == 1 || !has_wide_form(type)) return out;
  const u64 bytes = wide_row_bytes(type, cols);
  out.wide = !has_format(type) || bytes * 8 <= u64{out.row_bytes} * 9;
  if (!out.wide) return out;
  out.type = type;
  out.row_bytes = static_cast<u32>(bytes);
  return out;
}

std::string format_source(const DeviceWeight& weight) {
  if (weight.wide) return wide_format_source(weight.type);
  const auto found = std::ranges::find(kFormats, weight.type, &Format::type);
  CHECK(found != std::end(kFormats));
  return std::string(found->source);
}

bool same_form(const DeviceWeight& a, const DeviceWeight& b) {
  return a.type == b.type && a.wide == b.wide && a.row_bytes == b.row_bytes;
}

Status place_together(Device& device, std::span<const Unplaced> weights, u64 most) {
  const auto bytes = [](const Unplaced& w) { return u64{w.rows} * w.weight->row_bytes; };
  // So that what follows it begins where a binding may.
  const auto in_whole_steps = [&](const Unplaced& w) {
    return bytes(w) % device.info().storage_alignment == 0;
  };
  for (std::size_t count = 1; !weights.empty(); weights = weights.subspan(count), count = 1) {
    u64 total = bytes(weights[0]);
    while (count < weights.size() && same_form(*weights[0].weight, *weights[count].weight) &&
           in_whole_steps(weights[count - 1]) && in_whole_steps(weights[count]) &&
           total + bytes(weights[count]) <= most)
      total += bytes(weights[count++]);
    if (count == 1) continue;
    const auto buffer = std::make_shared<const Buffer>(TRY(device.make_buffer(total, "weights")));
    u64 offset = 0;
    for (const Unplaced& w : weights.first(count)) {
      CHECK(w.weight->tiles.empty());
      w.weight->tiles.emplace_back(buffer, offset, bytes(w), w.rows);
      offset += bytes(w);
    }
  }
  return {};
}

Status place_in_one(Device& device, std::span<const Unplaced> weights, u64 most) {
  const u64 step = device.info().storage_alignment;
  std::vector<u64> offsets;
  u64 total = 0;
  for (const auto& [weight, rows] : weights) {
    offsets.push_back(total);
    total += (u64{rows} * weight->row_bytes + step - 1) / step * step;
  }
  if (total == 0 || total > most) return {};
  const auto buffer = std::make_shared<const Buffer>(TRY(device.make_buffer(total, "weights")));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto& [weight, rows] = weights[i];
    CHECK(weight->tiles.empty());
    weight->tiles.emplace_back(buffer, offsets[i], u64{rows} * weight->row_bytes, rows);
  }
  return {};
}

std::vector<std::pair<u32, u32>> cut(u32 count, u32 most) {
  std::vector<std::pair<u32, u32>> pieces;
  for (u32 first = 0; first < count; first += most) pieces.emplace_back(first, std::min(most, count - first));
  return pieces;
}

}  // namespace bezel
