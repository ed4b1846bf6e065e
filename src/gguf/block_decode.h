// What those who decode blocks share: reading fields, and running over blocks.
#pragma once
#include <bit>
#include <cstring>

#include "base/types.h"
#include "gguf/dtype.h"
#include "gguf/quant.h"

namespace bezel {

static_assert(std::endian::native == std::endian::little, "Blocks are read as they lie in the file.");

template <class T>
T load(const u8* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

inline f32 load_f16(const u8* bytes) { return f16_to_f32(load<u16>(bytes)); }
inline f32 real(i32 value) { return static_cast<f32>(value); }

using DecodeBlocks = void (*)(const u8* blocks, std::size_t count, f32* out);

// Decode is void(const u8* block, f32* out); being a constant it is inlined into the loop.
template <u32 kElements, u32 kBytes, auto Decode>
void decode_blocks(const u8* blocks, std::size_t count, f32* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) Decode(blocks + i * kBytes, out + i * kElements);
}

// The levels of IQ4_NL and IQ4_XS.
inline constexpr i8 kNonlinear4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace bezel
