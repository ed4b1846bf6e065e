#include "text/base64.h"

#include "support.h"

namespace bezel {
namespace {

std::string decoded(std::string_view text) {
  const auto bytes = decode_base64(text);
  if (!bytes) return "error: " + bytes.error().message;
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

TEST(Base64, Decodes) {
  EXPECT_EQ(decoded(""), "");
  EXPECT_EQ(decoded("Zg=="), "f");
  EXPECT_EQ(decoded("Zm8="), "fo");
  EXPECT_EQ(decoded("Zm9v"), "foo");
  EXPECT_EQ(decoded("Zm9vYg"), "foob");
  EXPECT_EQ(decoded("Zm9v\r\nYmFy"), "foobar");
  EXPECT_EQ(decoded("/+8="), "\xff\xef");
  EXPECT_EQ(decoded("_-8="), "\xff\xef");
}

TEST(Base64, RefusesOtherText) {
  EXPECT_EQ(decoded("Zm9v!"), "error: 'Zm9v!' is not base64.");
  EXPECT_EQ(decoded("Zg==Zg=="), "error: 'Zg==Zg==' is not base64.");
  EXPECT_EQ(decoded("Z"), "error: 'Z' is not base64: it ends within a byte.");
}

}  // namespace
}  // namespace bezel
