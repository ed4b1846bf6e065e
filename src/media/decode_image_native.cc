#include "media/byte_order.h"
#include "media/decode.h"
#include "media/exif.h"

// The decoder relies on integers that wrap around when a file is broken; warnings are off because it is a
// system header.
#pragma clang attribute push(__attribute__((no_sanitize("undefined"))), apply_to = function)
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_BMP
#define STBI_ONLY_GIF
#define STBI_NO_STDIO
#define STBI_ASSERT(condition) static_cast<void>(condition)
#define STBI_MAX_DIMENSIONS (1 << 20)
#include <stb/stb_image.h>
#pragma clang attribute pop

#include <climits>
#include <memory>

namespace bezel {
namespace {

static_assert(STBI_MAX_DIMENSIONS == kMaxImageSide);

// No format packs pixels more densely than a PNG of one bit each, deflated 1032 to 1. A small file that
// claims to be a large picture is thereby refused before memory is taken.
constexpr u64 kMaxPixelsPerByte = 10'000;

struct Free {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};

const char* known_kind(Bytes file) {
  if (has_text(file, 0, "\x89PNG\r\n\x1a\n")) return "PNG";
  if (has_text(file, 0, "\xff\xd8\xff")) return "JPEG";
  if (has_text(file, 0, "GIF87a") || has_text(file, 0, "GIF89a")) return "GIF";
  if (has_text(file, 0, "BM")) return "BMP";
  return nullptr;
}

const char* other_kind(Bytes file) {
  if (has_text(file, 0, "RIFF") && has_text(file, 8, "WEBP")) return "is WebP";
  if (has_text(file, 4, "ftyp")) return "is HEIC, AVIF or a video";
  if (has_text(file, 0, std::string_view("II*\0", 4)) || has_text(file, 0, std::string_view("MM\0*", 4)))
    return "is TIFF";
  return "is of an unknown kind";
}

}  // namespace

Result<Image> decode_image(Bytes file) {
  if (file.empty()) return invalid("The picture's file is empty.");
  const char* kind = known_kind(file);
  if (kind == nullptr) {
    return fail(ErrorKind::kUnsupported, "The picture {}; PNG, JPEG, BMP and GIF can be read.",
                other_kind(file));
  }
  if (file.size() > INT_MAX)
    return invalid("The picture's file has {} bytes; the limit is {}.", file.size(), INT_MAX);
  const auto* data = reinterpret_cast<const stbi_uc*>(file.data());
  const int length = static_cast<int>(file.size());
  int width = 0, height = 0, channels = 0;
  if (stbi_info_from_memory(data, length, &width, &height, &channels) == 0) {
    return invalid("The {} picture cannot be read: {}.", kind, stbi_failure_reason());
  }
  const Size size{static_cast<u32>(width), static_cast<u32>(height)};
  TRY(check_image_size(size, "The picture"));
  if (u64{size.width} * size.height > kMaxPixelsPerByte * file.size()) {
    return invalid("The {} picture claims {} x {} pixels, more than its {} bytes can hold.", kind, width,
                   height, length);
  }
  const std::unique_ptr<stbi_uc, Free> pixels(
      stbi_load_from_memory(data, length, &width, &height, &channels, 3));
  if (pixels == nullptr) return invalid("The {} picture cannot be decoded: {}.", kind, stbi_failure_reason());
  if (static_cast<u32>(width) != size.width || static_cast<u32>(height) != size.height) {
    return invalid("The {} picture states two sizes.", kind);
  }
  const std::size_t bytes = std::size_t{size.width} * size.height * 3;
  Image image{size.width, size.height, std::vector<u8>(pixels.get(), pixels.get() + bytes)};
  return upright(std::move(image), jpeg_orientation(file));
}

}  // namespace bezel
