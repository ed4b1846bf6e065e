#include "graph/kv_type.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "gguf/quant.h"

namespace bezel {
namespace {

struct Q8Block {
  f32 largest = 0;
  std::array<i8, kKvBlock> digits{};
};
static_assert(sizeof(Q8Block) == 36);

struct Name {
  KvType type;
  std::string_view name;
};
constexpr Name kNames[] = {
    {KvType::kQ8, "q8"}, {KvType::kF16, "f16"}, {KvType::kF32, "f32"}, {KvType::kF64, "f64"}};

Q8Block encode_block(std::span<const f64> numbers) {
  Q8Block block;
  for (const f64 v : numbers) {
    const f32 size = static_cast<f32>(std::abs(v));
    // What is no number, or too large, spreads over its block, as it does over whatever reads it.
    if (!std::isfinite(size)) return {.largest = std::numeric_limits<f32>::quiet_NaN()};
    block.largest = std::max(block.largest, size);
  }
  if (block.largest == 0) return block;
  // Rounded as WGSL's pack4x8snorm is.
  std::ranges::transform(numbers, block.digits.begin(), [&](f64 v) {
    return static_cast<i8>(std::floor(0.5 + 127 * std::clamp(v / block.largest, -1.0, 1.0)));
  });
  return block;
}

template <class T, class Convert>
std::vector<std::byte> encode_each(std::span<const f64> numbers, Convert convert) {
  std::vector<T> stored(numbers.size());
  std::ranges::transform(numbers, stored.begin(), [&](f64 v) { return convert(static_cast<f32>(v)); });
  const auto bytes = std::as_bytes(std::span(stored));
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::vector<T> values_of(Bytes bytes) {
  CHECK(bytes.size() % sizeof(T) == 0);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

u64 kv_bytes(KvType type, u64 numbers) {
  if (type != KvType::kQ8) return numbers * static_cast<u32>(type);
  return (numbers + kKvBlock - 1) / kKvBlock * sizeof(Q8Block);
}

std::string_view kv_name(KvType type) {
  const auto* found = std::ranges::find(kNames, type, &Name::type);
  return found == std::end(kNames) ? "unknown" : found->name;
}

std::optional<KvType> kv_type_named(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name, &Name::name);
  if (found == std::end(kNames) || found->type == KvType::kF64) return {};
  return found->type;
}

std::vector<std::byte> kv_encode(KvType type, std::span<const f64> numbers) {
  if (type == KvType::kF32) return encode_each<f32>(numbers, [](f32 v) { return v; });
  if (type == KvType::kF16) return encode_each<u16>(numbers, f32_to_f16);
  CHECK(type == KvType::kQ8 && numbers.size() % kKvBlock == 0);
  std::vector<Q8Block> blocks;
  for (std::size_t at = 0; at < numbers.size(); at += kKvBlock)
    blocks.push_back(encode_block(numbers.subspan(at, kKvBlock)));
  const auto bytes = std::as_bytes(std::span(blocks));
  return {bytes.begin(), bytes.end()};
}

std::vector<f64> kv_decode(KvType type, Bytes bytes) {
  std::vector<f64> out;
  switch (type) {
    case KvType::kF64:
      return values_of<f64>(bytes);
    case KvType::kF32:
      for (const f32 v : values_of<f32>(bytes)) out.push_back(v);
      return out;
    case KvType::kF16:
      for (const u16 v : values_of<u16>(bytes)) out.push_back(f16_to_f32(v));
      return out;
    case KvType::kQ8:
      for (const Q8Block& block : values_of<Q8Block>(bytes)) {
        for (const i8 digit : block.digits) out.push_back(digit / 127.0 * block.largest);
      }
      return out;
  }
  return out;
}

}  // namespace bezel
