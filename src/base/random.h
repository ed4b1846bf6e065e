// Random numbers that are the same on every platform for the same seed: xoshiro256**, seeded by splitmix64.
#pragma once
#include <bit>

#include "base/types.h"

namespace bezel {

class Random {
 public:
  explicit Random(u64 seed) {
    for (u64& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      u64 z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }

  u64 next() {
    const u64 result = std::rotl(state_[1] * 5, 7) * 9;
    const u64 t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // In [0, 1), all 53 bits random.
  f64 uniform() { return static_cast<f64>(next() >> 11) * 0x1p-53; }

 private:
  u64 state_[4];
};

}  // namespace bezel
