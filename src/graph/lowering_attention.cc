// Attention of few tokens over many keys, which are shared out over workgroups.
#include <algorithm>
#include <bit>
#include <format>

#include "graph/lowering.h"
#include "kernels/attention.wgsl.h"
#include "kernels/attention_decode.wgsl.h"
#include "kernels/attention_merge.wgsl.h"
#include "kernels/lib_parts.wgsl.h"
#include "kernels/lib_reduce.wgsl.h"

namespace bezel {
namespace {

// Bytes of workgroup memory that attention_decode.wgsl takes.
u32 decode_memory(u32 threads, u32 head_size, u32 queries) {
  const u32 fours = head_size / 4, lanes = std::min(16u, fours), keys = threads / lanes, step = 2 * keys;
  return std::max(queries * fours, threads) * 16 +
         queries * 4 * (keys * (lanes + 1) + (step + 1) + step + 1) + 16;
}

}  // namespace

u32 attention_parts_for(const DeviceInfo& info) {
  constexpr u32 kSoftware = 8;
  constexpr u32 kBusy = 528;  // four workgroups for each multiprocessor of the largest GPUs
  return info.software ? kSoftware : kBusy;
}

std::optional<Lowering::DecodeShape> Lowering::decode_shape(const op::Attention& op) const {
  const DeviceInfo& info = device_.info();
  // A software adapter takes long to compile it, and barriers cost it more than reading again.
  if (!options_.attention_decode.value_or(!info.software)) return {};
  if (!std::has_single_bit(op.head_size) || op.head_size < 16 || !in_fours(op.q) || !in_fours(op.out))
    return {};
  const u32 usual = options_.workgroup > 0 ? options_.workgroup : 256;
  const u32 threads = std::max(std::bit_floor(std::min(usual, info.max_invocations)), op.head_size / 4);
  if (threads > info.max_invocations) return {};
  for (u32 queries = 8; queries > 0; queries /= 2) {
    if (op.heads / op.kv_heads % queries == 0 &&
        decode_memory(threads, op.head_size, queries) <= info.max_workgroup_memory)
      return DecodeShape{threads, queries};
  }
  return {};
}

Status Lowering::lower_few_queries(const op::Attention& op) {
  const u32 parts = parts_of(op, options_.attention_parts);
  const u32 out = parts > 1 ? static_cast<u32>(plan_.layout_.partials) : at(op.out);
  const u32 heads_per_kv = op.heads / op.kv_heads;
  if (const auto shape = decode_shape(op)) {
    const wgsl::attention_decode::Params params{
        at(op.q),    stride(op.q),    out,          stride(op.out),   at(op.positions), stride(op.positions),
        at(op.last), stride(op.last), heads_per_kv, op.keys.cols / 4, op.keys.rows,     op.window,
        parts};
    std::string text =
        std::format("const WG: u32 = {}u;\nconst HEAD: u32 = {}u;\nconst QUERIES: u32 = {}u;\n",
                    shape->threads, op.head_size, shape->queries);
    text.append(kv()).append(wgsl::lib_parts::source).append(wgsl::attention_decode::source);
    TRY(add("attention_decode", text, params,
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
                                         op.head_size,
                                         op.keys.cols / (options_.kv_f16 ? 2 : 1),
                                         op.keys.rows,
                                         op.window,
                                         parts};
    TRY(add("attention",
            assemble({wgsl::lib_reduce::source, kv(), wgsl::lib_parts::source, wgsl::attention::source}),
            params, wgsl::attention::Io{arena(), ring(op.keys), ring(op.values)},
            {op.heads, op.q.rows, parts}));
  }
  if (parts == 1) return {};
  const u32 fours = op.head_size / 4, threads = sweep_threads(256);
  const wgsl::attention_merge::Params merge{
      out,         at(op.out),      stride(op.out), at(op.positions), stride(op.positions),
      at(op.last), stride(op.last), fours,          op.window,        parts};
  const std::string text = std::format("const WG: u32 = {}u;\n", threads)
                               .append(wgsl::lib_parts::source)
                               .append(wgsl::attention_merge::source);
  return add("attention_merge", text, merge, wgsl::attention_merge::Io{arena()},
             {groups(fours, std::min(16u, threads)), op.heads, op.q.rows});
}

}  // namespace bezel
