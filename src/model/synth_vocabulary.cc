#include "model/synth_vocabulary.h"

#include <utility>

#include "base/check.h"
#include "base/format_text.h"

namespace bezel {
namespace {

enum TokenType : i32 { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6 };

const std::string kSpace = "\xE2\x96\x81";  // U+2581, how pieces spell a space
constexpr u32 kFirstFree = 494;             // after the byte pieces
constexpr u32 kRealSize = 262144;

std::string repeat(const std::string& text, u32 count) {
  std::string out;
  for (u32 i = 0; i < count; ++i) out += text;
  return out;
}

class Maker {
 public:
  explicit Maker(u32 size) : size_(size) {
    for (u32 i = 0; i < size; ++i) out_.pieces.push_back(format_text("<unused{}>", i));
    out_.types.assign(size, kNormal);
  }

  SynthVocabulary make() {
    specials();
    runs(107, 1, "\n");  // 107 is one newline, 137 thirty-one
    runs(138, 2, kSpace);
    for (u32 byte = 0; byte < 256; ++byte) put(238 + byte, format_text("<0x{:02X}>", byte), kByte);
    add(kSpace);
    add("\t");
    for (char c = '!'; c <= '~'; ++c) add(std::string(1, c));
    words();
    return std::move(out_);
  }

 private:
  void put(u32 id, std::string piece, TokenType type) {
    out_.pieces[id] = std::move(piece);
    out_.types[id] = type;
  }

  // The next free id; false when the vocabulary is full.
  bool add(std::string piece) {
    if (next_ == reserved_from_) return false;
    put(next_++, std::move(piece), kNormal);
    return true;
  }

  void specials() {
    put(0, "<pad>", kControl);
    put(1, "<eos>", kControl);
    put(2, "<bos>", kControl);
    put(3, "<unk>", kUnknown);
    put(4, "<mask>", kControl);
    put(46, "<|tool>", kControl);
    put(47, "<tool|>", kControl);
    put(48, "<|tool_call>", kUserDefined);
    put(49, "<tool_call|>", kUserDefined);
    put(50, "<|tool_response>", kUserDefined);
    put(51, "<tool_response|>", kUserDefined);
    put(52, "<|\"|>", kUserDefined);
    put(98, "<|think|>", kControl);
    put(100, "<|channel>", kUserDefined);
    put(101, "<channel|>", kUserDefined);
    put(105, "<|turn>", kControl);
    put(106, "<turn|>", kControl);
    // Real files have these near the end; a smaller vocabulary has them as its last eight.
    const char* media[] = {"<|image>", "<|audio>", "<|image|>", "<|audio|>",
                           "<image|>", "<audio|>", "<|video|>"};
    const u32 real[] = {255999, 256000, 258880, 258881, 258882, 258883, 258884};
    reserved_from_ = size_ >= kRealSize ? real[0] : size_ - 8;
    for (u32 i = 0; i < 7; ++i) put(size_ >= kRealSize ? real[i] : reserved_from_ + i, media[i], kControl);
  }

  // Runs of `first` to 31 of one symbol, and every merge of two runs into a longer one.
  void runs(u32 id, u32 first, const std::string& symbol) {
    for (u32 n = first; n <= 31; ++n) put(id + n - first, repeat(symbol, n), kNormal);
    for (u32 n = 31; n >= 2; --n) {
      for (u32 left = n - 1; left >= 1; --left) merge(repeat(symbol, left), repeat(symbol, n - left));
    }
  }

  // All words over a-z, with and without a space before them, shorter ones first; each grows by its last
  // letter.
  void words() {
    std::vector<std::string> shorter{kSpace};
    for (char c = 'a'; c <= 'z'; ++c) shorter.emplace_back(1, c);
    while (true) {
      std::vector<std::string> longer;
      for (const std::string& word : shorter) {
        for (char c = 'a'; c <= 'z'; ++c) {
          if (!add(word + c)) return;
          merge(word, std::string(1, c));
          longer.push_back(word + c);
        }
      }
      shorter = std::move(longer);
    }
  }

  void merge(const std::string& left, const std::string& right) { out_.merges.push_back(left + " " + right); }

  u32 size_;
  u32 next_ = kFirstFree;
  u32 reserved_from_ = 0;
  SynthVocabulary out_;
};

}  // namespace

SynthVocabulary make_synth_vocabulary(u32 size) {
  CHECK(size >= kSmallestSynthVocabulary);
  return Maker(size).make();
}

}  // namespace bezel
