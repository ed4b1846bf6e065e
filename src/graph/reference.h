// Runs a Graph on the CPU with plain loops in double precision: the oracle of every other executor.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "base/types.h"
#include "graph/graph.h"
#include "graph/kv_type.h"

namespace bezel {

// The blocks of weight `index`, as stored in the file.
class WeightBytes {
 public:
  virtual ~WeightBytes() = default;
  virtual Bytes bytes(u32 index) const = 0;
};

class Reference {
 public:
  // What is written to states is rounded as executors do that store it as f16 or q8; what they store as f32
  // is kept.
  explicit Reference(const WeightBytes& weights, KvType kv = KvType::kF32) : weights_(weights), kv_(kv) {}

  // `inputs` and `states` are indexed by the graph's input and state numbers and have the sizes of their
  // buffers. Every token id must be within its table.
  // Asks `progress` before each operation; false stops, and then nothing of the run counts.
  bool run(const Graph& graph, std::span<const std::vector<f64>> inputs, std::span<std::vector<f64>> states,
           const std::function<bool(u64 done, u64 total)>& progress = {});

  // What a run takes at most at one time, without states: a result lives from the operation that makes it to
  // the last that reads it.
  static u64 bytes_of(const Graph& graph);

  // A tensor of the last run, row by row: one that has a name in the graph, or that no operation read.
  std::vector<f64> values(const Tensor& x) const;

 private:
  const f64* at(const Tensor& x, u64 row) const { return data_[x.buffer] + x.offset + row * x.stride; }
  f64* at(const Tensor& x, u64 row) { return data_[x.buffer] + x.offset + row * x.stride; }
  void weight_row(const Weight& weight, u64 row, std::span<f32> out) const;
  std::vector<f32> vector_of(const Weight& weight) const;
  std::vector<f32> vector_or(const Weight& weight, u32 count, f32 otherwise) const;

  void run(const Graph& graph, const op::EmbedRows& op);
  void run(const Graph& graph, const op::Splice& op);
  void run(const Graph& graph, const op::MatMul& op);
  void run(const Graph& graph, const op::RmsNorm& op);
  void run(const Graph& graph, const op::Rope& op);
  void run(const Graph& graph, const op::KvWrite& op);
  void run(const Graph& graph, const op::Attention& op);
  void run(const Graph& graph, const op::Add& op);
  void run(const Graph& graph, const op::GeluMul& op);
  void run(const Graph& graph, const op::SigmoidMul& op);
  void run(const Graph& graph, const op::Conv& op);
  void run(const Graph& graph, const op::ConvTime& op);
  void run(const Graph& graph, const op::LocalAttention& op);
  void run(const Graph& graph, const op::TopExperts& op);
  void run(const Graph& graph, const op::GroupExperts& op);
  void run(const Graph& graph, const op::ExpertMatMul& op);
  void run(const Graph& graph, const op::ExpertSum& op);
  void run(const Graph& graph, const op::SoftCap& op);
  void run(const Graph& graph, const op::TopK& op);
  void run(const Graph& graph, const op::Sample& op);
  void run(const Graph& graph, const op::FullAttention& op);
  void run(const Graph& graph, const op::LayerNorm& op);
  void run(const Graph& graph, const op::ShiftScale& op);
  void run(const Graph& graph, const op::AveragePool& op);

  const WeightBytes& weights_;
  KvType kv_;
  std::vector<std::vector<f64>> scratch_;
  std::vector<f64*> data_;  // by buffer
};

}  // namespace bezel
