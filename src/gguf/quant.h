// Scalar conversion between block formats and f32: the oracle that kernels are tested against.
#pragma once
#include <bit>
#include <span>

#include "base/types.h"
#include "gguf/dtype.h"

namespace bezel {

// Without branches, so that loops over rows of halves become vector code.
inline f32 f16_to_f32(u16 bits) {
  const u32 magnitude = bits & 0x7FFFU;
  // The exponent's bias grows by 112; infinity and NaN need it twice to reach the top exponent.
  const u32 rebias = magnitude < 0x7C00 ? 112U << 23 : 224U << 23;
  const u32 normal = (magnitude << 13) + rebias;
  const u32 subnormal = std::bit_cast<u32>(static_cast<f32>(static_cast<i32>(magnitude)) * 0x1p-24F);
  return std::bit_cast<f32>((bits & 0x8000U) << 16 | (magnitude < 0x400 ? subnormal : normal));
}
u16 f32_to_f16(f32 value);  // round to nearest even; overflow becomes infinity, NaN stays NaN
inline f32 bf16_to_f32(u16 bits) { return std::bit_cast<f32>(u32{bits} << 16); }
u16 f32_to_bf16(f32 value);  // likewise

// True for every type of the table but TQ1_0 and the integers.
bool can_dequantize(DType type);
// `elements` = out.size(), a multiple of the block; `blocks` holds exactly that many bytes.
void dequantize(DType type, Bytes blocks, std::span<f32> out);

// F32 F16 BF16 Q8_0 Q4_0 Q5_0 Q4_K Q6_K. The same bits on every platform. In the types with scales NaN
// becomes 0, and infinities and what is too large for the scales are clamped.
bool can_quantize(DType type);
void quantize(DType type, std::span<const f32> values, MutableBytes blocks);

}  // namespace bezel
