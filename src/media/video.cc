#include "media/video.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format_text.h"

namespace bezel {
namespace {

constexpr u64 kMaxFrames = u64{1} << 32;  // years of video; products with a u32 then fit

}  // namespace

Result<std::vector<u64>> sample_frames(u64 total, u32 count) {
  if (count == 0) return invalid("At least one frame of a video must be taken.");
  if (total > kMaxFrames) return invalid("The video has {} frames; the limit is {}.", total, kMaxFrames);
  if (total < count) return invalid("The video has {} frames, fewer than the {} to take.", total, count);
  std::vector<u64> frames(count);
  for (u32 i = 0; i < count; ++i) frames[i] = total * i / count;
  return frames;
}

Result<u32> frames_at_rate(u64 total, f64 source_fps, f64 fps) {
  if (!(source_fps > 0) || !std::isfinite(source_fps) || !(fps > 0) || !std::isfinite(fps)) {
    return invalid("Frame rates are positive numbers, not {} and {}.", source_fps, fps);
  }
  if (total > kMaxFrames) return invalid("The video has {} frames; the limit is {}.", total, kMaxFrames);
  const f64 count = std::trunc(static_cast<f64>(total) / source_fps * fps);
  if (count < 1 || count > static_cast<f64>(total)) {
    return invalid(
        "{} frames at {} a second are {} at {} a second; it must be at least one and no more than there are.",
        total, source_fps, count, fps);
  }
  if (count > std::numeric_limits<u32>::max()) return invalid("The video has too many frames: {}.", total);
  return static_cast<u32>(count);
}

std::string frame_time(u64 index, f64 source_fps) {
  if (!(source_fps > 0) || !std::isfinite(source_fps)) source_fps = kUnknownFrameRate;
  const f64 limit = 0x1p53;  // beyond all videos, and still a whole number
  const auto seconds = static_cast<u64>(std::min(static_cast<f64>(index) / source_fps, limit));
  return format_text("{:02}:{:02}", seconds / 60, seconds % 60);
}

}  // namespace bezel
