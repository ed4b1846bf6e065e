// Runs a vision tower on a picture, on the CPU and on the GPU.
#pragma once
#include <cmath>
#include <memory>

#include "gguf/quant.h"
#include "graph/reference.h"
#include "model/vision_graph.h"
#include "support.h"
#ifndef __wasm__
#include "gpu_fixture.h"
#include "graph/plan.h"
#endif

namespace bezel {

struct Picture {
  u32 width = 0, height = 0;
  std::vector<u8> rgb;
};

// A tower with its weights in memory.
class Tower final : public WeightBytes {
 public:
  // Null when something is wrong, which is a failure of the test.
  static std::unique_ptr<Tower> load(Result<Gguf> file, u32 text_width) {
    if (!file) {
      ADD_FAILURE() << file.error().message;
      return nullptr;
    }
    auto tower = std::unique_ptr<Tower>(new Tower(std::move(*file)));
    auto model = run_now(load_vision_model(tower->file_, text_width));
    if (!model) {
      ADD_FAILURE() << model.error().message;
      return nullptr;
    }
    tower->model = std::move(*model);
    for (const TensorInfo& info : tower->model.tensors) {
      auto& bytes = tower->bytes_.emplace_back(info.bytes);
      EXPECT_TRUE(run_now(tower->file_.read(info, 0, bytes)));
    }
    return tower;
  }

  Bytes bytes(u32 index) const override { return bytes_[index]; }

  std::vector<std::vector<f32>> inputs(const Picture& picture) {
    auto made = run_now(vision_inputs(file_, model, picture.rgb, picture.width, picture.height));
    if (made) return std::move(*made);
    ADD_FAILURE() << made.error().message;
    return {};
  }

  Graph graph(const Picture& picture) const {
    const u32 patch = model.config.patch;
    return build_vision_graph(model, picture.width / patch, picture.height / patch);
  }

  std::vector<f32> on_cpu(const Picture& picture) {
    const Graph g = graph(picture);
    std::vector<std::vector<f64>> wide;
    for (const auto& input : inputs(picture)) wide.emplace_back(input.begin(), input.end());
    Reference reference(*this);
    reference.run(g, wide, {});
    const auto soft = reference.values(*g.find("soft"));
    return {soft.begin(), soft.end()};
  }

#ifndef __wasm__
  std::vector<f32> on_gpu(const Picture& picture) {
    Device& device = *test_device();
    const Graph g = graph(picture);
    constexpr std::string_view kKeep[] = {"soft"};
    Arena layout = lay_out(g, kKeep, 1);
    auto arena = device.make_buffer(layout.elements * sizeof(f32), "arena");
    EXPECT_TRUE(arena);
    const DeviceWeights weights = upload(device);
    auto plan = Plan::build(device, g, std::move(layout), *arena, weights, {}, {});
    std::vector<f32> soft;
    if (!plan) {
      ADD_FAILURE() << plan.error().message;
      return soft;
    }
    EXPECT_TRUE(plan->run(inputs(picture)));
    EXPECT_TRUE(run_now(plan->read(*g.find("soft"), soft)));
    return soft;
  }
#endif

  VisionModel model;

 private:
  explicit Tower(Gguf file) : file_(std::move(file)) {}

#ifndef __wasm__
  // Matrices as they are, vectors as F32.
  DeviceWeights upload(Device& device) const {
    DeviceWeights out;
    const std::vector<f32> ones(8192, 1.0f);
    const auto make = [&](Bytes bytes) {
      auto buffer = device.make_buffer(bytes.size(), "weight");
      EXPECT_TRUE(buffer);
      device.write(*buffer, 0, bytes);
      return std::move(*buffer);
    };
    out.ones = make(std::as_bytes(std::span(ones)));
    for (std::size_t i = 0; i < model.tensors.size(); ++i) {
      const TensorInfo& info = model.tensors[i];
      DeviceWeight& weight = out.tensors.emplace_back(table_weight(info.type, info.ne[0], info.rows()));
      const u32 rows = static_cast<u32>(info.rows());
      if (weight.type == info.type && weight.row_bytes == info.row_bytes()) {
        weight.tiles.push_back({make(bytes_[i]), 0, rows});
        continue;
      }
      // Rows of floats are filled up to whole runs of 16.
      EXPECT_EQ(static_cast<int>(weight.type), static_cast<int>(DType::kF32));
      const u32 cols = weight.row_bytes / 4;
      std::vector<f32> values(std::size_t{rows} * cols);
      for (std::size_t r = 0; r < rows; ++r) {
        const Bytes row = Bytes(bytes_[i]).subspan(r * info.row_bytes(), info.row_bytes());
        dequantize(info.type, row, std::span(values).subspan(r * cols, info.ne[0]));
      }
      weight.tiles.push_back({make(std::as_bytes(std::span(values))), 0, rows});
      if (info.elements() == 1) weight.scalar = values[0];
    }
    return out;
  }
#endif

  Gguf file_;
  std::vector<std::vector<std::byte>> bytes_;
};

// ||a - b|| / ||b||
inline f64 relative(const std::vector<f32>& a, const std::vector<f32>& b) {
  EXPECT_EQ(a.size(), b.size());
  if (a.size() != b.size()) return 1e30;
  f64 difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(f64{a[i]} - b[i], 2);
    size += std::pow(f64{b[i]}, 2);
  }
  return std::isfinite(difference) ? std::sqrt(difference / size) : 1e30;
}

}  // namespace bezel
