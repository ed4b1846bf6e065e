#include "media/mel.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "media/audio.h"
#include "media/decode_audio.h"
#include "safetensors.h"

namespace bezel {
namespace {

TEST(Mel, FiltersAreTriangles) {
  const auto filters = mel_filters();
  const auto at = [&](u32 filter, u32 bin) { return filters[filter * kSpectrumBins + bin]; };
  struct Case {
    u32 filter, bin;
    f64 weight;
  };
  const Case cases[] = {{1, 1, 0.766008},     {2, 1, 0.233992},     {10, 5, 0.311869},
                        {64, 56, 0.128486},   {64, 57, 0.776708},   {64, 58, 0.583290},
                        {127, 246, 0.126341}, {127, 247, 0.315679}, {127, 250, 0.883695},
                        {127, 251, 0.928379}, {127, 255, 0.185676}};
  for (const Case& c : cases) EXPECT_NEAR(at(c.filter, c.bin), c.weight, 1e-6) << c.filter << ", " << c.bin;
  f64 sum = 0;
  int singles = 0;
  for (u32 m = 0; m < kMelBins; ++m) {
    int bins = 0;
    for (u32 bin = 0; bin < kSpectrumBins; ++bin) {
      sum += at(m, bin);
      bins += at(m, bin) > 0;
    }
    singles += bins == 1;
    if (m == 0) {
      EXPECT_EQ(bins, 0);
    }
    if (m == 64) {
      EXPECT_EQ(bins, 3);
    }
  }
  EXPECT_NEAR(sum, 252.785137, 1e-6);
  EXPECT_EQ(singles, 25);
}

TEST(Mel, CountsFramesAndTokens) {
  EXPECT_EQ(mel_frames(0), 0u);
  EXPECT_EQ(mel_frames(160), 0u);
  EXPECT_EQ(mel_frames(161), 1u);
  EXPECT_EQ(mel_frames(320), 1u);
  EXPECT_EQ(mel_frames(321), 2u);
  EXPECT_EQ(mel_frames(16'000), 99u);
  const std::pair<u64, u64> tokens[] = {{38'560, 60},   {48'000, 75},  {48'800, 76}, {99'360, 155},
                                        {161, 1},       {321, 1},      {8'000, 13},  {16'000, 25},
                                        {160'000, 250}, {480'000, 750}};
  for (const auto& [samples, count] : tokens) EXPECT_EQ(audio_tokens(samples), count) << samples;
  EXPECT_EQ(log_mel(std::vector<f32>(160)).rows, 0u);
  EXPECT_EQ(log_mel({}).values.size(), 0u);
}

std::vector<f32> two_tones() {
  std::vector<f32> samples(16'000);
  for (int t = 0; t < 16'000; ++t) {
    const f64 turn = 2 * std::numbers::pi * t / 16'000;
    samples[t] = static_cast<f32>(0.5 * std::sin(440 * turn) + 0.25 * std::sin(3000 * turn));
  }
  return samples;
}

// Expected values were computed with samples or transforms of another precision. That shows where little more
// than the floor is left.
f64 tolerance(f64 expected) { return expected < -3.5 ? 1e-3 : 1e-4; }

TEST(Mel, TwoTones) {
  const u32 bins[] = {0, 1, 5, 20, 24, 25, 60, 84, 127};
  struct Case {
    u32 row;
    f64 values[9];
    f64 mean;
  };
  const Case cases[] = {
      {0, {-6.90776, 0.87045, 0.60322, 1.62609, 2.83840, 2.62992, -3.20392, 3.03016, -0.57893}, -0.08486},
      {1, {-6.90776, -4.01679, -4.95308, -0.33680, 3.52731, 3.19789, -6.37553, 3.56158, -6.86371}, -4.31411},
      {50, {-6.90776, -3.82199, -6.82063, -0.33792, 3.52727, 3.19791, -6.31460, 3.56158, -6.87384}, -4.31787},
      {98, {-6.90776, -4.86691, -4.52751, -0.33496, 3.52738, 3.19785, -6.38642, 3.56158, -6.86948}, -4.30864},
  };
  const Mel mel = log_mel(two_tones());
  ASSERT_EQ(mel.rows, 99u);
  ASSERT_EQ(mel.values.size(), 99u * kMelBins);
  for (const Case& c : cases) {
    const std::span row = std::span(mel.values).subspan(c.row * kMelBins, kMelBins);
    for (int i = 0; i < 9; ++i)
      EXPECT_NEAR(row[bins[i]], c.values[i], tolerance(c.values[i])) << c.row << ", " << bins[i];
    f64 sum = 0;
    for (const f32 value : row) sum += value;
    EXPECT_NEAR(sum / kMelBins, c.mean, 1e-4) << c.row;
  }
}

TEST(Mel, SilenceIsTheFloor) {
  for (const f32 value : log_mel(std::vector<f32>(2000)).values) EXPECT_FLOAT_EQ(value, -6.907755f);
}

// The hash was taken natively; the WebAssembly build of this test must find the same bits.
TEST(Mel, IsTheSameOnEveryPlatform) {
  std::vector<f32> samples(8'000);
  u32 state = 1;
  for (f32& sample : samples) {
    state = state * 1664525 + 1013904223;
    sample = static_cast<f32>(static_cast<i32>(state)) * 0x1p-31f;
  }
  u64 hash = 14695981039346656037u;
  for (const f32 value : log_mel(samples).values) hash = (hash ^ std::bit_cast<u32>(value)) * 1099511628211u;
  EXPECT_EQ(hash, 9651007801942494025u);
}

// Rows beyond ours are padding of the expected ones.
void expect_features(const Mel& mel, const std::vector<f32>& expected) {
  ASSERT_GE(expected.size(), mel.values.size());
  EXPECT_LE(expected.size(), mel.values.size() + kMelBins);
  for (std::size_t i = 0; i < mel.values.size(); ++i) {
    ASSERT_NEAR(mel.values[i], expected[i], tolerance(expected[i])) << i / kMelBins << ", " << i % kMelBins;
  }
}

TEST(Mel, GivesTheTransformersLibrarysFeatures) {
  const Safetensors golden(data_path("media.safetensors"));
  const Mel mel = log_mel(golden.get<f32>("audio.wav"));
  EXPECT_EQ(mel.rows, 249u);  // the golden has one more, masked
  expect_features(mel, golden.get<f32>("audio.features"));
}

TEST(Mel, GivesTheFeaturesOfSpeech) {
  const Safetensors golden(data_path("nano/golden.safetensors"));
  for (const std::string name : {"spoken-digits-0.wav", "spoken-words-1.wav"}) {
    const auto clip = decode_audio(read_bytes(data_path("nano/" + name)));
    ASSERT_OK(clip);
    const auto audio = prepare_audio(*clip);
    ASSERT_OK(audio);
    expect_features(log_mel(audio->samples), golden.get<f32>(name + ".features"));
  }
}

}  // namespace
}  // namespace bezel
