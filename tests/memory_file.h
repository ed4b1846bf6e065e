// A model file made in memory, tensor by tensor.
#pragma once
#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "gguf/gguf.h"
#include "gguf/quant.h"
#include "gguf/writer.h"
#include "support.h"

namespace bezel {

class MemoryFile {
 public:
  GgufWriter writer;

  void add(const std::string& name, const std::vector<u64>& ne, const std::vector<f32>& values,
           DType type = DType::kF32) {
    writer.add_tensor(name, type, ne);
    quantize(type, values, data_.emplace_back(dtype_bytes(type, values.size())));
  }

  // Around `centre`, with the standard deviation `size`.
  void add_random(const std::string& name, const std::vector<u64>& ne, f32 size = 1, f32 centre = 0,
                  DType type = DType::kF32) {
    u64 count = 1;
    for (const u64 n : ne) count *= n;
    std::vector<f32> values(count);
    for (f32& v : values) v = centre + size * random_.normal();
    add(name, ne, values, type);
  }
  // A matrix or a kernel whose products keep the size of what they multiply.
  void add_linear(const std::string& name, const std::vector<u64>& ne, DType type = DType::kF32) {
    u64 cols = 1;
    for (std::size_t i = 0; i + 1 < ne.size(); ++i) cols *= ne[i];
    add_random(name, ne, 1 / std::sqrt(static_cast<f32>(cols)), 0, type);
  }

  Result<Gguf> open() const {
    std::vector<std::byte> bytes = writer.header();
    const std::size_t start = bytes.size();
    bytes.resize(start + static_cast<std::size_t>(writer.data_bytes()));
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const auto at = static_cast<std::ptrdiff_t>(start + writer.tensors()[i].offset);
      std::ranges::copy(data_[i], bytes.begin() + at);
    }
    std::vector<std::unique_ptr<Source>> parts;
    parts.push_back(memory_source(std::move(bytes), "memory"));
    return run_now(Gguf::open(std::move(parts)));
  }

 private:
  Random random_{3};
  std::vector<std::vector<std::byte>> data_;
};

}  // namespace bezel
