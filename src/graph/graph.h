// A model's forward pass as data: buffers, strided views of them, and operations in order. It is written once
// per model and batch shape; `reference` runs it on the CPU, later executors lower it to a device.
//
// Shape letters used in comments here and in the model builders:
//   T tokens of the batch, O output rows, d model width, H query heads, K KV heads, D head size, F FFN width,
//   P per-layer-embedding width, L layers, E experts, A experts used per token, S slots of a KV ring, V
//   vocabulary.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "base/types.h"
#include "gguf/dtype.h"

namespace bezel {

// A matrix view of a buffer: element (r, c) is at offset + r * stride + c.
struct Tensor {
  u32 buffer = 0;
  u32 rows = 0, cols = 0;
  u64 offset = 0;
  u64 stride = 0;
};

// A model weight, by its index in the model's list; `depth` matrices of `rows` x `cols` (experts have depth
// E).
struct Weight {
  static constexpr u32 kNone = ~u32{0};
  u32 index = kNone;
  DType type = DType::kF32;
  u32 rows = 0, cols = 0, depth = 1;
  explicit operator bool() const { return index != kNone; }
};

// Bounds of what a linear takes in and gives: values beyond are the bound itself; what is not a number stays
// so.
struct Clamp {
  static constexpr f32 kNoBound = 3.4e38f;  // WGSL promises nothing about infinities
  f32 in_min = -kNoBound, in_max = kNoBound, out_min = -kNoBound, out_max = kNoBound;
  bool operator==(const Clamp&) const = default;
  explicit operator bool() const { return *this != Clamp{}; }
};

namespace op {

// out[t] = table[ids[t]] * scale
struct EmbedRows {
  Tensor ids, out;
  Weight table;
  f32 scale;
  void tensors(auto&& in, auto&& to) const { in(ids), to(out); }
};

// out[t] = soft[t] where is_soft[t] is not 0, else x[t]
struct Splice {
  Tensor x, soft, is_soft, out;
  void tensors(auto&& in, auto&& to) const { in(x), in(soft), in(is_soft), to(out); }
};

// out[t][r] = scale * scale_by * sum over c of weight[r][c] * x[t][c], where x and out are within the clamp's
// bounds
struct MatMul {
  Tensor x, out;
  Weight weight, scale_by;  // scale_by: one number, or none
  f32 scale;
  Clamp clamp;
  void tensors(auto&& in, auto&& to) const { in(x), to(out); }
};

// Every run of `group` elements of a row: out = x / sqrt(mean(x^2) + eps) * weight * scale
struct RmsNorm {
  Tensor x, out;
  Weight weight;  // `group` numbers, or none
  u32 group;
  f32 eps, scale;
  void tensors(auto&& in, auto&& to) const { in(x), to(out); }
};

// Rotates element i of each head against element i + D/2 by positions[t] * frequencies[i]. Of C columns of
// positions, head h turns by column h mod C: a head of a picture is two such heads, one for x and one for y.
struct Rope {
  Tensor x, positions, out;
  u32 head_size;
  u32 frequencies;  // a table of the graph, D/2 numbers
  void tensors(auto&& in, auto&& to) const { in(x), in(positions), to(out); }
};

// ring[positions[t] mod S] = x[t]
struct KvWrite {
  Tensor x, positions, ring;
  void tensors(auto&& in, auto&& to) const { in(x), in(positions), to(ring); }
};

// Softmax attention of q[t] over the keys at positions j <= last[t], and positions[t] - j < window where
// window > 0. `last` is `positions` itself, or further on for tokens that see what follows them. Query head h
// reads KV head h / (H / K). Scores are not scaled.
struct Attention {
  Tensor q, keys, values, positions, last, out;
  u32 heads, kv_heads, head_size, window;
  void tensors(auto&& in, auto&& to) const { in(q), in(keys), in(values), in(positions), in(last), to(out); }
};

// Softmax attention of every row of q over all rows of k and v, for each head. Scores are not scaled.
struct FullAttention {
  Tensor q, k, v, out;
  u32 head_size;  // a multiple of 4, at most 128
  void tensors(auto&& in, auto&& to) const { in(q), in(k), in(v), to(out); }
};

// Every row: out = (x + sign * shift) * factor
struct ShiftScale {
  Tensor x, out;
  Weight shift, factor;  // each as many numbers as columns, or none
  f32 sign;
  void tensors(auto&& in, auto&& to) const { in(x), to(out); }
};

// The rows of x are the places of a grid `width` wide, row by row; those of out the means of `side` x `side`
// of them, times scale.
struct AveragePool {
  Tensor x, out;
  u32 width, side;
  f32 scale;
  void tensors(auto&& in, auto&& to) const { in(x), to(out); }
};

// out = (a + b) * scale * scale_by
struct Add {
  Tensor a, b, out;
  Weight scale_by;  // one number, or none
  f32 scale;
  void tensors(auto&& in, auto&& to) const { in(a), in(b), to(out); }
};

// out = gelu(gate) * up, with the tanh form of gelu
struct GeluMul {
  Tensor gate, up, out;
  void tensors(auto&& in, auto&& to) const { in(gate), in(up), to(out); }
};

// out = x * sigmoid(gate); silu where both are one
struct SigmoidMul {
  Tensor x, gate, out;
  void tensors(auto&& in, auto&& to) const { in(x), in(gate), to(out); }
};

// Every run of `group` elements of a row: out = (x - mean) / sqrt(variance + eps) * weight + bias
struct LayerNorm {
  Tensor x, out;
  Weight weight, bias;  // `group` numbers each; no bias counts as zeros
  u32 group;
  f32 eps;
  bool relu;  // what is negative becomes 0
  void tensors(auto&& in, auto&& to) const { in(x), to(out); }
};

// A 3 x 3 convolution with stride 2 over an image with zeros around it. A row of x has `channels` numbers for
// each column of the image, one of out as many as weight has rows; row r of weight is indexed
// [channel][3][3].
struct Conv {
  Tensor x, out;  // (T, W * C) -> (ceil(T / 2), ceil(W / 2) * C')
  Weight weight;  // (C', C * 9)
  u32 channels;
  u32 width() const { return x.cols / channels; }
  u32 out_width() const { return out.cols / weight.rows; }
  void tensors(auto&& in, auto&& to) const { in(x), to(out); }
};

// out[t][c] = sum over j of weight[c][j] * x[t - (taps - 1) + j][c], with zeros before the first row
struct ConvTime {
  Tensor x, out;
  Weight weight;  // (columns of x, taps)
  void tensors(auto&& in, auto&& to) const { in(x), to(out); }
};

// Softmax attention of row t over the rows t - i, 0 <= i < window, with the score
//   cap * tanh(q' . (key_scale * keys[t - i] + relative[i]) / cap), where q' = q[t] * query_scale * weight
struct LocalAttention {
  static constexpr u32 kMaxWindow = 32, kMaxHeadSize = 512;
  Tensor q, keys, values, relative, out;  // (T, H * D), but relative (window, H * D)
  Weight weight;                          // D numbers
  u32 heads;
  f32 query_scale, key_scale, cap;
  u32 head_size() const { return q.cols / heads; }
  u32 window() const { return relative.rows; }
  void tensors(auto&& in, auto&& to) const { in(q), in(keys), in(values), in(relative), to(out); }
};

// The `A` largest of each row of softmax(logits), ties to the lower index; weights renormalised to sum to
// one.
struct TopExperts {
  Tensor logits, ids, weights;  // (T, E) -> (T, A), (T, A)
  void tensors(auto&& in, auto&& to) const { in(logits), to(ids), to(weights); }
};

// The pairs n = t * A + a by expert ids[t][a], then by n; cut into runs of at most kRun pairs of one expert.
// A row of `runs` is expert, first place in the order, number of pairs; the i-th run of an expert whose pairs
// begin at place s is row s / kRun + expert + i, and rows between are of 0 pairs.
struct GroupExperts {
  static constexpr u32 kRun = 32;
  Tensor ids, order, runs;  // (T, A) -> (1, T * A), (T * A / kRun + E, 3)
  u32 experts;
  void tensors(auto&& in, auto&& to) const { in(ids), to(order), to(runs); }
};

// Row t * A + a of out = scale_by[e] * weight[e] times x, e = ids[t][a]; x has one row per token or one per
// (t, a). Where `order` and `runs` are given, an executor may read an expert once for all pairs of a run.
struct ExpertMatMul {
  Tensor x, ids, order, runs, out;
  Weight weight, scale_by;  // scale_by: E numbers, or none
  bool grouped() const { return runs.rows > 0; }
  void tensors(auto&& in, auto&& to) const {
    in(x), in(ids), to(out);
    if (grouped()) in(order), in(runs);
  }
};

// out[t] = sum over a of weights[t][a] * y[t * A + a]
struct ExpertSum {
  Tensor y, weights, out;
  void tensors(auto&& in, auto&& to) const { in(y), in(weights), to(out); }
};

// out = cap * tanh(x / cap)
struct SoftCap {
  Tensor x, out;
  f32 cap;
  void tensors(auto&& in, auto&& to) const { in(x), to(out); }
};

// The k best of each row: larger values first, then lower columns; compared in single precision, and what is
// not a number comes first of all, where it is seen. out: k columns, their values, ln of the sum of e^x over
// the whole row.
struct TopK {
  Tensor x, out;  // (O, V) -> (O, 2 * k + 1)
  void tensors(auto&& in, auto&& to) const { in(x), to(out); }
  u32 k() const { return out.cols / 2; }
};

// Chooses one of the candidates of a row of TopK and writes its column to `ids`, where the next pass finds
// its token; `positions` moves on by one. out: the row, then the choice. `draw` says how: temperature (0 or
// less: the best), top-k, top-p, min-p, a uniform random number, how many tokens are never chosen, these
// tokens. What is infinite is not chosen either.
struct Sample {
  static constexpr u32 kSuppressed = 6, kMost = 128;  // where those tokens begin; candidates, and tokens
  Tensor top, draw, ids, positions, out;
  u32 k() const { return top.cols / 2; }
  void tensors(auto&& in, auto&& to) const {
    in(top), in(draw), in(positions), to(ids), to(positions), to(out);
  }
};

}  // namespace op

using Op =
    std::variant<op::EmbedRows, op::Splice, op::MatMul, op::RmsNorm, op::Rope, op::KvWrite, op::Attention,
                 op::Add, op::GeluMul, op::TopExperts, op::GroupExperts, op::ExpertMatMul, op::ExpertSum,
                 op::SoftCap, op::TopK, op::FullAttention, op::LayerNorm, op::ShiftScale, op::AveragePool,
                 op::SigmoidMul, op::Conv, op::ConvTime, op::LocalAttention, op::Sample>;

// What op::GroupExperts gives, or nothing.
struct ExpertGroups {
  Tensor order, runs;
};

enum class Storage { kInput, kState, kScratch };

struct GraphBuffer {
  Storage storage;
  u64 elements;
  u32 index;  // which input or which state; 0 for scratch
};

class Graph {
 public:
  const std::vector<GraphBuffer>& buffers() const { return buffers_; }
  const std::vector<Op>& ops() const { return ops_; }
  const std::vector<f64>& table(u32 index) const { return tables_[index]; }
  u32 tables() const { return static_cast<u32>(tables_.size()); }

