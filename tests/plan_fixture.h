// Runs a graph on the GPU and with the reference executor, and compares.
#pragma once
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "gguf/quant.h"
#include "gpu_fixture.h"
#include "graph/plan.h"
#include "graph/reference.h"
#include "graph/wide_form.h"

namespace bezel {

// Weights in memory for the reference, and the same on the GPU.
class TestWeights final : public WeightBytes {
 public:
  Weight make(DType type, u32 cols, u32 rows = 1, u32 depth = 1) {
    const u64 elements = u64{cols} * rows * depth;
    std::vector<std::byte> bytes(dtype_bytes(type, elements));
    if (can_quantize(type)) {
      std::vector<f32> values(elements);
      for (f32& v : values) v = random_.normal();
      quantize(type, values, bytes);
    } else {
      const auto& info = dtype_info(type);
      for (u64 at = 0; at < bytes.size(); at += info.block_bytes)
        random_block(type, std::span(bytes).subspan(at, info.block_bytes));
    }
    return add(std::move(bytes), {0, type, rows, cols, depth});
  }

  // The bytes of a matrix, or of a stack of them.
  Weight add(std::vector<std::byte> bytes, Weight weight) {
    weight.index = static_cast<u32>(weights_.size());
    tensors_.push_back(std::move(bytes));
    weights_.push_back(weight);
    return weight;
  }

  // A matrix, or a stack of them, whose row i is row i mod pattern.rows of `pattern`.
  Weight repeat(const Weight& pattern, u32 rows, u32 depth = 1) {
    const u64 row_bytes = dtype_bytes(pattern.type, pattern.cols);
    const auto& source = tensors_[pattern.index];
    std::vector<std::byte> bytes(row_bytes * rows * depth);
    for (u64 at = 0; at < bytes.size(); at += source.size())
      std::memcpy(bytes.data() + at, source.data(), std::min(source.size(), bytes.size() - at));
    return add(std::move(bytes), {0, pattern.type, rows, pattern.cols, depth});
  }

  Bytes bytes(u32 index) const override { return tensors_[index]; }
  u32 count() const { return static_cast<u32>(weights_.size()); }

  bool widen = true;        // as products read them
  bool join = true;         // neighbours of one form in one buffer
  std::vector<u32> relays;  // the first weights of those that lie in one buffer

