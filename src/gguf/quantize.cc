// Quantisation: scales by weighted least squares over a few candidates, then the best neighbour among the
// scales that the format can store.
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "gguf/quant.h"

// Every platform must give the same bits.
#pragma clang fp contract(off)

namespace bezel {
namespace {

constexpr f32 kMaxHalf = 65504;
constexpr u16 kMaxHalfBits = 0x7BFF;

template <class T>
void store(u8* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

// The nearest integer within [low, high]. Clamped first: the conversion is undefined for what does not fit.
i32 level(f32 x, f32 low, f32 high) {
  x = x < low ? low : x;
  x = x < high ? x : high;
  return static_cast<i32>(x + (x < 0 ? -0.5F : 0.5F));
}

f32 real(i32 value) { return static_cast<f32>(value); }
f32 inverse(f32 x) { return x == 0 ? 0 : 1 / x; }

// A block's values made harmless: no NaN, nothing beyond what the type can hold, so no sum below overflows.
template <u32 kCount>
std::array<f32, kCount> cleaned(const f32* values, f32 limit) {
  std::array<f32, kCount> x;
  for (u32 i = 0; i < kCount; ++i) {
    const f32 above = values[i] > -limit ? values[i] : -limit;
    const f32 within = above < limit ? above : limit;
    x[i] = values[i] == values[i] ? within : 0;
  }
  return x;
}

// Large weights matter more to a product than small ones, but small ones are many.
template <u32 kCount>
std::array<f32, kCount> importance(const f32* x) {
  f32 squares = 0;
  for (u32 i = 0; i < kCount; ++i) squares += x[i] * x[i];
  const f32 base = std::sqrt(squares / kCount);
  std::array<f32, kCount> w;
  for (u32 i = 0; i < kCount; ++i) w[i] = base + std::fabs(x[i]);
  return w;
}

// The value of largest magnitude. The magnitude has a variable of its own because clang 19 drops the outer
// fabs of fabs(fabs(x) > 0 ? x : 0).
template <u32 kCount>
f32 largest(const f32* x) {
  f32 found = 0;
  f32 magnitude = 0;
  for (u32 i = 0; i < kCount; ++i) {
    if (std::fabs(x[i]) <= magnitude) continue;
    magnitude = std::fabs(x[i]);
    found = x[i];
  }
  return found;
}

// The least half whose `steps` steps (and half of one) reach `reach`: near the smallest halves rounding to
// nearest could fall far short.
u16 half_step_for(f32 reach, f32 steps) {
  const f32 wanted = reach / steps;
  if (wanted >= kMaxHalf) return kMaxHalfBits;
  const u16 bits = f32_to_f16(wanted);
  return f16_to_f32(bits) * (steps + 0.5F) < reach ? static_cast<u16>(bits + 1) : bits;
}

// --- Types without a minimum: x = scale * q with q in [-kHigh-1, kHigh].

template <u32 kCount, i32 kHigh>
struct Signed {
  const f32* x;
  std::array<f32, kCount> w = importance<kCount>(x);

  static i32 quantum(f32 x, f32 inverse_scale) { return level(x * inverse_scale, -kHigh - 1, kHigh); }

  f32 error(f32 scale) const {
    const f32 inverse_scale = inverse(scale);
    f32 sum = 0;
    for (u32 i = 0; i < kCount; ++i) {
      const f32 difference = x[i] - scale * real(quantum(x[i], inverse_scale));
      sum += w[i] * difference * difference;
    }
    return sum;
  }

  f32 least_squares(f32 inverse_scale) const {
    f32 xq = 0;
    f32 qq = 0;
    for (u32 i = 0; i < kCount; ++i) {
      const f32 q = real(quantum(x[i], inverse_scale));
      xq += w[i] * x[i] * q;
      qq += w[i] * q * q;
    }
    return qq > 0 ? xq / qq : 0;
  }

  // Tries to put the value of largest magnitude on or near either end of the levels.
  f32 best_scale() const {
    const f32 extreme = largest<kCount>(x);
    if (extreme == 0) return 0;
    f32 best = extreme / -(kHigh + 1);
    f32 best_error = error(best);
    auto consider = [&](f32 end) {
      const f32 scale = least_squares(end / extreme);
      const f32 e = error(scale);
      if (e < best_error) {
        best = scale;
        best_error = e;
      }
    };
    for (i32 k = -4; k <= 4; ++k) consider(-(kHigh + 1) + 0.25F * real(k));
    consider(kHigh);
    return best;
  }

  // Of the halves next to `scale` the one with the least error.
  u16 best_half(f32 scale) const {
    const f32 magnitude = std::fabs(scale);
    const u16 sign = scale < 0 ? 0x8000 : 0;
    const u16 nearest = magnitude < kMaxHalf ? f32_to_f16(magnitude) : kMaxHalfBits;
    u16 best = sign | nearest;
    f32 best_error = error(f16_to_f32(best));
    auto consider = [&](u16 candidate) {
      const f32 e = error(f16_to_f32(sign | candidate));
      if (e < best_error) {
        best = sign | candidate;
        best_error = e;
      }
    };
    if (nearest > 0) consider(static_cast<u16>(nearest - 1));
    if (nearest < kMaxHalfBits) consider(static_cast<u16>(nearest + 1));
    return best;
  }
};

void q8_0(const f32* values, u8* b) {
  const auto x = cleaned<32>(values, kMaxHalf * 127);
  const u16 d = half_step_for(std::fabs(largest<32>(x.data())), 127);
  const f32 inverse_d = inverse(f16_to_f32(d));
  store(b, d);
  for (u32 i = 0; i < 32; ++i) b[2 + i] = static_cast<u8>(level(x[i] * inverse_d, -127, 127));
}

void q4_0(const f32* values, u8* b) {
  const auto x = cleaned<32>(values, kMaxHalf * 8);
  const Signed<32, 7> block{x.data()};
  const u16 d = block.best_half(block.best_scale());
  const f32 inverse_d = inverse(f16_to_f32(d));
  store(b, d);
  for (u32 k = 0; k < 16; ++k) {
    const i32 low = block.quantum(x[k], inverse_d) + 8;
    const i32 high = block.quantum(x[k + 16], inverse_d) + 8;
    b[2 + k] = static_cast<u8>(low | high << 4);
  }
}

void q5_0(const f32* values, u8* b) {
  const auto x = cleaned<32>(values, kMaxHalf * 16);
  const Signed<32, 15> block{x.data()};
  const u16 d = block.best_half(block.best_scale());
  const f32 inverse_d = inverse(f16_to_f32(d));
  u32 fifth = 0;
  for (u32 k = 0; k < 16; ++k) {
    const i32 low = block.quantum(x[k], inverse_d) + 16;
    const i32 high = block.quantum(x[k + 16], inverse_d) + 16;
    b[6 + k] = static_cast<u8>((low & 15) | (high & 15) << 4);
    fifth |= static_cast<u32>(low >> 4) << k | static_cast<u32>(high >> 4) << (k + 16);
  }
  store(b, d);
  store(b + 2, fifth);
}

void q6_k(const f32* values, u8* b) {
  using Sub = Signed<16, 31>;
  const auto x = cleaned<256>(values, kMaxHalf * 127 * 31);
  std::array<f32, 16> scales;
  for (u32 j = 0; j < 16; ++j) scales[j] = Sub{x.data() + 16 * j}.best_scale();
  const u16 d_bits = half_step_for(std::fabs(largest<16>(scales.data())), 127);
  const f32 d = f16_to_f32(d_bits);
  const f32 inverse_d = inverse(d);

  std::memset(b, 0, 192);
  store(b + 208, d_bits);
  for (u32 j = 0; j < 16; ++j) {
    const Sub sub{x.data() + 16 * j};
    const i32 nearest = level(scales[j] * inverse_d, -127, 127);
    i32 best = nearest;
    f32 best_error = sub.error(d * real(nearest));
    for (const i32 candidate : {nearest - 1, nearest + 1}) {
      if (candidate > 127) continue;
      const f32 e = sub.error(d * real(candidate));
      if (e < best_error) {
        best = candidate;
        best_error = e;
      }
    }
    b[192 + j] = static_cast<u8>(best);

    const u32 h = j / 8;
    const u32 g = j % 8 / 2;
    const u32 l = 16 * (j % 2);
    u8* low = b + 64 * h + 32 * (g & 1U) + l;
    u8* high = b + 128 + 32 * h + l;
    const f32 inverse_scale = inverse(d * real(best));
    for (u32 k = 0; k < 16; ++k) {
      const i32 n = Sub::quantum(sub.x[k], inverse_scale) + 32;
      low[k] |= static_cast<u8>((n & 15) << (g < 2 ? 0 : 4));
      high[k] |= static_cast<u8>((n >> 4) << (2 * g));
    }
  }
}

// --- Q4_K: x = scale * n - min with n in [0, 15], neither scale nor min negative.

struct Affine {
  f32 scale;
  f32 min;
};

struct Unsigned32 {
  const f32* x;
  std::array<f32, 32> w = importance<32>(x);

  static i32 quantum(f32 x, f32 min, f32 inverse_scale) { return level((x + min) * inverse_scale, 0, 15); }

  f32 error(Affine a) const {
    const f32 inverse_scale = inverse(a.scale);
    f32 sum = 0;
    for (u32 i = 0; i < 32; ++i) {
      const f32 difference = x[i] - (a.scale * real(quantum(x[i], a.min, inverse_scale)) - a.min);
      sum += w[i] * difference * difference;
    }
    return sum;
  }

  Affine least_squares(f32 min, f32 inverse_scale) const {
    f32 sw = 0;
    f32 sx = 0;
    f32 sn = 0;
    f32 sxn = 0;
    f32 snn = 0;
    for (u32 i = 0; i < 32; ++i) {
      const f32 n = real(quantum(x[i], min, inverse_scale));
      sw += w[i];
      sx += w[i] * x[i];
      sn += w[i] * n;
      sxn += w[i] * x[i] * n;
      snn += w[i] * n * n;
    }
    const f32 determinant = sw * snn - sn * sn;
    if (determinant > 0) {
      const Affine a = {(sw * sxn - sx * sn) / determinant, (sn * sxn - snn * sx) / determinant};
      if (a.scale >= 0 && a.min >= 0) return a;
    }
    return {snn > 0 && sxn > 0 ? sxn / snn : 0, 0};
  }

  Affine best() const {
    f32 low = 0;
    f32 high = x[0];
    for (u32 i = 0; i < 32; ++i) {
      low = x[i] < low ? x[i] : low;
      high = x[i] > high ? x[i] : high;
    }
    Affine best = {(high - low) / 15, -low};
    if (high <= low) return best;
    f32 best_error = error(best);
    for (i32 k = -4; k <= 4; ++k) {
      const Affine a = least_squares(-low, (15 + 0.25F * real(k)) / (high - low));
      const f32 e = error(a);
      if (e < best_error) {
        best = a;
        best_error = e;
      }
    }
    return best;
  }
};

struct ScaleMin {
  i32 scale;
  i32 min;
};

// Of the stored pairs next to `wanted` the one with the least error.
ScaleMin best_pair(const Unsigned32& sub, Affine wanted, Affine unit) {
  const ScaleMin nearest = {level(wanted.scale * inverse(unit.scale), 0, 63),
                            level(wanted.min * inverse(unit.min), 0, 63)};
  auto error = [&](ScaleMin pair) {
    return sub.error({unit.scale * real(pair.scale), unit.min * real(pair.min)});
  };
  ScaleMin best = nearest;
  f32 best_error = error(nearest);
  for (i32 scale = nearest.scale - 1; scale <= nearest.scale + 1; ++scale) {
    for (i32 min = nearest.min - 1; min <= nearest.min + 1; ++min) {
      if (scale < 0 || scale > 63 || min < 0 || min > 63) continue;
      const f32 e = error({scale, min});
      if (e < best_error) {
        best = {scale, min};
        best_error = e;
      }
    }
  }
  return best;
}

void q4_k(const f32* values, u8* b) {
  const auto x = cleaned<256>(values, kMaxHalf * 63);
  std::array<Affine, 8> wanted;
  Affine most = {0, 0};
  for (u32 j = 0; j < 8; ++j) {
    wanted[j] = Unsigned32{x.data() + 32 * j}.best();
    most.scale = std::fmax(most.scale, wanted[j].scale);
    most.min = std::fmax(most.min, wanted[j].min);
  }
  const u16 d = half_step_for(most.scale, 63);
  const u16 dmin = half_step_for(most.min, 63);
  const Affine unit = {f16_to_f32(d), f16_to_f32(dmin)};

  std::memset(b, 0, 144);
  store(b, d);
  store(b + 2, dmin);
  u8* s = b + 4;
  for (u32 j = 0; j < 8; ++j) {
    const Unsigned32 sub{x.data() + 32 * j};
    const ScaleMin pair = best_pair(sub, wanted[j], unit);
    if (j < 4) {
      s[j] |= static_cast<u8>(pair.scale);
      s[j + 4] |= static_cast<u8>(pair.min);
    } else {
      s[j + 4] = static_cast<u8>((pair.scale & 15) | (pair.min & 15) << 4);
      s[j - 4] |= static_cast<u8>((pair.scale >> 4) << 6);
      s[j] |= static_cast<u8>((pair.min >> 4) << 6);
    }
    u8* q = b + 16 + 32 * (j / 2);
    const f32 min = unit.min * real(pair.min);
    const f32 inverse_scale = inverse(unit.scale * real(pair.scale));
    for (u32 l = 0; l < 32; ++l) {
      q[l] |= static_cast<u8>(Unsigned32::quantum(sub.x[l], min, inverse_scale) << (4 * (j % 2)));
    }
  }
}

void float32(const f32* value, u8* b) { store(b, *value); }
void float16(const f32* value, u8* b) { store(b, f32_to_f16(*value)); }
void bfloat16(const f32* value, u8* b) { store(b, f32_to_bf16(*value)); }

using EncodeBlock = void (*)(const f32* values, u8* block);

EncodeBlock encoder(DType type) {
  switch (type) {
    case DType::kF32:
      return float32;
    case DType::kF16:
      return float16;
    case DType::kBF16:
      return bfloat16;
    case DType::kQ8_0:
      return q8_0;
    case DType::kQ4_0:
      return q4_0;
    case DType::kQ5_0:
      return q5_0;
    case DType::kQ4_K:
      return q4_k;
    case DType::kQ6_K:
      return q6_k;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_quantize(DType type) { return encoder(type) != nullptr; }

void quantize(DType type, std::span<const f32> values, MutableBytes blocks) {
  const DTypeInfo& info = dtype_info(type);
  const EncodeBlock encode = encoder(type);
  CHECK(encode != nullptr);
  CHECK(values.size() % info.block_elements == 0);
  const std::size_t count = values.size() / info.block_elements;
  CHECK(blocks.size() == count * info.block_bytes);
  auto* out = reinterpret_cast<u8*>(blocks.data());
  for (std::size_t i = 0; i < count; ++i) {
    encode(values.data() + i * info.block_elements, out + i * info.block_bytes);
  }
}

}  // namespace bezel
