// Scalar conversion between block formats and f32: the oracle that kernels are tested against.
#pragma once
#include <span>

#include "base/types.h"
#include "gguf/dtype.h"

namespace bezel {

f32 f16_to_f32(u16 bits);
u16 f32_to_f16(f32 value);  // round to nearest even; overflow becomes infinity, NaN stays NaN
inline f32 bf16_to_f32(u16 bits) { return __builtin_bit_cast(f32, u32{bits} << 16); }
u16 f32_to_bf16(f32 value);

// True for every type of the table but TQ1_0 and the integers.
bool can_dequantize(DType type);
// `elements` = out.size(), a multiple of the block; `blocks` holds exactly that many bytes.
void dequantize(DType type, Bytes blocks, std::span<f32> out);

// F32 F16 BF16 Q8_0 Q4_0 Q5_0 Q4_K Q6_K.
bool can_quantize(DType type);
void quantize(DType type, std::span<const f32> values, MutableBytes blocks);

}  // namespace bezel
