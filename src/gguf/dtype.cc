#include "gguf/dtype.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace bezel {
namespace {

constexpr std::array kTypes = {
    DTypeInfo{DType::kF32, "F32", 1, 4},
    DTypeInfo{DType::kF16, "F16", 1, 2},
    DTypeInfo{DType::kQ4_0, "Q4_0", 32, 18},
    DTypeInfo{DType::kQ4_1, "Q4_1", 32, 20},
    DTypeInfo{DType::kQ5_0, "Q5_0", 32, 22},
    DTypeInfo{DType::kQ5_1, "Q5_1", 32, 24},
    DTypeInfo{DType::kQ8_0, "Q8_0", 32, 34},
    DTypeInfo{DType::kQ8_1, "Q8_1", 32, 36},
    DTypeInfo{DType::kQ2_K, "Q2_K", 256, 84},
    DTypeInfo{DType::kQ3_K, "Q3_K", 256, 110},
    DTypeInfo{DType::kQ4_K, "Q4_K", 256, 144},
    DTypeInfo{DType::kQ5_K, "Q5_K", 256, 176},
    DTypeInfo{DType::kQ6_K, "Q6_K", 256, 210},
    DTypeInfo{DType::kQ8_K, "Q8_K", 256, 292},
    DTypeInfo{DType::kIQ2_XXS, "IQ2_XXS", 256, 66},
    DTypeInfo{DType::kIQ2_XS, "IQ2_XS", 256, 74},
    DTypeInfo{DType::kIQ3_XXS, "IQ3_XXS", 256, 98},
    DTypeInfo{DType::kIQ1_S, "IQ1_S", 256, 50},
    DTypeInfo{DType::kIQ4_NL, "IQ4_NL", 32, 18},
    DTypeInfo{DType::kIQ3_S, "IQ3_S", 256, 110},
    DTypeInfo{DType::kIQ2_S, "IQ2_S", 256, 82},
    DTypeInfo{DType::kIQ4_XS, "IQ4_XS", 256, 136},
    DTypeInfo{DType::kI8, "I8", 1, 1},
    DTypeInfo{DType::kI16, "I16", 1, 2},
    DTypeInfo{DType::kI32, "I32", 1, 4},
    DTypeInfo{DType::kI64, "I64", 1, 8},
    DTypeInfo{DType::kF64, "F64", 1, 8},
    DTypeInfo{DType::kIQ1_M, "IQ1_M", 256, 56},
    DTypeInfo{DType::kBF16, "BF16", 1, 2},
    DTypeInfo{DType::kTQ1_0, "TQ1_0", 256, 54},
    DTypeInfo{DType::kTQ2_0, "TQ2_0", 256, 66},
    DTypeInfo{DType::kMXFP4, "MXFP4", 32, 17},
    DTypeInfo{DType::kNVFP4, "NVFP4", 64, 36},
    DTypeInfo{DType::kQ1_0, "Q1_0", 128, 18},
    DTypeInfo{DType::kQ2_0, "Q2_0", 64, 18},
};

bool same_letters(std::string_view a, std::string_view b) {
  auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return std::ranges::equal(a, b, {}, upper, upper);
}

}  // namespace

const DTypeInfo* find_dtype(u32 id) {
  const auto found = std::ranges::find(kTypes, static_cast<DType>(id), &DTypeInfo::type);
  return found == kTypes.end() ? nullptr : &*found;
}

const DTypeInfo* find_dtype(std::string_view name) {
  const auto found = std::ranges::find_if(kTypes, [&](const auto& t) { return same_letters(t.name, name); });
  return found == kTypes.end() ? nullptr : &*found;
}

const DTypeInfo& dtype_info(DType type) {
  const DTypeInfo* info = find_dtype(static_cast<u32>(type));
  CHECK(info != nullptr);
  return *info;
}

}  // namespace bezel
