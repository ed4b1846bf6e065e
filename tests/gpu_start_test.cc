// Kernels compile side by side, and those that decode before they are needed.
#ifndef __wasm__
#include "gpu_fixture.h"
#include "graph/plan.h"
#include "models.h"

namespace bezel {
namespace {

std::unique_ptr<Device> open_device() {
  auto device = run_now(Device::open(test_device_options()));
  EXPECT_TRUE(device) << device.error().message;
  return device ? std::move(*device) : nullptr;
}

TEST(GpuStart, ModelsAskForTheKernelsThatDecodeWhenTheyAreLoaded) {
  const auto device = open_device();
  LoadOptions options;
  options.device = device.get();
  options.gpu.batch = 16;
  u32 before_reading = 0;
  options.progress = [&](u64, u64) {
    if (before_reading == 0) before_reading = device->counts().pipelines;
    return true;
  };
  const auto loaded = load_model(data_path("tiny-e2b.gguf"), options);
  ASSERT_TRUE(loaded.backend);
  const DeviceCounts asked = device->counts();
  EXPECT_GT(before_reading, 10u);
  EXPECT_EQ(asked.pipelines, before_reading);
  EXPECT_EQ(asked.compiled_at_once, asked.pipelines);  // none was waited for
  EXPECT_EQ(asked.programs, 0u);

  auto session = Session::create(*loaded.backend, 32);
  ASSERT_OK(session);
  const std::vector<u32> token{7};
  ASSERT_OK(run_now(session->feed(token)));
  EXPECT_EQ(device->counts().pipelines, asked.pipelines);
}

TEST(GpuStart, APlanAsksForAllItsKernelsBeforeItWaits) {
  const auto device = open_device();
  Graph g;
  const Tensor x = g.input(0, 1, 64);
  const Tensor a = g.rms_norm(x, {}, 1e-6f);
  const Tensor b = g.soft_cap(a, 30);
  g.set_name("out", g.add(x, b));
  DeviceWeights weights;
  auto ones = device->make_buffer(64 * sizeof(f32), "ones");
  ASSERT_OK(ones);
  weights.ones = std::move(*ones);
  const Arena layout = lay_out(g, {}, 1);
  const auto arena = device->make_buffer(layout.elements * sizeof(f32), "arena");
  ASSERT_OK(arena);
  ASSERT_OK(Plan::prepare(*device, g, layout, *arena, weights, {}));
  const DeviceCounts asked = device->counts();
  EXPECT_EQ(asked.pipelines, 3u);
  EXPECT_EQ(asked.compiled_at_once, 3u);
  EXPECT_EQ(asked.programs, 0u);
  const auto plan = Plan::build(*device, g, layout, *arena, weights, {}, {});
  ASSERT_OK(plan);
  EXPECT_EQ(device->counts().pipelines, 3u);
  EXPECT_EQ(device->counts().compiled_at_once, 3u);
  EXPECT_EQ(device->counts().programs, 1u);
}

}  // namespace
}  // namespace bezel
#endif
