// Products of matrices, and of experts, with many tokens, in tiles.
#include <algorithm>

#include "base/check.h"
#include "base/format_text.h"
#include "graph/lowering.h"
#include "graph/tuning.h"
#include "kernels/conv.wgsl.h"
#include "kernels/expert_mat_mul.wgsl.h"
#include "kernels/halves.wgsl.h"
#include "kernels/lib_arena_fours.wgsl.h"
#include "kernels/lib_arena_ones.wgsl.h"
#include "kernels/lib_bytes.wgsl.h"
#include "kernels/lib_matrix.wgsl.h"
#include "kernels/lib_matrix_imitated.wgsl.h"
#include "kernels/lib_numbers.wgsl.h"
#include "kernels/lib_reduce.wgsl.h"
#include "kernels/lib_sixteen_any.wgsl.h"
#include "kernels/lib_sixteen_q4_k.wgsl.h"
#include "kernels/lib_sixteen_q6_k.wgsl.h"
#include "kernels/lib_small.wgsl.h"
#include "kernels/lib_tile.wgsl.h"
#include "kernels/lib_tile_4x4.wgsl.h"
#include "kernels/lib_tile_8x8.wgsl.h"
#include "kernels/lib_words_wide.wgsl.h"
#include "kernels/mat_mul.wgsl.h"
#include "kernels/mat_mul_matrix.wgsl.h"

