// Attention of few tokens over many keys, which are shared out over workgroups.
#include <algorithm>
#include <bit>

#include "base/format_text.h"
#include "graph/lowering.h"
#include "kernels/attention.wgsl.h"
#include "kernels/attention_decode.wgsl.h"
#include "kernels/attention_merge.wgsl.h"
#include "kernels/attention_token.wgsl.h"
#include "kernels/lib_attend.wgsl.h"
#include "kernels/lib_parts.wgsl.h"
#include "kernels/lib_reduce.wgsl.h"
#include "kernels/lib_rings.wgsl.h"
#include "kernels/lib_rings_written.wgsl.h"
#include "kernels/lib_turn.wgsl.h"

namespace bezel {
namespace {

// Bytes of workgroup memory that lib_attend.wgsl and its kernels take.
u32 decode_memory(u32 threads, u32 head_size, u32 queries, u32 runs) {
  const u32 fours = head_size / 4, lanes = std::min(16u, fours), keys = threads / lanes, step = runs * keys;
  const u32 sums = std::max(keys * queries, (queries + 2) * std::max(1u, fours / 2 / lanes)) * (lanes + 1);
  const u32 fresh = 2 * fours * 16;
  return std::max(queries * fours, threads) * 16 + sums * 4 + queries * 4 * (2 * step + 1 + 2) + fresh + 16;
}

}  // namespace

u32 attention_parts_for(const DeviceInfo& info) {
  constexpr u32 kSoftware = 8;
  constexpr u32 kBusy = 528;  // four workgroups for each multiprocessor of the largest GPUs
  return info.software ? kSoftware : kBusy;
}

std::optional<Lowering::DecodeShape> Lowering::decode_shape(const op::Attention& op) const {
  const DeviceInfo& info = device_.info();
  if (!std::has_single_bit(op.head_size) || op.head_size < 16 || !in_fours(op.q) || !in_fours(op.out))
    return {};
  const bool few = sees_few(op);
  const u32 usual = options_.workgroup > 0 ? options_.workgroup : 256;
  const u32 threads = std::max(std::bit_floor(std::min(usual, info.max_invocations)), op.head_size / 4);
  if (threads > info.max_invocations) return {};
  const u32 runs = few ? 1 : 2, ahead = !few ? 8 : op.head_size > 256 ? 4 : 2;
  for (u32 queries = queries_of(op); queries > 0; queries /= 2) {
    if (decode_memory(threads, op.head_size, queries, runs) <= info.max_workgroup_memory)
      return DecodeShape{threads, queries, runs, ahead};
  }
  return {};
}

std::string Lowering::attends(std::string_view kernel, const op::Attention& op,
                              const DecodeShape& shape) const {
  return format_text(
             "const WG: u32 = {}u;\nconst HEAD: u32 = {}u;\nconst QUERIES: u32 = {}u;\nconst RUNS: u32 = "
             "{}u;\n"
             "const AHEAD: u32 = {}u;\n",
             shape.threads, op.head_size, shape.queries, shape.runs,
             std::min(shape.ahead, shape.runs * op.head_size / 4 / std::min(16u, op.head_size / 4)))
      .append(kv())
      .append(wgsl::lib_rings::source)
      .append(wgsl::lib_parts::source)
      .append(wgsl::lib_attend::source)
      .append(kernel);
}

Status Lowering::lower_few_queries(const op::Attention& op) {
  const u32 parts = parts_of(op, options_.attention_parts);
  const u32 out = parts > 1 ? static_cast<u32>(plan_.layout_.partials) : at(op.out);
  const u32 heads_per_kv = op.heads / op.kv_heads;
  // A software adapter takes long to compile it, and barriers cost it more than reading again.
  const bool share = options_.attention_decode.value_or(!device_.info().software);
  const auto shape = share ? decode_shape(op) : std::nullopt;
  if (shape) {
    const wgsl::attention_decode::Params params{
        at(op.q),    stride(op.q),    out,          stride(op.out),   at(op.positions), stride(op.positions),
        at(op.last), stride(op.last), heads_per_kv, op.keys.cols / 4, op.keys.rows,     op.window,
        parts};
    TRY(add("attention_decode", attends(wgsl::attention_decode::source, op, *shape), params,
            wgsl::attention_decode::Io{arena(), ring(op.keys), ring(op.values)},
            {op.heads / shape->queries, op.q.rows, parts}));
  } else {
    const wgsl::attention::Params params{at(op.q),
                                         stride(op.q),
                                         out,
                                         stride(op.out),
                                         at(op.positions),
                                         stride(op.positions),
                                         at(op.last),
                                         stride(op.last),
                                         heads_per_kv,
                                         op.head_size / 4,
                                         op.keys.cols / 4,
                                         op.keys.rows,
                                         op.window,
                                         parts};
    TRY(add("attention",
            assemble({wgsl::lib_reduce::source, kv(), wgsl::lib_rings::source, wgsl::lib_parts::source,
                      wgsl::attention::source}),
            params, wgsl::attention::Io{arena(), ring(op.keys), ring(op.values)},
            {op.heads, op.q.rows, parts}));
  }
  return lower_merge(op, parts);
}

Status Lowering::lower_merge(const op::Attention& op, u32 parts) {
  if (parts == 1 || merged_by_relay(op)) return {};
  const u32 fours = op.head_size / 4, threads = sweep_threads(256);
  const wgsl::attention_merge::Params merge{static_cast<u32>(plan_.layout_.partials),
                                            at(op.out),
                                            stride(op.out),
                                            at(op.positions),
                                            stride(op.positions),
                                            at(op.last),
                                            stride(op.last),
                                            fours,
                                            op.window,
                                            parts};
  const std::string text = format_text("const WG: u32 = {}u;\n", threads)
                               .append(wgsl::lib_parts::source)
                               .append(wgsl::attention_merge::source);
  return add("attention_merge", text, merge, wgsl::attention_merge::Io{arena()},
             {groups(fours, std::min(32u, threads)), op.heads, op.q.rows});
}

Status Lowering::lower_attention(const Step& step) {
  const auto& attention = op_at<op::Attention>(step.first + step.count - 1);
  const auto& q = op_at<op::RmsNorm>(step.first);
  const auto& rope = op_at<op::Rope>(step.first + 1);
  const bool fresh = step.count == 8;  // keys and values of the token's own
  const Tensor& k = fresh ? op_at<op::RmsNorm>(step.first + 2).x : q.x;
  const Tensor& v = fresh ? op_at<op::RmsNorm>(step.first + 5).x : q.x;
  const bool together = options_.attention_token.value_or(!device_.info().software) && in_fours(q.x) &&
                        in_fours(k) && in_fours(v);
  const auto shape = together ? decode_shape(attention) : std::nullopt;
  if (!shape) {
    TRY(lower_heads({Step::Kind::kHeads, step.first, step.count - 1}));
    return lower(attention);
  }
  const u32 parts = parts_of(attention, options_.attention_parts);
  const wgsl::attention_token::Params params{
      .q = at(q.x),
      .k = at(k),
      .v = at(v),
      .out = parts > 1 ? static_cast<u32>(plan_.layout_.partials) : at(attention.out),
      .position = at(rope.positions),
      .heads_per_kv = attention.heads / attention.kv_heads,
      .row = attention.keys.cols / 4,
      .slots = attention.keys.rows,
      .window = attention.window,
      .parts = parts,
      .eps = q.eps};
  const BufferView k_weight = vector(fresh ? op_at<op::RmsNorm>(step.first + 2).weight : Weight{});
  const std::string text = format_text("const FRESH: bool = {};\n", fresh)
                               .append(wgsl::lib_turn::source)
                               .append(wgsl::lib_rings_written::source)
                               .append(attends(wgsl::attention_token::source, attention, *shape));
  TRY(add(
      "attention_token", text, params,
      wgsl::attention_token::Io{arena(), vector(q.weight), k_weight, plan_.tables_[rope.frequencies].view(),
                                ring(attention.keys), ring(attention.values)},
      {attention.heads / shape->queries, 1, parts}));
  return lower_merge(attention, parts);
}

}  // namespace bezel
