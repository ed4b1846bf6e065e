#include "graph/graph.h"

#include <algorithm>

#include "base/check.h"

namespace bezel {

Tensor Graph::make(Storage storage, u32 index, u32 rows, u32 cols) {
  buffers_.push_back({storage, u64{rows} * cols, index});
  return {static_cast<u32>(buffers_.size() - 1), rows, cols, 0, cols};
}

Tensor Graph::input(u32 index, u32 rows, u32 cols) { return make(Storage::kInput, index, rows, cols); }
Tensor Graph::state(u32 index, u32 rows, u32 cols) { return make(Storage::kState, index, rows, cols); }

u32 Graph::add_table(std::vector<f64> values) {
  tables_.push_back(std::move(values));
  return static_cast<u32>(tables_.size() - 1);
}

Tensor Graph::rows(Tensor x, u32 first, u32 count) {
  CHECK(first + count <= x.rows);
  x.offset += first * x.stride;
  x.rows = count;
  return x;
}

Tensor Graph::cols(Tensor x, u32 first, u32 count) {
  CHECK(first + count <= x.cols);
  x.offset += first;
  x.cols = count;
  return x;
}

Tensor Graph::embed_rows(Tensor ids, Weight table, f32 scale) {
  const Tensor out = scratch(ids.rows, table.cols);
  ops_.emplace_back(op::EmbedRows{ids, out, table, scale});
  return out;
}

Tensor Graph::splice(Tensor x, Tensor soft, Tensor is_soft) {
  CHECK(soft.rows == x.rows && soft.cols == x.cols && is_soft.rows == x.rows);
  const Tensor out = scratch(x.rows, x.cols);
  ops_.emplace_back(op::Splice{x, soft, is_soft, out});
  return out;
}

Tensor Graph::mat_mul(Tensor x, Weight weight, Weight scale_by, f32 scale, const Clamp& clamp) {
  CHECK(x.cols == weight.cols && weight.depth == 1);
  const Tensor out = scratch(x.rows, weight.rows);
  ops_.emplace_back(op::MatMul{x, out, weight, scale_by, scale, clamp});
  return out;
}

Tensor Graph::rms_norm(Tensor x, Weight weight, f32 eps, u32 group, f32 scale) {
  if (group == 0) group = x.cols;
  CHECK(x.cols % group == 0 && (!weight || weight.cols == group));
  const Tensor out = scratch(x.rows, x.cols);
  ops_.emplace_back(op::RmsNorm{x, out, weight, group, eps, scale});
  return out;
}

Tensor Graph::rope(Tensor x, Tensor positions, u32 head_size, u32 frequencies) {
  CHECK(x.cols % head_size == 0 && table(frequencies).size() == head_size / 2 && positions.rows == x.rows);
  CHECK(positions.cols > 0);
  const Tensor out = scratch(x.rows, x.cols);
  ops_.emplace_back(op::Rope{x, positions, out, head_size, frequencies});
  return out;
}

void Graph::kv_write(Tensor x, Tensor positions, Tensor ring) {
  CHECK(x.cols == ring.cols && x.rows <= ring.rows && positions.rows == x.rows);
  ops_.emplace_back(op::KvWrite{x, positions, ring});
}

Tensor Graph::attention(Tensor q, Tensor keys, Tensor values, Tensor positions, Tensor last, u32 heads,
                        u32 kv_heads, u32 head_size, u32 window) {
  CHECK(q.cols == heads * head_size && keys.cols == kv_heads * head_size && values.cols == keys.cols);
  CHECK(heads % kv_heads == 0 && positions.rows == q.rows && last.rows == q.rows && values.rows == keys.rows);
  const Tensor out = scratch(q.rows, q.cols);
  ops_.emplace_back(op::Attention{q, keys, values, positions, last, out, heads, kv_heads, head_size, window});
  return out;
}

Tensor Graph::add(Tensor a, Tensor b, f32 scale, Weight scale_by) {
  CHECK(a.rows == b.rows && a.cols == b.cols);
  const Tensor out = scratch(a.rows, a.cols);
  ops_.emplace_back(op::Add{a, b, out, scale_by, scale});
  return out;
}

Tensor Graph::gelu_mul(Tensor gate, Tensor up, bool in_place) {
  CHECK(gate.rows == up.rows && gate.cols == up.cols);
  const Tensor out = in_place ? gate : scratch(gate.rows, gate.cols);
  ops_.emplace_back(op::GeluMul{gate, up, out});
  return out;
}

Tensor Graph::full_attention(Tensor q, Tensor k, Tensor v, u32 head_size) {
  CHECK(q.rows > 0 && q.rows == k.rows && q.rows == v.rows && q.cols == k.cols && q.cols == v.cols);
  CHECK(head_size > 0 && head_size % 4 == 0 && head_size <= 128 && q.cols % head_size == 0);
  const Tensor out = scratch(q.rows, q.cols);
  ops_.emplace_back(op::FullAttention{q, k, v, out, head_size});
  return out;
}

Tensor Graph::shift_scale(Tensor x, Weight shift, f32 sign, Weight factor) {
  CHECK((!shift || shift.cols == x.cols) && (!factor || factor.cols == x.cols));
  const Tensor out = scratch(x.rows, x.cols);
  ops_.emplace_back(op::ShiftScale{x, out, shift, factor, sign});
  return out;
}

Tensor Graph::average_pool(Tensor x, u32 width, u32 side, f32 scale) {
  CHECK(side > 0 && width > 0 && width % side == 0 && x.rows % width == 0 && x.rows / width % side == 0);
  const Tensor out = scratch(x.rows / (side * side), x.cols);
  ops_.emplace_back(op::AveragePool{x, out, width, side, scale});
  return out;
}

Tensor Graph::sigmoid_mul(Tensor x, Tensor gate) {
  CHECK(x.rows == gate.rows && x.cols == gate.cols);
  const Tensor out = scratch(x.rows, x.cols);
  ops_.emplace_back(op::SigmoidMul{x, gate, out});
  return out;
}

Tensor Graph::layer_norm(Tensor x, Weight weight, Weight bias, f32 eps, u32 group) {
  if (group == 0) group = x.cols;
  CHECK(x.cols % group == 0 && (!weight || weight.cols == group) && (!bias || bias.cols == group));
  const Tensor out = scratch(x.rows, x.cols);
  ops_.emplace_back(op::LayerNorm{x, out, weight, bias, group, eps, false});
  return out;
}

Tensor Graph::layer_norm_relu(Tensor x, Weight weight, f32 eps, u32 group) {
  CHECK(x.cols % group == 0 && weight.cols == group);
  ops_.emplace_back(op::LayerNorm{x, x, weight, {}, group, eps, true});
  return x;
}

Tensor Graph::conv(Tensor x, Weight weight, u32 channels) {
  CHECK(x.cols % channels == 0 && weight.cols == 9 * channels);
  const Tensor out = scratch((x.rows + 1) / 2, (x.cols / channels + 1) / 2 * weight.rows);
  ops_.emplace_back(op::Conv{x, out, weight, channels});
  return out;
}

Tensor Graph::conv_time(Tensor x, Weight weight) {
  CHECK(x.cols == weight.rows);
  const Tensor out = scratch(x.rows, x.cols);
  ops_.emplace_back(op::ConvTime{x, out, weight});
  return out;
}

Tensor Graph::local_attention(Tensor q, Tensor keys, Tensor values, Tensor relative, Weight weight, u32 heads,
                              f32 query_scale, f32 key_scale, f32 cap) {
  CHECK(q.cols == weight.cols * heads && weight.cols <= op::LocalAttention::kMaxHeadSize);
  CHECK(keys.cols == q.cols && values.cols == q.cols && keys.rows == q.rows && values.rows == q.rows);
  CHECK(relative.cols == q.cols && relative.rows > 0 && relative.rows <= op::LocalAttention::kMaxWindow);
  const Tensor out = scratch(q.rows, q.cols);
  ops_.emplace_back(
      op::LocalAttention{q, keys, values, relative, out, weight, heads, query_scale, key_scale, cap});
  return out;
}

std::pair<Tensor, Tensor> Graph::top_experts(Tensor logits, u32 used) {
  CHECK(used > 0 && used <= logits.cols);
  const Tensor ids = scratch(logits.rows, used);
  const Tensor weights = scratch(logits.rows, used);
  ops_.emplace_back(op::TopExperts{logits, ids, weights});
  return {ids, weights};
}

ExpertGroups Graph::group_experts(Tensor ids, u32 experts) {
  const u32 pairs = ids.rows * ids.cols;
  const ExpertGroups out{scratch(1, pairs), scratch(pairs / op::GroupExperts::kRun + experts, 3)};
  ops_.emplace_back(op::GroupExperts{ids, out.order, out.runs, experts});
  return out;
}

Tensor Graph::expert_mat_mul(Tensor x, Tensor ids, Weight weight, Weight scale_by, ExpertGroups groups) {
  CHECK(x.cols == weight.cols && (x.rows == ids.rows || x.rows == ids.rows * ids.cols));
  const Tensor out = scratch(ids.rows * ids.cols, weight.rows);
  ops_.emplace_back(op::ExpertMatMul{x, ids, groups.order, groups.runs, out, weight, scale_by});
  return out;
}

Tensor Graph::expert_sum(Tensor y, Tensor weights) {
  CHECK(y.rows == weights.rows * weights.cols);
  const Tensor out = scratch(weights.rows, y.cols);
  ops_.emplace_back(op::ExpertSum{y, weights, out});
  return out;
}

Tensor Graph::soft_cap(Tensor x, f32 cap) {
  const Tensor out = scratch(x.rows, x.cols);
  ops_.emplace_back(op::SoftCap{x, out, cap});
  return out;
}

Tensor Graph::top_k(Tensor x, u32 k) {
  CHECK(k > 0 && x.cols > 0);
  const Tensor out = scratch(x.rows, 2 * std::min(k, x.cols) + 1);
  ops_.emplace_back(op::TopK{x, out});
  return out;
}

Tensor Graph::sample(Tensor top, Tensor draw, Tensor ids, Tensor positions) {
  CHECK(top.rows == 1 && top.cols % 2 == 1 && top.cols / 2 <= op::Sample::kMost);
  CHECK(draw.rows == 1 && draw.cols >= op::Sample::kSuppressed && ids.rows == 1 && positions.rows == 1);
  const Tensor out = scratch(1, top.cols + 1);
  ops_.emplace_back(op::Sample{top, draw, ids, positions, out});
  return out;
}

const Tensor* Graph::find(std::string_view name) const {
  const auto found = std::ranges::find(names_, name, [](const auto& entry) { return entry.first; });
  return found == names_.end() ? nullptr : &found->second;
}

}  // namespace bezel
