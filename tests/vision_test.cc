// The vision tower against transformers, and one executor against the other: pictures to soft tokens.
#include <algorithm>

#include "models.h"
#include "safetensors.h"
#include "vision_files.h"
#include "vision_fixture.h"

namespace bezel {
namespace {

struct Case {
  std::string name, path, golden;
  u32 width, height;
  bool bf16_rope;  // see round_frequencies_to_bf16()
  f64 tolerance;   // relative
};

class VisionGolden : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Safetensors golden(data_path("vision.safetensors"));
    const Case& c = GetParam();
    picture_ = {c.width, c.height, golden.get<u8>(c.golden.starts_with("tiny") ? "tiny.rgb" : "nano.rgb")};
    expected_ = golden.get<f32>(c.golden + ".soft");
    tower_ = Tower::load(open_gguf(c.path), 256);
    ASSERT_NE(tower_, nullptr);
    if (c.bf16_rope) round_frequencies_to_bf16(tower_->model);
  }

  Picture picture_;
  std::vector<f32> expected_;
  std::unique_ptr<Tower> tower_;
};

TEST_P(VisionGolden, OnCpu) {
  EXPECT_LE(relative(tower_->on_cpu(picture_), expected_), GetParam().tolerance);
}

#ifndef __wasm__
TEST_P(VisionGolden, OnGpu) {
  EXPECT_LE(relative(tower_->on_gpu(picture_), expected_), GetParam().tolerance);
}
#endif

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

// Nano's values were computed from weights in half precision. Q8_0 rounds to 1/127 of the largest of 32
// weights, which is about half a percent of a product; averaged over patches less of it remains.
INSTANTIATE_TEST_SUITE_P(
    Vision, VisionGolden,
    testing::Values(Case{"E2b", data_path("tiny-e2b-mmproj.gguf"), "tiny-e2b", 480, 288, true, 1e-5},
                    Case{"Large", data_path("tiny-26b-mmproj.gguf"), "tiny-26b", 480, 288, true, 1e-5},
                    Case{"Nano", "models/nano.gguf", "nano", 432, 336, false, 5e-3}),
    name_of);

std::vector<Case> beside() {
  const std::string path = golden_path("tiny-e2b-ollama.gguf");
  if (!open_file(path)) return {};
  return {Case{"E2bOfOllama", path, "tiny-e2b", 480, 288, true, 1e-5}};
}

INSTANTIATE_TEST_SUITE_P(Beside, VisionGolden, testing::ValuesIn(beside()), name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VisionGolden);

Picture random_picture(u32 width, u32 height) {
  Picture picture{width, height, std::vector<u8>(std::size_t{3} * width * height)};
  Random random(7);
  for (u8& v : picture.rgb) v = static_cast<u8>(random.below(256));
  return picture;
}

#ifndef __wasm__
TEST(Vision, GpuEqualsCpu) {
  for (const TowerShape& shape : {TowerShape{.clamps = true, .out_scale = true},
                                  TowerShape{.width = 72, .heads = 1, .standardised = true},
                                  TowerShape{.width = 48, .heads = 4, .ffn = 80, .patch = 16}}) {
    const auto tower = Tower::load(vit_file(shape).open(), shape.text_width);
    ASSERT_NE(tower, nullptr);
    const u32 unit = tower->model.config.unit();
    for (const auto& [across, down] : {std::pair{1u, 1u}, {3u, 2u}, {1u, 7u}}) {
      const Picture picture = random_picture(across * unit, down * unit);
      EXPECT_LE(relative(tower->on_gpu(picture), tower->on_cpu(picture)), 1e-5);
    }
  }
}

TEST(Vision, UnifiedOnGpuEqualsCpu) {
  const TowerShape shape{.patch = 16};
  const auto tower = Tower::load(unified_file(shape).open(), shape.text_width);
  ASSERT_NE(tower, nullptr);
  for (const auto& [width, height] : {std::pair{48u, 48u}, {48u, 240u}, {144u, 96u}}) {
    const Picture picture = random_picture(width, height);
    EXPECT_LE(relative(tower->on_gpu(picture), tower->on_cpu(picture)), 1e-5);
  }
}
#endif

TEST(Vision, BoundsMatter) {
  const auto tower = Tower::load(open_gguf(data_path("tiny-e2b-mmproj.gguf")), 256);
  ASSERT_NE(tower, nullptr);
  const Picture picture = random_picture(96, 48);
  const auto bounded = tower->on_cpu(picture);
  for (VisionBlock& b : tower->model.blocks) {
    for (ClampedLinear* linear :
         {&b.attn_q, &b.attn_k, &b.attn_v, &b.attn_out, &b.ffn_gate, &b.ffn_up, &b.ffn_down})
      linear->clamp = {};
  }
  EXPECT_GT(relative(tower->on_cpu(picture), bounded), 1e-3);
}

// Row by row what is column by column in the other.
Picture transposed(const Picture& picture) {
  Picture out{picture.height, picture.width, std::vector<u8>(picture.rgb.size())};
  for (u32 y = 0; y < picture.height; ++y) {
    for (u32 x = 0; x < picture.width; ++x) {
      for (u32 c = 0; c < 3; ++c)
        out.rgb[(x * picture.height + y) * 3 + c] = picture.rgb[(y * picture.width + x) * 3 + c];
    }
  }
  return out;
}

// A picture of one colour differs from its transpose in nothing but the positions.
TEST(Vision, TheAxesAreNotTheSame) {
  for (const bool unified : {false, true}) {
    const TowerShape shape{};
    const auto tower =
        Tower::load((unified ? unified_file(shape) : vit_file(shape)).open(), shape.text_width);
    ASSERT_NE(tower, nullptr);
    const u32 unit = tower->model.config.unit(), d = shape.text_width;
    Picture picture{2 * unit, 3 * unit, std::vector<u8>(std::size_t{18} * unit * unit, 100)};
    const auto soft = tower->on_cpu(picture);
    const auto other = tower->on_cpu(transposed(picture));
    std::vector<f32> back(soft.size());
    for (u32 y = 0; y < 3; ++y) {
      for (u32 x = 0; x < 2; ++x)
        std::copy_n(other.begin() + (x * 3 + y) * d, d, back.begin() + (y * 2 + x) * d);
    }
    EXPECT_GT(relative(back, soft), 0.05);
  }
}

// Nothing but the tower's positions tells equal patches apart.
TEST(Vision, OneColourIsTheSameEverywhereWithoutPositions) {
  const TowerShape shape{};
  const auto tower = Tower::load(vit_file(shape).open(), shape.text_width);
  ASSERT_NE(tower, nullptr);
  const Picture picture{36, 24, std::vector<u8>(std::size_t{3} * 36 * 24, 200)};
  const Graph g = tower->graph(picture);
  auto inputs = tower->inputs(picture);
  std::ranges::fill(inputs[kVisionPositionRows], 0.0f);
  std::vector<std::vector<f64>> wide;
  for (const auto& input : inputs) wide.emplace_back(input.begin(), input.end());
  Reference reference(*tower);
  reference.run(g, wide, {});
  const auto embedded = reference.values(*g.find("hidden.0"));
  for (std::size_t i = 0; i < embedded.size(); ++i) ASSERT_EQ(embedded[i], embedded[i % shape.width]);
}

}  // namespace
}  // namespace bezel
