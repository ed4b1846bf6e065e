#include "gguf/quant.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/random.h"
#include "support.h"

namespace bezel {
namespace {

constexpr f32 kInfinity = std::numeric_limits<f32>::infinity();
constexpr f32 kNan = std::numeric_limits<f32>::quiet_NaN();
constexpr DType kScaledTypes[] = {DType::kQ8_0, DType::kQ4_0, DType::kQ5_0, DType::kQ4_K, DType::kQ6_K};

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::strtoul(hex.substr(i, 2).c_str(), nullptr, 16)));
  }
  return bytes;
}

// The vectors give seven significant digits; a few are off by slightly more than half of the last one.
f64 seventh_digit(f64 value) {
  return value == 0 ? 0 : 0.56 * std::pow(10.0, std::floor(std::log10(std::fabs(value))) - 6);
}

std::vector<std::byte> quantized(DType type, const std::vector<f32>& values) {
  std::vector<std::byte> blocks(dtype_bytes(type, values.size()));
  quantize(type, values, blocks);
  return blocks;
}

std::vector<f32> dequantized(DType type, const std::vector<std::byte>& blocks) {
  const DTypeInfo& info = dtype_info(type);
  std::vector<f32> values(blocks.size() / info.block_bytes * info.block_elements);
  dequantize(type, blocks, values);
  return values;
}

std::vector<f32> there_and_back(DType type, const std::vector<f32>& values) {
  return dequantized(type, quantized(type, values));
}

std::vector<f32> normal_values(std::size_t count, f32 deviation, u64 seed = 1) {
  Random random(seed);
  std::vector<f32> values(count);
  for (f32& value : values) value = deviation * random.normal();
  return values;
}

f64 rms(const std::vector<f32>& values) {
  f64 sum = 0;
  for (const f32 value : values) sum += static_cast<f64>(value) * value;
  return std::sqrt(sum / static_cast<f64>(values.size()));
}

f64 relative_error(const std::vector<f32>& got, const std::vector<f32>& want) {
  std::vector<f32> difference(want.size());
  for (std::size_t i = 0; i < want.size(); ++i) difference[i] = got[i] - want[i];
  return rms(difference) / rms(want);
}

TEST(Dequantize, AgreesWithTheVectors) {
  const auto vectors = read_json(data_path("dequant.json"));
  ASSERT_EQ(vectors.size(), 25);
  for (const auto& [name, vector] : vectors.items()) {
    SCOPED_TRACE(name);
    const DTypeInfo* info = find_dtype(std::string_view(name));
    ASSERT_NE(info, nullptr);
    ASSERT_TRUE(can_dequantize(info->type));
    ASSERT_EQ(info->block_elements, vector["block_elems"].get<u32>());
    ASSERT_EQ(info->block_bytes, vector["block_bytes"].get<u32>());
    std::vector<std::byte> all_blocks;
    std::vector<f32> all_values;
    for (const auto& test : vector["cases"]) {
      const auto blocks = from_hex(test["hex"].get<std::string>());
      const auto got = dequantized(info->type, blocks);
      const auto want = test["values"].get<std::vector<f64>>();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(got[i], want[i], seventh_digit(want[i])) << "element " << i;
      }
      all_blocks.insert(all_blocks.end(), blocks.begin(), blocks.end());
      all_values.insert(all_values.end(), got.begin(), got.end());
    }
    EXPECT_EQ(dequantized(info->type, all_blocks), all_values) << "blocks in a row";
  }
}

TEST(Dequantize, ReadsFloatsExactly) {
  const std::vector<f64> doubles = {1.5, -0.1, 1e300, 0};
  std::vector<f32> out(4);
  dequantize(DType::kF64, std::as_bytes(std::span(doubles)), out);
  EXPECT_EQ(out, (std::vector<f32>{1.5F, -0.1F, kInfinity, 0}));
  const std::vector<f32> floats = {1.5F, -1e-42F, kInfinity, -0.0F};
  dequantize(DType::kF32, std::as_bytes(std::span(floats)), out);
  EXPECT_EQ(out, floats);
  const std::vector<u16> brains = {0x3FC0, 0xBF80, 0x0001, 0x7F80};
  dequantize(DType::kBF16, std::as_bytes(std::span(brains)), out);
  EXPECT_EQ(out, (std::vector<f32>{1.5F, -1, 0x1p-133F, kInfinity}));
}

TEST(Dequantize, KnowsWhatItCanDo) {
  for (u32 id = 0; id < 64; ++id) {
    const DTypeInfo* info = find_dtype(id);
    if (info == nullptr) continue;
    const bool integer = id >= 24 && id <= 27;
    EXPECT_EQ(can_dequantize(info->type), !integer && info->type != DType::kTQ1_0) << info->name;
  }
  EXPECT_FALSE(can_quantize(DType::kQ5_K));
  EXPECT_TRUE(can_quantize(DType::kQ4_K));
  dequantize(DType::kQ4_K, {}, {});  // no blocks: nothing to do
}

