// The lattice types, IQ1 to IQ3: a code word picks a row of a grid, sign bits and scales do the rest. What
// comes out are small integers, each one of few, and a scale for every sixteen.
#pragma once
#include <array>

#include "base/types.h"
#include "gguf/dtype.h"

namespace bezel {

struct LatticeBlock {
  f32 d = 0;
  std::array<i8, 16> scales;   // of each sixteen weights, odd, from 1 to 31
  std::array<i8, 256> values;  // a weight is d * scale * value, without rounding
};

// Null for a type that is not one of them. All have blocks of 256.
using DecodeLattice = void (*)(const u8* block, LatticeBlock& out);
DecodeLattice lattice_decoder(DType type);

// The values that weights of such a type have. The last ones repeat where there are fewer.
std::array<i8, 16> lattice_levels(DType type);

}  // namespace bezel
