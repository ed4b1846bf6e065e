#include <bit>

#include "gguf/quant.h"

namespace bezel {

u16 f32_to_f16(f32 value) {
  const u32 bits = std::bit_cast<u32>(value);
  const u32 sign = (bits >> 16) & 0x8000U;
  const u32 magnitude = bits & 0x7FFFFFFFU;
  constexpr u32 kInfinity = 0x7F800000;
  constexpr u32 kTooLarge = 0x47800000;     // 65536; what rounds up to it carries into the exponent below
  constexpr u32 kLeastNormal = 0x38800000;  // 2^-14
  u32 half = 0;
  if (magnitude > kInfinity) {
    half = 0x7E00U | ((magnitude >> 13) & 0x3FFU);
  } else if (magnitude >= kTooLarge) {
    half = 0x7C00;
  } else if (magnitude >= kLeastNormal) {
    half = (magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  } else {
    // The unit in the last place of 0.5 is 2^-24, the step of subnormal halves: the addition rounds for us.
    half = std::bit_cast<u32>(std::bit_cast<f32>(magnitude) + 0.5F) - std::bit_cast<u32>(0.5F);
  }
  return static_cast<u16>(sign | half);
}

u16 f32_to_bf16(f32 value) {
  const u32 bits = std::bit_cast<u32>(value);
  const bool nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  const u32 rounded = nan ? bits | 0x400000U : bits + 0x7FFFU + ((bits >> 16) & 1U);
  return static_cast<u16>(rounded >> 16);
}

}  // namespace bezel
