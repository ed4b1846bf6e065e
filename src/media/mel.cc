// No product is fused with a sum in this file: see log_mel's promise. The pragma comes first so that it holds
// for the FFT's templates too.
#pragma clang fp contract(off)
#include "media/mel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <kissfft/kissfft.hh>

#include "base/portable_math.h"
#include "base/turns.h"

// The library's own constructor takes its factors from the platform's sine and cosine, which differ in the
// last bit.
template <>
kissfft<bezel::f64>::kissfft(const std::size_t nfft, const bool inverse) : _nfft(nfft), _inverse(inverse) {
  for (std::size_t i = 0; i < nfft; ++i) {
    const auto [sin, cos] = bezel::sin_cos_turns(static_cast<bezel::f64>(i) / static_cast<bezel::f64>(nfft));
    _twiddles.emplace_back(cos, inverse ? sin : -sin);
  }
  for (std::size_t rest = nfft; rest > 1;) {  // powers of two are all we use
    const std::size_t radix = rest % 4 == 0 ? 4 : 2;
    rest /= radix;
    _stageRadix.push_back(radix);
    _stageRemainder.push_back(rest);
  }
}

namespace bezel {
namespace {

constexpr u32 kHop = 160, kFrame = 320, kTransform = 512;
constexpr f64 kHighestHz = 8000, kHzPerBin = 31.25;
constexpr f64 kFloor = 0.001;

// The part of a filter that is not zero.
struct Filter {
  u32 first = 0;
  std::vector<f64> weights;
};

std::vector<Filter> make_filters() {
  // mel(f) = 2595 log10(1 + f / 700), so equal steps of mel are equal factors of 1 + f / 700.
  std::array<f64, kMelBins + 2> edges{};
  const f64 step = portable_log(1 + kHighestHz / 700) / (kMelBins + 1);
  for (u32 i = 0; i < edges.size(); ++i) edges[i] = 700 * (portable_exp(step * i) - 1);
  std::vector<Filter> filters(kMelBins);
  for (u32 m = 0; m < kMelBins; ++m) {
    const f64 low = edges[m], peak = edges[m + 1], high = edges[m + 2];
    for (u32 bin = 0; bin < kSpectrumBins; ++bin) {
      const f64 hz = bin * kHzPerBin;
      const f64 weight = std::min((hz - low) / (peak - low), (high - hz) / (high - peak));
      if (weight <= 0) continue;
      if (filters[m].weights.empty()) filters[m].first = bin;
      filters[m].weights.push_back(weight);
    }
  }
  return filters;
}

std::array<f64, kFrame> make_window() {  // a periodic Hann window
  std::array<f64, kFrame> window{};
  for (u32 i = 0; i < kFrame; ++i) window[i] = 0.5 - 0.5 * sin_cos_turns(static_cast<f64>(i) / kFrame).cos;
  return window;
}

}  // namespace

u64 mel_frames(u64 samples) { return samples <= kHop ? 0 : (samples - 1) / kHop; }

u64 audio_tokens(u64 samples) { return (mel_frames(samples) + 3) / 4; }

std::vector<f64> mel_filters() {
  std::vector<f64> out(std::size_t{kMelBins} * kSpectrumBins);
  const std::vector<Filter> filters = make_filters();
  for (u32 m = 0; m < kMelBins; ++m) {
    std::ranges::copy(filters[m].weights, out.begin() + m * kSpectrumBins + filters[m].first);
  }
  return out;
}

Mel log_mel(std::span<const f32> samples16k) {
  const auto window = make_window();
  const auto filters = make_filters();
  const kissfft<f64> fft(kTransform, false);
  std::vector<std::complex<f64>> frame(kTransform), spectrum(kTransform);
  std::vector<f64> magnitudes(kSpectrumBins);

  Mel mel;
  mel.rows = static_cast<u32>(mel_frames(samples16k.size()));
  mel.values.reserve(std::size_t{mel.rows} * kMelBins);
  for (u32 row = 0; row < mel.rows; ++row) {
    // Half a frame of silence goes before the first sample; zeros fill the frame up to the transform's
    // length.
    const i64 start = i64{row} * kHop - kHop;
    for (u32 i = 0; i < kFrame; ++i) {
      const i64 at = start + i;
      frame[i] = at < 0 ? 0 : window[i] * samples16k[static_cast<std::size_t>(at)];
    }
    fft.transform(frame.data(), spectrum.data());
    for (u32 i = 0; i < kSpectrumBins; ++i) {
      const f64 real = spectrum[i].real(), imaginary = spectrum[i].imag();
      magnitudes[i] = std::sqrt(real * real + imaginary * imaginary);
    }
    for (const Filter& filter : filters) {
      f64 sum = 0;
      for (std::size_t i = 0; i < filter.weights.size(); ++i)
        sum += filter.weights[i] * magnitudes[filter.first + i];
      mel.values.push_back(static_cast<f32>(portable_log(sum + kFloor)));
    }
  }
  return mel;
}

}  // namespace bezel