  DeviceWeights upload(Device& device, u64 max_tile = ~u64{0}) const {
    DeviceWeights out;
    auto ones = device.make_buffer(4096 * 4, "ones");
    const std::vector<f32> all(4096, 1.0f);
    device.write(*ones, 0, std::as_bytes(std::span(all)));
    out.ones = std::move(*ones);
    for (const Weight& w : weights_) {
      DeviceWeight& d = out.tensors.emplace_back();
      if (widen && w.rows > 1) d = product_weight(w.type, w.cols, w.rows);
      d.type = w.type;
      if (!d.wide) d.row_bytes = static_cast<u32>(dtype_bytes(w.type, w.cols));
    }
    std::vector<Unplaced> matrices;
    for (const Weight& w : weights_)
      if ((join || !relays.empty()) && w.depth == 1) matrices.push_back({&out.tensors[w.index], w.rows});
    const u64 most = std::min({max_tile, device.info().max_binding, device.info().max_buffer});
    for (std::size_t i = 0; i < relays.size(); ++i) {
      const std::size_t end = i + 1 < relays.size() ? relays[i + 1] : matrices.size();
      EXPECT_TRUE(place_in_one(device, std::span(matrices).subspan(relays[i], end - relays[i]), most));
    }
    if (relays.empty()) EXPECT_TRUE(place_together(device, matrices, most));
    for (const Weight& w : weights_) {
      DeviceWeight& d = out.tensors[w.index];
      const u32 file_row = static_cast<u32>(dtype_bytes(w.type, w.cols));
      const u32 unit = d.row_bytes * (w.depth > 1 ? w.rows : 1);
      const u32 units = w.depth > 1 ? w.depth : w.rows;
      const u32 at_once = static_cast<u32>(std::clamp<u64>(max_tile / unit, 1, units));
      const auto pieces = d.tiles.empty() ? cut(units, at_once) : std::vector<std::pair<u32, u32>>{};
      for (const auto& [first, count] : pieces)
        d.tiles.push_back({std::move(*device.make_buffer(u64{count} * unit, "weight")), first, count});
      for (const auto& [buffer, offset, size, first, count] : d.tiles) {
        const u64 file_unit = unit / d.row_bytes * file_row;
        const Bytes bytes = Bytes(tensors_[w.index]).subspan(first * file_unit, count * file_unit);
        std::vector<std::byte> part(bytes.begin(), bytes.end());
        if (d.wide) {
          part.resize(u64{count} * unit);
          for (std::size_t row = 0; row * d.row_bytes < part.size(); ++row)
            widen_row(d.type, bytes.subspan(row * file_row, file_row),
                      MutableBytes(part).subspan(row * d.row_bytes, d.row_bytes));
        }
        part.resize((part.size() + 3) / 4 * 4);
        constexpr std::size_t kChunk = 64 << 20;  // a device keeps a copy until it has taken it
        for (std::size_t at = 0; at < part.size(); at += kChunk)
          device.write(*buffer, offset + at, Bytes(part).subspan(at, std::min(kChunk, part.size() - at)));
      }
      if (w.rows * w.cols * w.depth == 1) std::memcpy(&d.scalar, tensors_[w.index].data(), 4);
    }
    return out;
  }

 private:
  // Of a type that nobody writes: any bytes whose values are of an ordinary size.
  void random_block(DType type, std::span<std::byte> block) {
    std::vector<f32> values(dtype_info(type).block_elements);
    f32 largest = 0;
    while (!(largest > 0.1f && largest < 10.0f)) {
      for (std::byte& b : block) b = static_cast<std::byte>(random_.below(256));
      dequantize(type, block, values);
      largest = 0;
      for (const f32 v : values) largest = std::isfinite(v) ? std::max(largest, std::abs(v)) : INFINITY;
    }
  }

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
  // Every other 32 numbers ten times as large, so that it shows whose scale they share.
  Tensor uneven_input(Graph& g, u32 rows, u32 cols) {
    const Tensor x = random_input(g, rows, cols);
    for (u32 i = 0; i < rows * cols; ++i) inputs_.back()[i] *= i % cols / kKvBlock % 2 == 0 ? 1 : 10;
    return x;
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

  static constexpr KvType kKvTypes[] = {KvType::kF32, KvType::kF16, KvType::kQ8};
  // Of the largest number. A number that lies between two that can be stored becomes either.
  static f64 kv_tolerance(KvType type) {
    return type == KvType::kQ8 ? 1.01 / 127 : type == KvType::kF16 ? 1e-3 : 1e-6;
  }

  struct GpuRun {
    std::vector<std::vector<f32>> named;  // as in Graph::names()
    std::vector<std::vector<f32>> states;
  };

  // Runs the graph on both and compares the tensors that have names, and the states; with workgroups
  // as the device likes them and as others do.
  void expect_same(Graph& g, f64 tolerance, PlanOptions options = {}, u64 max_tile = ~u64{0}) {
    for (const u32 workgroup : {0u, 64u}) {
      options.workgroup = workgroup;
      compare_with_reference(g, tolerance, options, max_tile);
    }
  }

  void compare_with_reference(Graph& g, f64 tolerance, PlanOptions options, u64 max_tile) {
    GpuRun gpu;
    ASSERT_NO_FATAL_FAILURE(run_on_gpu(g, options, max_tile, gpu));
    compare_with_reference(g, tolerance, options, gpu);
  }

  void compare_with_reference(const Graph& g, f64 tolerance, const PlanOptions& options, const GpuRun& gpu) {
    auto states = states_;
    for (auto& state : states) state = kv_decode(options.kv, kv_encode(options.kv, state));
    Reference reference(weights_, options.kv);
    reference.run(g, inputs_, states);
    for (std::size_t i = 0; i < g.names().size(); ++i) {
      SCOPED_TRACE(g.names()[i].first);
      compare(gpu.named[i], reference.values(g.names()[i].second), tolerance);
    }
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (options.kv == KvType::kQ8) {
        compare_blocks(gpu.states[i], states[i]);
      } else {
        compare(gpu.states[i], states[i], kv_tolerance(options.kv));
      }
    }
  }

