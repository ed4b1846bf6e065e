#include "gguf/random_blocks.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "gguf/quant.h"

namespace bezel {
namespace {

constexpr u32 kPoolBytes = 1U << 18;  // stays in the second-level cache
constexpr u32 kRunElements = 256;

}  // namespace

RandomBlocks::RandomBlocks(DType type, f32 standard_deviation, u64 seed) : random_(seed) {
  CHECK(can_quantize(type));
  const DTypeInfo& info = dtype_info(type);
  const u32 run_blocks = std::max(1U, kRunElements / info.block_elements);
  const u32 blocks = kPoolBytes / info.block_bytes;
  block_bytes_ = info.block_bytes;
  run_bytes_ = std::size_t{run_blocks} * info.block_bytes;
  starts_ = blocks - run_blocks + 1;
  pool_.resize(std::size_t{blocks} * info.block_bytes);

  std::vector<f32> values(info.block_elements);
  for (u32 i = 0; i < blocks; ++i) {
    for (f32& value : values) value = standard_deviation * random_.normal();
    quantize(type, values, std::span(pool_).subspan(std::size_t{i} * block_bytes_, block_bytes_));
  }
}

void RandomBlocks::fill(MutableBytes out) {
  CHECK(out.size() % block_bytes_ == 0);
  while (!out.empty()) {
    const std::size_t start = std::size_t{random_.below(starts_)} * block_bytes_;
    const std::size_t count = std::min(run_bytes_, out.size());
    std::memcpy(out.data(), pool_.data() + start, count);
    out = out.subspan(count);
  }
}

}  // namespace bezel
