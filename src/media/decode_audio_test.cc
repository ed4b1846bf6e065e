#include "media/decode_audio.h"

#include <bit>
#include <cmath>
#include <string>

#include "support.h"

namespace bezel {
namespace {

using namespace std::string_literals;

std::string little(u64 value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string chunk(const std::string& id, const std::string& body) {
  return id + little(body.size(), 4) + body + (body.size() % 2 == 1 ? "\0"s : ""s);
}

std::string format(u32 tag, u32 channels, u32 rate, u32 bits) {
  const u32 frame = (bits + 7) / 8 * channels;
  return little(tag, 2) + little(channels, 2) + little(rate, 4) + little(u64{rate} * frame, 4) +
         little(frame, 2) + little(bits, 2);
}

std::string wav(const std::string& format, const std::string& data) {
  const std::string body = "WAVE"s + chunk("fmt ", format) + chunk("data", data);
  return "RIFF"s + little(body.size(), 4) + body;
}

Result<Clip> decode(const std::string& file) { return decode_audio(std::as_bytes(std::span(file))); }

std::string message(const std::string& file) {
  const auto clip = decode(file);
  return clip ? "no error" : clip.error().message;
}

TEST(Wav, ReadsEveryWidth) {
  struct Case {
    u32 tag, bits;
    std::string data;
  };
  const Case cases[] = {
      {1, 8, "\x80\x00\xc0\x40"s},
      {1, 16, "\0\0\x00\x80\0\x40\0\xc0"s},
      {1, 12, "\0\0\x00\x80\0\x40\0\xc0"s},
      {1, 24, "\0\0\0\0\0\x80\0\0\x40\0\0\xc0"s},
      {1, 32, little(0, 4) + little(0x80000000, 4) + little(0x40000000, 4) + little(0xc0000000, 4)},
      {3, 32,
       little(0, 4) + little(std::bit_cast<u32>(-1.0f), 4) + little(std::bit_cast<u32>(0.5f), 4) +
           little(std::bit_cast<u32>(-0.5f), 4)},
      {3, 64,
       little(0, 8) + little(std::bit_cast<u64>(-1.0), 8) + little(std::bit_cast<u64>(0.5), 8) +
           little(std::bit_cast<u64>(-0.5), 8)},
  };
  for (const Case& c : cases) {
    const std::string plain = format(c.tag, 2, 8'000, c.bits);
    std::string extensible = plain;
    extensible.replace(0, 2, "\xfe\xff");
    extensible += little(22, 2) + little(c.bits, 2) + little(3, 4) + little(c.tag, 2) +
                  "\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"s;
    for (const std::string& header : {plain, plain + little(0, 2), extensible}) {
      const auto clip = decode(wav(header, c.data));
      ASSERT_OK(clip);
      EXPECT_EQ(clip->rate, 8'000u);
      EXPECT_EQ(clip->channels, 2u);
      EXPECT_EQ(clip->samples, (std::vector<f32>{0, -1, 0.5f, -0.5f})) << c.tag << ", " << c.bits;
      EXPECT_FALSE(clip->cut);
    }
  }
}

TEST(Wav, SkipsOtherChunksAndReadsWhatIsThere) {
  const std::string header = chunk("fmt ", format(1, 1, 16'000, 16));
  const std::string samples = "\0\x40\0\x20\0\x10"s;
  const std::string odd = "RIFF"s + little(0, 4) + "WAVE"s + chunk("LIST", "abc") + header +
                          chunk("fact", "12345") + chunk("data", samples) + chunk("LIST", "x");
  ASSERT_OK(decode(odd));
  EXPECT_EQ(decode(odd)->samples, (std::vector<f32>{0.5f, 0.25f, 0.125f}));
  // A stated length beyond the end, as recorders leave it that were switched off, and half a sample.
  for (const u64 stated : {0xffffffffull, 1000ull, 6ull}) {
    const auto cut = decode("RF64"s + little(0xffffffff, 4) + "WAVE"s + header + "data"s + little(stated, 4) +
                            samples.substr(0, 5));
    ASSERT_OK(cut);
    EXPECT_EQ(cut->samples, (std::vector<f32>{0.5f, 0.25f}));
  }
}

TEST(Wav, StopsAfterWhatTheModelHears) {
  const auto clip = decode(wav(format(1, 2, 1'000, 8), std::string(2 * 40'000, '\x80')));
  ASSERT_OK(clip);
  EXPECT_EQ(clip->samples.size(), 2u * 1'000 * kDecodedSeconds);
  EXPECT_TRUE(clip->cut);
  EXPECT_DOUBLE_EQ(clip->seconds, 40);
}

TEST(Wav, RefusesWhatCannotBe) {
  const std::string good = wav(format(1, 1, 16'000, 16), "\0\0"s);
  ASSERT_OK(decode(good));
  EXPECT_EQ(message(wav(format(6, 1, 16'000, 8), "\0"s)),
            "The WAV file is encoded as 0x0006; PCM (0x0001) and floating point (0x0003) can be read.");
  EXPECT_EQ(message(wav(format(1, 0, 16'000, 16), "\0\0"s)),
            "The WAV file has 0 channels; 1 to 32 are possible.");
  EXPECT_EQ(message(wav(format(1, 40'000, 16'000, 16), "\0\0"s)),
            "The WAV file has 40000 channels; 1 to 32 are possible.");
  EXPECT_EQ(message(wav(format(1, 1, 0, 16), "\0\0"s)),
            "The recording has 0 samples a second; 1000 to 384000 are possible.");
  EXPECT_FALSE(decode(wav(format(1, 1, 0xffffffff, 16), "\0\0"s)));
  EXPECT_FALSE(decode(wav(format(1, 1, 16'000, 40), "\0\0\0\0\0"s)));
  EXPECT_FALSE(decode(wav(format(1, 1, 16'000, 0), "\0\0"s)));
  EXPECT_FALSE(decode(wav(format(3, 1, 16'000, 16), "\0\0"s)));
  EXPECT_EQ(message(wav(format(1, 1, 16'000, 16), ""s)), "The recording has no samples.");
  EXPECT_EQ(message(wav("\x01\0"s, "\0\0"s)), "The WAV file's format takes 2 bytes; it has at least 16.");
  EXPECT_EQ(message("RIFF\0\0\0\0WAVE"s + chunk("data", "\0\0"s)),
            "The WAV file's samples come before its format.");
  EXPECT_EQ(message("RIFF\0\0\0\0WAVE"s), "The WAV file of 12 bytes has no samples.");
  std::string frame = format(1, 2, 16'000, 16);
  frame[12] = 3;
  EXPECT_EQ(message(wav(frame, "\0\0"s)), "The WAV file has 3 bytes a frame, but 2 channels of 2 bytes.");
  EXPECT_EQ(message(""s), "The recording's file is empty.");
  EXPECT_FALSE(decode("RIFF"s));
}

TEST(Wav, SurvivesBrokenFiles) {
  const std::string whole = wav(format(1, 2, 16'000, 24), std::string(600, 'x'));
  u32 state = 7;
  const auto random = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto clip = decode(whole.substr(0, n));
    if (clip) {
      EXPECT_EQ(clip->samples.size(), (n - 44) / 6 * 2);
    }
  }
  for (int round = 0; round < 2'000; ++round) {
    std::string broken = whole;
    for (u32 flips = random() % 4 + 1; flips > 0; --flips)
      broken[random() % 60] = static_cast<char>(random());
    const auto clip = decode(broken);
    if (clip) {
      EXPECT_LE(clip->samples.size(), whole.size());
    } else {
      EXPECT_TRUE(clip.error().message.ends_with('.')) << clip.error().message;
    }
  }
}

}  // namespace
}  // namespace bezel
