// Kernels for GPUs that tests have not got. A device that only notes texts shows which would be chosen there;
// with $BEZEL_KERNEL_TEXTS, a folder, they are written into it, and tools/check_kernels.mjs compiles them.
#ifndef __wasm__
#include <cstdlib>
#include <format>
#include <fstream>
#include <map>

#include "graph/plan.h"
#include "support.h"

namespace bezel {
namespace {

class NotingDevice final : public Device {
 public:
  explicit NotingDevice(DeviceInfo info) : info_(std::move(info)) {}
  const DeviceInfo& info() const override { return info_; }
  Result<Buffer> make_buffer(u64 bytes, std::string_view) override { return Buffer(*this, 1, bytes); }
  void write(const Buffer&, u64, Bytes) override {}
  Result<Download> start_read(BufferView from, const Program*) override {
    return Download(*this, 1, from.bytes);
  }
  Result<u32> pipeline(std::string_view wgsl, std::string_view label) override {
    texts.emplace(wgsl, label);
    return 0;
  }
  Result<Program> make_program(std::span<const Dispatch>) override { return Program(*this, 1); }
  Status run(const Program&) override { return {}; }
  Task<Result<std::vector<u64>>> profile(const Program&) override { co_return std::vector<u64>{}; }
  Task<Status> settle() override { co_return Status{}; }
  u64 allocated() const override { return 0; }
  DeviceCounts counts() const override { return {}; }
  void lose() override {}
  void destroy_buffer(u32) override {}
  void destroy_program(u32) override {}
  Task<Status> finish_read(u32, MutableBytes) override { co_return Status{}; }
  void drop_read(u32) override {}

  std::map<std::string, std::string> texts;  // and a label

 private:
  DeviceInfo info_;
};

DeviceInfo large_gpu() {
  DeviceInfo info;
  info.vendor = "nvidia";
  info.max_buffer = info.max_binding = u64{1} << 31;
  info.max_storage_bindings = 10;
  info.max_invocations = 1024;
  info.max_workgroup_memory = 48 << 10;
  info.max_groups = 65535;
  info.f16 = info.subgroups = info.subgroup_matrix = true;
  return info;
}

// Products of 300 tokens, in every format, and attention of as many queries.
void lower_all(NotingDevice& device, const PlanOptions& options) {
  Graph g;
  DeviceWeights weights;
  const Tensor x = g.input(0, 300, 512);
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                           DType::kQ5_1, DType::kQ8_0, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
                           DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4}) {
    DeviceWeight& w = weights.tensors.emplace_back(product_weight(type, 512));
    w.tiles.push_back({Buffer(device, 1, u64{w.row_bytes} * 2048), 0, 2048});
    g.mat_mul(x, {static_cast<u32>(weights.tensors.size() - 1), type, 2048, 512}, {}, 1, {.in_max = 5});
  }
  std::vector<Buffer> rings;
  for (u32 i = 0; i < 2; ++i) rings.emplace_back(device, 1, 4096);
  const Tensor positions = g.input(1, 300, 1);
  g.attention(x, g.state(0, 600, 512), g.state(1, 600, 512), positions, positions, 2, 2, 256, 0);
  const Tensor one = Graph::rows(positions, 0, 1);
  g.attention(g.input(2, 1, 4096), g.state(0, 600, 512), g.state(1, 600, 512), one, one, 8, 1, 512, 0);
  const Arena layout = lay_out(g, {}, options.attention_parts);
  const Buffer arena(device, 1, layout.elements * sizeof(f32));
  const auto plan = Plan::build(device, g, layout, arena, weights, rings, options);
  ASSERT_OK(plan);
}

bool has_label(const NotingDevice& device, std::string_view label) {
  return std::ranges::any_of(device.texts, [&](const auto& text) { return text.second == label; });
}

TEST(KernelTexts, SuitTheGpu) {
  NotingDevice large(large_gpu());
  lower_all(large, {.attention_parts = attention_parts_for(large.info())});
  EXPECT_TRUE(has_label(large, "mat_mul_matrix Q4_K"));
  EXPECT_TRUE(has_label(large, "mat_mul F32"));
  EXPECT_TRUE(has_label(large, "attention_tile"));
  EXPECT_TRUE(has_label(large, "attention_decode"));
  EXPECT_TRUE(has_label(large, "attention_merge"));
  DeviceInfo info = large_gpu();
  info.subgroup_matrix = false;
  info.max_invocations = 256;
  info.max_workgroup_memory = 16 << 10;
  NotingDevice small(info);
  lower_all(small, {});
  EXPECT_TRUE(has_label(small, "mat_mul Q4_K"));
  EXPECT_FALSE(has_label(small, "halves"));
  for (const auto& [text, label] : small.texts) EXPECT_FALSE(text.contains("enable ")) << label;
}

TEST(KernelTexts, AreWrittenForTheCompiler) {
  using Kind = TileOptions::Kind;
  NotingDevice device(large_gpu());
  lower_all(device, {.kv_f16 = true, .attention_parts = attention_parts_for(device.info())});
  for (const TileOptions tiles :
       {TileOptions{Kind::kF16, 64, 64, 32}, TileOptions{Kind::kF16, 128, 128, 32},
        TileOptions{Kind::kF32, 128, 128, 16}, TileOptions{Kind::kMatrix, 128, 128, 32, 1},
        TileOptions{Kind::kMatrix, 64, 128, 32, 1}, TileOptions{Kind::kMatrix, 128, 128, 32, 2},
        TileOptions{Kind::kMatrix, 128, 128, 32, 3}, TileOptions{Kind::kMatrix, 128, 64, 32, 3}})
    lower_all(device, {.tiles = tiles});
  EXPECT_GT(device.texts.size(), 16 * 8);
  const char* folder = std::getenv("BEZEL_KERNEL_TEXTS");
  if (folder == nullptr) return;
  u32 count = 0;
  for (const auto& [text, label] : device.texts) {
    std::ofstream file(std::format("{}/{:03}.wgsl", folder, count++), std::ios::binary);
    file << "// " << label << "\n" << text;
    EXPECT_TRUE(file.good());
  }
}

}  // namespace
}  // namespace bezel
#endif
