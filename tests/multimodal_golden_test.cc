// Pictures of every budget and of odd shapes, recordings, and prompts of several of them, as transformers
// computes them in single precision: tools/golden_media.py.
#include "base/format_text.h"
#include "models.h"
#include "run/towers.h"
#include "safetensors.h"
#ifndef __wasm__
#include "gpu_fixture.h"
#endif

namespace bezel {
namespace {

// The same as in tools/golden_media.py.
Image picture(u32 width, u32 height) {
  Image image{width, height, {}};
  for (u32 y = 0; y < height; ++y) {
    for (u32 x = 0; x < width; ++x) {
      for (u32 c = 0; c < 3; ++c)
        image.rgb.push_back(static_cast<u8>(37 * x + 91 * y + 53 * c + ((x * x) ^ (3 * y * y))));
    }
  }
  return image;
}

Clip sound(u32 count) {
  Clip clip{.rate = 16000, .channels = 1, .samples = {}};
  const auto wave = [](i64 phase) { return std::abs((phase & 65535) - 32768) - 16384; };
  for (i64 i = 0; i < count; ++i) {
    const i64 half = wave(i * 5309) >> 1;  // rounded down
    const i64 noise = ((i * 1103515245 + 12345) >> 8 & 4095) - 2048;
    clip.samples.push_back(static_cast<f32>(static_cast<f64>(wave(i * 1802) + half + noise) / 65536));
  }
  return clip;
}

struct Seen {
  u32 width, height, budget;
};
constexpr Seen kUsual[] = {{144, 96, 70}, {144, 96, 140}, {144, 96, 280}, {144, 96, 560}, {144, 96, 1120}};
constexpr Seen kOdd[] = {{1, 1, 70},    {3, 500, 70}, {2000, 3, 70},
                         {977, 31, 70}, {48, 48, 70}, {640, 480, 70}};
constexpr u32 kRecordings[] = {3200, 30000};

struct Case {
  const char *name, *text, *projector;
  bool hears;
};
constexpr const char* kBare = "tiny-12b-mmproj.gguf";  // no encoder
constexpr u32 kQuick = 280;
constexpr Case kCases[] = {
    {"tiny-e2b", "tiny-e2b-Q4_K_M.gguf", "tiny-e2b-mmproj.gguf", true},
    {"tiny-26b", "tiny-26b-Q4_K_M.gguf", "tiny-26b-mmproj.gguf", false},
    {"tiny-12b", "tiny-31b.gguf", kBare, true},
};

class MultimodalGolden : public testing::TestWithParam<Case> {
 protected:
  using Soft = Towers::Soft;

  void open(Device* device) {
    const Case& c = GetParam();
    LoadOptions options;
    options.device = device;
    model_ = load_model(data_path(c.text), options);
    ASSERT_NE(model_.backend, nullptr);
    auto projector = open_gguf(data_path(c.projector));
    ASSERT_OK(projector);
    projector_ = std::move(*projector);
    width_ = model_.backend->model().config.width;
    towers_.emplace(*model_.file, &*projector_, width_, device);
    software_ = device != nullptr && device->info().software;
  }

  Soft see(const Seen& what) {
    return checked(run_now(towers_->see(picture(what.width, what.height), what.budget)));
  }
  Soft hear(u32 count) { return checked(run_now(towers_->hear(sound(count)))); }

  // The few rows of soft tokens that the goldens have, and how many there are in all.
  void compare_rows(const std::string& key, const Soft& soft) {
    if (!soft) return;
    const std::string name = std::string(GetParam().name) + "." + key;
    const auto rows = golden_.get<u32>(name + ".rows");  // the number of soft tokens, then which are kept
    const auto expected = golden_.get<f32>(name + ".soft");
    ASSERT_FALSE(rows.empty());
    ASSERT_EQ(soft->count, rows[0]) << name;
    std::vector<f32> got;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      ASSERT_LT(rows[i], soft->count);
      const auto row = std::span(soft->rows).subspan(std::size_t{rows[i]} * width_, width_);
      got.insert(got.end(), row.begin(), row.end());
    }
    f64 size = 0;
    for (const f32 v : expected) size = std::max<f64>(size, std::abs(v));
    EXPECT_LE(difference(got, expected), 1e-3 * size) << name;
    worst_ = std::max(worst_, difference(got, expected) / size);
  }

