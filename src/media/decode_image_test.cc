// On the web pictures are decoded by the page.
#ifndef __wasm__
#include <cstdlib>
#include <string>

#include "base/format_text.h"
#include "media/decode.h"
#include "support.h"

namespace bezel {
namespace {

using namespace std::string_literals;

constexpr u32 kWidth = 32, kHeight = 16;
constexpr u8 kColours[4][3] = {
    {230, 20, 30}, {20, 200, 40}, {30, 50, 220}, {240, 240, 230}};  // see tools/media_files.py

std::vector<std::byte> file(const std::string& name) { return read_bytes(data_path("media/" + name)); }

std::array<int, 3> pixel(const Image& image, u32 x, u32 y) {
  const u8* at = image.rgb.data() + (y * image.width + x) * 3;
  return {at[0], at[1], at[2]};
}

// The middles of the quadrants, in the order of kColours.
constexpr u32 kMiddles[4][2] = {{8, 4}, {24, 4}, {8, 12}, {24, 12}};

TEST(DecodeImage, ReadsEveryKind) {
  const std::pair<std::string, int> files[] = {{"rgb.png", 0},     {"palette.png", 0},     {"rgb16.png", 0},
                                               {"rgba.png", 0},    {"picture.bmp", 0},     {"picture.gif", 0},
                                               {"picture.jpg", 3}, {"progressive.jpg", 3}, {"cmyk.jpg", 6}};
  for (const auto& [name, tolerance] : files) {
    const auto image = decode_image(file(name));
    ASSERT_OK(image) << name;
    ASSERT_EQ(image->width, kWidth) << name;
    ASSERT_EQ(image->height, kHeight) << name;
    ASSERT_EQ(image->rgb.size(), kWidth * kHeight * 3) << name;
    for (int q = 0; q < 4; ++q) {
      const auto got = pixel(*image, kMiddles[q][0], kMiddles[q][1]);
      for (int c = 0; c < 3; ++c)
        EXPECT_NEAR(got[c], kColours[q][c], tolerance) << name << ", " << q << ", " << c;
    }
  }
}

TEST(DecodeImage, ReadsGreyAsThreeEqualChannels) {
  for (const std::string name : {"grey.png", "grey-alpha.png", "grey.jpg"}) {
    const auto image = decode_image(file(name));
    ASSERT_OK(image) << name;
    for (int q = 0; q < 4; ++q) {
      const auto [red, green, blue] = pixel(*image, kMiddles[q][0], kMiddles[q][1]);
      const f64 luma = 0.299 * kColours[q][0] + 0.587 * kColours[q][1] + 0.114 * kColours[q][2];
      EXPECT_NEAR(red, luma, 2) << name;
      EXPECT_EQ(red, green) << name;
      EXPECT_EQ(red, blue) << name;
    }
  }
}

TEST(DecodeImage, TurnsPhotographsUpright) {
  std::vector<std::byte> photo = file("picture.jpg");
  const std::string exif =
      "\xff\xe1\x00\x22"s + "Exif\0\0"s + "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"s;
  ASSERT_EQ(exif.size(), 2u + 0x22);
  const Bytes extra = std::as_bytes(std::span(exif));
  photo.insert(photo.begin() + 2, extra.begin(), extra.end());
  const auto image = decode_image(photo);
  ASSERT_OK(image);
  EXPECT_EQ(image->width, kHeight);
  EXPECT_EQ(image->height, kWidth);
  const int quadrant[4] = {2, 0, 3, 1};  // a quarter turn to the right: bottom left is now top left
  const u32 middles[4][2] = {{4, 8}, {12, 8}, {4, 24}, {12, 24}};
  for (int q = 0; q < 4; ++q) {
    EXPECT_NEAR(pixel(*image, middles[q][0], middles[q][1])[1], kColours[quadrant[q]][1], 3) << q;
  }
}

// Whose weights have more bits: here and there a sample is one brighter or darker.
TEST(DecodeImage, ResizedAsPillowDoes) {
  const auto source = decode_image(file("noise.png"));
  ASSERT_OK(source);
  for (const Size size : {Size{20, 61}, Size{96, 48}, Size{5, 3}}) {
    const auto expected = decode_image(file(format_text("noise-{}x{}.png", size.width, size.height)));
    ASSERT_OK(expected);
    const auto got = resize(*source, size);
    ASSERT_OK(got);
    ASSERT_EQ(got->rgb.size(), expected->rgb.size());
    u32 other = 0;
    for (std::size_t i = 0; i < got->rgb.size(); ++i) {
      EXPECT_NEAR(got->rgb[i], expected->rgb[i], 1);
      other += got->rgb[i] != expected->rgb[i];
    }
    EXPECT_LE(other, got->rgb.size() / 50) << size.width;
  }
}

std::string message(const std::string& bytes) {
  const auto image = decode_image(std::as_bytes(std::span(bytes)));
  return image ? "no error" : image.error().message;
}

TEST(DecodeImage, NamesWhatItCannotRead) {
  EXPECT_EQ(message("RIFF\x10\0\0\0WEBPVP8 "s), "The picture is WebP; PNG, JPEG, BMP and GIF can be read.");
  EXPECT_EQ(message("\0\0\0\x18"s + "ftypheic"s),
            "The picture is HEIC, AVIF or a video; PNG, JPEG, BMP and GIF can be read.");
  EXPECT_EQ(message("II*\0"s), "The picture is TIFF; PNG, JPEG, BMP and GIF can be read.");
  EXPECT_EQ(message("hello"s), "The picture is of an unknown kind; PNG, JPEG, BMP and GIF can be read.");
  EXPECT_EQ(message(""s), "The picture's file is empty.");
}

TEST(DecodeImage, RefusesPicturesThatClaimTooMuch) {
  const auto bmp = [](const std::string& width, const std::string& height) {
    return "BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"s + width + height + "\x01\0\x18\0"s +
           std::string(24, '\0');
  };
  EXPECT_EQ(message(bmp("\x01\x40\0\0"s, "\0\x40\0\0"s)),
            "The picture has 16385 x 16384 pixels; the limit is 268435456 in all.");
  EXPECT_EQ(message(bmp("\0\x20\0\0"s, "\0\x20\0\0"s)),
            "The BMP picture claims 8192 x 8192 pixels, more than its 54 bytes can hold.");
  EXPECT_EQ(message(bmp("\xff\xff\xff\x7f"s, "\xff\xff\xff\x7f"s)),
            "The picture has 2147483647 x 2147483647 pixels; the limit is 1048576 a side.");
  EXPECT_EQ(message(bmp("\0\0\0\0"s, "\0\0\0\0"s)), "The picture has no pixels (0 x 0).");
  auto photo = file("picture.jpg");
  for (std::size_t i = 0; i + 9 < photo.size(); ++i) {
    if (photo[i] != std::byte{0xff} || photo[i + 1] != std::byte{0xc0}) continue;
    photo[i + 5] = photo[i + 7] = std::byte{0x10};
  }
  EXPECT_EQ(decode_image(photo).error().message,
            "The JPEG picture claims 4128 x 4112 pixels, more than its 661 bytes can hold.");
  const std::string png = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x20\0\0\0\x20\0\x08\x02\0\0\0"s;
  EXPECT_TRUE(message(png + "\0\0\0\0"s).starts_with("The PNG picture cannot be decoded: ")) << message(png);
}

// Whatever happens to a file, it is an error in a sentence or a picture whose size is right.
TEST(DecodeImage, SurvivesBrokenFiles) {
  u32 state = 7;
  const auto random = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
  const auto check = [](Bytes bytes) {
    const auto image = decode_image(bytes);
    if (image) {
      ASSERT_EQ(image->rgb.size(), u64{image->width} * image->height * 3);
    } else {
      ASSERT_TRUE(image.error().message.ends_with('.')) << image.error().message;
    }
  };
  for (const std::string name : {"rgb.png", "palette.png", "rgb16.png", "grey-alpha.png", "picture.bmp",
                                 "picture.gif", "picture.jpg", "progressive.jpg", "cmyk.jpg"}) {
    const auto whole = file(name);
    for (std::size_t n = 0; n < whole.size(); n += 1 + whole.size() / 200) check(Bytes(whole).first(n));
    for (int round = 0; round < 200; ++round) {
      auto broken = whole;
      for (u32 flips = random() % 8 + 1; flips > 0; --flips) {
        broken[random() % broken.size()] = static_cast<std::byte>(random() & 0xff);
      }
      check(broken);
    }
  }
}

}  // namespace
}  // namespace bezel
#endif