// Any bytes are a block: nothing may be read out of bounds, whatever the codes say.
TEST(Dequantize, TakesAnyBytes) {
  Random random(3);
  for (u32 id = 0; id < 64; ++id) {
    const DTypeInfo* info = find_dtype(id);
    if (info == nullptr || !can_dequantize(info->type)) continue;
    std::vector<std::byte> blocks(info->block_bytes * 50);
    for (std::byte& byte : blocks) byte = static_cast<std::byte>(random.next());
    EXPECT_EQ(dequantized(info->type, blocks).size(), info->block_elements * 50);
    std::ranges::fill(blocks, std::byte{0xFF});
    dequantized(info->type, blocks);
  }
}

TEST(Float16, GoesThereAndBackForEveryHalf) {
  for (u32 bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<u16>(bits);
    const f32 value = f16_to_f32(half);
    const bool nan = (half & 0x7FFFU) > 0x7C00U;
    ASSERT_EQ(std::isnan(value), nan) << bits;
    ASSERT_EQ(f32_to_f16(value), nan ? half | 0x200U : half) << bits;
    if (nan) continue;
    const int exponent = half >> 10 & 31;
    const int mantissa = half & 1023;
    f64 want = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) want = kInfinity;
    ASSERT_EQ(value, half & 0x8000U ? -want : want) << bits;
    ASSERT_EQ(std::signbit(value), half >= 0x8000U) << bits;
  }
}

// Between each pair of neighbours: just below the middle, the middle, just above it.
TEST(Float16, RoundsToNearestEven) {
  for (u32 low = 0; low < 0x7C00; ++low) {
    const f64 next = low == 0x7BFF ? 65536 : f16_to_f32(static_cast<u16>(low + 1));
    const auto middle = static_cast<f32>((f16_to_f32(static_cast<u16>(low)) + next) / 2);
    const u32 even = low + (low & 1U);
    for (const u32 sign : {0U, 0x8000U}) {
      const f32 s = sign != 0 ? -1 : 1;
      ASSERT_EQ(f32_to_f16(s * middle), sign | even) << low;
      ASSERT_EQ(f32_to_f16(s * std::nextafter(middle, 0.0F)), sign | low) << low;
      ASSERT_EQ(f32_to_f16(s * std::nextafter(middle, kInfinity)), sign | (low + 1)) << low;
    }
  }
  EXPECT_EQ(f32_to_f16(1e10F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-kInfinity), 0xFC00);
  EXPECT_EQ(f32_to_f16(std::bit_cast<f32>(0x7F800001U)), 0x7E00);
}

TEST(BFloat16, RoundsToNearestEvenAndComesBack) {
  for (u32 bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<u16>(bits);
    const bool nan = (half & 0x7FFFU) > 0x7F80U;
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(half)), nan ? half | 0x40U : half) << bits;
    if ((half & 0x7FFFU) >= 0x7F80U) continue;
    auto with_tail = [&](u32 tail) { return std::bit_cast<f32>(bits << 16 | tail); };
    ASSERT_EQ(f32_to_bf16(with_tail(0x7FFF)), bits);
    ASSERT_EQ(f32_to_bf16(with_tail(0x8000)), bits + (bits & 1U));
    ASSERT_EQ(f32_to_bf16(with_tail(0x8001)), bits + 1);
  }
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<f32>(0x7F800001U)))));
}

// How far one value may be off, as a part of its block's largest magnitude. Where the scale is chosen by
// least squares the largest value may miss by one step; else it is half a step.
f64 worst_error(DType type) {
  switch (type) {
    case DType::kQ8_0:
      return 0.501 / 127;
    case DType::kQ4_0:
      return 1.15 / 8;
    case DType::kQ5_0:
      return 1.15 / 16;
    case DType::kQ4_K:
      return 2 * 1.15 / 15;  // a block spans up to twice its largest magnitude
    case DType::kQ6_K:
      return 1.15 / 32;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF16:
      return 0x1p-11;
    default:
      return 0;
  }
}

void expect_close(DType type, const std::vector<f32>& values) {
  const std::size_t block = std::min<std::size_t>(dtype_info(type).block_elements, values.size());
  const auto got = there_and_back(type, values);
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    f64 largest = 0;
    for (std::size_t i = begin; i < begin + block; ++i)
      largest = std::max<f64>(largest, std::fabs(values[i]));
    // No scale is finer than the smallest half.
    const f64 bound = worst_error(type) * largest + (type == DType::kF32 ? 0 : 0x1p-24);
    for (std::size_t i = begin; i < begin + block; ++i) {
      ASSERT_LE(std::fabs(static_cast<f64>(got[i]) - values[i]), bound)
          << dtype_name(type) << " element " << i << " is " << values[i] << ", became " << got[i];
    }
  }
}

