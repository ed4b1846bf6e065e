#include <algorithm>
#include <numeric>

#include "graph/fuse.h"
#include "graph/plan.h"

namespace bezel {
namespace {

constexpr u64 kAlign = 64;  // elements: the offset of a storage binding is a multiple of 256 bytes

struct Life {
  u32 buffer;
  u64 elements;
  std::size_t first, last;  // steps, inclusive
  u64 offset = 0;
};

}  // namespace

bool sees_few(const op::Attention& op) {
  constexpr u32 kFew = 4096;
  return op.keys.rows <= kFew || (op.window > 0 && op.window <= kFew);
}

u32 queries_of(const op::Attention& op) {
  constexpr u32 kMany = 32;  // heads, which would read the same keys too often
  const u32 most = !sees_few(op) ? 8 : op.heads >= kMany ? 2 : 1;
  return std::gcd(most, op.heads / op.kv_heads);
}

u32 parts_of(const op::Attention& op, u32 attention_parts) {
  constexpr u32 kMany = 16;  // tokens that keep a GPU busy themselves
  // Parts: more cost more to merge than they save. Of few keys about as many as a large GPU runs at a time.
  const u32 most = sees_few(op) ? std::clamp(256 / (op.heads / queries_of(op)), 8u, 32u) : 128;
  constexpr u32 kLeast = 16;  // keys of a part, LEAST in lib_parts.wgsl
  // Parts are merged by fours.
  const bool fours = op.head_size % 4 == 0 && op.out.offset % 4 == 0 && op.out.stride % 4 == 0;
  if (op.q.rows >= kMany || !fours) return 1;
  // However many tokens there are, their parts take no more room than those of one.
  u32 parts = std::min(attention_parts / op.kv_heads, most);
  if (op.window > 0) parts = std::min(parts, (op.window + kLeast - 1) / kLeast);
  return std::max(parts / op.q.rows, 1u);
}

u32 slice_of(const op::TopK& op) {
  constexpr u32 kLeast = 1024, kMostSlices = 256;  // the latter is MOST in top_merge.wgsl
  return std::max(kLeast, (op.x.cols + kMostSlices - 1) / kMostSlices);
}

Arena lay_out(const Graph& graph, std::span<const std::string_view> keep, u32 attention_parts, bool relays) {
  const auto& buffers = graph.buffers();
  const auto& ops = graph.ops();
  std::vector<Life> lives(buffers.size());
  for (u32 i = 0; i < buffers.size(); ++i) lives[i] = {i, buffers[i].elements, ops.size(), 0};
  const auto touch = [&](const Tensor& x, std::size_t at) {
    lives[x.buffer].first = std::min(lives[x.buffer].first, at);
    lives[x.buffer].last = std::max(lives[x.buffer].last, at);
  };
  const std::vector<Step> steps = fuse(graph);
  std::vector<std::size_t> when(steps.size());  // steps of a relay run at the same time
  std::iota(when.begin(), when.end(), 0);
  if (relays) {
    for (const auto& [first, end] : relay_runs(graph, steps))
      std::fill(&when[first], &when[end - 1] + 1, first);
  }
  for (std::size_t at = 0; at < steps.size(); ++at) {
    // A relay joins the parts of the attention before it.
    const bool goes_on = relays && steps[at].kind == Step::Kind::kAttend;
    const auto now = [&](const Tensor& x) {
      touch(x, when[at]);
      if (goes_on) touch(x, when[at] + 1);
    };
    for (std::size_t i = 0; i < steps[at].count; ++i)
      std::visit([&](const auto& op) { op.tensors(now, now); }, ops[steps[at].first + i]);
  }
  for (const auto& [name, tensor] : graph.names()) {
    if (std::ranges::contains(keep, name)) touch(tensor, ops.size());
  }
  Arena arena;
  arena.offset.assign(buffers.size(), 0);
  std::erase_if(lives, [&](const Life& life) { return buffers[life.buffer].storage == Storage::kState; });
  for (Life& life : lives) {
    if (buffers[life.buffer].storage == Storage::kInput) life.first = 0;
  }
  // The largest first, each at the lowest place where nobody alive at the same time is.
  std::ranges::stable_sort(lives, std::greater{}, &Life::elements);
  std::vector<Life> placed;
  for (Life& life : lives) {
    std::vector<std::pair<u64, u64>> taken;
    for (const Life& other : placed) {
      if (other.first <= life.last && life.first <= other.last) {
        taken.emplace_back(other.offset, other.offset + other.elements);
      }
    }
    std::ranges::sort(taken);
    u64 at = 0;
    for (const auto& [begin, end] : taken) {
      if (at + life.elements <= begin) break;
      at = std::max(at, (end + kAlign - 1) / kAlign * kAlign);
    }
    life.offset = at;
    arena.offset[life.buffer] = at;
    arena.elements = std::max(arena.elements, at + life.elements);
    placed.push_back(life);
  }
  arena.partials = (arena.elements + kAlign - 1) / kAlign * kAlign;
  for (const Op& op : ops) {
    if (const auto* top = std::get_if<op::TopK>(&op)) {
      const u64 slices = (u64{top->x.cols} + slice_of(*top) - 1) / slice_of(*top);
      arena.elements = std::max(arena.elements, arena.partials + top->x.rows * slices * (top->k() + 2));
    }
    const auto* attention = std::get_if<op::Attention>(&op);
    if (attention == nullptr) continue;
    const u64 parts = parts_of(*attention, attention_parts);
    if (parts == 1) continue;
    const u64 rows = u64{attention->q.rows} * attention->heads * parts;
    arena.elements = std::max(arena.elements, arena.partials + rows * (attention->head_size + 4));
  }
  arena.elements = (arena.elements + 3) / 4 * 4;  // kernels that read fours could not reach a rest of fewer
  return arena;
}

}  // namespace bezel
