#include "media/image.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace bezel {
namespace {

// What one axis of the new picture takes from the old one: sample i is the sum of weights[begin ... end)
// times the samples from `first` on.
struct Tap {
  u32 first = 0;
  u32 begin = 0, end = 0;
};

struct Taps {
  std::vector<Tap> taps;
  std::vector<i32> weights;  // `bits` after the point
  int bits = 0;
  i32 half() const { return (1 << bits) / 2; }
  u8 to_byte(i32 sum) const { return static_cast<u8>(std::clamp(sum >> bits, 0, 255)); }
};

// As many bits as let the largest weight fit 16 with its sign, like PyTorch's resize of bytes: what the
// models' own preprocessing does, to the last bit.
int weight_bits(f64 largest) {
  int bits = 0;
  while (bits < 22 && static_cast<int>(0.5 + largest * (1 << (bits + 1))) < 1 << 15) ++bits;
  return bits;
}

f64 bicubic(f64 t) {
#pragma clang fp contract(off)
  t = std::fabs(t);
  if (t < 1) return (1.5 * t - 2.5) * t * t + 1;
  if (t < 2) return ((-0.5 * t + 2.5) * t - 4) * t + 2;
  return 0;
}

Taps make_taps(u32 from, u32 to) {
#pragma clang fp contract(off)
  const f64 scale = static_cast<f64>(from) / to;
  const f64 widen = std::max(scale, 1.0);
  const f64 support = 2 * widen;
  Taps out;
  out.taps.reserve(to);
  std::vector<f64> row, weights;
  for (u32 i = 0; i < to; ++i) {
    const f64 centre = (i + 0.5) * scale;
    const auto first = static_cast<u32>(std::max(0.0, std::floor(centre - support + 0.5)));
    const auto last = static_cast<u32>(std::min<f64>(from, std::floor(centre + support + 0.5)));
    row.clear();
    f64 sum = 0;
    for (u32 j = first; j < last; ++j) {
      row.push_back(bicubic((j - centre + 0.5) / widen));
      sum += row.back();
    }
    const auto begin = static_cast<u32>(weights.size());
    for (const f64 weight : row) weights.push_back(weight / sum);
    out.taps.push_back({first, begin, static_cast<u32>(weights.size())});
  }
  out.bits = weight_bits(std::ranges::max(weights));
  for (const f64 weight : weights)
    out.weights.push_back(static_cast<i32>(weight * (1 << out.bits) + (weight < 0 ? -0.5 : 0.5)));
  return out;
}

Image resize_across(const Image& image, u32 width) {
  const Taps taps = make_taps(image.width, width);
  Image out{width, image.height, std::vector<u8>(std::size_t{width} * image.height * 3)};
  u8* to = out.rgb.data();
  for (u32 y = 0; y < image.height; ++y) {
    const u8* row = image.rgb.data() + std::size_t{y} * image.width * 3;
    for (const Tap& tap : taps.taps) {
      i32 red = taps.half(), green = red, blue = red;
      const u8* from = row + std::size_t{tap.first} * 3;
      for (u32 k = tap.begin; k < tap.end; ++k, from += 3) {
        const i32 weight = taps.weights[k];
        red += weight * from[0];
        green += weight * from[1];
        blue += weight * from[2];
      }
      *to++ = taps.to_byte(red);
      *to++ = taps.to_byte(green);
      *to++ = taps.to_byte(blue);
    }
  }
  return out;
}

Image resize_down(const Image& image, u32 height) {
  const Taps taps = make_taps(image.height, height);
  const std::size_t stride = std::size_t{image.width} * 3;
  Image out{image.width, height, std::vector<u8>(stride * height)};
  std::vector<i32> sums(stride);
  u8* to = out.rgb.data();
  for (const Tap& tap : taps.taps) {
    std::fill(sums.begin(), sums.end(), taps.half());
    const u8* from = image.rgb.data() + tap.first * stride;
    for (u32 k = tap.begin; k < tap.end; ++k, from += stride) {
      const i32 weight = taps.weights[k];
      for (std::size_t x = 0; x < stride; ++x) sums[x] += weight * from[x];
    }
    for (const i32 sum : sums) *to++ = taps.to_byte(sum);
  }
  return out;
}

}  // namespace

Status check_budget(u32 budget) {
  constexpr std::array<u32, 5> kBudgets = {70, 140, 280, 560, 1120};
  if (std::ranges::contains(kBudgets, budget)) return {};
  return invalid("A picture's budget of soft tokens is 70, 140, 280, 560 or 1120, not {}.", budget);
}

Status check_image_size(Size size, const char* what) {
  if (size.width == 0 || size.height == 0) {
    return invalid("{} has no pixels ({} x {}).", what, size.width, size.height);
  }
  if (size.width > kMaxImageSide || size.height > kMaxImageSide) {
    return invalid("{} has {} x {} pixels; the limit is {} a side.", what, size.width, size.height,
                   kMaxImageSide);
  }
  if (u64{size.width} * size.height > kMaxImagePixels) {
    return invalid("{} has {} x {} pixels; the limit is {} in all.", what, size.width, size.height,
                   kMaxImagePixels);
  }
  return {};
}

Result<Size> target_size(Size source, u32 budget, u32 patch, u32 pool) {
#pragma clang fp contract(off)
  TRY(check_image_size(source, "The picture"));
  constexpr u32 kMax = 4096;
  if (budget == 0 || patch == 0 || pool == 0 || budget > kMax || patch > kMax || pool > kMax) {
    return invalid("The budget ({}), the patch size ({}) and the pooling ({}) are 1 to {}.", budget, patch,
                   pool, kMax);
  }
  const f64 width = source.width, height = source.height;
  const u64 side = u64{patch} * pool;  // of one soft token
  const u64 area = side * side * budget;
  const f64 factor = std::sqrt(static_cast<f64>(area) / (width * height));
  u64 columns = static_cast<u64>(std::floor(factor * width / static_cast<f64>(side)));
  u64 rows = static_cast<u64>(std::floor(factor * height / static_cast<f64>(side)));
  // A picture too long for its proportions gets one row (or column) of tokens, as long as the budget allows.
  if (columns == 0) {
    columns = 1;
    rows = std::min<u64>(source.height / source.width, budget);
  } else if (rows == 0) {
    rows = 1;
    columns = std::min<u64>(source.width / source.height, budget);
  }
  if (rows == 0 || columns * rows > budget) {
    return invalid("A picture of {} x {} pixels does not fit a budget of {} soft tokens.", source.width,
                   source.height, budget);
  }
  const Size target{static_cast<u32>(columns * side), static_cast<u32>(rows * side)};
  TRY(check_image_size(target, "The resized picture"));
  return target;
}

Result<Image> resize(const Image& image, Size size) {
  TRY(check_image_size({image.width, image.height}, "The picture"));
  TRY(check_image_size(size, "The resized picture"));
  TRY(check_image_size({size.width, image.height}, "The half resized picture"));
  const u64 expected = u64{image.width} * image.height * 3;
  if (image.rgb.size() != expected) {
    return invalid("A picture of {} x {} pixels has {} bytes, not {}.", image.width, image.height,
                   image.rgb.size(), expected);
  }
  Image out = size.width == image.width ? image : resize_across(image, size.width);
  if (size.height != image.height) out = resize_down(out, size.height);
  return out;
}

}  // namespace bezel
