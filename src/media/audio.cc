#include "media/audio.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/turns.h"

namespace bezel {
namespace {

constexpr f32 kLoudest = 1e6f;  // far beyond any recording, far below what overflows

// The low-pass: a sinc cut off by a Kaiser window, kCrossings samples of the lower rate to either side. The
// window's parameter gives 80 dB, and with that length the slope is 0.0522 of the lower rate wide. It ends at
// that rate's Nyquist frequency, so nothing comes back as an alias.
constexpr f64 kCrossings = 48;
constexpr f64 kBeta = 7.857;
constexpr f64 kCutOff = 0.5 - 0.0522 / 2;  // the middle of the slope, in cycles a sample of the lower rate

// Most pairs of rates need few positions between two samples. For the others this many are tabulated and the
// rest interpolated, which is 100 dB exact.
constexpr u32 kMaxPhases = 512;

f64 bessel_i0(f64 x) {
#pragma clang fp contract(off)
  f64 sum = 1, term = 1;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= x * x / (4.0 * k * k);
    sum += term;
  }
  return sum;
}

// The filter at `t` samples of the lower rate from its middle.
f64 low_pass(f64 t) {
#pragma clang fp contract(off)
  const f64 inside = 1 - t * t / (kCrossings * kCrossings);
  if (inside <= 0) return 0;
  constexpr f64 kPi = 0x1.921fb54442d18p+1;
  const f64 x = 2 * kCutOff * t;
  const f64 sinc = x == 0 ? 1 : sin_cos_turns(x / 2).sin / (kPi * x);
  return sinc * bessel_i0(kBeta * std::sqrt(inside));
}

// Sums in eight lanes: the order is fixed, and the compiler may still use vectors.
f32 dot(const f32* a, const f32* b, std::size_t n) {
#pragma clang fp contract(off)
  std::array<f32, 8> lanes{};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) lanes[k] += a[i + k] * b[i + k];
  }
  for (; i < n; ++i) lanes[i % 8] += a[i] * b[i];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Weights for every position between two input samples that is looked up.
class Filter {
 public:
  Filter(u32 from, u32 to) : phases_(std::min(to / std::gcd(from, to), kMaxPhases)) {
#pragma clang fp contract(off)
    const f64 stretch =
        std::max(1.0, static_cast<f64>(from) / to);  // input samples for one of the lower rate
    half_ = static_cast<std::size_t>(std::ceil(kCrossings * stretch));
    weights_.reserve((std::size_t{phases_} + 1) * taps());
    std::vector<f64> row(taps());
    for (u32 phase = 0; phase <= phases_; ++phase) {
      const f64 middle = static_cast<f64>(half_ - 1) + static_cast<f64>(phase) / phases_;
      f64 sum = 0;
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] = low_pass((static_cast<f64>(i) - middle) / stretch);
        sum += row[i];
      }
      for (const f64 weight : row) weights_.push_back(static_cast<f32>(weight / sum));
    }
  }

  std::size_t taps() const { return 2 * half_; }

  // The value at index + remainder / to, where index is a sample's and 0 <= remainder < to.
  f32 at(std::span<const f32> samples, std::size_t index, u64 remainder, u32 to) const {
#pragma clang fp contract(off)
    const auto phase = static_cast<std::size_t>(remainder * phases_ / to);
    const u64 between = remainder * phases_ % to;
    const f32 here = apply(samples, index, phase);
    if (between == 0) return here;
    const f32 share = static_cast<f32>(static_cast<f64>(between) / to);
    return here + share * (apply(samples, index, phase + 1) - here);
  }

 private:
  f32 apply(std::span<const f32> samples, std::size_t index, std::size_t phase) const {
    // The first weight belongs to the sample at index + 1 - half; before 0 and after the end is silence.
    const std::size_t skip = index + 1 < half_ ? half_ - index - 1 : 0;
    const std::size_t first = index + 1 + skip - half_;
    const std::size_t count = std::min(taps() - skip, samples.size() - first);
    return dot(weights_.data() + phase * taps() + skip, samples.data() + first, count);
  }

  u32 phases_;
  std::size_t half_ = 0;
  std::vector<f32> weights_;  // (phases + 1, taps)
};

// The mean of the channels of the first `frames` frames.
std::vector<f32> mix(const Clip& clip, std::size_t frames) {
#pragma clang fp contract(off)
  std::vector<f32> out(frames);
  const f32* from = clip.samples.data();
  for (f32& sample : out) {
    f64 sum = 0;
    for (u32 c = 0; c < clip.channels; ++c) {
      const f32 value = *from++;
      sum += std::fabs(value) <= kLoudest ? value : 0;  // false for what is no number
    }
    sample = static_cast<f32>(sum / clip.channels);
  }
  return out;
}

std::size_t frame_count(const Clip& clip) {
  return clip.channels == 0 ? 0 : clip.samples.size() / clip.channels;
}

}  // namespace

Status check_clip(const Clip& clip) {
  if (clip.rate < kMinClipRate || clip.rate > kMaxClipRate) {
    return invalid("The recording has {} samples a second; {} to {} are possible.", clip.rate, kMinClipRate,
                   kMaxClipRate);
  }
  if (clip.channels == 0 || clip.channels > kMaxClipChannels) {
    return invalid("The recording has {} channels; 1 to {} are possible.", clip.channels, kMaxClipChannels);
  }
  if (frame_count(clip) == 0) return invalid("The recording has no samples.");
  return {};
}

std::vector<f32> mono(const Clip& clip) { return mix(clip, frame_count(clip)); }

std::vector<f32> resample(std::span<const f32> samples, u32 from, u32 to) {
  CHECK(from >= 1 && to >= 1 && from <= kMaxClipRate && to <= kMaxClipRate);
  if (from == to || samples.empty()) return {samples.begin(), samples.end()};
  const Filter filter(from, to);
  std::vector<f32> out(static_cast<std::size_t>((u64{samples.size()} * to + from - 1) / from));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const u64 position = u64{i} * from;  // in units of 1 / to of an input sample
    out[i] = filter.at(samples, static_cast<std::size_t>(position / to), position % to, to);
  }
  return out;
}

bool is_cut(const Clip& clip) {
  return clip.cut || u64{frame_count(clip)} * kAudioRate > u64{kMaxAudioSamples} * clip.rate;
}

Result<PreparedAudio> prepare_audio(const Clip& clip) {
  TRY(check_clip(clip));
  const std::size_t frames = frame_count(clip);
  PreparedAudio audio;
  audio.seconds_of_source = std::max(clip.seconds, static_cast<f64>(frames) / clip.rate);
  // A second more than is kept: the filter looks ahead.
  const u64 needed = u64{clip.rate} * (kMaxAudioSamples / kAudioRate + 1);
  audio.samples =
      resample(mix(clip, static_cast<std::size_t>(std::min<u64>(frames, needed))), clip.rate, kAudioRate);
  if (audio.samples.size() < kMinAudioSamples) {
    return invalid("The recording is too short: {} samples at {} Hz; at least {} are needed.",
                   audio.samples.size(), kAudioRate, kMinAudioSamples);
  }
  audio.cut = is_cut(clip);
  if (audio.samples.size() > kMaxAudioSamples) audio.samples.resize(kMaxAudioSamples);
  return audio;
}

}  // namespace bezel
