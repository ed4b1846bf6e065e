// A file of random weights in the making: tensors are declared with what they hold, then written as a stream.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/types.h"
#include "gguf/random_blocks.h"
#include "gguf/writer.h"

namespace bezel {

// The type of a tower's matrices: F16 where `type` is one that nobody uses for towers.
DType tower_type(DType type);

class SynthFile {
 public:
  explicit SynthFile(u64 seed) : seed_(seed) {}

  GgufWriter& writer() { return writer_; }
  const GgufWriter& writer() const { return writer_; }

  // Random blocks of the standard deviation `sd`, in the type that llama.cpp falls back to where a row is no
  // multiple of the block.
  void matrix(const std::string& name, DType type, std::vector<u64> ne, f32 sd);
  // A matrix whose products have the size of what it multiplies; the first `inputs` dimensions are its
  // columns.
  void linear(const std::string& name, DType type, std::vector<u64> ne, u32 inputs = 1);
  // Norm weights and the like: within 20 % of `centre`.
  void vector(const std::string& name, u32 count, f32 centre);
  void constant(const std::string& name, std::vector<f32> values);
  // A tower's "<name>.weight" with the four bounds of a clipped linear.
  void clamped(const std::string& name, DType type, u32 in, u32 out);

  Status write(const std::string& path, const std::function<bool(u64, u64)>& progress);

 private:
  // What a tensor holds: these values, or random blocks of this standard deviation.
  struct Content {
    std::vector<f32> values;
    f32 deviation = 0;
  };
  void fill(DType type, const Content& content, MutableBytes out);

  u64 seed_;
  Random random_{seed_};
  GgufWriter writer_;
  std::map<std::pair<DType, f32>, RandomBlocks> pools_;
  std::vector<Content> contents_;  // by tensor
};

}  // namespace bezel
