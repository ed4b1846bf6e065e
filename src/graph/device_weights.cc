#include "graph/device_weights.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/format_bf16.wgsl.h"
#include "kernels/format_f16.wgsl.h"
#include "kernels/format_f32.wgsl.h"
#include "kernels/format_iq4_nl.wgsl.h"
#include "kernels/format_iq4_xs.wgsl.h"
#include "kernels/format_mxfp4.wgsl.h"
#include "kernels/format_q2_k.wgsl.h"
#include "kernels/format_q3_k.wgsl.h"
#include "kernels/format_q4_0.wgsl.h"
#include "kernels/format_q4_1.wgsl.h"
#include "kernels/format_q4_k.wgsl.h"
#include "kernels/format_q5_0.wgsl.h"
#include "kernels/format_q5_1.wgsl.h"
#include "kernels/format_q5_k.wgsl.h"
#include "kernels/format_q6_k.wgsl.h"
#include "kernels/format_q6_k_padded.wgsl.h"
#include "kernels/format_q8_0.wgsl.h"
#include "kernels/format_q8_0_padded.wgsl.h"

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
};

}  // namespace

DType device_type(DType type, u64 cols, u64 rows) {
  if (rows == 1) return DType::kF32;
  if (dtype_info(type).block_elements == 1 && cols % 16 != 0) return DType::kF32;
  return std::ranges::contains(kFormats, type, &Format::type) ? type : DType::kF16;
}

void pad_row(DType type, Bytes row, MutableBytes out) {
  std::ranges::fill(out, std::byte{0});
  const std::size_t size = dtype_info(type).block_bytes, count = row.size() / size;
  for (std::size_t i = 0; i < count; ++i) {
    const Bytes block = row.subspan(i * size, size);
    if (type == DType::kQ6_K) {
      std::ranges::copy(block, out.subspan(i * kPaddedQ6K).begin());
      continue;
    }
    constexpr std::size_t kBlocks = 8, kScale = 2, kWeights = 32;
    const MutableBytes eight = out.subspan(i / kBlocks * kPaddedQ8_0);
    std::ranges::copy(block.first(kScale), eight.subspan(i % kBlocks * kScale).begin());
    std::ranges::copy(block.subspan(kScale),
                      eight.subspan(kBlocks * kScale + i % kBlocks * kWeights).begin());
  }
}

DeviceWeight product_weight(DType type, u64 cols) {
  DeviceWeight out;
  out.type = type;
  const u64 bytes = dtype_bytes(type, cols), whole = cols / 256, rest = cols % 256;
  u64 padded = bytes;
  if (type == DType::kQ6_K) padded = whole * kPaddedQ6K;
  if (type == DType::kQ8_0) padded = whole * kPaddedQ8_0 + (rest > 0 ? 16 + rest : 0);
  // Rows of Q8_0 that would become larger by more than an eighth stay as they are.
  out.padded = type == DType::kQ6_K || (type == DType::kQ8_0 && padded * 8 <= bytes * 9);
  out.row_bytes = static_cast<u32>(out.padded ? padded : bytes);
  return out;
}

std::string_view format_source(const DeviceWeight& weight) {
  if (weight.padded)
    return weight.type == DType::kQ6_K ? wgsl::format_q6_k_padded::source : wgsl::format_q8_0_padded::source;
  const auto found = std::ranges::find(kFormats, weight.type, &Format::type);
  CHECK(found != std::end(kFormats));
  return found->source;
}

bool same_form(const DeviceWeight& a, const DeviceWeight& b) {
  return a.type == b.type && a.padded == b.padded && a.row_bytes == b.row_bytes;
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
