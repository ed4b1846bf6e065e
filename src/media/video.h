// Which frames of a video the model sees, and the times written before them.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace bezel {

inline constexpr u32 kVideoFrames = 32;
inline constexpr u32 kVideoBudget = 70;       // soft tokens a frame
inline constexpr f64 kUnknownFrameRate = 24;  // what a video without one counts as

// `count` frames, equally far apart, of a video with `total` frames; an error if it has fewer.
Result<std::vector<u64>> sample_frames(u64 total, u32 count = kVideoFrames);

// How many frames `fps` frames a second are, for a video of `total` frames at `source_fps`.
Result<u32> frames_at_rate(u64 total, f64 source_fps, f64 fps);

// Minutes and whole seconds, "01:05", at which frame `index` begins.
std::string frame_time(u64 index, f64 source_fps = kUnknownFrameRate);

}  // namespace bezel