namespace bezel {
namespace {

using Kind = TileOptions::Kind;

constexpr u32 kSmall = 32;   // rows and tokens of the smallest tile
constexpr u32 kLarge = 128;  // and of the largest, but for tokens with matrices
constexpr u32 kMostTokens = 256;
constexpr u32 kMatrixStep = 32;

// Tokens of a subgroup's patch.
u32 patch_of(const TileOptions& tiles) { return tiles.tokens == kMostTokens ? 64 : 32; }

// A thread of lib_tile has 4 x 4 or 8 x 8 sums, one of mat_mul_matrix 64 or 128.
u32 sums_side(const TileOptions& tiles) { return tiles.rows > kSmall ? 8 : 4; }
u32 threads_of(const TileOptions& tiles) {
  const u32 each = tiles.kind == Kind::kMatrix ? 2 * patch_of(tiles) : sums_side(tiles) * sums_side(tiles);
  return tiles.rows * tiles.tokens / each;
}
// Whether 16 x 16 sums fit where 16 rows of a step were.
bool has_room_for_sums(const TileOptions& tiles) { return tiles.step >= 32; }
u32 memory_of(const TileOptions& tiles, u32 stages = 1) {
  constexpr u32 kHalf = 2;
  if (tiles.kind == Kind::kMatrix) {
    const u32 row = kHalf * (tiles.step + 8),
              out = has_room_for_sums(tiles) ? 0 : threads_of(tiles) / 32 * 1024;
    return out + stages * row *
                     ((tiles.split == 3 ? 2 : 1) * tiles.rows + (tiles.split >= 2 ? 2 : 1) * tiles.tokens);
  }
  return tiles.step * (tiles.rows + tiles.tokens) * (tiles.kind == Kind::kF16 ? kHalf : sizeof(f32));
}

// A text's first lines: extensions must come before anything else.
std::string tile_constants(std::string_view extensions, const TileOptions& tiles, bool wide) {
  return format_text(
      "{}alias Word = {};\nconst TILE_ROWS: u32 = {}u;\nconst TILE_TOKENS: u32 = {}u;\n"
      "const TILE_STEP: u32 = {}u;\n",
      extensions, wide ? "vec4u" : "u32", tiles.rows, tiles.tokens, tiles.step);
}

// What mat_mul_matrix does with the sums of a subgroup's patch.
struct PatchText {
  std::string sums, multiply, store;
};
std::string store_text(std::string_view sum, u32 row, u32 token) {
  return format_text(
      "    store_patch({0}, subgroup, first_row + row + {1}u, first_token + token + {2}u, part);\n"
      "    {0} = Sums();\n",
      sum, row, token);
}

// Each sum by its name, in the orders that bench/matrices.mjs found fastest.
PatchText patch_text(const TileOptions& tiles) {
  const u32 across = patch_of(tiles) / 16;
  PatchText out;
  for (u32 j = 0; j < across; ++j) {
    for (u32 i = 0; i < 4; ++i) {
      out.sums += format_text("  var s{}_{} = Sums();\n", i, j);
      out.store += store_text(format_text("s{}_{}", i, j), i * 16, j * 16);
    }
  }
  for (u32 k = 0; k < tiles.step / 16; ++k) {
    const auto load = [&](std::string_view name, u32 n, std::string_view from) {
      out.multiply += format_text("        let {}{} = {}_{}({} + {}u);\n", name, n,
                                  from.starts_with('w') ? "left" : "right", k, from, n);
    };
    const auto times = [&](std::string_view left, u32 i, std::string_view right) {
      for (u32 j = 0; j < across; ++j)
        out.multiply +=
            format_text("        s{0}_{1} = subgroupMatrixMultiplyAccumulate({2}{0}, {3}{1}, s{0}_{1});\n", i,
                        j, left, right);
    };
    const auto loads = [&](std::string_view name, u32 count, std::string_view from) {
      for (u32 n = 0; n < count; ++n) load(name, n, from);
    };
    out.multiply += "      {\n";
    loads("x", across, "x_block");
    if (across == 2) {
      loads("a", 4, "w_block");
      for (u32 i = 0; i < 4; ++i) times("a", i, "x");
      if (tiles.split == 3) loads("b", 4, "w_block + W_BLOCKS");
      for (u32 i = 0; i < 4 && tiles.split == 3; ++i) times("b", i, "x");
      if (tiles.split >= 2) loads("y", across, "x_block + X_BLOCKS");
      for (u32 i = 0; i < 4 && tiles.split >= 2; ++i) times("a", i, "y");
    } else {
      // A left matrix at a time, so that few are held at once.
      if (tiles.split >= 2) loads("y", across, "x_block + X_BLOCKS");
      for (u32 i = 0; i < 4; ++i) {
        load("a", i, "w_block");
        times("a", i, "x");
        if (tiles.split >= 2) times("a", i, "y");
        if (tiles.split < 3) continue;
        load("b", i, "w_block + W_BLOCKS");
        times("b", i, "x");
      }
    }
    out.multiply += "      }\n";
  }
  return out;
}

// The text with what stands for a mark.
std::string filled(std::string text, std::string_view mark, std::string_view with) {
  CHECK(text.contains(mark));
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += with.size())
    text.replace(at, mark.size(), with);
  return text;
}

}  // namespace

bool tiles_fit(const DeviceInfo& info, const TileOptions& tiles) {
  return threads_of(tiles) <= info.max_invocations && memory_of(tiles) <= info.max_workgroup_memory &&
         (tiles.kind != Kind::kF16 || info.f16) && (tiles.kind != Kind::kMatrix || info.subgroup_matrix);
}

bool reads_wide(const DeviceWeight& w) {
  switch (w.type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return w.row_bytes % 16 == 0;
    default:
      return w.wide;
  }
}

