#include "media/image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "safetensors.h"

namespace bezel {
namespace {

TEST(TargetSize, FillsEveryBudget) {
  struct Case {
    Size source;
    Size targets[5];
  };
  const u32 budgets[] = {70, 140, 280, 560, 1120};
  const Case cases[] = {
      {{512, 512}, {{384, 384}, {528, 528}, {768, 768}, {1104, 1104}, {1584, 1584}}},
      {{224, 224}, {{384, 384}, {528, 528}, {768, 768}, {1104, 1104}, {1584, 1584}}},
      {{48, 48}, {{384, 384}, {528, 528}, {768, 768}, {1104, 1104}, {1584, 1584}}},
      {{1, 1}, {{384, 384}, {528, 528}, {768, 768}, {1104, 1104}, {1584, 1584}}},
      {{640, 480}, {{432, 336}, {624, 480}, {912, 672}, {1296, 960}, {1824, 1344}}},
      {{4000, 3000}, {{432, 336}, {624, 480}, {912, 672}, {1296, 960}, {1824, 1344}}},
      {{480, 640}, {{336, 432}, {480, 624}, {672, 912}, {960, 1296}, {1344, 1824}}},
      {{1920, 1080}, {{528, 288}, {720, 384}, {1056, 576}, {1488, 816}, {2112, 1200}}},
      {{1000, 100}, {{1248, 96}, {1776, 144}, {2496, 240}, {3552, 336}, {5040, 480}}},
      {{2000, 40}, {{2832, 48}, {3984, 48}, {5664, 96}, {8016, 144}, {11328, 192}}},
      {{20000, 60}, {{3360, 48}, {6720, 48}, {13440, 48}, {20736, 48}, {29328, 48}}},
  };
  for (const Case& c : cases) {
    for (int i = 0; i < 5; ++i) {
      const auto target = target_size(c.source, budgets[i]);
      ASSERT_OK(target);
      EXPECT_EQ(*target, c.targets[i]) << c.source.width << " x " << c.source.height << " at " << budgets[i];
    }
  }
}

// The cases of the transformers library's own test of this rule; their number of patches is budget * pool *
// pool.
TEST(TargetSize, OtherPatchesAndPools) {
  struct Case {
    u32 patch, patches, pool, height, width, target_height, target_width;
  };
  const Case cases[] = {
      {16, 256, 1, 256, 256, 256, 256},  {16, 256, 1, 512, 512, 256, 256},  {10, 200, 1, 50, 10000, 10, 2000},
      {10, 200, 1, 25, 10000, 10, 2000}, {16, 2304, 6, 2785, 34, 6144, 96}, {10, 200, 1, 25, 20000, 10, 2000},
      {4, 64, 2, 50, 1000, 8, 128},      {5, 100, 3, 100, 100, 45, 45},     {5, 20, 3, 5, 100, 15, 30},
  };
  for (const Case& c : cases) {
    const auto target = target_size({c.width, c.height}, c.patches / (c.pool * c.pool), c.patch, c.pool);
    ASSERT_OK(target);
    EXPECT_EQ(*target, (Size{c.target_width, c.target_height})) << c.width << " x " << c.height;
  }
}

TEST(TargetSize, NeverExceedsTheBudget) {
  for (u32 width = 1; width < kMaxImageSide; width = width * 3 + 1) {
    for (u32 height = 1; u64{width} * height <= kMaxImagePixels && height < kMaxImageSide;
         height = height * 2 + 1) {
      const auto target = target_size({width, height}, 280);
      ASSERT_OK(target);
      EXPECT_LE(target->width / 48 * (target->height / 48), 280u);
      EXPECT_EQ(target->width % 48 + target->height % 48, 0u);
      EXPECT_GT(target->width * target->height, 0u);
    }
  }
}

TEST(TargetSize, RefusesWhatCannotBe) {
  EXPECT_EQ(target_size({0, 5}, 280).error().message, "The picture has no pixels (0 x 5).");
  EXPECT_EQ(target_size({40'000, 40'000}, 280).error().message,
            "The picture has 40000 x 40000 pixels; the limit is 268435456 in all.");
  EXPECT_EQ(target_size({2'000'000, 1}, 280).error().message,
            "The picture has 2000000 x 1 pixels; the limit is 1048576 a side.");
  EXPECT_FALSE(target_size({5, 5}, 0));
  EXPECT_FALSE(target_size({5, 5}, 280, 0));
  EXPECT_FALSE(target_size({5, 5}, 280, 16, 0xffff'ffff));
  for (const u32 budget : {70, 140, 280, 560, 1120}) EXPECT_TRUE(check_budget(budget));
  EXPECT_EQ(check_budget(256).error().message,
            "A picture's budget of soft tokens is 70, 140, 280, 560 or 1120, not 256.");
}

Image grey(u32 width, u32 height, const std::vector<u8>& values) {
  Image image{width, height, {}};
  for (const u8 value : values) image.rgb.insert(image.rgb.end(), {value, value, value});
  return image;
}

std::vector<int> reds(const Image& image) {
  std::vector<int> out;
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) out.push_back(image.rgb[i]);
  return out;
}

const std::vector<u8> kRow = {0, 255, 128, 64, 200, 10, 90};

TEST(Resize, GivesPillowsRows) {
  const std::vector<int> smaller = {118, 140, 122, 57};
  const std::vector<int> larger = {0, 113, 255, 168, 92, 64, 166, 164, 18, 47, 96};
  EXPECT_EQ(reds(*resize(grey(7, 1, kRow), {4, 1})), smaller);
  EXPECT_EQ(reds(*resize(grey(7, 1, kRow), {11, 1})), larger);
  EXPECT_EQ(reds(*resize(grey(1, 7, kRow), {1, 4})), smaller);
  EXPECT_EQ(reds(*resize(grey(1, 7, kRow), {1, 11})), larger);
  EXPECT_EQ(resize(grey(7, 1, kRow), {7, 1})->rgb, grey(7, 1, kRow).rgb);
}

// A single bright sample shows the weight that each sample of the result gives it, where that is not
// negative.
TEST(Resize, HasTheFiltersWeights) {
  struct Case {
    u32 from, to, bright;
    std::vector<f64> weights;
  };
  const Case cases[] = {{5, 3, 0, {0.584615, 0, 0}},
                        {5, 3, 1, {0.446154, 0.246512, 0}},
                        {5, 3, 2, {0, 0.581395, 0}},
                        {3, 5, 0, {1, 0.649254, 0, 0, 0}},
                        {3, 5, 1, {0, 0.395522, 1, 0.395522, 0}}};
  for (const Case& c : cases) {
    std::vector<u8> row(c.from);
    row[c.bright] = 255;
    const auto out = resize(grey(c.from, 1, row), {c.to, 1});
    ASSERT_OK(out);
    for (u32 i = 0; i < c.to; ++i) {
      EXPECT_EQ(reds(*out)[i], std::lround(c.weights[i] * 255)) << c.from << " to " << c.to << " at " << i;
    }
  }
}

TEST(Resize, KeepsChannelsAndColoursApart) {
  Image image{9, 5, {}};
  for (int i = 0; i < 9 * 5; ++i) image.rgb.insert(image.rgb.end(), {10, 130, 250});
  for (const Size size : {Size{1, 1}, Size{48, 48}, Size{3, 40}, Size{9, 2}}) {
    const auto out = resize(image, size);
    ASSERT_OK(out);
    ASSERT_EQ(out->rgb.size(), size.width * size.height * 3);
    for (std::size_t i = 0; i < out->rgb.size(); ++i) EXPECT_EQ(out->rgb[i], image.rgb[i % 3]);
  }
}

TEST(Resize, CopesWithTheExtremes) {
  const auto large = resize(grey(1, 1, {77}), {768, 768});
  ASSERT_OK(large);
  EXPECT_TRUE(std::ranges::all_of(large->rgb, [](u8 value) { return value == 77; }));

  const Size source{20'000, 3};
  const auto target = target_size(source, 280);
  ASSERT_OK(target);
  const auto flat = resize(Image{source.width, source.height, std::vector<u8>(60'000 * 3, 200)}, *target);
  ASSERT_OK(flat);
  EXPECT_TRUE(std::ranges::all_of(flat->rgb, [](u8 value) { return value == 200; }));
  const auto shrunk = resize(*flat, {1, 1});
  ASSERT_OK(shrunk);
  EXPECT_EQ(shrunk->rgb, (std::vector<u8>{200, 200, 200}));
}

TEST(Resize, RefusesWhatCannotBe) {
  EXPECT_EQ(resize(Image{2, 2, {1, 2, 3}}, {4, 4}).error().message,
            "A picture of 2 x 2 pixels has 3 bytes, not 12.");
  EXPECT_FALSE(resize(Image{}, {4, 4}));
  EXPECT_FALSE(resize(grey(1, 1, {0}), {4, 0}));
  EXPECT_FALSE(resize(grey(1, 1, {0}), {100'000, 100'000}));
  EXPECT_FALSE(resize(grey(1, 1000, std::vector<u8>(1000)), {1'000'000, 1}));  // 1e9 pixels in between
}

// What transformers made of it, put together again from its patches.
TEST(Resize, GivesTheTransformersLibrarysPixels) {
  const Image image{144, 96, Safetensors(data_path("media.safetensors")).get<u8>("image.rgb")};
  const auto target = target_size({image.width, image.height}, 70);
  ASSERT_OK(target);
  const auto out = resize(image, *target);
  ASSERT_OK(out);
  EXPECT_EQ(out->rgb, Safetensors(data_path("vision.safetensors")).get<u8>("tiny.rgb"));
}

}  // namespace
}  // namespace bezel