TEST(Quantize, StaysWithinAStep) {
  std::vector<std::vector<f32>> rows;
  for (const f32 scale : {1e6F, 1.0F, 0.02F, 1e-4F, 1e-6F, 1e-8F, 1e-30F, 1e-42F}) {
    if (scale < 1e5F) rows.push_back(normal_values(4096, scale));
    rows.emplace_back(256, scale * 0.05F);
    rows.emplace_back(256, -scale * 0.05F);
  }
  rows.emplace_back(512, 0.0F);
  auto mixed = normal_values(4096, 1, 5);  // every sub-block of another size, outliers, zeros
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    mixed[i] *= std::pow(10.0F, -static_cast<f32>(i / 16 % 7));
    if (i % 371 == 0) mixed[i] = 50;
    if (i % 5 == 0) mixed[i] = 0;
  }
  rows.push_back(mixed);
  auto shifted = normal_values(1024, 0.1F, 6);  // all of one sign
  for (f32& value : shifted) value = std::fabs(value) + 1;
  rows.push_back(shifted);
  for (f32& value : shifted) value = -value;
  rows.push_back(shifted);
  for (const auto& row : rows) {
    for (const DType type : kScaledTypes) expect_close(type, row);
    for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) expect_close(type, row);
  }
}

// Root mean square errors for normal values: what the bits allow, with little to spare.
TEST(Quantize, IsAsGoodAsTheBitsAllow) {
  const std::pair<DType, f64> limits[] = {
      {DType::kQ8_0, 0.0055}, {DType::kQ4_0, 0.080},  {DType::kQ5_0, 0.040},  {DType::kQ4_K, 0.072},
      {DType::kQ6_K, 0.0175}, {DType::kF16, 0.00025}, {DType::kBF16, 0.0019},
  };
  for (const f32 deviation : {0.02F, 3.0F}) {
    const auto values = normal_values(65536, deviation);
    for (const auto& [type, limit] : limits) {
      const f64 error = relative_error(there_and_back(type, values), values);
      EXPECT_LT(error, limit) << dtype_name(type);
      EXPECT_GT(error, limit / 2) << dtype_name(type) << ": tighten the limit";
    }
  }
}

TEST(Quantize, KeepsZerosAndConstants) {
  for (const DType type : kScaledTypes) {
    for (const f32 value : there_and_back(type, std::vector<f32>(256, 0.0F))) ASSERT_EQ(value, 0);
    for (const f32 constant : {0.75F, -0.75F}) {
      for (const f32 value : there_and_back(type, std::vector<f32>(256, constant))) {
        ASSERT_NEAR(value, constant, 0.75F * 0x1p-10F) << dtype_name(type);
      }
    }
  }
}

TEST(Quantize, SaturatesWhatIsTooLargeAndDropsNan) {
  for (const DType type : kScaledTypes) {
    for (const f32 huge : {1e12F, 3e38F, kInfinity}) {
      auto values = normal_values(256, 1);
      values[7] = huge;
      values[100] = -huge;
      const auto got = there_and_back(type, values);
      for (const f32 value : got) ASSERT_TRUE(std::isfinite(value)) << dtype_name(type);
      EXPECT_GT(got[7], 4e5F) << dtype_name(type);
      EXPECT_LT(got[100], -4e5F) << dtype_name(type);
    }
    auto values = normal_values(256, 1);
    auto zeroed = values;
    values[40] = kNan;
    zeroed[40] = 0;
    EXPECT_EQ(quantized(type, values), quantized(type, zeroed)) << dtype_name(type);
    for (const f32 value : there_and_back(type, std::vector<f32>(256, kNan))) ASSERT_EQ(value, 0);
  }
}

TEST(Quantize, KeepsWhatItMadeItself) {
  const auto values = normal_values(8192, 0.05F, 9);
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ5_0}) {
    const auto once = there_and_back(type, values);
    EXPECT_EQ(there_and_back(type, once), once) << dtype_name(type);
  }
  // Two levels of scales may be split anew, at a loss well below that of the first time.
  for (const DType type : {DType::kQ4_K, DType::kQ6_K}) {
    const auto once = there_and_back(type, values);
    EXPECT_LT(relative_error(there_and_back(type, once), once), relative_error(once, values) / 2);
  }
}

}  // namespace
}  // namespace bezel
