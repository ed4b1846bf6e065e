// From sound to the numbers that Gemma 4's audio towers take: the logarithm of a mel spectrogram.
#pragma once
#include <span>
#include <vector>

#include "base/types.h"

namespace bezel {

inline constexpr u32 kMelBins = 128;
inline constexpr u32 kSpectrumBins = 257;  // 0 to 8000 Hz, 31.25 Hz apart

struct Mel {
  u32 rows = 0;             // frames, 10 ms apart
  std::vector<f32> values;  // (rows, kMelBins)
};

// Frames that lie wholly within `samples` samples, and the soft tokens they become.
u64 mel_frames(u64 samples);
u64 audio_tokens(u64 samples);

// Samples in [-1, 1], mono, 16 kHz. The same bits on every platform.
Mel log_mel(std::span<const f32> samples16k);

// Triangles of height 1 between frequencies that are equally far apart on the mel scale: (kMelBins,
// kSpectrumBins).
std::vector<f64> mel_filters();

}  // namespace bezel
