#include "gguf/lattice.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "gguf/block_decode.h"
#include "gguf/iq_grids.h"
#include "gguf/iq_grids_data.h"

namespace bezel {
namespace {

// The eighth sign is not stored: it makes the number of minuses even.
u32 eight_signs(u32 seven) {
  seven &= 127U;
  return seven | (static_cast<u32>(std::popcount(seven)) & 1U) << 7;
}

i8 odd(u32 scale) { return static_cast<i8>(2 * scale + 1); }

// The k-th eight values of a block. IQ3 takes them from two rows of four, hence the two pointers.
void put_signed(const i8* low, const i8* high, u32 signs, u32 k, LatticeBlock& out) {
  for (u32 j = 0; j < 8; ++j) {
    const i8 value = j < 4 ? low[j] : high[j - 4];
    out.values[8 * k + j] = static_cast<i8>((signs >> j & 1U) != 0 ? -value : value);
  }
}

void put_signed(const std::array<i8, 8>& row, u32 signs, u32 k, LatticeBlock& out) {
  put_signed(row.data(), row.data() + 4, signs, k, out);
}

// Of IQ1 every weight lies an eighth above a number of the grid, or below: in eighths.
constexpr f32 kEighth = 0.125F;
void put_shifted(const std::array<i8, 8>& row, bool below, u32 k, LatticeBlock& out) {
  for (u32 j = 0; j < 8; ++j) out.values[8 * k + j] = static_cast<i8>(8 * row[j] + (below ? -1 : 1));
}

void iq2_xxs(const u8* b, LatticeBlock& out) {
  const auto& grid = iq_grids().iq2xxs;
  out.d = load_f16(b) * kEighth;
  for (u32 g = 0; g < 8; ++g) {
    const u8* codes = b + 2 + 8 * g;
    const u32 word = load<u32>(codes + 4);
    out.scales[2 * g] = out.scales[2 * g + 1] = odd(word >> 28);
    for (u32 l = 0; l < 4; ++l) put_signed(grid[codes[l]], eight_signs(word >> (7 * l)), 4 * g + l, out);
  }
}

void iq2_xs(const u8* b, LatticeBlock& out) {
  const auto& grid = iq_grids().iq2xs;
  out.d = load_f16(b) * kEighth;
  for (u32 k = 0; k < 32; ++k) {
    const u32 code = load<u16>(b + 2 + 2 * k);
    out.scales[k / 2] = odd(b[66 + k / 4] >> (4 * (k % 4 / 2)) & 15U);
    put_signed(grid[code & 511U], eight_signs(code >> 9), k, out);
  }
}

void iq2_s(const u8* b, LatticeBlock& out) {
  const auto& grid = iq_grids().iq2s;
  out.d = load_f16(b) * kEighth;
  for (u32 k = 0; k < 32; ++k) {
    const u32 g = k / 4;
    const u32 l = k % 4;
    const u32 code = b[2 + k] | (b[66 + g] >> (2 * l) & 3U) << 8;
    out.scales[k / 2] = odd(b[74 + g] >> (4 * (l / 2)) & 15U);
    put_signed(grid[code], b[34 + k], k, out);
  }
}

void iq3_xxs(const u8* b, LatticeBlock& out) {
  const auto& grid = iq_grids().iq3xxs;
  out.d = load_f16(b) * 0.25F;
  for (u32 g = 0; g < 8; ++g) {
    const u8* codes = b + 2 + 8 * g;
    const u32 word = load<u32>(b + 66 + 4 * g);
    out.scales[2 * g] = out.scales[2 * g + 1] = odd(word >> 28);
    for (u32 l = 0; l < 4; ++l) {
      put_signed(grid[codes[2 * l]].data(), grid[codes[2 * l + 1]].data(), eight_signs(word >> (7 * l)),
                 4 * g + l, out);
    }
  }
}

void iq3_s(const u8* b, LatticeBlock& out) {
  const auto& grid = iq_grids().iq3s;
  out.d = load_f16(b);
  for (u32 g = 0; g < 8; ++g) {
    const u32 high = b[66 + g];
    out.scales[2 * g] = out.scales[2 * g + 1] = odd(b[106 + g / 2] >> (4 * (g % 2)) & 15U);
    auto row = [&](u32 k) { return grid[b[2 + 8 * g + k] | (high >> k & 1U) << 8].data(); };
    for (u32 l = 0; l < 4; ++l) put_signed(row(2 * l), row(2 * l + 1), b[74 + 4 * g + l], 4 * g + l, out);
  }
}

void iq1_s(const u8* b, LatticeBlock& out) {
  const auto& grid = iq_grids().iq1s;
  out.d = load_f16(b) * kEighth;
  for (u32 g = 0; g < 8; ++g) {
    const u32 high = load<u16>(b + 34 + 2 * g);
    out.scales[2 * g] = out.scales[2 * g + 1] = odd(high >> 12 & 7U);
    for (u32 l = 0; l < 4; ++l) {
      const u32 code = b[2 + 4 * g + l] | (high >> (3 * l) & 7U) << 8;
      put_shifted(grid[code], (high & 0x8000U) != 0, 4 * g + l, out);
    }
  }
}

void iq1_m(const u8* b, LatticeBlock& out) {
  const auto& grid = iq_grids().iq1s;
  // The super-block's scale is spread over the top nibbles of the four scale words.
  u32 d_bits = 0;
  for (u32 c = 0; c < 4; ++c) d_bits |= static_cast<u32>(load<u16>(b + 48 + 2 * c) >> 12) << (4 * c);
  out.d = f16_to_f32(static_cast<u16>(d_bits)) * kEighth;
  for (u32 k = 0; k < 32; ++k) {
    const u32 g = k / 4;
    const u32 l = k % 4;
    const u32 high = b[32 + k / 2] >> (4 * (l % 2));
    out.scales[k / 2] = odd(load<u16>(b + 48 + 2 * (g / 2)) >> (6 * (g % 2) + 3 * (l / 2)) & 7U);
    put_shifted(grid[b[k] | (high & 7U) << 8], (high & 8U) != 0, k, out);
  }
}

}  // namespace

DecodeLattice lattice_decoder(DType type) {
  switch (type) {
    case DType::kIQ2_XXS:
      return iq2_xxs;
    case DType::kIQ2_XS:
      return iq2_xs;
    case DType::kIQ2_S:
      return iq2_s;
    case DType::kIQ3_XXS:
      return iq3_xxs;
    case DType::kIQ3_S:
      return iq3_s;
    case DType::kIQ1_S:
      return iq1_s;
    case DType::kIQ1_M:
      return iq1_m;
    default:
      return nullptr;
  }
}

std::array<i8, 16> lattice_levels(DType type) {
  const auto both_signs = [](const auto& sizes) {
    std::array<i8, 16> out;
    for (std::size_t i = 0; i < 8; ++i) {
      out[i] = sizes[std::min(i, sizes.size() - 1)];
      out[i + 8] = static_cast<i8>(-out[i]);
    }
    return out;
  };
  switch (type) {
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
      return both_signs(kIq2XxsValues);
    case DType::kIQ3_XXS:
      return both_signs(kIq3XxsValues);
    case DType::kIQ3_S:
      return both_signs(kIq3SValues);
    default:
      CHECK(type == DType::kIQ1_S || type == DType::kIQ1_M);
      return both_signs(std::array<i8, 3>{1, 7, 9});  // -1, 0 and 1, more or less an eighth, in eighths
  }
}

}  // namespace bezel
