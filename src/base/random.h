// A small generator of pseudo-random numbers that gives the same sequence on every platform.
#pragma once
#include "base/types.h"

namespace bezel {

// SplitMix64: a counter and a mixing function, so any seed is a good seed. Not for secrets.
class Random {
 public:
  explicit Random(u64 seed) : state_(seed) {}

  u64 next() {
    state_ += 0x9E3779B97F4A7C15;
    u64 z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  // In [0, 1), with all 53 bits.
  f64 uniform() { return static_cast<f64>(next() >> 11) * 0x1p-53; }

  // In [0, count), for count > 0; the bias is below count / 2^32.
  u32 below(u32 count) { return static_cast<u32>((next() >> 32) * count >> 32); }

  // About N(0, 1): the sum of twelve 16-bit uniforms, exact and without libm; never beyond 6.
  f32 normal() {
    i32 sum = 0;
    for (int word = 0; word < 3; ++word) {
      const u64 bits = next();
      for (int shift = 0; shift < 64; shift += 16) sum += static_cast<i32>(bits >> shift & 0xFFFF);
    }
    return static_cast<f32>(sum - 6 * 0xFFFF) * 0x1p-16F;
  }

 private:
  u64 state_;
};

}  // namespace bezel
