// Recordings as Gemma 4's audio towers take them: one channel, 16,000 samples a second, 30 seconds at most.
#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace bezel {

struct Clip {
  u32 rate = 0;      // frames a second
  u32 channels = 0;  // samples a frame
  std::vector<f32> samples = {};
  bool cut = false;  // the recording goes on after these samples
  f64 seconds = 0;   // of the whole recording if `cut`, where its file tells; otherwise 0
};

inline constexpr u32 kAudioRate = 16'000;
inline constexpr u32 kMaxAudioSamples = 30 * kAudioRate;
inline constexpr u32 kMinAudioSamples = 161;  // fewer give no soft token
inline constexpr u32 kMinClipRate = 1'000, kMaxClipRate = 384'000, kMaxClipChannels = 32;

// An error if there is nothing to hear, or a rate or a number of channels outside the limits.
Status check_clip(const Clip& clip);

// The mean of the channels. Samples that are no numbers, or absurdly large, count as silence: a broken sample
// of a float file must not turn all it is mixed with into NaN.
std::vector<f32> mono(const Clip& clip);

// Band-limited, without delay: ceil(n * to / from) samples. Everything above the lower of the two Nyquist
// frequencies is removed, by 80 dB; what lies below 0.89 of it is kept. Beyond the ends is silence. Both
// rates are at least 1 and at most kMaxClipRate.
std::vector<f32> resample(std::span<const f32> samples, u32 from, u32 to);

// Whether the recording goes on after what the model hears of it.
bool is_cut(const Clip& clip);

struct PreparedAudio {
  std::vector<f32> samples;   // kAudioRate, mono
  bool cut = false;           // the source was longer than the model hears
  f64 seconds_of_source = 0;  // all of it, also what was cut
};
Result<PreparedAudio> prepare_audio(const Clip& clip);

}  // namespace bezel