TileOptions Lowering::tiles_for(u32 rows, u32 tokens, const DeviceWeight* w, u32 cols) const {
  TileOptions tiles = options_.tiles;
  const DeviceInfo& info = device_.info();
  const auto fill = [&](u32 tile_rows, u32 tile_tokens, u64 enough) {
    if (u64{groups(rows, tile_rows)} * groups(tokens, tile_tokens) < enough) return false;
    tiles.rows = tile_rows;
    tiles.tokens = tile_tokens;
    return true;
  };
  // Weights that are floats might be too large for halves.
  const bool may = w != nullptr && info.subgroup_matrix && tokens > kSmall && reads_wide(*w) &&
                   dtype_info(w->type).block_elements > 1;
  // Those that were measured; others where tuning finds them faster so.
  const bool suits = may && (w->type == DType::kQ4_K || w->type == DType::kQ6_K);
  if (w != nullptr && options_.tuning != nullptr) {
    const KernelVariant* measured = options_.tuning->find({ProductKind::kTiles, w->type, rows, cols, tokens});
    if (measured != nullptr && (may || measured->tiles.kind != Kind::kMatrix)) tiles = measured->tiles;
  }
  if (tiles.kind == Kind::kAny) tiles.kind = suits ? Kind::kMatrix : Kind::kF32;
  if (tiles.kind == Kind::kF16 && !info.f16) tiles.kind = Kind::kF32;
  const bool matrix = tiles.kind == Kind::kMatrix;
  // Large tiles, which read less, where there are enough of them to keep the device busy.
  if (tiles.rows == 0 && matrix) {
    constexpr u64 kBusy = 132;
    if (!fill(kLarge, kLarge, kBusy) && !fill(kLarge / 2, kLarge, kBusy)) fill(kLarge / 2, kLarge / 2, 0);
  } else if (tiles.rows == 0) {
    constexpr u64 kBusy = 264;
    const bool large = !info.software && tokens > kSmall && info.max_invocations >= 256;
    if (!large || (!fill(kLarge, kLarge, kBusy) && !fill(kLarge, kLarge / 2, kBusy))) fill(kSmall, kSmall, 0);
  }
  if (matrix && tiles.split == 0) tiles.split = 3;
  if (tiles.step == 0) tiles.step = matrix ? kMatrixStep : 16;
  if (matrix && memory_of(tiles) > info.max_workgroup_memory) tiles.rows = tiles.tokens = kLarge / 2;
  return tiles;
}

TileKernel Lowering::multiplies_tiles(std::string_view kernel, const DeviceWeight& w,
                                      const TileOptions& tiles, bool fours, std::string_view bounds) const {
  const bool half = tiles.kind == Kind::kF16, wide = reads_wide(w);
  CHECK(tiles_fit(device_.info(), tiles));
  std::string text = tile_constants(half ? "enable f16;\n" : "", tiles, wide);
  text += format_text("alias Number = {};\nconst TILE_THREADS: u32 = {}u;\n", half ? "f16" : "f32",
                      threads_of(tiles));
  text.append(wgsl::lib_numbers::source)
      .append(wide ? wgsl::lib_words_wide::source : wgsl::lib_bytes::source)
      .append(format_source(w))
      .append(bounds)
      .append(fours ? wgsl::lib_arena_fours::source : wgsl::lib_arena_ones::source)
      .append(wgsl::lib_tile::source)
      .append(sums_side(tiles) == 8 ? wgsl::lib_tile_8x8::source : wgsl::lib_tile_4x4::source)
      .append(kernel);
  return {std::move(text), tiles.rows, tiles.tokens};
}

void Lowering::note_tiles(const op::MatMul& op, const DeviceWeight& w) {
  plan_.products_.emplace_back(
      dispatches_.size(), ProductShape{ProductKind::kTiles, w.type, op.weight.rows, op.x.cols, op.x.rows});
}

Status Lowering::lower(const op::MatMul& op) {
  if (op.x.rows <= kVectorTokens) return lower_vector(op, op.out, 0, {});
  const DeviceWeight& w = weight(op.weight);
  const Clamp& c = op.clamp;
  const TileOptions tiles = tiles_for(op.weight.rows, op.x.rows, &w, op.x.cols);
  if (tiles.kind == Kind::kMatrix) return lower_matrix(op, tiles);
  for (const auto& tile : w.tiles) {
    const wgsl::mat_mul::Params params{
        at(op.x),  stride(op.x), at(op.out) + tile.first,        stride(op.out), tile.count, op.x.cols,
        op.x.rows, w.row_bytes,  op.scale * scalar(op.scale_by), c.in_min,       c.in_max,   c.out_min,
        c.out_max};
    const bool fours = in_fours(op.x) && in_fours(op.out) && tile.first % 4 == 0 && tile.count % 4 == 0;
    const TileKernel kernel = multiplies_tiles(wgsl::mat_mul::source, w, tiles, fours, bounds_of(c));
    note_tiles(op, w);
    TRY(add(format_text("mat_mul {}", dtype_name(w.type)), kernel.text, params,
            wgsl::mat_mul::Io{arena(), tile.view()},
            {groups(op.x.rows, kernel.tokens), groups(tile.count, kernel.rows)}));
  }
  return {};
}

