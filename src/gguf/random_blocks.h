// Fills tensors of any quantisable type with about normally distributed weights, at the speed of copying.
#pragma once
#include <vector>

#include "base/random.h"
#include "base/types.h"
#include "gguf/dtype.h"

namespace bezel {

// Quantises a pool of blocks once, which takes a while (up to 0.1 s): keep one object for all tensors of a
// type and deviation. The same seed gives the same bytes on every platform.
class RandomBlocks {
 public:
  RandomBlocks(DType type, f32 standard_deviation, u64 seed);

  // `out` holds whole blocks. Successive calls give different blocks.
  void fill(MutableBytes out);

 private:
  Random random_;
  u32 block_bytes_;
  std::size_t run_bytes_;  // what is copied at once: small blocks would be too slow one by one
  u32 starts_;             // blocks of the pool at which a whole run may start
  std::vector<std::byte> pool_;
};

}  // namespace bezel
