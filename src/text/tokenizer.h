// Gemma 4's tokenizer: byte-fallback BPE over code points, with U+2581 for the space.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "text/bpe.h"
#include "text/piece_table.h"
#include "text/special_matcher.h"

namespace bezel {

class Gguf;

// What a model file says. The views need to live only until Tokenizer::build() returns.
struct Vocabulary {
  std::vector<std::string_view> pieces;  // by id
  std::vector<u8> types;                 // as in GGUF (1 normal, 3 control, 4 user-defined ...); may be empty
  std::vector<std::string_view> merges;  // "left right", by rank
  std::vector<i64> suppressed;           // ids never to be sampled
};

// Text that people write is plain: "<turn|>" in it is seven characters. Only the text of templates is parsed.
enum class Specials { kPlain, kParse };

class Tokenizer {
 public:
  // Fails without a "<bos>" piece, and when the types are fewer than the pieces. Everything else that is odd
  // is tolerated: merges that make no sense and suppressed ids out of range are ignored.
  static Result<Tokenizer> build(const Vocabulary& vocabulary);
  static Result<Tokenizer> load(const Gguf& gguf);

  // Appends the ids of `text`, any bytes at all. Adds no <bos>. A character without a piece becomes its
  // bytes' pieces, a byte that is not UTF-8 its own; where the vocabulary lacks one of these, the character
  // becomes a single <unk>, or nothing if there is no <unk> either. With kPlain no other special comes out.
  void encode(std::string_view text, Specials specials, std::vector<u32>& out) const;

  // Appends the bytes a token stands for on the screen: nothing for specials and for ids out of range. They
  // may be a part of a character (see Detokenizer).
  void decode(u32 id, std::string& out) const;

  u32 bos() const { return bos_; }
  u32 size() const { return pieces_.size(); }
  std::string_view piece(u32 id) const { return id < size() ? pieces_[id] : std::string_view(); }
  std::optional<u32> find(std::string_view piece) const;
  bool is_special(u32 id) const { return id < size() && kinds_[id] == Kind::kSpecial; }
  // Generation stops at these. Known by their text: files disagree about eos_token_id.
  bool is_end(u32 id) const;
  const std::vector<u32>& suppressed() const { return suppressed_; }

 private:
  enum class Kind : u8 { kText, kByte, kSpecial };

  Tokenizer() = default;
  void classify(const std::vector<u8>& types);
  void add_merges(const std::vector<std::string_view>& merges);
  void encode_plain(std::string_view text, Bpe& bpe, std::vector<u32>& out) const;
  void finish_run(Bpe& bpe, std::vector<u32>& out) const;
  u32 symbol_of(std::string_view text, u32& length) const;
  void emit_foreign(u32 symbol, std::vector<u32>& out) const;

  PieceTable pieces_;
  std::vector<Kind> kinds_;
  MergeTable merges_;
  SpecialMatcher matcher_;
  std::array<u32, 256> bytes_{};  // ids of <0x00> to <0xFF>
  std::array<u32, 3> ends_{};
  u32 bos_ = kNoToken;
  u32 unknown_ = kNoToken;
  std::vector<u32> suppressed_;
};

}  // namespace bezel