// Where things lie in the buffer of halves: for each row a factor, then two halves for each number.
Lowering::Halves Lowering::halves_of(const op::MatMul& op) {
  const u64 tokens = u64{groups(op.x.rows, kMostTokens)} * kMostTokens;
  const u32 pitch = groups(op.x.cols, kMatrixStep) * kMatrixStep;
  const u64 first = tokens * sizeof(f32);
  return {pitch, first, first + tokens * pitch * sizeof(f32)};
}

Status Lowering::make_halves() {
  u64 most = 0;
  for (const Op& any : graph_.ops()) {
    if (const auto* op = std::get_if<op::MatMul>(&any)) most = std::max(most, halves_of(*op).end);
  }
  plan_.halves_ = TRY(device_.make_buffer(most, "halves"));
  return {};
}

Status Lowering::halve(const op::MatMul& op) {
  if (plan_.halves_.bytes() == 0) TRY(make_halves());
  const auto same = [&](const op::MatMul& other) {
    return other.x.buffer == op.x.buffer && other.x.offset == op.x.offset && other.x.rows == op.x.rows &&
           other.x.cols == op.x.cols && other.x.stride == op.x.stride &&
           other.clamp.in_min == op.clamp.in_min && other.clamp.in_max == op.clamp.in_max;
  };
  if (halved_ != nullptr && same(*halved_)) return {};
  halved_ = &op;
  const Halves bytes = halves_of(op);
  const wgsl::halves::Params params{at(op.x),        stride(op.x),    op.x.cols,        bytes.pitch,
                                    op.clamp.in_min, op.clamp.in_max, op.clamp.out_min, op.clamp.out_max};
  const u32 threads = sweep_threads(op.x.cols);
  const std::string text = format_text("const WG: u32 = {}u;\n", threads)
                               .append(wgsl::lib_reduce::source)
                               .append(bounds_of(op.clamp))
                               .append(wgsl::halves::source);
  return add("halves", text, params,
             wgsl::halves::Io{arena(), plan_.halves_.view(bytes.first, bytes.end - bytes.first),
                              plan_.halves_.view(0, bytes.first)},
             {op.x.rows});
}

