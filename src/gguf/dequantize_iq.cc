// The lattice types: a code word picks a row of a grid, sign bits and scales do the rest.
#include <bit>

#include "gguf/block_decode.h"
#include "gguf/iq_grids.h"

// Every platform must give the same bits.
#pragma clang fp contract(off)

namespace bezel {
namespace {

// The eighth sign is not stored: it makes the number of minuses even.
u32 eight_signs(u32 seven) {
  seven &= 127U;
  return seven | (static_cast<u32>(std::popcount(seven)) & 1U) << 7;
}

// IQ3 takes its eight values from two rows of four, hence the two pointers.
void put_signed(const i8* low, const i8* high, u32 signs, f32 scale, f32* __restrict out) {
  for (u32 j = 0; j < 4; ++j) {
    out[j] = scale * real((signs >> j & 1U) != 0 ? -low[j] : low[j]);
    out[j + 4] = scale * real((signs >> (j + 4) & 1U) != 0 ? -high[j] : high[j]);
  }
}

void put_signed(const std::array<i8, 8>& row, u32 signs, f32 scale, f32* out) {
  put_signed(row.data(), row.data() + 4, signs, scale, out);
}

void put_shifted(const std::array<i8, 8>& row, f32 shift, f32 scale, f32* __restrict out) {
  for (u32 j = 0; j < 8; ++j) out[j] = scale * (real(row[j]) + shift);
}

f32 half_step(u32 scale) { return 0.5F + static_cast<f32>(scale); }
f32 odd(u32 scale) { return static_cast<f32>(2 * scale + 1); }

void iq2_xxs(const u8* b, f32* out) {
  const auto& grid = iq_grids().iq2xxs;
  const f32 d = load_f16(b);
  for (u32 g = 0; g < 8; ++g) {
    const u8* codes = b + 2 + 8 * g;
    const u32 word = load<u32>(codes + 4);
    const f32 scale = d * half_step(word >> 28) * 0.25F;
    for (u32 l = 0; l < 4; ++l) {
      put_signed(grid[codes[l]], eight_signs(word >> (7 * l)), scale, out + 32 * g + 8 * l);
    }
  }
}

void iq2_xs(const u8* b, f32* out) {
  const auto& grid = iq_grids().iq2xs;
  const f32 d = load_f16(b);
  for (u32 k = 0; k < 32; ++k) {
    const u32 code = load<u16>(b + 2 + 2 * k);
    const u32 s = b[66 + k / 4] >> (4 * (k % 4 / 2)) & 15U;
    put_signed(grid[code & 511U], eight_signs(code >> 9), d * half_step(s) * 0.25F, out + 8 * k);
  }
}

void iq2_s(const u8* b, f32* out) {
  const auto& grid = iq_grids().iq2s;
  const f32 d = load_f16(b);
  for (u32 k = 0; k < 32; ++k) {
    const u32 g = k / 4;
    const u32 l = k % 4;
    const u32 code = b[2 + k] | (b[66 + g] >> (2 * l) & 3U) << 8;
    const u32 s = b[74 + g] >> (4 * (l / 2)) & 15U;
    put_signed(grid[code], b[34 + k], d * half_step(s) * 0.25F, out + 8 * k);
  }
}

void iq3_xxs(const u8* b, f32* out) {
  const auto& grid = iq_grids().iq3xxs;
  const f32 d = load_f16(b);
  for (u32 g = 0; g < 8; ++g) {
    const u8* codes = b + 2 + 8 * g;
    const u32 word = load<u32>(b + 66 + 4 * g);
    const f32 scale = d * half_step(word >> 28) * 0.5F;
    for (u32 l = 0; l < 4; ++l) {
      put_signed(grid[codes[2 * l]].data(), grid[codes[2 * l + 1]].data(), eight_signs(word >> (7 * l)),
                 scale, out + 32 * g + 8 * l);
    }
  }
}

void iq3_s(const u8* b, f32* out) {
  const auto& grid = iq_grids().iq3s;
  const f32 d = load_f16(b);
  for (u32 g = 0; g < 8; ++g) {
    const u32 high = b[66 + g];
    const f32 scale = d * odd(b[106 + g / 2] >> (4 * (g % 2)) & 15U);
    auto row = [&](u32 k) { return grid[b[2 + 8 * g + k] | (high >> k & 1U) << 8].data(); };
    for (u32 l = 0; l < 4; ++l) {
      put_signed(row(2 * l), row(2 * l + 1), b[74 + 4 * g + l], scale, out + 32 * g + 8 * l);
    }
  }
}

void iq1_s(const u8* b, f32* out) {
  const auto& grid = iq_grids().iq1s;
  const f32 d = load_f16(b);
  for (u32 g = 0; g < 8; ++g) {
    const u32 high = load<u16>(b + 34 + 2 * g);
    const f32 scale = d * odd(high >> 12 & 7U);
    const f32 shift = (high & 0x8000U) != 0 ? -0.125F : 0.125F;
    for (u32 l = 0; l < 4; ++l) {
      const u32 code = b[2 + 4 * g + l] | (high >> (3 * l) & 7U) << 8;
      put_shifted(grid[code], shift, scale, out + 32 * g + 8 * l);
    }
  }
}

void iq1_m(const u8* b, f32* out) {
  const auto& grid = iq_grids().iq1s;
  // The super-block's scale is spread over the top nibbles of the four scale words.
  u32 d_bits = 0;
  for (u32 c = 0; c < 4; ++c) d_bits |= static_cast<u32>(load<u16>(b + 48 + 2 * c) >> 12) << (4 * c);
  const f32 d = f16_to_f32(static_cast<u16>(d_bits));
  for (u32 k = 0; k < 32; ++k) {
    const u32 g = k / 4;
    const u32 l = k % 4;
    const u32 high = b[32 + k / 2] >> (4 * (l % 2));
    const u32 s = load<u16>(b + 48 + 2 * (g / 2)) >> (6 * (g % 2) + 3 * (l / 2)) & 7U;
    const f32 shift = (high & 8U) != 0 ? -0.125F : 0.125F;
    put_shifted(grid[b[k] | (high & 7U) << 8], shift, d * odd(s), out + 8 * k);
  }
}

}  // namespace

DecodeBlocks lattice_decoder(DType type) {
  switch (type) {
    case DType::kIQ2_XXS:
      return decode_blocks<256, 66, iq2_xxs>;
    case DType::kIQ2_XS:
      return decode_blocks<256, 74, iq2_xs>;
    case DType::kIQ2_S:
      return decode_blocks<256, 82, iq2_s>;
    case DType::kIQ3_XXS:
      return decode_blocks<256, 98, iq3_xxs>;
    case DType::kIQ3_S:
      return decode_blocks<256, 110, iq3_s>;
    case DType::kIQ1_S:
      return decode_blocks<256, 50, iq1_s>;
    case DType::kIQ1_M:
      return decode_blocks<256, 56, iq1_m>;
    default:
      return nullptr;
  }
}

}  // namespace bezel
