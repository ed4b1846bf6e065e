// How keys and values are stored.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace bezel {

// The number is that of saved sessions. kQ8: 32 numbers are the size of the largest of them as f32, and 32
// bytes, which are 127ths of it.
enum class KvType : u32 { kQ8 = 1, kF16 = 2, kF32 = 4, kF64 = 8 };

inline constexpr u32 kKvBlock = 32;  // numbers of kQ8 that share a scale

// The bytes of so many numbers, with kQ8 whole blocks.
u64 kv_bytes(KvType type, u64 numbers);

std::string_view kv_name(KvType type);
// Of those that a GPU has: f32, f16, q8.
std::optional<KvType> kv_type_named(std::string_view name);

// What is stored for these numbers, and what is read again. The oracle of the kernels; not for kF64.
std::vector<std::byte> kv_encode(KvType type, std::span<const f64> numbers);
std::vector<f64> kv_decode(KvType type, Bytes bytes);

}  // namespace bezel
