// Products of matrices with a few vectors.
#include <algorithm>
#include <array>
#include <format>

#include "base/check.h"
#include "graph/lowering.h"
#include "graph/tuning.h"
#include "kernels/gated_mat_vec.wgsl.h"
#include "kernels/lib_arena_fours.wgsl.h"
#include "kernels/lib_arena_ones.wgsl.h"
#include "kernels/lib_bounds.wgsl.h"
#include "kernels/lib_bytes.wgsl.h"
#include "kernels/lib_gelu.wgsl.h"
#include "kernels/lib_no_bounds.wgsl.h"
#include "kernels/lib_numbers.wgsl.h"
#include "kernels/lib_product.wgsl.h"
#include "kernels/lib_product_direct.wgsl.h"
#include "kernels/lib_reduce_rows.wgsl.h"
#include "kernels/lib_reduce_rows_subgroups.wgsl.h"
#include "kernels/lib_small.wgsl.h"
#include "kernels/lib_totals.wgsl.h"
#include "kernels/lib_unit_any.wgsl.h"
#include "kernels/lib_unit_q4_k.wgsl.h"
#include "kernels/lib_unit_q5_k.wgsl.h"
#include "kernels/lib_unit_q6_k.wgsl.h"
#include "kernels/lib_unit_scales.wgsl.h"
#include "kernels/lib_words_wide.wgsl.h"
#include "kernels/mat_vec.wgsl.h"
#include "kernels/mat_vecs.wgsl.h"

