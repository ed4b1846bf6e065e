#include "graph/lowering.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/format_text.h"
#include "kernels/add.wgsl.h"
#include "kernels/attention_tile.wgsl.h"
#include "kernels/average_pool.wgsl.h"
#include "kernels/conv_time.wgsl.h"
#include "kernels/embed_rows.wgsl.h"
#include "kernels/expert_sum.wgsl.h"
#include "kernels/full_attention.wgsl.h"
#include "kernels/gelu_mul.wgsl.h"
#include "kernels/group_experts.wgsl.h"
#include "kernels/kv_write.wgsl.h"
#include "kernels/layer_norm.wgsl.h"
#include "kernels/lib_arena_ones.wgsl.h"
#include "kernels/lib_best.wgsl.h"
#include "kernels/lib_bytes.wgsl.h"
#include "kernels/lib_choose.wgsl.h"
#include "kernels/lib_gelu.wgsl.h"
#include "kernels/lib_kv_f16.wgsl.h"
#include "kernels/lib_kv_f32.wgsl.h"
#include "kernels/lib_kv_plain.wgsl.h"
#include "kernels/lib_kv_q8.wgsl.h"
#include "kernels/lib_numbers.wgsl.h"
#include "kernels/lib_reduce.wgsl.h"
#include "kernels/lib_rings.wgsl.h"
#include "kernels/lib_turn.wgsl.h"
#include "kernels/local_attention.wgsl.h"
#include "kernels/rope.wgsl.h"
#include "kernels/sample.wgsl.h"
#include "kernels/shift_scale.wgsl.h"
#include "kernels/sigmoid_mul.wgsl.h"
#include "kernels/soft_cap.wgsl.h"
#include "kernels/splice.wgsl.h"
#include "kernels/top_experts.wgsl.h"
#include "kernels/top_merge.wgsl.h"
#include "kernels/top_slice.wgsl.h"

