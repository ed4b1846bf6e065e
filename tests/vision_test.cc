// The vision tower against transformers: pictures to soft tokens, on the CPU and on the GPU.
#include <cstdlib>
#include <format>

#include "memory_file.h"
#include "safetensors.h"
#include "vision_fixture.h"

namespace bezel {
namespace {

struct Case {
  std::string name, path, golden;
  Picture picture;  // without its colours
  f64 tolerance;    // relative to the reference in float32
};

std::string golden_file(const std::string& name) {
  const char* place = std::getenv("BEZEL_GOLDEN");
  return std::string(place != nullptr ? place : "../shared/golden") + "/" + name;
}

class VisionGolden : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    picture_ = GetParam().picture;
    picture_.rgb = golden_.get<u8>(GetParam().golden.starts_with("tiny") ? "tiny.rgb" : "nano.rgb");
    expected_ = golden_.get<f32>(GetParam().golden + ".soft");
    tower_ = Tower::load(open_gguf(GetParam().path), 256);
    ASSERT_NE(tower_, nullptr);
  }

  const Safetensors golden_{data_path("vision.safetensors")};
  Picture picture_;
  std::vector<f32> expected_;
  std::unique_ptr<Tower> tower_;
};

TEST_P(VisionGolden, OnCpu) {
  EXPECT_LE(relative(tower_->on_cpu(picture_), expected_), GetParam().tolerance);
}

#ifndef __wasm__
TEST_P(VisionGolden, OnGpu) {
  EXPECT_LE(relative(tower_->on_gpu(picture_), expected_), GetParam().tolerance + 1e-4);
}
#endif

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Vision, VisionGolden,
    testing::Values(Case{"E2b", data_path("tiny-e2b-mmproj.gguf"), "tiny-e2b", {480, 288, {}}, 1e-5},
                    Case{"Large", data_path("tiny-26b-mmproj.gguf"), "tiny-26b", {480, 288, {}}, 1e-5},
                    Case{"Nano", "models/nano.gguf", "nano", {432, 336, {}}, 1e-5}),
    name_of);

std::vector<Case> beside() {
  const std::string path = golden_file("tiny-e2b-ollama.gguf");
  if (!open_file(path)) return {};
  return {Case{"E2bOfOllama", path, "tiny-e2b", {480, 288, {}}, 1e-5}};
}

INSTANTIATE_TEST_SUITE_P(Beside, VisionGolden, testing::ValuesIn(beside()), name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VisionGolden);

}  // namespace
}  // namespace bezel