  // Inputs (token ids, positions) change at every run; states (KV rings) outlive it. Indices are the
  // caller's.
  Tensor input(u32 index, u32 rows, u32 cols);
  Tensor state(u32 index, u32 rows, u32 cols);
  u32 add_table(std::vector<f64> values);

  // Views.
  static Tensor rows(Tensor x, u32 first, u32 count);
  static Tensor cols(Tensor x, u32 first, u32 count);

  // Operations append to ops() and return their result.
  Tensor embed_rows(Tensor ids, Weight table, f32 scale);
  Tensor splice(Tensor x, Tensor soft, Tensor is_soft);
  Tensor mat_mul(Tensor x, Weight weight, Weight scale_by = {}, f32 scale = 1, const Clamp& clamp = {});
  Tensor rms_norm(Tensor x, Weight weight, f32 eps, u32 group = 0, f32 scale = 1);  // group 0: the whole row
  Tensor rope(Tensor x, Tensor positions, u32 head_size, u32 frequencies);
  void kv_write(Tensor x, Tensor positions, Tensor ring);
  Tensor attention(Tensor q, Tensor keys, Tensor values, Tensor positions, Tensor last, u32 heads,
                   u32 kv_heads, u32 head_size, u32 window);
  Tensor add(Tensor a, Tensor b, f32 scale = 1, Weight scale_by = {});
  // Where gate is not needed any more, the result may take its place.
  Tensor gelu_mul(Tensor gate, Tensor up, bool in_place = false);
  Tensor full_attention(Tensor q, Tensor k, Tensor v, u32 head_size);
  Tensor shift_scale(Tensor x, Weight shift, f32 sign = 1, Weight factor = {});
  Tensor average_pool(Tensor x, u32 width, u32 side, f32 scale);
  Tensor sigmoid_mul(Tensor x, Tensor gate);
  Tensor silu(Tensor x) { return sigmoid_mul(x, x); }
  Tensor layer_norm(Tensor x, Weight weight, Weight bias, f32 eps, u32 group = 0);
  // Takes the place of x, which is not needed any more.
  Tensor layer_norm_relu(Tensor x, Weight weight, f32 eps, u32 group);
  Tensor conv(Tensor x, Weight weight, u32 channels);
  Tensor conv_time(Tensor x, Weight weight);
  Tensor local_attention(Tensor q, Tensor keys, Tensor values, Tensor relative, Weight weight, u32 heads,
                         f32 query_scale, f32 key_scale, f32 cap);
  std::pair<Tensor, Tensor> top_experts(Tensor logits, u32 used);  // ids, weights
  ExpertGroups group_experts(Tensor ids, u32 experts);
  Tensor expert_mat_mul(Tensor x, Tensor ids, Weight weight, Weight scale_by = {}, ExpertGroups groups = {});
  Tensor expert_sum(Tensor y, Tensor weights);
  Tensor soft_cap(Tensor x, f32 cap);
  Tensor top_k(Tensor x, u32 k);  // of all columns, where they are fewer
  Tensor sample(Tensor top, Tensor draw, Tensor ids, Tensor positions);

  // Named tensors can be asked for after a run: the logits, and what tests look at.
  void set_name(std::string name, Tensor x) { names_.emplace_back(std::move(name), x); }
  const std::vector<std::pair<std::string, Tensor>>& names() const { return names_; }
  const Tensor* find(std::string_view name) const;

 private:
  Tensor make(Storage storage, u32 index, u32 rows, u32 cols);
  Tensor scratch(u32 rows, u32 cols) { return make(Storage::kScratch, 0, rows, cols); }

  std::vector<GraphBuffer> buffers_;
  std::vector<Op> ops_;
  std::vector<std::vector<f64>> tables_;
  std::vector<std::pair<std::string, Tensor>> names_;
};

}  // namespace bezel