namespace bezel {
namespace {

// What tells a product with a vector how to read a type: units of 64 where there is a library for it, else of
// 16.
std::string unit_source(const DeviceWeight& w) {
  const auto small = [](std::string_view scales, std::string_view unit) {
    return std::string(wgsl::lib_small::source).append(scales).append(unit);
  };
  switch (w.type) {
    case DType::kQ4_K:
      return small(wgsl::lib_unit_scales::source, wgsl::lib_unit_q4_k::source);
    case DType::kQ5_K:
      return small(wgsl::lib_unit_scales::source, wgsl::lib_unit_q5_k::source);
    case DType::kQ6_K:
      if (w.padded) return small({}, wgsl::lib_unit_q6_k::source);
      [[fallthrough]];
    default:
      return std::string(reads_wide(w) ? wgsl::lib_words_wide::source : wgsl::lib_bytes::source)
          .append(format_source(w))
          .append(wgsl::lib_unit_any::source);
  }
}

// What was fastest on an H200 (bench/RESULTS.md). A small matrix needs many threads for each row, so that all
// of the GPU has work; a large one, few, which share what they read of the vector.
VectorOptions vector_table(DType type, u32 rows, u32 cols) {
  if (rows < 5000) return {{}, 256, 32, 1};
  if (cols > 8192) return {{}, 128, 16, 2};
  if (type == DType::kQ6_K) return {{}, 256, 8, cols < 4096 ? 2u : 1u};
  return {{}, rows < 16384 && cols < 4096 ? 128u : 256u, 8, 2};
}

ProductKind kind_of(std::string_view kernel) {
  if (kernel == wgsl::gated_mat_vec::source) return ProductKind::kGated;
  return kernel == wgsl::mat_vecs::source ? ProductKind::kSeveral : ProductKind::kOne;
}

// Subgroups have at least so many threads.
u32 least_subgroup(const DeviceInfo& info) { return info.vendor == "nvidia" ? 32 : 4; }

}  // namespace

std::string_view Lowering::bounds_of(const Clamp& clamp) {
  return clamp ? wgsl::lib_bounds::source : wgsl::lib_no_bounds::source;
}

VectorKernel Lowering::multiplies_vector(std::string_view kernel, const DeviceWeight& w, u32 rows, u32 cols,
                                         bool fours, u32 multiple, std::string_view more) const {
  const ProductShape shape{kind_of(kernel), w.type, rows, cols};
  plan_.products_.emplace_back(dispatches_.size(), shape);
  const VectorOptions* measured = options_.tuning == nullptr ? nullptr : options_.tuning->find(shape);
  const VectorOptions& wish = measured == nullptr ? options_.vector : *measured;
  const bool software = device_.info().software, units = wish.units.value_or(!software);
  const VectorOptions suits =
      software ? VectorOptions{{}, threads_, threads_, 4} : vector_table(w.type, rows, cols);
  const u32 threads = wish.threads > 0 ? wish.threads : suits.threads;
  const u32 lanes = std::min(threads, wish.lanes > 0 ? wish.lanes : suits.lanes);
  u32 together = std::max(wish.rows > 0 ? wish.rows : suits.rows, multiple / 4);
  while (threads / lanes * together % multiple != 0) together *= 2;
  CHECK(threads % lanes == 0 && lanes % together == 0);
  const bool subgroups = wish.subgroups && device_.info().subgroups;
  const bool wide = units && reads_wide(w);
  std::string text = std::format(
      "{}const WG: u32 = {}u;\nconst LANES: u32 = {}u;\nconst ROWS: u32 = {}u;\nalias Word = {};\n",
      subgroups ? "enable subgroups;\n" : "", threads, lanes, together, wide ? "vec4u" : "u32");
  if (subgroups)
    text += std::format("const SUBGROUP: u32 = {}u;\n", std::min(lanes, least_subgroup(device_.info())));
  text.append(wgsl::lib_numbers::source)
      .append(fours ? wgsl::lib_arena_fours::source : wgsl::lib_arena_ones::source);
  if (units) {
    text.append(unit_source(w)).append(wgsl::lib_product::source);
  } else {
    text.append(wgsl::lib_bytes::source).append(format_source(w)).append(wgsl::lib_product_direct::source);
  }
  text.append(subgroups ? wgsl::lib_reduce_rows_subgroups::source : wgsl::lib_reduce_rows::source)
      .append(wgsl::lib_totals::source)
      .append(more)
      .append(kernel);
  return {std::move(text), threads / lanes * together};
}

Status Lowering::lower_vector(const op::MatMul& op, const Tensor& result, u32 gate, const Tensor& other) {
  const DeviceWeight& w = weight(op.weight);
  const Clamp& c = op.clamp;
  std::string more = std::format("const GATE: u32 = {}u;\n", gate);
  more.append(bounds_of(c)).append(wgsl::lib_gelu::source);
  for (const auto& tile : w.tiles) {
    const bool fours = in_fours(op.x) && in_fours(result) && (gate == 0 || in_fours(other)) &&
                       tile.first % 4 == 0 && tile.count % 4 == 0;
    const VectorKernel kernel =
        multiplies_vector(wgsl::mat_vec::source, w, op.weight.rows, op.x.cols, fours, 4, more);
    const wgsl::mat_vec::Params params{at(op.x),
                                       stride(op.x),
                                       at(result) + tile.first,
                                       stride(result),
                                       gate > 0 ? at(other) + tile.first : 0,
                                       stride(other),
                                       tile.count,
                                       op.x.cols,
                                       w.row_bytes,
                                       op.scale * scalar(op.scale_by),
                                       c.in_min,
                                       c.in_max,
                                       c.out_min,
                                       c.out_max};
    TRY(add(std::format("mat_vec {}{}", dtype_name(w.type), gate > 0 ? " gated" : ""), kernel.text, params,
            wgsl::mat_vec::Io{arena(), tile.buffer.view()}, {groups(tile.count, kernel.rows), op.x.rows}));
  }
  return {};
}

Status Lowering::lower_gated(const Step& step) {
  const auto& gate = op_at<op::MatMul>(step.first);
  if (step.count == 2) {
    const auto& mul = op_at<op::GeluMul>(step.first + 1);
    return lower_vector(gate, mul.out, 1, mul.up);
  }
  const auto& up = op_at<op::MatMul>(step.first + 1);
  const Tensor& out = op_at<op::GeluMul>(step.first + 2).out;
  if (in_one_piece(gate) && in_one_piece(up)) return lower_pair(gate, up, out);
  TRY(lower(gate));
  return lower_vector(up, out, 2, gate.out);
}

Status Lowering::lower_pair(const op::MatMul& gate, const op::MatMul& up, const Tensor& out) {
  const DeviceWeight& w = weight(gate.weight);
  const VectorKernel kernel =
      multiplies_vector(wgsl::gated_mat_vec::source, w, 2 * gate.weight.rows, gate.x.cols,
                        in_fours(gate.x) && in_fours(out), 8, wgsl::lib_gelu::source);
  const wgsl::gated_mat_vec::Params params{at(gate.x),
                                           stride(gate.x),
                                           at(out),
                                           stride(out),
                                           gate.weight.rows,
                                           gate.x.cols,
                                           w.row_bytes,
                                           gate.scale * scalar(gate.scale_by),
                                           up.scale * scalar(up.scale_by)};
  return add(
      std::format("gated_mat_vec {}", dtype_name(w.type)), kernel.text, params,
      wgsl::gated_mat_vec::Io{arena(), w.tiles[0].buffer.view(), weight(up.weight).tiles[0].buffer.view()},
      {groups(gate.weight.rows, kernel.rows / 2), gate.x.rows});
}

Status Lowering::lower_products(const Step& step) {
  // Of the third, where there is none, no rows.
  std::array<const op::MatMul*, 3> ops{};
  for (std::size_t i = 0; i < 3; ++i) ops[i] = &op_at<op::MatMul>(step.first + std::min(i, step.count - 1));
  if (!std::ranges::all_of(ops, [&](const op::MatMul* op) { return in_one_piece(*op); })) {
    for (std::size_t i = 0; i < step.count; ++i) TRY(lower(*ops[i]));
    return {};
  }
  std::array<u32, 3> rows{};
  for (std::size_t i = 0; i < step.count; ++i) rows[i] = ops[i]->weight.rows;
  const op::MatMul& first = *ops[0];
  const DeviceWeight& w = weight(first.weight);
  const bool fours =
      in_fours(first.x) && std::ranges::all_of(ops, [&](const op::MatMul* op) { return in_fours(op->out); });
  const VectorKernel kernel =
      multiplies_vector(wgsl::mat_vecs::source, w, rows[0] + rows[1] + rows[2], first.x.cols, fours, 4, {});
  const auto scale = [&](std::size_t i) { return ops[i]->scale * scalar(ops[i]->scale_by); };
  const auto buffer = [&](std::size_t i) { return weight(ops[i]->weight).tiles[0].buffer.view(); };
  const wgsl::mat_vecs::Params params{at(first.x), stride(first.x), first.x.cols,        w.row_bytes,  //
                                      rows[0],     at(first.out),   stride(first.out),   scale(0),     //
                                      rows[1],     at(ops[1]->out), stride(ops[1]->out), scale(1),     //
                                      rows[2],     at(ops[2]->out), stride(ops[2]->out), scale(2)};
  u32 count = 0;
  for (const u32 n : rows) count += groups(n, kernel.rows);
  return add(std::format("mat_vecs {}", dtype_name(w.type)), kernel.text, params,
             wgsl::mat_vecs::Io{arena(), buffer(0), buffer(1), buffer(2)}, {count, first.x.rows});
}

}  // namespace bezel
