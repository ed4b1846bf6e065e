#include "media/exif.h"

#include <string>

#include "support.h"

namespace bezel {
namespace {

using namespace std::string_literals;

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string segment(char marker, const std::string& body) {
  const std::size_t length = body.size() + 2;
  return "\xff"s + marker + static_cast<char>(length >> 8) + static_cast<char>(length & 0xff) + body;
}

std::string jpeg(const std::string& tiff) {
  return "\xff\xd8"s + segment('\xe0', "JFIF\0"s) + segment('\xe1', "http://ns.adobe.com/xap/1.0/\0"s) +
         "\xff"s + segment('\xe1', "Exif\0\0"s + tiff) + segment('\xda', "...."s);
}

const std::string kBefore = "\x0f\x01\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00"s;  // another entry

TEST(Exif, ReadsTheOrientationInBothOrders) {
  for (char value = 1; value <= 8; ++value) {
    const std::string little =
        "II*\0\x08\0\0\0\x02\0"s + kBefore + "\x12\x01\x03\0\x01\0\0\0"s + value + "\0\0\0"s;
    const std::string big =
        "MM\0*\0\0\0\x08\0\x02"s + kBefore + "\x01\x12\0\x03\0\0\0\x01\0"s + value + "\0\0"s;
    EXPECT_EQ(jpeg_orientation(bytes_of(jpeg(little))), static_cast<u32>(value));
    EXPECT_EQ(jpeg_orientation(bytes_of(jpeg(big))), static_cast<u32>(value));
  }
}

TEST(Exif, BrokenOrMissingIsUpright) {
  const std::string good = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s;
  ASSERT_EQ(jpeg_orientation(bytes_of(jpeg(good))), 6u);
  const std::string whole = jpeg(good);
  for (std::size_t n = 0; n < whole.size() - 8; ++n) {  // the last 8 bytes are the scan after it
    EXPECT_EQ(jpeg_orientation(bytes_of(whole.substr(0, n))), 1u) << n;
  }
  for (std::size_t n = 0; n < good.size(); ++n)
    EXPECT_EQ(jpeg_orientation(bytes_of(jpeg(good.substr(0, n)))), 1u) << n;
  for (const std::string& bad :
       {"II*\0\xff\xff\xff\xff\x01\0"s,                                 // a list outside
        "II*\0\x08\0\0\0\xff\xff"s + kBefore,                           // more entries than there are
        "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x09\0\0\0"s,     // 9
        "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\0\0\0\0"s,       // 0
        "II*\0\x08\0\0\0\x01\0\x12\x01\x02\0\x01\0\0\0\x06\0\0\0"s,     // text
        "XX*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s,     // no order of bytes
        "II+\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s}) {  // another magic number
    EXPECT_EQ(jpeg_orientation(bytes_of(jpeg(bad))), 1u);
  }
  EXPECT_EQ(jpeg_orientation(bytes_of("\xff\xd8\xff\xe1\0\0"s)), 1u);  // a length of 0 would stay in place
  EXPECT_EQ(jpeg_orientation(bytes_of("\xff\xd8"s + std::string(100, '\xff'))), 1u);
  EXPECT_EQ(jpeg_orientation({}), 1u);
}

// The standard's picture: the letter F in a 2 x 3 grid of numbers, as row and column 0 of each orientation
// are said to lie.
TEST(Exif, TurnsAllEightWays) {
  const auto image = [](u32 width, u32 height, const std::vector<u8>& values) {
    Image out{width, height, {}};
    for (const u8 value : values) out.rgb.insert(out.rgb.end(), {value, 0, static_cast<u8>(value + 100)});
    return out;
  };
  const Image source = image(2, 3, {1, 2, 3, 4, 5, 6});
  const std::vector<Image> expected = {
      source,
      source,
      image(2, 3, {2, 1, 4, 3, 6, 5}),  // mirrored
      image(2, 3, {6, 5, 4, 3, 2, 1}),  // half a turn
      image(2, 3, {5, 6, 3, 4, 1, 2}),  // upside down
      image(3, 2, {1, 3, 5, 2, 4, 6}),  // rows as columns
      image(3, 2, {5, 3, 1, 6, 4, 2}),  // a quarter turn to the right
      image(3, 2, {6, 4, 2, 5, 3, 1}),  // that, mirrored
      image(3, 2, {2, 4, 6, 1, 3, 5}),  // a quarter turn to the left
      source,
  };
  for (u32 orientation = 0; orientation < expected.size(); ++orientation) {
    const Image got = upright(source, orientation);
    EXPECT_EQ(got.width, expected[orientation].width) << orientation;
    EXPECT_EQ(got.height, expected[orientation].height) << orientation;
    EXPECT_EQ(got.rgb, expected[orientation].rgb) << orientation;
  }
}

}  // namespace
}  // namespace bezel