Status Lowering::lower_matrix(const op::MatMul& op, const TileOptions& tiles) {
  TRY(halve(op));
  const DeviceInfo& info = device_.info();
  const DeviceWeight& w = weight(op.weight);
  const Clamp& c = op.clamp;
  const bool wide = reads_wide(w), imitated = !info.subgroup_matrix;
  CHECK(threads_of(tiles) <= info.max_invocations && memory_of(tiles) <= info.max_workgroup_memory);
  CHECK(tiles.rows % 64 == 0 && kMostTokens % tiles.tokens == 0 && kMatrixStep % tiles.step == 0);
  std::string text = tile_constants(
      imitated ? "" : "enable f16;\nenable subgroups;\nenable chromium_experimental_subgroup_matrix;\n",
      tiles, wide);
  text += format_text("const SPLIT: u32 = {}u;\nconst STAGES: u32 = {}u;\nconst PATCH: u32 = {}u;\n",
                      tiles.split, memory_of(tiles, 2) <= info.max_workgroup_memory ? 2 : 1, patch_of(tiles));
  text.append(wgsl::lib_numbers::source);
  const bool q4_k = wide && w.type == DType::kQ4_K, q6_k = wide && w.type == DType::kQ6_K;
  if (q4_k || q6_k) {
    text.append(wgsl::lib_small::source)
        .append(q4_k ? wgsl::lib_sixteen_q4_k::source : wgsl::lib_sixteen_q6_k::source);
  } else {
    text.append(wide ? wgsl::lib_words_wide::source : wgsl::lib_bytes::source)
        .append(format_source(w))
        .append(wgsl::lib_sixteen_any::source);
  }
  text.append(bounds_of(c))
      .append(imitated ? wgsl::lib_matrix_imitated::source : wgsl::lib_matrix::source)
      .append(wgsl::mat_mul_matrix::source);
  const PatchText patch = patch_text(tiles);
  text = filled(std::move(text), "  //: sums\n", patch.sums);
  text = filled(std::move(text), "      //: multiply\n", patch.multiply);
  text = filled(std::move(text), "    //: store\n", patch.store);
  text = filled(std::move(text), "OUT_TILE", has_room_for_sums(tiles) ? "x_tile" : "out_tile");
  if (!has_room_for_sums(tiles))
    text += "var<workgroup> out_tile: array<array<vec4u, 64>, TILE_THREADS / 32u>;\n";
  const Halves bytes = halves_of(op);
  for (const auto& tile : w.tiles) {
    const wgsl::mat_mul_matrix::Params params{
        bytes.pitch, at(op.out) + tile.first,        stride(op.out), tile.count, op.x.cols, op.x.rows,
        w.row_bytes, op.scale * scalar(op.scale_by), c.in_min,       c.in_max,   c.out_min, c.out_max};
    note_tiles(op, w);
    TRY(add(format_text("mat_mul_matrix {}", dtype_name(w.type)), text, params,
            wgsl::mat_mul_matrix::Io{arena(), tile.view(),
                                     plan_.halves_.view(bytes.first, bytes.end - bytes.first),
                                     plan_.halves_.view(0, bytes.first)},
            {groups(op.x.rows, tiles.tokens), groups(tile.count, tiles.rows)}));
  }
  return {};
}

Status Lowering::lower(const op::ExpertMatMul& op) {
  if (!op.grouped()) return lower_experts(op, op.out, false);
  const DeviceWeight& w = weight(op.weight);
  // A tile has the tokens of a run: rows alone make it larger.
  static_assert(op::GroupExperts::kRun == kSmall);
  TileOptions tiles = tiles_for(op.weight.rows, op.ids.rows * op.ids.cols);
  tiles = {tiles.kind == Kind::kF16 ? Kind::kF16 : Kind::kF32, tiles.rows, kSmall, 16};
  const TileKernel kernel = multiplies_tiles(wgsl::expert_mat_mul::source, w, tiles, false, {});
  for (const auto& tile : w.tiles) {
    const wgsl::expert_mat_mul::Params params{
        at(op.x),       stride(op.x), at(op.out),  stride(op.out),
        at(op.order),   at(op.runs),  op.ids.cols, op.x.rows == op.ids.rows ? 1u : 0u,
        op.weight.rows, op.x.cols,    w.row_bytes, tile.first,
        tile.count};
    TRY(add(format_text("expert_mat_mul {}", dtype_name(w.type)), kernel.text, params,
            wgsl::expert_mat_mul::Io{arena(), tile.view(), vector(op.scale_by)},
            {op.runs.rows, groups(op.weight.rows, kernel.rows)}));
  }
  return {};
}

Status Lowering::lower(const op::Conv& op) {
  const DeviceWeight& w = weight(op.weight);
  CHECK(w.tiles.size() == 1);
  const u32 positions = op.out.rows * op.out_width();
  const wgsl::conv::Params params{at(op.x),  stride(op.x),   at(op.out),  stride(op.out),
                                  op.x.rows, op.width(),     op.channels, op.weight.rows,
                                  positions, op.out_width(), w.row_bytes};
  const TileKernel kernel =
      multiplies_tiles(wgsl::conv::source, w, {Kind::kF32, kSmall, kSmall, 16}, false, {});
  return add(format_text("conv {}", dtype_name(w.type)), kernel.text, params,
             wgsl::conv::Io{arena(), w.tiles[0].view()},
             {groups(positions, kernel.tokens), groups(op.weight.rows, kernel.rows)});
}

}  // namespace bezel
