#include "media/byte_order.h"
#include "media/decode.h"
#include "media/exif.h"
#include "media/image_files_native.h"

// For the two simple kinds alone. Its warnings are off because it is a system header.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_BMP
#define STBI_ONLY_GIF
#define STBI_NO_STDIO
#define STBI_ASSERT(condition) static_cast<void>(condition)
#define STBI_MAX_DIMENSIONS (1 << 20)
#include <stb/stb_image.h>

#include <climits>
#include <memory>

namespace bezel {
namespace {

static_assert(STBI_MAX_DIMENSIONS == kMaxImageSide);

// A GIF's code of 12 bits stands for up to 4096 pixels.
constexpr u64 kPixelsPerByte = 3'000;

struct Free {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};

Result<Image> decode_simple(const char* kind, Bytes file) {
  if (file.size() > INT_MAX)
    return invalid("The picture's file has {} bytes; the limit is {}.", file.size(), INT_MAX);
  const auto* data = reinterpret_cast<const stbi_uc*>(file.data());
  const int length = static_cast<int>(file.size());
  int width = 0, height = 0, channels = 0;
  if (stbi_info_from_memory(data, length, &width, &height, &channels) == 0) {
    return invalid("The {} picture cannot be decoded: its header is broken.", kind);
  }
  const Size size{static_cast<u32>(width), static_cast<u32>(height)};
  TRY(check_claimed_size(kind, size, file, kPixelsPerByte));
  const std::unique_ptr<stbi_uc, Free> pixels(
      stbi_load_from_memory(data, length, &width, &height, &channels, 3));
  if (pixels == nullptr) return invalid("The {} picture cannot be decoded: {}.", kind, stbi_failure_reason());
  if (static_cast<u32>(width) != size.width || static_cast<u32>(height) != size.height) {
    return invalid("The {} picture states two sizes.", kind);
  }
  const std::size_t bytes = std::size_t{size.width} * size.height * 3;
  return Image{size.width, size.height, std::vector<u8>(pixels.get(), pixels.get() + bytes)};
}

const char* other_kind(Bytes file) {
  if (has_text(file, 0, "RIFF") && has_text(file, 8, "WEBP")) return "is WebP";
  if (has_text(file, 4, "ftyp")) return "is HEIC, AVIF or a video";
  if (has_text(file, 0, std::string_view("II*\0", 4)) || has_text(file, 0, std::string_view("MM\0*", 4))) {
    return "is TIFF";
  }
  return "is of an unknown kind";
}

}  // namespace

Status check_claimed_size(const char* kind, Size size, Bytes file, u64 pixels_per_byte) {
  TRY(check_image_size(size, "The picture"));
  if (u64{size.width} * size.height <= pixels_per_byte * file.size()) return {};
  return invalid("The {} picture claims {} x {} pixels, more than its {} bytes can hold.", kind, size.width,
                 size.height, file.size());
}

Result<Image> decode_image(Bytes file) {
  if (file.empty()) return invalid("The picture's file is empty.");
  if (has_text(file, 0, "\x89PNG\r\n\x1a\n")) return decode_png(file);
  if (has_text(file, 0, "\xff\xd8\xff")) return upright(TRY(decode_jpeg(file)), jpeg_orientation(file));
  if (has_text(file, 0, "GIF87a") || has_text(file, 0, "GIF89a")) return decode_simple("GIF", file);
  if (has_text(file, 0, "BM")) return decode_simple("BMP", file);
  return fail(ErrorKind::kUnsupported, "The picture {}; PNG, JPEG, BMP and GIF can be read.",
              other_kind(file));
}

}  // namespace bezel
