#include <array>

#include "base/check.h"
#include "gguf/block_decode.h"
#include "gguf/lattice.h"

// Every platform must give the same bits.
#pragma clang fp contract(off)

namespace bezel {
namespace {

void float32(const u8* b, f32* out) { *out = load<f32>(b); }
void float64(const u8* b, f32* out) { *out = static_cast<f32>(load<f64>(b)); }
void float16(const u8* b, f32* out) { *out = load_f16(b); }
void bfloat16(const u8* b, f32* out) { *out = bf16_to_f32(load<u16>(b)); }

// Half of the elements lie in the low nibbles, the other half in the high ones. `value` is f32(element,
// nibble).
template <u32 kBytes, class Value>
void each_nibble(const u8* q, f32* __restrict out, Value value) {
  for (u32 k = 0; k < kBytes; ++k) out[k] = value(k, q[k] & 15);
  for (u32 k = 0; k < kBytes; ++k) out[k + kBytes] = value(k + kBytes, q[k] >> 4);
}

void q4_0(const u8* b, f32* out) {
  const f32 d = load_f16(b);
  each_nibble<16>(b + 2, out, [=](u32, i32 n) { return d * real(n - 8); });
}

void q4_1(const u8* b, f32* out) {
  const f32 d = load_f16(b);
  const f32 m = load_f16(b + 2);
  each_nibble<16>(b + 4, out, [=](u32, i32 n) { return d * real(n) + m; });
}

i32 fifth_bit(u32 bits, u32 element) { return static_cast<i32>((bits >> element & 1U) << 4); }

void q5_0(const u8* b, f32* out) {
  const f32 d = load_f16(b);
  const u32 high = load<u32>(b + 2);
  each_nibble<16>(b + 6, out, [=](u32 i, i32 n) { return d * real((n | fifth_bit(high, i)) - 16); });
}

void q5_1(const u8* b, f32* out) {
  const f32 d = load_f16(b);
  const f32 m = load_f16(b + 2);
  const u32 high = load<u32>(b + 4);
  each_nibble<16>(b + 8, out, [=](u32 i, i32 n) { return d * real(n | fifth_bit(high, i)) + m; });
}

template <u32 kCount>
void signed_bytes(f32 d, const u8* q, f32* __restrict out) {
  for (u32 i = 0; i < kCount; ++i) out[i] = d * real(static_cast<i8>(q[i]));
}

void q8_0(const u8* b, f32* out) { signed_bytes<32>(load_f16(b), b + 2, out); }
void q8_1(const u8* b, f32* out) { signed_bytes<32>(load_f16(b), b + 4, out); }
void q8_k(const u8* b, f32* out) { signed_bytes<256>(load<f32>(b), b + 4, out); }

void iq4_nl(const u8* b, f32* out) {
  const f32 d = load_f16(b);
  each_nibble<16>(b + 2, out, [=](u32, i32 n) { return d * real(kNonlinear4[n]); });
}

void iq4_xs(const u8* b, f32* out) {
  const f32 d = load_f16(b);
  const u32 high = load<u16>(b + 2);
  for (u32 g = 0; g < 8; ++g) {
    const u32 s = (b[4 + g / 2] >> (4 * (g % 2)) & 15U) | (high >> (2 * g) & 3U) << 4;
    const f32 scale = d * real(static_cast<i32>(s) - 32);
    each_nibble<16>(b + 8 + 16 * g, out + 32 * g, [=](u32, i32 n) { return scale * real(kNonlinear4[n]); });
  }
}

// Twice the value of a 4-bit float (E2M1).
constexpr i8 kFloat4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void mxfp4(const u8* b, f32* out) {
  // 2^(e-128); the two least are subnormal.
  const u32 bits = b[0] < 2 ? 0x200000U << b[0] : (b[0] - 1U) << 23;
  const f32 d = std::bit_cast<f32>(bits);
  each_nibble<16>(b + 1, out, [=](u32, i32 n) { return d * real(kFloat4[n]); });
}

// Unsigned E4M3, which has neither infinity nor (here) NaN.
f32 float8(u32 bits) {
  if (bits == 0x7F) return 0;
  const u32 exponent = bits >> 3 & 15U;
  const u32 mantissa = bits & 7U;
  if (exponent == 0) return static_cast<f32>(mantissa) * 0x1p-9F;
  return std::bit_cast<f32>((exponent + 120) << 23 | mantissa << 20);
}

void nvfp4(const u8* b, f32* out) {
  for (u32 s = 0; s < 4; ++s) {
    const f32 d = 0.5F * float8(b[s]);
    each_nibble<8>(b + 4 + 8 * s, out + 16 * s, [=](u32, i32 n) { return d * real(kFloat4[n]); });
  }
}

struct ScaleMin {
  i32 scale;
  i32 min;
};

// The eight 6-bit pairs of Q4_K and Q5_K.
ScaleMin scale_min(const u8* s, u32 j) {
  if (j < 4) return {s[j] & 63, s[j + 4] & 63};
  return {(s[j + 4] & 15) | (s[j - 4] >> 6) << 4, (s[j + 4] >> 4) | (s[j] >> 6) << 4};
}

// Q5_K is Q4_K with the fifth bits of all elements put before the nibbles.
template <bool kFifthBits>
void q45_k(const u8* b, f32* __restrict out) {
  const f32 d = load_f16(b);
  const f32 dmin = load_f16(b + 2);
  const u8* high = b + 16;
  const u8* low = kFifthBits ? b + 48 : b + 16;
  for (u32 j = 0; j < 8; ++j) {
    const ScaleMin pair = scale_min(b + 4, j);
    const f32 scale = d * real(pair.scale);
    const f32 min = dmin * real(pair.min);
    const u8* q = low + 32 * (j / 2);
    const u32 shift = 4 * (j % 2);
    for (u32 l = 0; l < 32; ++l) {
      i32 n = q[l] >> shift & 15;
      if constexpr (kFifthBits) n |= fifth_bit(high[l], j);
      out[32 * j + l] = scale * real(n) - min;
    }
  }
}

void q6_k(const u8* b, f32* __restrict out) {
  const f32 d = load_f16(b + 208);
  for (u32 j = 0; j < 16; ++j) {  // sixteen elements each
    const u32 h = j / 8;
    const u32 g = j % 8 / 2;
    const u32 l = 16 * (j % 2);
    const u8* low = b + 64 * h + 32 * (g & 1U) + l;
    const u8* high = b + 128 + 32 * h + l;
    const u32 low_shift = g < 2 ? 0 : 4;
    const f32 scale = d * real(static_cast<i8>(b[192 + j]));
    for (u32 k = 0; k < 16; ++k) {
      const i32 n = (low[k] >> low_shift & 15) | (high[k] >> (2 * g) & 3) << 4;
      out[16 * j + k] = scale * real(n - 32);
    }
  }
}

// Where the 2-bit types of 256 elements keep the sixteen elements of sub-block j.
struct TwoBits {
  const u8* bytes;
  u32 shift;
  i32 operator[](u32 k) const { return bytes[k] >> shift & 3; }
};
TwoBits two_bits(const u8* q, u32 j) { return {q + 32 * (j / 8) + 16 * (j % 2), 2 * (j % 8 / 2)}; }

void q2_k(const u8* b, f32* __restrict out) {
  const f32 d = load_f16(b + 80);
  const f32 dmin = load_f16(b + 82);
  for (u32 j = 0; j < 16; ++j) {
    const f32 scale = d * real(b[j] & 15);
    const f32 min = dmin * real(b[j] >> 4);
    const TwoBits q = two_bits(b + 16, j);
    for (u32 k = 0; k < 16; ++k) out[16 * j + k] = scale * real(q[k]) - min;
  }
}

void q3_k(const u8* b, f32* __restrict out) {
  const f32 d = load_f16(b + 108);
  const u8* s = b + 96;
  for (u32 j = 0; j < 16; ++j) {
    const i32 low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
    const i32 high = s[8 + j % 4] >> (2 * (j / 4)) & 3;
    const f32 scale = d * real((low | high << 4) - 32);
    const TwoBits q = two_bits(b + 32, j);
    const u8* mask = b + 16 * (j % 2);
    for (u32 k = 0; k < 16; ++k) {
      const i32 third = (mask[k] >> (j / 2) & 1) << 2;
      out[16 * j + k] = scale * real((q[k] | third) - 4);
    }
  }
}

void tq2_0(const u8* b, f32* __restrict out) {
  const f32 d = load_f16(b + 64);
  for (u32 j = 0; j < 16; ++j) {
    const TwoBits q = two_bits(b, j);
    for (u32 k = 0; k < 16; ++k) out[16 * j + k] = d * real(q[k] - 1);
  }
}

void q1_0(const u8* b, f32* __restrict out) {
  const f32 d = load_f16(b);
  for (u32 i = 0; i < 128; ++i) out[i] = (b[2 + i / 8] >> (i % 8) & 1) != 0 ? d : -d;
}

void q2_0(const u8* b, f32* __restrict out) {
  const f32 d = load_f16(b);
  for (u32 i = 0; i < 64; ++i) out[i] = d * real((b[2 + i / 4] >> (2 * (i % 4)) & 3) - 1);
}

// Null for a type that has no f32 values here.
DecodeBlocks decoder(DType type) {
  switch (type) {
    case DType::kF32:
      return decode_blocks<1, 4, float32>;
    case DType::kF64:
      return decode_blocks<1, 8, float64>;
    case DType::kF16:
      return decode_blocks<1, 2, float16>;
    case DType::kBF16:
      return decode_blocks<1, 2, bfloat16>;
    case DType::kQ4_0:
      return decode_blocks<32, 18, q4_0>;
    case DType::kQ4_1:
      return decode_blocks<32, 20, q4_1>;
    case DType::kQ5_0:
      return decode_blocks<32, 22, q5_0>;
    case DType::kQ5_1:
      return decode_blocks<32, 24, q5_1>;
    case DType::kQ8_0:
      return decode_blocks<32, 34, q8_0>;
    case DType::kQ8_1:
      return decode_blocks<32, 36, q8_1>;
    case DType::kQ2_K:
      return decode_blocks<256, 84, q2_k>;
    case DType::kQ3_K:
      return decode_blocks<256, 110, q3_k>;
    case DType::kQ4_K:
      return decode_blocks<256, 144, q45_k<false>>;
    case DType::kQ5_K:
      return decode_blocks<256, 176, q45_k<true>>;
    case DType::kQ6_K:
      return decode_blocks<256, 210, q6_k>;
    case DType::kQ8_K:
      return decode_blocks<256, 292, q8_k>;
    case DType::kIQ4_NL:
      return decode_blocks<32, 18, iq4_nl>;
    case DType::kIQ4_XS:
      return decode_blocks<256, 136, iq4_xs>;
    case DType::kTQ2_0:
      return decode_blocks<256, 66, tq2_0>;
    case DType::kMXFP4:
      return decode_blocks<32, 17, mxfp4>;
    case DType::kNVFP4:
      return decode_blocks<64, 36, nvfp4>;
    case DType::kQ1_0:
      return decode_blocks<128, 18, q1_0>;
    case DType::kQ2_0:
      return decode_blocks<64, 18, q2_0>;
    default:
      return nullptr;
  }
}

void dequantize_lattice(DecodeLattice decode, u32 block_bytes, const u8* blocks, std::span<f32> out) {
  LatticeBlock block;
  for (; !out.empty(); out = out.subspan(block.values.size()), blocks += block_bytes) {
    decode(blocks, block);
    for (std::size_t i = 0; i < block.values.size(); ++i)
      out[i] = block.d * real(block.scales[i / 16]) * real(block.values[i]);
  }
}

}  // namespace

bool can_dequantize(DType type) { return decoder(type) != nullptr || lattice_decoder(type) != nullptr; }

void dequantize(DType type, Bytes blocks, std::span<f32> out) {
  const DTypeInfo& info = dtype_info(type);
  CHECK(out.size() % info.block_elements == 0);
  const std::size_t count = out.size() / info.block_elements;
  CHECK(blocks.size() == count * info.block_bytes);
  const u8* bytes = reinterpret_cast<const u8*>(blocks.data());
  if (const DecodeLattice lattice = lattice_decoder(type))
    return dequantize_lattice(lattice, info.block_bytes, bytes, out);
  const DecodeBlocks decode = decoder(type);
  CHECK(decode != nullptr);
  decode(bytes, count, out.data());
}

}  // namespace bezel
