// Products with matrices.
#include <format>

#include "base/check.h"
#include "graph/lowering.h"
#include "kernels/expert_mat_mul.wgsl.h"
#include "kernels/expert_mat_vec.wgsl.h"
#include "kernels/lib_bounds.wgsl.h"
#include "kernels/lib_no_bounds.wgsl.h"
#include "kernels/lib_reduce_rows.wgsl.h"
#include "kernels/mat_mul.wgsl.h"
#include "kernels/mat_vec.wgsl.h"

namespace bezel {
namespace {

constexpr u32 kRows = 4;  // of a matrix per workgroup in products with a vector
constexpr std::string_view kRowsText = "const ROWS: u32 = 4u;\n";

}  // namespace

Status Lowering::lower(const op::MatMul& op) {
  const DeviceWeight& w = weight(op.weight);
  const f32 scale = op.scale * scalar(op.scale_by);
  const Clamp& c = op.clamp;
  const std::string_view bounds = c ? wgsl::lib_bounds::source : wgsl::lib_no_bounds::source;
  for (const auto& tile : w.tiles) {
    const u32 out = at(op.out) + tile.first;
    if (op.x.rows <= kVectorTokens) {
      const wgsl::mat_vec::Params params{at(op.x),   stride(op.x), out,         stride(op.out),
                                         tile.count, op.x.cols,    w.row_bytes, scale,
                                         c.in_min,   c.in_max,     c.out_min,   c.out_max};
      TRY(add(std::format("mat_vec {}", dtype_name(w.type)),
              std::string(kRowsText) +
                  reads_weights(wgsl::mat_vec::source, w.type, wgsl::lib_reduce_rows::source, bounds),
              params, wgsl::mat_vec::Io{arena(), tile.buffer.view()},
              {groups(tile.count, kRows), op.x.rows}));
    } else {
      const wgsl::mat_mul::Params params{at(op.x),  stride(op.x), out,         stride(op.out), tile.count,
                                         op.x.cols, op.x.rows,    w.row_bytes, scale,          c.in_min,
                                         c.in_max,  c.out_min,    c.out_max};
      TRY(add(std::format("mat_mul {}", dtype_name(w.type)),
              multiplies_tiles(wgsl::mat_mul::source, w.type, bounds), params,
              wgsl::mat_mul::Io{arena(), tile.buffer.view()},
              {groups(tile.count, kTile), groups(op.x.rows, kTile)}));
    }
  }
  return {};
}

Status Lowering::lower(const op::ExpertMatMul& op) {
  const DeviceWeight& w = weight(op.weight);
  const u32 per_token = op.x.rows == op.ids.rows ? 1 : 0;
  for (const auto& tile : w.tiles) {
    if (op.grouped()) {
      static_assert(op::GroupExperts::kRun == kTile);
      const wgsl::expert_mat_mul::Params params{
          at(op.x),  stride(op.x),   at(op.out), stride(op.out), at(op.order), at(op.runs), op.ids.cols,
          per_token, op.weight.rows, op.x.cols,  w.row_bytes,    tile.first,   tile.count};
      TRY(add(std::format("expert_mat_mul {}", dtype_name(w.type)),
              multiplies_tiles(wgsl::expert_mat_mul::source, w.type), params,
              wgsl::expert_mat_mul::Io{arena(), tile.buffer.view(), vector(op.scale_by)},
              {groups(op.weight.rows, kTile), op.runs.rows}));
    } else {
      const wgsl::expert_mat_vec::Params params{
          at(op.x),  stride(op.x),   at(op.out), stride(op.out), at(op.ids), stride(op.ids), op.ids.cols,
          per_token, op.weight.rows, op.x.cols,  w.row_bytes,    tile.first, tile.count};
      TRY(add(std::format("expert_mat_vec {}", dtype_name(w.type)),
              std::string(kRowsText) +
                  reads_weights(wgsl::expert_mat_vec::source, w.type, wgsl::lib_reduce_rows::source),
              params, wgsl::expert_mat_vec::Io{arena(), tile.buffer.view(), vector(op.scale_by)},
              {groups(op.weight.rows, kRows), op.out.rows}));
    }
  }
  return {};
}

}  // namespace bezel
