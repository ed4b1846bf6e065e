#include "media/exif.h"

#include <utility>

#include "media/byte_order.h"

namespace bezel {
namespace {

// A TIFF header, and a list of 12-byte entries at the place that it names.
u32 tiff_orientation(Bytes tiff) {
  const bool big = has_text(tiff, 0, "MM");
  if (tiff.size() < 8 || (!big && !has_text(tiff, 0, "II"))) return 1;
  const auto read16 = [&](std::size_t at) { return big ? big16(tiff, at) : little16(tiff, at); };
  if (read16(2) != 42) return 1;
  const u32 list = big ? big32(tiff, 4) : little32(tiff, 4);
  if (list > tiff.size() - 2) return 1;
  const u32 count = read16(list);
  std::size_t at = std::size_t{list} + 2;
  for (u32 i = 0; i < count && tiff.size() - at >= 12; ++i, at += 12) {
    constexpr u32 kOrientation = 0x0112, kShort = 3;
    if (read16(at) != kOrientation || read16(at + 2) != kShort) continue;
    const u32 value = read16(at + 8);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

}  // namespace

u32 jpeg_orientation(Bytes file) {
  if (!has_text(file, 0, "\xff\xd8")) return 1;
  for (std::size_t at = 2; file.size() - at >= 4;) {
    if (byte_at(file, at) != 0xff) return 1;
    const u32 marker = byte_at(file, at + 1);
    if (marker == 0xff) {  // fill
      ++at;
      continue;
    }
    constexpr u32 kScan = 0xda, kExif = 0xe1;
    const u32 length = big16(file, at + 2);
    if (marker == kScan || length < 2 || length > file.size() - at - 2) return 1;
    const Bytes body = file.subspan(at + 4, length - 2);
    if (marker == kExif && has_text(body, 0, std::string_view("Exif\0\0", 6)))
      return tiff_orientation(body.subspan(6));
    at += 2 + length;
  }
  return 1;
}

Image upright(Image image, u32 orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const u32 width = image.width, height = image.height;
  const bool swapped = orientation >= 5;  // rows become columns
  Image out{swapped ? height : width, swapped ? width : height, std::vector<u8>(image.rgb.size())};
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  u8* to = out.rgb.data();
  for (u32 y = 0; y < out.height; ++y) {
    for (u32 x = 0; x < out.width; ++x) {
      const u32 column = swapped ? y : x, row = swapped ? x : y;
      const std::size_t source_x = from_right ? width - 1 - column : column;
      const std::size_t source_y = from_bottom ? height - 1 - row : row;
      const u8* from = image.rgb.data() + (source_y * width + source_x) * 3;
      for (int c = 0; c < 3; ++c) *to++ = *from++;
    }
  }
  return out;
}

}  // namespace bezel