  // A GPU in software takes seconds for a picture, and compiles an encoder's kernels for longer. There only
  // the kind without an encoder is compared; vision_test.cc and audio_test.cc compare one picture and one
  // recording of the others.
  void compare_media() {
    if (software_ && GetParam().projector != kBare) return;
    for (const Seen& what : kUsual) {
      if (what.budget <= largest_budget()) compare_picture(what);
    }
    for (const Seen& what : kOdd) compare_picture(what);
    if (GetParam().hears) {
      for (const u32 count : kRecordings) compare_rows(std::to_string(count), hear(count));
    }
    RecordProperty("soft", format_text("{}", worst_));
  }

  // Attention over the 5,000 and 10,000 patches of the two largest budgets takes an encoder minutes on the
  // CPU and on a GPU in software; $BEZEL_FULL_SHAPES asks for them. Without an encoder they cost nothing.
  u32 largest_budget() const {
    return std::getenv("BEZEL_FULL_SHAPES") != nullptr || GetParam().projector == kBare ? 1120 : kQuick;
  }

  // On a GPU in software the soft tokens come from the CPU, and the text model alone is the GPU's.
  // Placeholders among the ids stand for the same pictures and recordings as in the script.
  void compare_logits() {
    const std::string name = std::string(GetParam().name) + ".mixed";
    const auto placeholders = golden_.get<u32>(std::string(GetParam().name) + ".placeholders");
    Prompt prompt{golden_.get<u32>(name + ".ids")};
    ASSERT_EQ(placeholders.size(), 2u);
    std::vector<Seen> pictures{{144, 96, 70}, {31, 977, 70}};
    if (!GetParam().hears) pictures.push_back({640, 480, 70});
    if (software_) towers_.emplace(*model_.file, &*projector_, width_, nullptr);
    std::size_t shown = 0;
    for (u32 at = 0; at < prompt.size();) {
      const bool image = prompt.ids[at] == placeholders[0];
      if (!image && prompt.ids[at] != placeholders[1]) {
        ++at;
        continue;
      }
      if (image) ASSERT_LT(shown, pictures.size());
      const Soft soft = image ? see(pictures[shown++]) : hear(30000);
      ASSERT_NE(soft, nullptr);
      u32 run = 0;
      while (at + run < prompt.size() && prompt.ids[at + run] == placeholders[image ? 0 : 1]) ++run;
      ASSERT_EQ(run, soft->count) << name << " at " << at;
      prompt.soft.push_back({at, soft});
      at += run;
    }
    EXPECT_EQ(shown, pictures.size());
    auto session = Session::create(*model_.backend, prompt.size());
    ASSERT_OK(session);
    std::vector<f32> logits, got;
    ASSERT_OK(run_now(session->feed_all(std::move(prompt), logits)));
    const u32 vocab = model_.backend->model().config.vocab;
    for (const u32 position : golden_.get<u32>(name + ".positions")) {
      ASSERT_LE((std::size_t{position} + 1) * vocab, logits.size());
      const auto row = std::span(logits).subspan(std::size_t{position} * vocab, vocab);
      got.insert(got.end(), row.begin(), row.end());
    }
    const auto expected = golden_.get<f32>(name + ".logits");
    EXPECT_LE(difference(got, expected), 3e-3) << name;
    RecordProperty("logits", format_text("{}", difference(got, expected)));
  }

 private:
  static Soft checked(Result<Soft> soft) {
    EXPECT_TRUE(soft) << soft.error().message;
    return soft ? *soft : nullptr;
  }

  void compare_picture(const Seen& what) {
    compare_rows(format_text("{}x{}.{}", what.width, what.height, what.budget), see(what));
  }

  Safetensors golden_{data_path("multimodal.safetensors")};
  Loaded model_;
  std::optional<Gguf> projector_;
  std::optional<Towers> towers_;
  u32 width_ = 0;
  bool software_ = false;
  f64 worst_ = 0;
};

TEST_P(MultimodalGolden, OnCpu) {
  ASSERT_NO_FATAL_FAILURE(open(nullptr));
  compare_media();
  compare_logits();
}

#ifndef __wasm__
TEST_P(MultimodalGolden, OnGpu) {
  ASSERT_NO_FATAL_FAILURE(open(test_device()));
  compare_media();
  compare_logits();
}
#endif

INSTANTIATE_TEST_SUITE_P(Tiny, MultimodalGolden, testing::ValuesIn(kCases), [](const auto& param) {
  std::string name = param.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace bezel
