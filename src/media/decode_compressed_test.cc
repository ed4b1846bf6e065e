// On the web the page decodes everything but WAV.
#ifndef __wasm__
#include <FLAC/stream_encoder.h>

#include <cmath>
#include <numbers>
#include <string>

#include "media/decode_audio.h"
#include "support.h"

namespace bezel {
namespace {

using namespace std::string_literals;

FLAC__StreamEncoderWriteStatus append(const FLAC__StreamEncoder*, const FLAC__byte* bytes, std::size_t n, u32,
                                      u32, void* client) {
  auto& out = *static_cast<std::vector<std::byte>*>(client);
  const Bytes more = std::as_bytes(std::span(bytes, n));
  out.insert(out.end(), more.begin(), more.end());
  return FLAC__STREAM_ENCODER_WRITE_STATUS_OK;
}

std::vector<std::byte> flac(u32 rate, u32 channels, u32 bits, const std::vector<i32>& samples,
                            bool in_ogg = false) {
  std::vector<std::byte> out;
  FLAC__StreamEncoder* encoder = FLAC__stream_encoder_new();
  FLAC__stream_encoder_set_channels(encoder, channels);
  FLAC__stream_encoder_set_bits_per_sample(encoder, bits);
  FLAC__stream_encoder_set_sample_rate(encoder, rate);
  FLAC__stream_encoder_set_streamable_subset(encoder, false);
  FLAC__stream_encoder_set_total_samples_estimate(encoder, samples.size() / channels);
  const auto status =
      in_ogg ? FLAC__stream_encoder_init_ogg_stream(encoder, nullptr, append, nullptr, nullptr, nullptr, &out)
             : FLAC__stream_encoder_init_stream(encoder, append, nullptr, nullptr, nullptr, &out);
  EXPECT_EQ(status, FLAC__STREAM_ENCODER_INIT_STATUS_OK);
  EXPECT_TRUE(FLAC__stream_encoder_process_interleaved(encoder, samples.data(),
                                                       static_cast<u32>(samples.size()) / channels));
  EXPECT_TRUE(FLAC__stream_encoder_finish(encoder));
  FLAC__stream_encoder_delete(encoder);
  return out;
}

TEST(Flac, ReadsEveryWidth) {
  for (const u32 bits : {8u, 16u, 24u}) {
    for (const bool in_ogg : {false, true}) {
      std::vector<i32> samples;
      std::vector<f32> expected;
      for (int i = 0; i < 10'000; ++i) {
        samples.push_back((i * 37 % 256 - 128) << (bits - 8));
        expected.push_back(static_cast<f32>(i * 37 % 256 - 128) / 128);
      }
      const auto clip = decode_audio(flac(44'100, 2, bits, samples, in_ogg));
      ASSERT_OK(clip);
      EXPECT_EQ(clip->rate, 44'100u);
      EXPECT_EQ(clip->channels, 2u);
      EXPECT_EQ(clip->samples, expected) << bits << ", " << in_ogg;
      EXPECT_FALSE(clip->cut);
    }
  }
}

TEST(Flac, MixesManyChannels) {
  std::vector<i32> samples;
  for (int i = 0; i < 6 * 500; ++i) samples.push_back(i % 6 == 0 ? 6 * 4'096 : 0);
  const auto clip = decode_audio(flac(48'000, 6, 16, samples));
  ASSERT_OK(clip);
  EXPECT_EQ(clip->channels, 1u);
  EXPECT_EQ(clip->samples, std::vector<f32>(500, 0.125f));
}

TEST(Flac, StopsAfterWhatTheModelHears) {
  const auto file = flac(8'000, 1, 16, std::vector<i32>(8'000 * 60));
  EXPECT_LT(file.size(), 20'000u);
  const auto clip = decode_audio(file);
  ASSERT_OK(clip);
  EXPECT_EQ(clip->samples.size(), 8'000u * kDecodedSeconds);
  EXPECT_TRUE(clip->cut);
  EXPECT_DOUBLE_EQ(clip->seconds, 60);
}

TEST(Mp3, ReadsATone) {
  const auto clip = decode_audio(read_bytes(data_path("media/tone.mp3")));
  ASSERT_OK(clip);
  ASSERT_EQ(clip->rate, 24'000u);
  ASSERT_EQ(clip->channels, 2u);
  EXPECT_NEAR(static_cast<f64>(clip->samples.size()) / 2, 12'000, 2'000);
  // How much of 440 Hz there is to the left and to the right; what the file holds is half of full scale to
  // the left.
  const std::size_t begin = 3'000, count = 6'000;
  for (const std::size_t channel : {0, 1}) {
    f64 sin = 0, cos = 0;
    for (std::size_t i = begin; i < begin + count; ++i) {
      const f64 angle = 2 * std::numbers::pi * 440 * static_cast<f64>(i) / 24'000;
      sin += clip->samples[i * 2 + channel] * std::sin(angle);
      cos += clip->samples[i * 2 + channel] * std::cos(angle);
    }
    EXPECT_NEAR(std::hypot(sin, cos) * 2 / count, channel == 0 ? 0.5 : 0, 0.02);
  }
}

TEST(Mp3, StopsAfterWhatTheModelHears) {
  const auto once = read_bytes(data_path("media/tone.mp3"));
  std::vector<std::byte> often;
  for (int i = 0; i < 80; ++i) often.insert(often.end(), once.begin(), once.end());
  const auto clip = decode_audio(often);
  ASSERT_OK(clip);
  EXPECT_LE(clip->samples.size(), 2u * 24'000 * kDecodedSeconds);
  EXPECT_GE(clip->samples.size(), 2u * 24'000 * 30);
  EXPECT_TRUE(clip->cut);
}

TEST(DecodeAudio, NamesWhatItCannotRead) {
  const auto message = [](const std::string& file) {
    const auto clip = decode_audio(std::as_bytes(std::span(file)));
    return clip ? "no error" : clip.error().message;
  };
  EXPECT_EQ(message("OggS"s + std::string(40, '\0')),
            "The recording is Ogg Vorbis or Opus; WAV, FLAC and MP3 can be read.");
  EXPECT_EQ(message("\0\0\0\x20"
                    "ftypM4A "s),
            "The recording is MPEG-4 (M4A); WAV, FLAC and MP3 can be read.");
  EXPECT_EQ(message("\xff\xf1\x50\x80"s),
            "The recording is of an unknown kind; WAV, FLAC and MP3 can be read.");  // AAC
  EXPECT_EQ(message("x"s), "The recording is of an unknown kind; WAV, FLAC and MP3 can be read.");
  EXPECT_EQ(message("fLaC"s), "The FLAC file has no whole frame.");
  EXPECT_EQ(message("ID3"s), "The MP3 file has no whole frame.");
  EXPECT_EQ(message("\xff\xfb\x90\x00"s), "The MP3 file has no whole frame.");
}

TEST(DecodeAudio, SurvivesBrokenFiles) {
  u32 state = 7;
  const auto random = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
  const auto check = [](Bytes bytes) {
    const auto clip = decode_audio(bytes);
    if (clip) {
      ASSERT_FALSE(clip->samples.empty());
      ASSERT_EQ(clip->samples.size() % clip->channels, 0u);
      ASSERT_LE(clip->samples.size(), u64{clip->rate} * clip->channels * kDecodedSeconds);
    } else {
      ASSERT_TRUE(clip.error().message.ends_with('.')) << clip.error().message;
    }
  };
  std::vector<i32> noise(4'000);
  for (i32& sample : noise) sample = static_cast<i32>(random() % 65'536) - 32'768;
  const auto mp3 = read_bytes(data_path("media/tone.mp3"));
  for (const auto& whole : {flac(16'000, 2, 16, noise), flac(16'000, 1, 16, noise, true), mp3}) {
    for (std::size_t n = 0; n < whole.size(); n += 1 + whole.size() / 100) check(Bytes(whole).first(n));
    for (int round = 0; round < 200; ++round) {
      auto broken = whole;
      for (u32 flips = random() % 8 + 1; flips > 0; --flips) {
        const std::size_t range = round % 2 == 0 ? std::min<std::size_t>(broken.size(), 200) : broken.size();
        broken[random() % range] = static_cast<std::byte>(random() & 0xff);
      }
      check(broken);
    }
  }
}

}  // namespace
}  // namespace bezel
#endif
