#include <png.h>

#include <csetjmp>
#include <cstring>

#include "media/image_files_native.h"

namespace bezel {
namespace {

constexpr u64 kPixelsPerByte = 10'000;  // one bit each, deflated 1032 to 1, is the densest there is

// What the library's callbacks see. It leaves by longjmp when a file is broken, so the functions that call it
// hold nothing that would have to be destroyed.
struct PngReader {
  Bytes left = {};
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf broken = {};
  char why[80] = {};
};

void take(png_structp png, png_bytep to, std::size_t count) {
  auto& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader.left.size()) png_error(png, "it ends too early");
  std::memcpy(to, reader.left.data(), count);
  reader.left = reader.left.subspan(count);
}

[[noreturn]] void give_up(png_structp png, png_const_charp why) {
  auto& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
  std::strncpy(reader.why, why, sizeof(reader.why) - 1);
  std::longjmp(reader.broken, 1);
}

void ignore(png_structp, png_const_charp) {}

bool read_header(PngReader& reader) {
  if (setjmp(reader.broken) != 0) return false;
  png_set_read_fn(reader.png, &reader, take);
  png_set_user_limits(reader.png, kMaxImageSide, kMaxImageSide);
  png_read_info(reader.png, reader.info);
  return true;
}

// Colours as stored, eight bits a channel: no gamma, no transparency.
bool start_rows(PngReader& reader) {
  if (setjmp(reader.broken) != 0) return false;
  png_set_strip_16(reader.png);
  png_set_palette_to_rgb(reader.png);
  if ((png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_COLOR) == 0) {
    png_set_expand_gray_1_2_4_to_8(reader.png);
    png_set_gray_to_rgb(reader.png);
  }
  png_set_strip_alpha(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

bool read_rows(PngReader& reader, png_bytepp rows) {
  if (setjmp(reader.broken) != 0) return false;
  png_read_image(reader.png, rows);
  return true;
}

Result<Image> read_picture(PngReader& reader, Bytes file) {
  const auto broken = [&] { return invalid("The PNG picture cannot be decoded: {}.", reader.why); };
  if (!read_header(reader)) return broken();
  const Size size{png_get_image_width(reader.png, reader.info),
                  png_get_image_height(reader.png, reader.info)};
  TRY(check_claimed_size("PNG", size, file, kPixelsPerByte));
  if (!start_rows(reader)) return broken();
  const std::size_t stride = std::size_t{size.width} * 3;
  if (png_get_rowbytes(reader.png, reader.info) != stride) {
    return invalid("The PNG picture has rows of {} bytes, not {}.", png_get_rowbytes(reader.png, reader.info),
                   stride);
  }
  Image image{size.width, size.height, std::vector<u8>(stride * size.height)};
  std::vector<png_bytep> rows(size.height);
  for (u32 y = 0; y < size.height; ++y) rows[y] = image.rgb.data() + y * stride;
  if (!read_rows(reader, rows.data())) return broken();
  return image;
}

}  // namespace

Result<Image> decode_png(Bytes file) {
  PngReader reader{.left = file};
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, give_up, ignore);
  reader.info = reader.png == nullptr ? nullptr : png_create_info_struct(reader.png);
  auto image = reader.info == nullptr ? fail(ErrorKind::kMemory, "There is no memory for a PNG decoder.")
                                      : read_picture(reader, file);
  png_destroy_read_struct(&reader.png, &reader.info, nullptr);
  return image;
}

}  // namespace bezel
