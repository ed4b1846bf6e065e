// Runs a graph on the GPU and with the reference executor, and compares.
#pragma once
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "gguf/quant.h"
#include "gpu_fixture.h"
#include "graph/plan.h"
#include "graph/reference.h"

namespace bezel {

// Weights in memory for the reference, and the same on the GPU.
class TestWeights final : public WeightBytes {
 public:
  Weight make(DType type, u32 cols, u32 rows = 1, u32 depth = 1) {
    std::vector<f32> values(std::size_t{cols} * rows * depth);
    for (f32& v : values) v = random_.normal();
    const DType stored = can_quantize(type) ? type : DType::kF32;
    std::vector<std::byte> bytes(dtype_bytes(stored, values.size()));
    quantize(stored, values, bytes);
    tensors_.push_back(std::move(bytes));
    weights_.push_back({static_cast<u32>(weights_.size()), stored, rows, cols, depth});
    return weights_.back();
  }
  Bytes bytes(u32 index) const override { return tensors_[index]; }

  DeviceWeights upload(Device& device, u64 max_tile = ~u64{0}) const {
    DeviceWeights out;
    auto ones = device.make_buffer(4096 * 4, "ones");
    const std::vector<f32> all(4096, 1.0f);
    device.write(*ones, 0, std::as_bytes(std::span(all)));
    out.ones = std::move(*ones);
    for (const Weight& w : weights_) {
      DeviceWeight& d = out.tensors.emplace_back();
      d.type = w.type;
      d.row_bytes = static_cast<u32>(dtype_bytes(w.type, w.cols));
      const u32 unit = d.row_bytes * (w.depth > 1 ? w.rows : 1);
      const u32 units = w.depth > 1 ? w.depth : w.rows;
      for (const auto& [first, count] :
           cut(units, static_cast<u32>(std::clamp<u64>(max_tile / unit, 1, units)))) {
        auto buffer = device.make_buffer(u64{count} * unit, "weight");
        auto part = tensors_[w.index];
        part = {part.begin() + first * unit, part.begin() + (first + count) * unit};
        part.resize((part.size() + 3) / 4 * 4);
        device.write(*buffer, 0, part);
        d.tiles.push_back({std::move(*buffer), first, count});
      }
      if (w.rows * w.cols * w.depth == 1) std::memcpy(&d.scalar, tensors_[w.index].data(), 4);
    }
    return out;
  }

 private:
  Random random_{11};
  std::vector<std::vector<std::byte>> tensors_;
  std::vector<Weight> weights_;
};

// One graph on both executors.
class PlanTest : public testing::Test {
 protected:
  // Forgets what earlier graphs needed.
  void start() {
    inputs_.clear();
    states_.clear();
    weights_ = {};
  }
  Tensor random_input(Graph& g, u32 rows, u32 cols, f64 size = 1) {
    auto& values = inputs_.emplace_back();
    for (u32 i = 0; i < rows * cols; ++i) values.push_back(static_cast<f32>(random_.normal() * size));
    return g.input(static_cast<u32>(inputs_.size() - 1), rows, cols);
  }
  Tensor input(Graph& g, u32 cols, std::vector<f64> values) {
    inputs_.push_back(std::move(values));
    return g.input(static_cast<u32>(inputs_.size() - 1), static_cast<u32>(inputs_.back().size() / cols),
                   cols);
  }
  Tensor random_state(Graph& g, u32 rows, u32 cols) {
    auto& values = states_.emplace_back();
    for (u32 i = 0; i < rows * cols; ++i) values.push_back(f16_to_f32(f32_to_f16(random_.normal())));
    return g.state(static_cast<u32>(states_.size() - 1), rows, cols);
  }

  // Runs the graph on both and compares the tensors that have names, and the states; with workgroups
  // as the device likes them and as others do.
  void expect_same(Graph& g, f64 tolerance, PlanOptions options = {}, u64 max_tile = ~u64{0}) {
    for (const u32 workgroup : {0u, 64u}) {
      options.workgroup = workgroup;
      compare_with_reference(g, tolerance, options, max_tile);
    }
  }

  void compare_with_reference(Graph& g, f64 tolerance, PlanOptions options, u64 max_tile) {
    Device& device = *test_device();
    auto states = states_;
    Reference reference(weights_);
    reference.run(g, inputs_, states);

    std::vector<std::string_view> keep;
    for (const auto& [name, x] : g.names()) keep.push_back(name);
    Arena layout = lay_out(g, keep, options.attention_parts);
    auto arena = device.make_buffer(layout.elements * 4, "arena");
    ASSERT_OK(arena);
    const DeviceWeights weights = weights_.upload(device, max_tile);
    std::vector<Buffer> rings;
    for (const auto& state : states_) {
      std::vector<f32> f(state.begin(), state.end());
      std::vector<u16> h;
      for (const f32 v : f) h.push_back(f32_to_f16(v));
      const Bytes bytes = options.kv_f16 ? std::as_bytes(std::span(h)) : std::as_bytes(std::span(f));
      auto ring = device.make_buffer(bytes.size(), "ring");
      ASSERT_OK(ring);
      device.write(*ring, 0, bytes);
      rings.push_back(std::move(*ring));
    }
    auto plan = Plan::build(device, g, std::move(layout), *arena, weights, rings, options);
    ASSERT_OK(plan);
    std::vector<std::vector<f32>> inputs;
    for (const auto& values : inputs_) inputs.emplace_back(values.begin(), values.end());
    const Status status = plan->run(inputs);
    ASSERT_OK(status);

    for (const auto& [name, x] : g.names()) {
      SCOPED_TRACE(name);
      std::vector<f32> got;
      const Status read = run_now(plan->read(x, got));
      ASSERT_OK(read);
      compare(got, reference.values(x), tolerance);
    }
    for (std::size_t i = 0; i < states.size(); ++i) {
      std::vector<f32> got(states[i].size());
      if (options.kv_f16) {
        std::vector<u16> halves(got.size());
        ASSERT_TRUE(run_now(device.read(rings[i], 0, std::as_writable_bytes(std::span(halves)))));
        std::ranges::transform(halves, got.begin(), f16_to_f32);
      } else {
        ASSERT_TRUE(run_now(device.read(rings[i], 0, std::as_writable_bytes(std::span(got)))));
      }
      compare(got, states[i], options.kv_f16 ? 1e-3 : 1e-6);
    }
  }

  static void compare(const std::vector<f32>& got, const std::vector<f64>& expected, f64 tolerance) {
    ASSERT_EQ(got.size(), expected.size());
    f64 largest = 0, size = 1e-3;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (!std::isfinite(expected[i])) {
        EXPECT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
            << got[i] << " where " << expected[i] << " is expected, at " << i;
        continue;
      }
      size = std::max(size, std::abs(expected[i]));
      largest = std::max(largest, std::isfinite(got[i]) ? std::abs(got[i] - expected[i]) : 1e30);
    }
    EXPECT_LE(largest, tolerance * size);
  }

  Random random_{5};
  TestWeights weights_;
  std::vector<std::vector<f64>> inputs_;
  std::vector<std::vector<f64>> states_;
};

}  // namespace bezel
