#include "io/sha256.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace bezel {
namespace {

std::string digest(std::string_view text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text)));
  return to_hex(sha.finish());
}

TEST(Sha256, FipsVectors) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(
      digest("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmno"
             "pqrsmnopqrstnopqrstu"),
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

TEST(Sha256, AMillionLettersInOddPieces) {
  const std::string text(1'000'000, 'a');
  Sha256 sha;
  std::size_t piece = 0;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    piece = std::min<std::size_t>(piece % 200 + 1, text.size() - at);
    sha.update(std::as_bytes(std::span(text)).subspan(at, piece));
  }
  EXPECT_EQ(to_hex(sha.finish()), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, EverySplitOfEveryLengthAroundABlockAgrees) {
  for (std::size_t length = 0; length <= 130; ++length) {
    std::string text(length, '\0');
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<char>(i * 37);
    const std::string whole = digest(text);
    const Bytes bytes = std::as_bytes(std::span(text));
    for (std::size_t cut = 0; cut <= length; ++cut) {
      Sha256 sha;
      sha.update(bytes.first(cut));
      sha.update(bytes.subspan(cut));
      ASSERT_EQ(to_hex(sha.finish()), whole) << length << " bytes, cut at " << cut;
    }
  }
}

TEST(Sha256, PaddingAtTheBlockBoundary) {
  EXPECT_EQ(digest(std::string(55, 'a')), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(digest(std::string(56, 'a')), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(digest(std::string(64, 'a')), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST(Sha256, StartsAfreshAfterFinish) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(std::string_view("something else"))));
  sha.finish();
  EXPECT_EQ(to_hex(sha.finish()), digest(""));
}

}  // namespace
}  // namespace bezel
