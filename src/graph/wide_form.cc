#include "graph/wide_form.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/format_text.h"
#include "gguf/block_decode.h"
#include "gguf/lattice.h"
#include "kernels/format_blocks.wgsl.h"
#include "kernels/format_levels.wgsl.h"
#include "kernels/format_q2_k_wide.wgsl.h"
#include "kernels/format_q3_k_wide.wgsl.h"
#include "kernels/format_q6_k_wide.wgsl.h"
#include "kernels/format_q8_0_wide.wgsl.h"
#include "kernels/lib_codes_levels.wgsl.h"
#include "kernels/lib_codes_plain.wgsl.h"
#include "kernels/lib_heads_float8.wgsl.h"
#include "kernels/lib_heads_six.wgsl.h"

namespace bezel {
namespace {

// Where the parts of a block of 32 are in the file, nibbles last; 0 for what it does not have.
struct SmallBlock {
  DType type;
  u32 minimum, fifths, nibbles;
  u32 zero;     // what every code is more than its weight
  bool levels;  // codes stand for levels
  constexpr u32 heads() const { return minimum > 0 ? 2 : 1; }
  constexpr u32 fifth_words() const { return fifths > 0 ? 2 : 0; }
};
constexpr SmallBlock kSmallBlocks[] = {
    {DType::kQ4_0, 0, 0, 2, 8, false}, {DType::kQ4_1, 2, 0, 4, 0, false},  {DType::kQ5_0, 0, 2, 6, 16, false},
    {DType::kQ5_1, 2, 4, 8, 0, false}, {DType::kIQ4_NL, 0, 0, 2, 0, true}, {DType::kMXFP4, 0, 0, 1, 0, true},
};
const SmallBlock* small_block(DType type) {
  const auto* found = std::ranges::find(kSmallBlocks, type, &SmallBlock::type);
  return found == std::end(kSmallBlocks) ? nullptr : found;
}

constexpr u32 kWord = 16, kTogether = 8;  // bytes; small blocks that lie together

// A weight is d * scale * level, as in format_levels.wgsl.
bool has_levels(DType type) {
  return type == DType::kIQ4_XS || type == DType::kNVFP4 || lattice_decoder(type) != nullptr;
}

// Blocks that lie together, fewer at the end of a row: some bytes for all of them, then those of each.
struct Group {
  u32 blocks, head, each;
};
Group group_of(DType type) {
  if (const SmallBlock* small = small_block(type))
    return {kTogether, (small->heads() + small->fifth_words()) * kWord, kWord};
  switch (type) {
    case DType::kQ8_0:
      return {kTogether, kWord, 2 * kWord};
    case DType::kNVFP4:
      return {4, kWord, 2 * kWord};
    case DType::kQ2_K:
      return {4, kWord, 5 * kWord};
    case DType::kQ3_K:
      return {1, 0, 7 * kWord};
    case DType::kQ6_K:
      return {1, 0, 14 * kWord};
    default:
      return has_levels(type) ? Group{1, 0, 9 * kWord} : Group{};
  }
}

// The powers of two of MXFP4, of which the two least are subnormal, as the upper halves of floats.
u16 power_of_two(u8 e) { return static_cast<u16>(e < 2 ? 0x20 << e : (e - 1) << 7); }

// Bit k of byte i becomes bit i of byte k: single bits, then twos, then fours change places.
u64 transposed(u64 x) {
  const auto change = [&x](u32 by, u64 mask) {
    const u64 both = (x ^ (x >> by)) & mask;
    x ^= both ^ (both << by);
  };
  change(7, 0x00AA00AA00AA00AA);
  change(14, 0x0000CCCC0000CCCC);
  change(28, 0x00000000F0F0F0F0);
  return x;
}

// Eight small blocks, or fewer. A function for each form: what it does for a block takes a few instructions
// once it knows the form.
template <std::size_t kForm>
void put_small(const u8* blocks, u32 count, u8* out) {
  constexpr SmallBlock kBlock = kSmallBlocks[kForm];
  constexpr u32 kSize = kBlock.nibbles + kWord;
  u8* const fifths = out + kBlock.heads() * kWord;
  u8* const nibbles = fifths + kBlock.fifth_words() * kWord;
  std::array<u64, 4> bits{};  // fifth bits of 8 weights of each block, a byte a block
  for (u32 i = 0; i < count; ++i, blocks += kSize) {
    const u16 scale = kBlock.type == DType::kMXFP4 ? power_of_two(blocks[0]) : load<u16>(blocks);
    std::memcpy(out + 2 * i, &scale, sizeof scale);
    if constexpr (kBlock.minimum > 0) std::memcpy(out + kWord + 2 * i, blocks + kBlock.minimum, 2);
    if constexpr (kBlock.fifths > 0)
      for (u32 k = 0; k < bits.size(); ++k) bits[k] |= u64{blocks[kBlock.fifths + k]} << (8 * i);
    std::memcpy(nibbles + i * kWord, blocks + kBlock.nibbles, kWord);
  }
  if constexpr (kBlock.fifths > 0) {
    for (u64& eight : bits) eight = transposed(eight);
    std::memcpy(fifths, bits.data(), sizeof bits);
  }
}
using PutSmall = void (*)(const u8* blocks, u32 count, u8* out);
constexpr auto kPutSmall = []<std::size_t... kForms>(std::index_sequence<kForms...>) {
  return std::array<PutSmall, sizeof...(kForms)>{put_small<kForms>...};
}(std::make_index_sequence<std::size(kSmallBlocks)>());

// `scales` are more by 32.
void put_level_scales(f32 d, const std::array<u8, 16>& scales, u8* out) {
  std::memcpy(out, &d, sizeof d);
  for (u32 unit = 0; unit < 4; ++unit) {
    u32 bits = 0;
    for (u32 i = 0; i < 4; ++i) bits |= u32{scales[4 * unit + i]} << (6 * i);
    for (u32 i = 0; i < 3; ++i) out[4 + 4 * i + unit] = static_cast<u8>(bits >> (8 * i));
  }
}

void put_iq4_xs(const u8* block, u8* out) {
  std::array<u8, 16> scales;
  const u32 high = load<u16>(block + 2);
  for (u32 i = 0; i < 16; ++i) {
    const u32 g = i / 2, low = block[4 + g / 2] >> (4 * (g % 2)) & 15U;
    scales[i] = static_cast<u8>(low | (high >> (2 * g) & 3U) << 4);
  }
  put_level_scales(load_f16(block), scales, out);
  std::memcpy(out + kWord, block + 8, 8 * kWord);
}

// Of each 16 weights the file has the first 8 in the low nibbles of 8 bytes; here 16 are, and the next 16 are
// in the high ones.
void put_nvfp4(const u8* nibbles, u8* out) {
  constexpr u64 kLow = 0x0F0F0F0F0F0F0F0F;
  for (u32 half = 0; half < 2; ++half, nibbles += kWord, out += kWord) {
    const u64 first = load<u64>(nibbles), second = load<u64>(nibbles + 8);
    const std::array<u64, 2> both = {(first & kLow) | (second & kLow) << 4,
                                     (first >> 4 & kLow) | (second & ~kLow)};
    std::memcpy(out, both.data(), sizeof both);
  }
}

// Which of the levels a lattice's value is, by value + 128.
std::array<u8, 256> codes_of(DType type) {
  std::array<u8, 256> codes{};
  const auto levels = lattice_levels(type);
  for (u32 i = 0; i < levels.size(); ++i) codes[static_cast<u32>(levels[i] + 128)] = static_cast<u8>(i);
  return codes;
}

void put_lattice(DecodeLattice decode, const std::array<u8, 256>& codes, const u8* block, u8* out) {
  LatticeBlock lattice;
  decode(block, lattice);
  std::array<u8, 16> scales;
  for (u32 i = 0; i < 16; ++i) scales[i] = static_cast<u8>(lattice.scales[i] + 32);
  put_level_scales(lattice.d, scales, out);
  const auto code = [&](u32 i) { return codes[static_cast<u32>(lattice.values[i] + 128)]; };
  for (u32 i = 0; i < 128; ++i) {
    const u32 first = i / 16 * 32 + i % 16;
    out[kWord + i] = static_cast<u8>(code(first) | code(first + 16) << 4);
  }
}

std::array<i8, 16> levels_of(DType type) {
  if (type == DType::kMXFP4 || type == DType::kNVFP4)
    return {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  return lattice_decoder(type) != nullptr ? lattice_levels(type) : std::to_array(kNonlinear4);
}

// See lib_codes_levels.wgsl.
std::string levels_source(DType type) {
  const auto levels = levels_of(type);
  const auto in_every_byte = [](i8 level) { return 0x01010101u * static_cast<u8>(level); };
  std::string even, turn;
  for (u32 i = 0; i < 16; i += 2) {
    const u32 first = in_every_byte(levels[i]), second = in_every_byte(levels[i + 1]);
    even += format_text("{}u,", first), turn += format_text("{}u,", first ^ second);
  }
  return format_text("const EVEN = array<u32, 8>({});\nconst TURN = array<u32, 8>({});\n", even, turn)
      .append(wgsl::lib_codes_levels::source);
}

}  // namespace

bool has_wide_form(DType type) { return group_of(type).blocks > 0; }

u64 wide_row_bytes(DType type, u64 cols) {
  const auto [together, head, each] = group_of(type);
  const u64 blocks = cols / dtype_info(type).block_elements;
  return (blocks + together - 1) / together * head + blocks * each;
}

void widen_row(DType type, Bytes row, MutableBytes out) {
  const auto [together, head, each] = group_of(type);
  const u32 size = dtype_info(type).block_bytes;
  const auto count = static_cast<u32>(row.size() / size);
  CHECK(together > 0 && out.size() == wide_row_bytes(type, u64{count} * dtype_info(type).block_elements));
  std::ranges::fill(out, std::byte{0});
  const u8* block = reinterpret_cast<const u8*>(row.data());
  u8* to = reinterpret_cast<u8*>(out.data());
  const u32 step = head + together * each;
  if (const SmallBlock* small = small_block(type)) {
    const PutSmall put = kPutSmall[static_cast<std::size_t>(small - kSmallBlocks)];
    for (u32 n = 0; n < count; n += together, block += together * size, to += step)
      put(block, std::min(together, count - n), to);
    return;
  }
  const DecodeLattice lattice = lattice_decoder(type);
  const auto codes = lattice != nullptr ? codes_of(type) : std::array<u8, 256>{};
  for (u32 n = 0; n < count; ++n, block += size) {
    const u32 i = n % together;
    u8* const group = to + u64{n / together} * step;
    u8* const own = group + head + i * each;
    if (lattice != nullptr) {
      put_lattice(lattice, codes, block, own);
    } else if (type == DType::kIQ4_XS) {
      put_iq4_xs(block, own);
    } else if (type == DType::kQ8_0) {
      std::memcpy(group + 2 * i, block, 2);
      std::memcpy(own, block + 2, each);
    } else if (type == DType::kNVFP4) {
      std::memcpy(group + 4 * i, block, 4);
      put_nvfp4(block + 4, own);
    } else if (type == DType::kQ2_K) {
      std::memcpy(group + 4 * i, block + each, 4);
      std::memcpy(own, block, each);
    } else {
      std::memcpy(own, block, size);
    }
  }
}

std::string wide_format_source(DType type) {
  std::string text = codes_source(type, "f16x2");
  switch (type) {
    case DType::kQ8_0:
      return text.append(wgsl::format_q8_0_wide::source);
    case DType::kQ2_K:
      return text.append(wgsl::format_q2_k_wide::source);
    case DType::kQ3_K:
      return text.append(wgsl::format_q3_k_wide::source);
    case DType::kQ6_K:
      return text.append(wgsl::format_q6_k_wide::source);
    default:
      CHECK(has_wide_form(type));
      return text.append(small_block(type) != nullptr ? wgsl::format_blocks::source
                                                      : wgsl::format_levels::source);
  }
}

std::string codes_source(DType type, std::string_view scales) {
  const SmallBlock* small = small_block(type);
  if (small == nullptr) {
    if (!has_levels(type)) return {};
    return levels_source(type).append(type == DType::kNVFP4 ? wgsl::lib_heads_float8::source
                                                            : wgsl::lib_heads_six::source);
  }
  return format_text(
             "const HEADS: u32 = {}u;\nconst FIFTHS: u32 = {}u;\nconst ZERO: f32 = {}.0;\n"
             "const SIGNED: bool = {};\nfn two_scales(word: u32) -> vec2f {{ return {}(word); }}\n",
             small->heads(), small->fifth_words(), small->zero, small->levels,
             type == DType::kMXFP4 ? "bf16x2" : scales)
      .append(small->levels ? levels_source(type) : std::string(wgsl::lib_codes_plain::source));
}

}  // namespace bezel
