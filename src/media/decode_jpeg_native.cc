#include <cstdio>  // first: the library's header needs it
// clang-format off
#include <jpeglib.h>
// clang-format on

#include <csetjmp>

#include "media/image_files_native.h"

namespace bezel {
namespace {

constexpr u64 kPixelsPerByte = 1'000;  // 16 x 16 pixels in six bits are the densest there is
constexpr int kMaxScans = 200;         // a progressive picture has about ten; each takes time for every pixel

// The library leaves by longjmp when a file is broken, so the functions that call it hold nothing that would
// have to be destroyed.
struct JpegReader {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf broken = {};
  char why[JMSG_LENGTH_MAX] = {};
};

[[noreturn]] void give_up(j_common_ptr info) {
  auto& reader = *static_cast<JpegReader*>(info->client_data);
  info->err->format_message(info, reader.why);
  std::longjmp(reader.broken, 1);
}

// Warnings, such as a picture that ends too early: what there is stays, and the rest is grey.
void ignore_message(j_common_ptr, int) {}
void ignore_output(j_common_ptr) {}

void limit_scans(j_common_ptr info) {
  auto& reader = *static_cast<JpegReader*>(info->client_data);
  if (reader.info.input_scan_number <= kMaxScans) return;
  std::snprintf(reader.why, sizeof(reader.why), "it has more than %d scans", kMaxScans);
  std::longjmp(reader.broken, 1);
}

bool read_header(JpegReader& reader, Bytes file) {
  if (setjmp(reader.broken) != 0) return false;
  jpeg_create_decompress(&reader.info);
  reader.info.client_data = &reader;
  reader.info.progress = &reader.progress;
  jpeg_mem_src(&reader.info, reinterpret_cast<const unsigned char*>(file.data()),
               static_cast<unsigned long>(file.size()));
  jpeg_read_header(&reader.info, TRUE);
  return true;
}

// Rows of `channels` bytes a pixel.
bool read_rows(JpegReader& reader, u8* to, J_COLOR_SPACE colours, u32 channels) {
  if (setjmp(reader.broken) != 0) return false;
  jpeg_decompress_struct& info = reader.info;
  info.out_color_space = colours;
  jpeg_start_decompress(&info);
  if (info.output_components != static_cast<int>(channels)) return false;
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = to + std::size_t{info.output_scanline} * info.output_width * channels;
    jpeg_read_scanlines(&info, &row, 1);
  }
  return true;
}

// Four inks, stored as the light that they leave.
void inks_to_rgb(std::vector<u8>& pixels) {
  std::size_t to = 0;
  for (std::size_t from = 0; from + 4 <= pixels.size(); from += 4) {
    const u32 black = pixels[from + 3];
    for (std::size_t c = 0; c < 3; ++c)
      pixels[to++] = static_cast<u8>((pixels[from + c] * black + 127) / 255);
  }
  pixels.resize(to);
}

Result<Image> read_picture(JpegReader& reader, Bytes file) {
  const auto broken = [&] { return invalid("The JPEG picture cannot be decoded: {}.", reader.why); };
  if (!read_header(reader, file)) return broken();
  const Size size{reader.info.image_width, reader.info.image_height};
  TRY(check_claimed_size("JPEG", size, file, kPixelsPerByte));
  const bool inks = reader.info.num_components == 4;
  const u32 channels = inks ? 4 : 3;
  Image image{size.width, size.height, std::vector<u8>(std::size_t{size.width} * size.height * channels)};
  if (!read_rows(reader, image.rgb.data(), inks ? JCS_CMYK : JCS_RGB, channels)) return broken();
  if (inks) inks_to_rgb(image.rgb);
  return image;
}

}  // namespace

Result<Image> decode_jpeg(Bytes file) {
  JpegReader reader;
  reader.info.err = jpeg_std_error(&reader.errors);
  reader.info.client_data = &reader;
  reader.errors.error_exit = give_up;
  reader.errors.emit_message = ignore_message;
  reader.errors.output_message = ignore_output;
  reader.progress.progress_monitor = limit_scans;
  auto image = read_picture(reader, file);
  jpeg_destroy_decompress(&reader.info);
  return image;
}

}  // namespace bezel