namespace bezel {

Lowering::Lowering(Device& device, const Graph& graph, const DeviceWeights& weights,
                   std::span<const Buffer> states, PlanOptions options, Plan& plan)
    : device_(device), graph_(graph), weights_(weights), states_(states), options_(options), plan_(plan) {
  // A software adapter makes a fiber of every few threads that share a barrier: there, fewer are much faster.
  const u32 suits = device.info().software ? 16 : 64;
  threads_ = options.workgroup > 0 ? options.workgroup : suits;
}

Status Lowering::lower() {
  const auto steps = fuse(graph_);
  find_normed(steps);
  find_relays(steps);
  TRY(make_relays(steps));
  for (std::size_t i = 0, next = 0; i < steps.size();) {
    if (next < relays_.size() && relays_[next].first == i) {
      i += relays_[next].count;
      TRY(lower_relay(next++));
    } else {
      TRY(lower(steps[i++]));
    }
  }
  return {};
}

Status Lowering::run() {
  TRY(lower());
  const std::size_t all = dispatches_.size();
  const std::size_t most =
      options_.dispatches_at_once > 0 ? options_.dispatches_at_once : std::max<std::size_t>(all, 1);
  for (std::size_t at = 0; at < all; at += most) {
    const auto part = std::span(dispatches_).subspan(at, std::min(most, all - at));
    plan_.programs_.push_back(TRY(device_.make_program(part)));
  }
  return {};
}

std::string Lowering::assemble(std::initializer_list<std::string_view> parts) const {
  std::string text = format_text("const WG: u32 = {}u;\n", threads_);
  for (const auto part : parts) text += part;
  return text;
}

std::string Lowering::reads_weights(std::string_view kernel, const DeviceWeight& w, std::string_view more,
                                    std::string_view and_more) const {
  return assemble(
      {wgsl::lib_numbers::source, wgsl::lib_bytes::source, format_source(w), more, and_more, kernel});
}

std::string Lowering::kv() const {
  if (options_.kv == KvType::kQ8) return std::string(wgsl::lib_kv_q8::source);
  return std::string(options_.kv == KvType::kF16 ? wgsl::lib_kv_f16::source : wgsl::lib_kv_f32::source)
      .append(wgsl::lib_kv_plain::source);
}

Status Lowering::emit(std::string label, const std::string& text, std::vector<std::byte> params,
                      std::span<const BufferView> views, Grid grid) {
  Dispatch dispatch;
  dispatch.pipeline = TRY(device_.pipeline(text, label));
  dispatch.params = std::move(params);
  dispatch.bindings.assign(views.begin(), views.end());
  const u32 most = device_.info().max_groups;
  if (grid.x > most) {  // fold: kernels that may need it add z * (groups along x)
    CHECK(grid.z == 1);
    grid.z = groups(grid.x, most);
    grid.x = most;
  }
  CHECK(grid.y <= most && grid.z <= most);
  dispatch.grid = grid;
  dispatches_.push_back(std::move(dispatch));
  plan_.labels_.push_back(std::move(label));
  return {};
}

Status Lowering::lower(const op::EmbedRows& op) {
  const DeviceWeight& table = weight(op.table);
  for (const auto& tile : table.tiles) {
    const wgsl::embed_rows::Params params{at(op.ids),     stride(op.ids), at(op.out),
                                          stride(op.out), op.table.cols,  table.row_bytes,
                                          tile.first,     tile.count,     op.scale};
    TRY(add(format_text("embed_rows {}", dtype_name(table.type)),
            reads_weights(wgsl::embed_rows::source, table), params,
            wgsl::embed_rows::Io{arena(), tile.view()}, {groups(op.table.cols, 16 * threads_), op.out.rows}));
  }
  return {};
}

Status Lowering::lower(const op::Splice& op) {
  const wgsl::splice::Params params{at(op.x),        stride(op.x),   at(op.soft),
                                    stride(op.soft), at(op.is_soft), stride(op.is_soft),
                                    at(op.out),      stride(op.out), op.out.cols};
  return add("splice", assemble({wgsl::splice::source}), params, wgsl::splice::Io{arena()}, elements(op.out));
}

Status Lowering::lower(const op::Rope& op) {
  const u32 half = op.head_size / 2;
  const wgsl::rope::Params params{at(op.x),         stride(op.x),         at(op.out),        stride(op.out),
                                  at(op.positions), stride(op.positions), op.positions.cols, half,
                                  op.x.cols};
  return add("rope", assemble({wgsl::lib_turn::source, wgsl::rope::source}), params,
             wgsl::rope::Io{arena(), plan_.tables_[op.frequencies].view()},
             {groups(op.x.cols / 2, threads_), op.x.rows});
}

Status Lowering::lower(const op::KvWrite& op) {
  CHECK(op.x.cols % (options_.kv == KvType::kQ8 ? kKvBlock : 4) == 0);
  const u32 fours = op.x.cols / 4;
  const wgsl::kv_write::Params params{at(op.x), stride(op.x), at(op.positions), stride(op.positions),
                                      fours,    op.ring.rows};
  return add("kv_write", assemble({kv(), wgsl::kv_write::source}), params,
             wgsl::kv_write::Io{arena(), ring(op.ring)}, {groups(fours, threads_), op.x.rows});
}

// Many queries share what they read of the keys.
Status Lowering::lower_many_queries(const op::Attention& op) {
  constexpr u32 kQueries = 16;  // QUERIES in attention_tile.wgsl
  const wgsl::attention_tile::Params params{at(op.q),         stride(op.q),     at(op.out),
                                            stride(op.out),   at(op.positions), stride(op.positions),
                                            at(op.last),      stride(op.last),  op.heads / op.kv_heads,
                                            op.keys.cols / 4, op.keys.rows,     op.window,
                                            op.q.rows};
  const std::string constants = format_text("const HEAD: u32 = {}u;\nconst THREADS: u32 = {}u;\n",
                                            op.head_size, std::max(op.head_size / 2, 64u));
  return add("attention_tile",
             std::string(constants)
                 .append(kv())
                 .append(wgsl::lib_rings::source)
                 .append(wgsl::attention_tile::source),
             params, wgsl::attention_tile::Io{arena(), ring(op.keys), ring(op.values)},
             {op.heads, groups(op.q.rows, kQueries)});
}

Status Lowering::lower(const op::Attention& op) {
  CHECK(op.head_size % (options_.kv == KvType::kQ8 ? kKvBlock : 4) == 0);
  // For a software adapter, barriers cost more than reading again.
  constexpr u32 kMany = 16;
  const bool many = options_.attention_tiles.value_or(!device_.info().software && op.q.rows >= kMany);
  if (many && std::has_single_bit(op.head_size) && op.head_size >= 32 && op.head_size <= 512 &&
      std::max(op.head_size / 2, 64u) <= device_.info().max_invocations)
    return lower_many_queries(op);
  return lower_few_queries(op);
}

Status Lowering::lower(const op::Add& op) {
  const wgsl::add::Params params{at(op.a),   stride(op.a),   at(op.b),    stride(op.b),
                                 at(op.out), stride(op.out), op.out.cols, op.scale * scalar(op.scale_by)};
  return add("add", assemble({wgsl::add::source}), params, wgsl::add::Io{arena()}, elements(op.out));
}

Status Lowering::lower(const op::GeluMul& op) {
  const wgsl::gelu_mul::Params params{at(op.gate), stride(op.gate), at(op.up),  stride(op.up),
                                      at(op.out),  stride(op.out),  op.out.cols};
  return add("gelu_mul", assemble({wgsl::lib_gelu::source, wgsl::gelu_mul::source}), params,
             wgsl::gelu_mul::Io{arena()}, elements(op.out));
}

Status Lowering::lower(const op::SigmoidMul& op) {
  const wgsl::sigmoid_mul::Params params{at(op.x),   stride(op.x),   at(op.gate), stride(op.gate),
                                         at(op.out), stride(op.out), op.out.cols};
  return add("sigmoid_mul", assemble({wgsl::sigmoid_mul::source}), params, wgsl::sigmoid_mul::Io{arena()},
             elements(op.out));
}

Status Lowering::lower(const op::LayerNorm& op) {
  const wgsl::layer_norm::Params params{at(op.x), stride(op.x),          at(op.out), stride(op.out), op.group,
                                        op.eps,   op.bias ? 1.0f : 0.0f, op.relu};
  return add("layer_norm", assemble({wgsl::lib_reduce::source, wgsl::layer_norm::source}), params,
             wgsl::layer_norm::Io{arena(), vector(op.weight), vector(op.bias)},
             {op.x.cols / op.group, op.x.rows});
}

Status Lowering::lower(const op::ConvTime& op) {
  const DeviceWeight& w = weight(op.weight);
  CHECK(w.tiles.size() == 1 && w.type == DType::kF32);
  const wgsl::conv_time::Params params{at(op.x),
                                       stride(op.x),
                                       at(op.out),
                                       stride(op.out),
                                       op.out.cols,
                                       op.weight.cols,
                                       w.row_bytes / static_cast<u32>(sizeof(f32))};
  return add("conv_time", assemble({wgsl::conv_time::source}), params,
             wgsl::conv_time::Io{arena(), w.tiles[0].view()}, elements(op.out));
}

Status Lowering::lower(const op::LocalAttention& op) {
  const wgsl::local_attention::Params params{
      at(op.q),          stride(op.q),    at(op.keys),         stride(op.keys), at(op.values),
      stride(op.values), at(op.relative), stride(op.relative), at(op.out),      stride(op.out),
      op.head_size(),    op.window(),     op.query_scale,      op.key_scale,    op.cap};
  return add("local_attention", assemble({wgsl::local_attention::source}), params,
             wgsl::local_attention::Io{arena(), vector(op.weight)}, {op.heads, op.q.rows});
}

Status Lowering::lower(const op::TopExperts& op) {
  const wgsl::top_experts::Params params{at(op.logits),  stride(op.logits), at(op.ids),
                                         stride(op.ids), at(op.weights),    stride(op.weights)};
  const std::string counts =
      format_text("const EXPERTS: u32 = {}u;\nconst USED: u32 = {}u;\n", op.logits.cols, op.ids.cols);
  return add(
      "top_experts",
      assemble({counts, wgsl::lib_arena_ones::source, wgsl::lib_choose::source, wgsl::top_experts::source}),
      params, wgsl::top_experts::Io{arena()}, {op.logits.rows});
}

Status Lowering::lower(const op::GroupExperts& op) {
  const wgsl::group_experts::Params params{at(op.ids),  stride(op.ids), at(op.order),          at(op.runs),
                                           op.ids.cols, op.order.cols,  op::GroupExperts::kRun};
  return add("group_experts", assemble({wgsl::group_experts::source}), params,
             wgsl::group_experts::Io{arena()}, {op.experts});
}

Status Lowering::lower(const op::ExpertSum& op) {
  const wgsl::expert_sum::Params params{at(op.y),   stride(op.y),   at(op.weights),  stride(op.weights),
                                        at(op.out), stride(op.out), op.weights.cols, op.out.cols};
  return add("expert_sum", assemble({wgsl::expert_sum::source}), params, wgsl::expert_sum::Io{arena()},
             elements(op.out));
}

Status Lowering::lower(const op::SoftCap& op) {
  const wgsl::soft_cap::Params params{at(op.x),       stride(op.x), at(op.out),
                                      stride(op.out), op.out.cols,  op.cap};
  return add("soft_cap", assemble({wgsl::soft_cap::source}), params, wgsl::soft_cap::Io{arena()},
             elements(op.out));
}

Status Lowering::lower(const op::TopK& op) {
  const u32 partial = static_cast<u32>(plan_.layout_.partials);
  const u32 slices = groups(op.x.cols, slice_of(op));
  const wgsl::top_slice::Params slice{at(op.x), stride(op.x), partial, op.x.cols, slice_of(op), op.k()};
  TRY(add("top_slice", assemble({wgsl::lib_best::source, wgsl::lib_reduce::source, wgsl::top_slice::source}),
          slice, wgsl::top_slice::Io{arena()}, {slices, op.x.rows}));
  const wgsl::top_merge::Params merge{at(op.x),       stride(op.x), partial, at(op.out),
                                      stride(op.out), slices,       op.k()};
  return add("top_merge",
             assemble({wgsl::lib_best::source, wgsl::lib_reduce::source, wgsl::top_merge::source}), merge,
             wgsl::top_merge::Io{arena()}, {op.x.rows});
}

Status Lowering::lower(const op::Sample& op) {
  const wgsl::sample::Params params{at(op.top),       at(op.draw), at(op.ids),
                                    at(op.positions), at(op.out),  op.k()};
  return add("sample", assemble({wgsl::lib_best::source, wgsl::sample::source}), params,
             wgsl::sample::Io{arena()}, {1});
}

Status Lowering::lower(const op::FullAttention& op) {
  constexpr u32 kQueries = 64;  // QUERIES in full_attention.wgsl
  const wgsl::full_attention::Params params{at(op.q),     stride(op.q),   at(op.k),
                                            stride(op.k), at(op.v),       stride(op.v),
                                            at(op.out),   stride(op.out), op.q.rows};
  return add("full_attention",
             format_text("const HEAD: u32 = {}u;\n{}", op.head_size, wgsl::full_attention::source), params,
             wgsl::full_attention::Io{arena()}, {groups(op.q.rows, kQueries), op.q.cols / op.head_size});
}

Status Lowering::lower(const op::ShiftScale& op) {
  const wgsl::shift_scale::Params params{at(op.x),       stride(op.x), at(op.out),
                                         stride(op.out), op.x.cols,    op.shift ? op.sign : 0.0f};
  return add("shift_scale", assemble({wgsl::shift_scale::source}), params,
             wgsl::shift_scale::Io{arena(), vector(op.shift), vector(op.factor)}, elements(op.out));
}

Status Lowering::lower(const op::AveragePool& op) {
  const wgsl::average_pool::Params params{at(op.x),    stride(op.x), at(op.out), stride(op.out),
                                          op.out.cols, op.width,     op.side,    op.scale};
  return add("average_pool", assemble({wgsl::average_pool::source}), params, wgsl::average_pool::Io{arena()},
             elements(op.out));
}

}  // namespace bezel
