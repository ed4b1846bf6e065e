// The tensor types of GGUF: ids, block sizes, and whether this engine reads them.
#pragma once
#include <optional>
#include <string_view>

#include "base/types.h"

namespace bezel {

// Values are the ids stored in files.
enum class DType : u32 {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

struct DTypeInfo {
  DType type;
  std::string_view name;  // as people write it: "Q4_K"
  u32 block_elements;
  u32 block_bytes;
};

// Null for an id that no current file may contain (retired or unknown).
const DTypeInfo* find_dtype(u32 id);
// Null for a name nobody uses; upper or lower case.
const DTypeInfo* find_dtype(std::string_view name);
// For a type that was already validated.
const DTypeInfo& dtype_info(DType type);
inline std::string_view dtype_name(DType type) { return dtype_info(type).name; }
// Bytes of `elements` consecutive elements; `elements` must be a multiple of the block.
inline u64 dtype_bytes(DType type, u64 elements) {
  const DTypeInfo& info = dtype_info(type);
  return elements / info.block_elements * info.block_bytes;
}

}  // namespace bezel
