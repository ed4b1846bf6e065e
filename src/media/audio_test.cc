#include "media/audio.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "support.h"

namespace bezel {
namespace {

std::vector<f32> sine(f64 hz, u32 rate, std::size_t n) {
  std::vector<f32> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = static_cast<f32>(std::sin(2 * std::numbers::pi * hz * static_cast<f64>(i) / rate));
  }
  return out;
}

// The root mean square away from the ends, where the silence around the signal shows.
f64 loudness(std::span<const f32> samples) {
  const std::size_t edge = samples.size() / 5;
  f64 sum = 0;
  for (const f32 sample : samples.subspan(edge, samples.size() - 2 * edge)) sum += f64{sample} * sample;
  return std::sqrt(sum / static_cast<f64>(samples.size() - 2 * edge));
}

TEST(Resample, LengthIsRoundedUp) {
  for (const u32 from : {8'000u, 11'025u, 22'050u, 44'100u, 48'000u, 44'099u, 384'000u}) {
    for (const std::size_t n : {1uz, 2uz, 99uz, 4'410uz}) {
      EXPECT_EQ(resample(std::vector<f32>(n), from, 16'000).size(), (n * 16'000 + from - 1) / from)
          << from << ", " << n;
    }
  }
  EXPECT_TRUE(resample({}, 44'100, 16'000).empty());
  const std::vector<f32> same = {1, 2, 3};
  EXPECT_EQ(resample(same, 16'000, 16'000), same);
}

TEST(Resample, KeepsWhatIsBelowTheCutOffInPlace) {
  for (const u32 from : {8'000u, 22'050u, 44'100u, 48'000u, 44'099u, 96'000u}) {
    const f64 nyquist = std::min(from, 16'000u) / 2.0;
    for (const f64 share : {0.01, 0.3, 0.7, 0.88}) {
      const f64 hz = share * nyquist;
      const auto out = resample(sine(hz, from, from / 4), from, 16'000);
      const auto expected = sine(hz, 16'000, out.size());
      for (std::size_t i = out.size() / 4; i < out.size() * 3 / 4; ++i) {
        ASSERT_NEAR(out[i], expected[i], 2e-3) << from << " Hz, tone of " << hz << ", sample " << i;
      }
    }
  }
}

TEST(Resample, RemovesWhatWouldComeBackAsAnAlias) {
  for (const u32 from : {22'050u, 44'100u, 48'000u, 44'099u, 96'000u}) {
    for (const f64 hz : {8'010.0, 8'500.0, 9'999.0, from * 0.49}) {
      const f64 decibels =
          20 * std::log10(loudness(resample(sine(hz, from, from / 4), from, 16'000)) * std::sqrt(2.0));
      EXPECT_LT(decibels, -70) << from << " Hz, tone of " << hz;
    }
  }
}

TEST(Resample, KeepsASteadyLevel) {
  for (const u32 from : {8'000u, 44'100u, 48'000u, 44'099u}) {
    const auto out = resample(std::vector<f32>(from / 4, 0.5f), from, 16'000);
    for (std::size_t i = out.size() / 4; i < out.size() * 3 / 4; ++i) ASSERT_NEAR(out[i], 0.5, 1e-6) << from;
  }
}

// The hash was taken natively; the WebAssembly build of this test must find the same bits.
TEST(Resample, IsTheSameOnEveryPlatform) {
  u64 hash = 14695981039346656037u;
  for (const u32 from : {44'100u, 44'099u}) {
    std::vector<f32> samples(2'000);
    u32 state = 1;
    for (f32& sample : samples) {
      state = state * 1664525 + 1013904223;
      sample = static_cast<f32>(static_cast<i32>(state)) * 0x1p-31f;
    }
    for (const f32 value : resample(samples, from, 16'000))
      hash = (hash ^ std::bit_cast<u32>(value)) * 1099511628211u;
  }
  EXPECT_EQ(hash, 8564301695542407310u);
}

TEST(Audio, MonoIsTheMean) {
  EXPECT_EQ(mono({16'000, 2, {1, 0, 0.5f, 0.25f, -1, 1}}), (std::vector<f32>{0.5f, 0.375f, 0}));
  EXPECT_EQ(mono({16'000, 1, {1, 2}}), (std::vector<f32>{1, 2}));
  EXPECT_TRUE(mono({}).empty());
  const f32 nan = std::numeric_limits<f32>::quiet_NaN(), inf = std::numeric_limits<f32>::infinity();
  EXPECT_EQ(mono({16'000, 2, {nan, 1, inf, -inf, 3e38f, 0.5f}}), (std::vector<f32>{0.5f, 0, 0.25f}));
}

TEST(Audio, IsPreparedForTheModel) {
  const auto audio = prepare_audio({48'000, 2, std::vector<f32>(96'000, 0.25f)});
  ASSERT_OK(audio);
  EXPECT_EQ(audio->samples.size(), 16'000u);
  EXPECT_FALSE(audio->cut);
  EXPECT_DOUBLE_EQ(audio->seconds_of_source, 1);
}

TEST(Audio, IsCutAtThirtySeconds) {
  const auto exact = prepare_audio({8'000, 1, std::vector<f32>(240'000)});
  ASSERT_OK(exact);
  EXPECT_EQ(exact->samples.size(), kMaxAudioSamples);
  EXPECT_FALSE(exact->cut);
  const auto longer = prepare_audio({8'000, 1, std::vector<f32>(240'001)});
  ASSERT_OK(longer);
  EXPECT_EQ(longer->samples.size(), kMaxAudioSamples);
  EXPECT_TRUE(longer->cut);
  const auto much = prepare_audio({16'000, 1, std::vector<f32>(600'000)});
  ASSERT_OK(much);
  EXPECT_EQ(much->samples.size(), kMaxAudioSamples);
  EXPECT_TRUE(much->cut);
  EXPECT_DOUBLE_EQ(much->seconds_of_source, 37.5);
  const auto decoder_cut = prepare_audio({16'000, 1, std::vector<f32>(16'000), true, 3'600});
  ASSERT_OK(decoder_cut);
  EXPECT_TRUE(decoder_cut->cut);
  EXPECT_DOUBLE_EQ(decoder_cut->seconds_of_source, 3'600);
}

TEST(Audio, RefusesWhatCannotBeHeard) {
  EXPECT_EQ(prepare_audio({16'000, 1, std::vector<f32>(160)}).error().message,
            "The recording is too short: 160 samples at 16000 Hz; at least 161 are needed.");
  EXPECT_TRUE(prepare_audio({16'000, 1, std::vector<f32>(161)}));
  EXPECT_EQ(prepare_audio({0, 1, {1}}).error().message,
            "The recording has 0 samples a second; 1000 to 384000 are possible.");
  EXPECT_EQ(prepare_audio({16'000, 0, {1}}).error().message,
            "The recording has 0 channels; 1 to 32 are possible.");
  EXPECT_EQ(prepare_audio({16'000, 2, {1}}).error().message, "The recording has no samples.");
  EXPECT_FALSE(prepare_audio({0xffff'ffff, 1, {1}}));
}

}  // namespace
}  // namespace bezel