  void run_on_gpu(const Graph& g, const PlanOptions& options, u64 max_tile, GpuRun& out) {
    Device& device = *test_device();
    std::vector<std::string_view> keep;
    for (const auto& [name, x] : g.names()) keep.push_back(name);
    Arena layout = lay_out(g, keep, options.attention_parts, options.relay.groups > 0);
    auto arena = device.make_buffer(layout.elements * 4, "arena");
    ASSERT_OK(arena);
    // What a run finds in the arena must not matter.
    const std::vector<f32> nothing(layout.elements, std::numeric_limits<f32>::quiet_NaN());
    device.write(*arena, 0, std::as_bytes(std::span(nothing)));
    const DeviceWeights weights = weights_.upload(device, max_tile);
    std::vector<Buffer> rings;
    for (const auto& state : states_) {
      const std::vector<std::byte> bytes = kv_encode(options.kv, state);
      auto ring = device.make_buffer(bytes.size(), "ring");
      ASSERT_OK(ring);
      device.write(*ring, 0, bytes);
      rings.push_back(std::move(*ring));
    }
    auto plan = Plan::build(device, g, std::move(layout), *arena, weights, rings, options);
    ASSERT_OK(plan);
    labels_ = plan->labels();
    std::vector<std::vector<f32>> inputs;
    for (const auto& values : inputs_) inputs.emplace_back(values.begin(), values.end());
    const Status status = plan->run(inputs);
    ASSERT_OK(status);
    for (const auto& [name, x] : g.names()) {
      const Status read = run_now(plan->read(x, out.named.emplace_back()));
      ASSERT_OK(read);
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(rings[i].bytes()));
      ASSERT_TRUE(run_now(device.read(rings[i], 0, bytes)));
      const auto numbers = kv_decode(options.kv, bytes);
      out.states.emplace_back(numbers.begin(), numbers.end());
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

  // Blocks of q8: the scales are the same but for what was computed before them, and hardly a number is
  // another byte.
  static void compare_blocks(const std::vector<f32>& got, const std::vector<f64>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    std::size_t others = 0;
    for (std::size_t block = 0; block < got.size(); block += kKvBlock) {
      f64 size = 0, got_size = 0, largest = 0;
      for (std::size_t i = block; i < block + kKvBlock; ++i) {
        size = std::max(size, std::abs(expected[i]));
        got_size = std::max(got_size, std::abs(f64{got[i]}));
        const f64 error = std::isfinite(got[i]) ? std::abs(got[i] - expected[i]) : 1e30;
        largest = std::max(largest, error);
        others += error > 1e-5 * size;
      }
      ASSERT_NEAR(got_size, size, 1e-5 * size) << "block " << block / kKvBlock;
      ASSERT_LE(largest, kv_tolerance(KvType::kQ8) * size) << "block " << block / kKvBlock;
    }
    EXPECT_LE(others, 1 + got.size() / 100);
  }

  Random random_{5};
  TestWeights weights_;
  std::vector<std::vector<f64>> inputs_;
  std::vector<std::vector<f64>> states_;
  std::vector<std::string> labels_;  // of the last run's dispatches
};

}  // namespace bezel
