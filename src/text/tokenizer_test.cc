#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

#include "base/format_text.h"
#include "text/detokenizer.h"
#include "text/utf8.h"

namespace bezel {
namespace {

// A small vocabulary that owns its text.
class Words {
 public:
  explicit Words(std::vector<std::string> pieces = {"<pad>", "<eos>", "<bos>", "<unk>"}) {
    for (auto& piece : pieces) add(std::move(piece));
  }
  Words& add(std::string piece, u8 type = 1) {
    vocabulary_.pieces.push_back(texts_.emplace_back(std::move(piece)));
    vocabulary_.types.push_back(type);
    return *this;
  }
  Words& add_all(std::initializer_list<const char*> pieces) {
    for (const char* piece : pieces) add(piece);
    return *this;
  }
  Words& add_bytes() {
    for (int byte = 0; byte < 256; ++byte) add(format_text("<0x{:02X}>", byte));
    return *this;
  }
  Words& merge(std::string text) {
    vocabulary_.merges.push_back(texts_.emplace_back(std::move(text)));
    return *this;
  }
  Vocabulary& vocabulary() { return vocabulary_; }
  Tokenizer build() const {
    auto tokenizer = Tokenizer::build(vocabulary_);
    EXPECT_TRUE(tokenizer) << tokenizer.error().message;
    return *std::move(tokenizer);
  }

 private:
  std::deque<std::string> texts_;
  Vocabulary vocabulary_;
};

// The pieces of a text, joined by a bar.
std::string split(const Tokenizer& tokenizer, std::string_view text, Specials specials = Specials::kPlain) {
  std::vector<u32> ids;
  tokenizer.encode(text, specials, ids);
  std::string out;
  for (const u32 id : ids) out.append(out.empty() ? "" : " ").append(tokenizer.piece(id));
  return out;
}

std::string detokenize(const Tokenizer& tokenizer, const std::vector<u32>& ids) {
  Detokenizer detokenizer(tokenizer);
  std::string out;
  for (const u32 id : ids) out += detokenizer.push(id);
  return out + detokenizer.finish();
}

Words english() {
  Words words;
  words.add_bytes().add("<|turn>", 3).add("<turn|>", 3).add("<|tool_response>", 4);
  words.add_all({"▁", "a", "b", "c", "h", "e", "l", "o", "<", "|", ">", "t", "u", "r", "n", "\n", "é"});
  words.add_all({"▁▁", "he", "ll", "hell", "hello", "▁h", "ab", "bc", "abc", "\n\n"});
  for (const char* merge : {"▁ ▁", "h e", "l l", "he ll", "hell o", "▁ h", "b c", "a b", "a bc", "\n \n"}) {
    words.merge(merge);
  }
  return words;
}

TEST(Tokenizer, MergesByRank) {
  const Tokenizer tokenizer = english().build();
  EXPECT_EQ(split(tokenizer, "hello"), "hello");
  EXPECT_EQ(split(tokenizer, " hello  hello"), "▁ hello ▁▁ hello");
  EXPECT_EQ(split(tokenizer, "abc"), "abc") << "'b c' ranks before 'a b'";
  EXPECT_EQ(split(tokenizer, "ab"), "ab");
  EXPECT_EQ(split(tokenizer, "lll"), "ll l") << "the leftmost of equals";
  EXPECT_EQ(split(tokenizer, ""), "");
}

TEST(Tokenizer, RunsEndAtLineBreaks) {
  Words words = english();
  words.add("a\n").merge("a \n");
  const Tokenizer tokenizer = words.build();
  EXPECT_EQ(split(tokenizer, "a\n\n\na"), "a \n\n \n a");
  EXPECT_EQ(split(tokenizer, "\na\n"), "\n a \n");
}

TEST(Tokenizer, FallsBackToBytes) {
  const Tokenizer tokenizer = english().build();
  EXPECT_EQ(split(tokenizer, "é🦙a"), "é <0xF0> <0x9F> <0xA6> <0x99> a");
  EXPECT_EQ(split(tokenizer, "\xFF\xC3"), "<0xFF> <0xC3>");
  EXPECT_EQ(split(tokenizer, "\xED\xA0\x80"), "<0xED> <0xA0> <0x80>");
  EXPECT_EQ(split(tokenizer, std::string_view("\0a", 2)), "<0x00> a");
  EXPECT_EQ(split(tokenizer, "\xC3(\xA9"), "<0xC3> <0x28> <0xA9>");
}

TEST(Tokenizer, WithoutBytePiecesAnUnknownCharacterIsUnkOrNothing) {
  Words words;
  words.add_all(
      {"a", "<0xC3>", "<0x-1>", "<0x1G>", "<0x 1>", "<0x+1>", "<0x111>", "<0x>", "<1xAA>", "<0xAAA"});
  EXPECT_EQ(split(words.build(), "aéa \x01\x11"), "a <unk> a <unk> <unk> <unk>") << "no half of a character";
  EXPECT_EQ(split(words.build(), "\xC3"), "<0xC3>");
  Words bare({"<bos>"});
  bare.add("a");
  EXPECT_EQ(split(bare.build(), "aéa \xFF"), "a a");
}

TEST(Tokenizer, BytePiecesAreKnownByTheirText) {
  Words words;
  words.add("<0x41>").add("<0xc3>").add("<0xA9>", 3).add("<0x-1>").add("<0x4G>");
  const Tokenizer tokenizer = words.build();
  EXPECT_EQ(detokenize(tokenizer, {4, 5, 6}), "Aé");
  EXPECT_EQ(detokenize(tokenizer, {7, 8}), "<0x-1><0x4G>");
  EXPECT_FALSE(tokenizer.is_special(6));
}

TEST(Tokenizer, PlainTextMakesNoSpecials) {
  const Tokenizer tokenizer = english().build();
  EXPECT_EQ(split(tokenizer, "<turn|>", Specials::kPlain), "< t u r n | >");
  EXPECT_EQ(split(tokenizer, "a<turn|>", Specials::kParse), "a <turn|>");
  EXPECT_EQ(split(tokenizer, "<|tool_response><|turn>a", Specials::kParse), "<|tool_response> <|turn> a");
  EXPECT_EQ(split(tokenizer, "<<|turn><tu", Specials::kParse), "< <|turn> < t u");
}

TEST(Tokenizer, MergesCannotBuildSpecialsOrBytes) {
  Words words;
  words.add_bytes().add_all({"<", "eos>", "0x41>", "e"}).merge("< eos>").merge("e os>").merge("< 0x41>");
  words.add_all({"o", "s", ">", "os", "os>", "0", "x", "4", "1", "41", "x41", "x41>", "\x01"});
  for (const char* merge : {"o s", "os >", "4 1", "x 41", "x41 >", "0 x41>"}) words.merge(merge);
  EXPECT_EQ(split(words.build(), "<eos>"), "< eos>");
  EXPECT_EQ(split(words.build(), "<0x41>"), "< 0x41>");
  words.add("★", 3);
  EXPECT_EQ(split(words.build(), "★"), "<0xE2> <0x98> <0x85>");
  EXPECT_EQ(split(words.build(), "★", Specials::kParse), "★");
}

TEST(Tokenizer, SpecialsAreKnownByTheirTextWhateverTheirType) {
  for (const u8 type : std::initializer_list<u8>{1, 3, 4, 6}) {
    Words words;
    words.add("<|turn>", type).add("<turn|>", type).add("<|tool_response>", type).add("<|\"|>", type);
    for (const bool types : {true, false}) {
      if (!types) words.vocabulary().types.clear();
      const Tokenizer tokenizer = words.build();
      EXPECT_EQ(split(tokenizer, "<|turn><|\"|><turn|>", Specials::kParse), "<|turn> <|\"|> <turn|>");
      EXPECT_TRUE(tokenizer.is_special(4));
      EXPECT_EQ(detokenize(tokenizer, {2, 4, 5, 6, 7}), "");
      for (u32 id = 0; id < 10; ++id) EXPECT_EQ(tokenizer.is_end(id), id == 1 || id == 5 || id == 6) << id;
    }
  }
}

TEST(Tokenizer, ControlTokensOfTheFileAreSpecialAndUserDefinedOnesOnlyWhole) {
  Words words;
  words.add_bytes().add("<ctl>", 3).add("<usr>", 4).add("<ctl>more", 3).add("", 3);
  const Tokenizer tokenizer = words.build();
  EXPECT_EQ(split(tokenizer, "<ctl><usr><ctl>more<ctl>mor", Specials::kParse),
            "<ctl> <usr> <ctl>more <ctl> <0x6D> <0x6F> <0x72>");
  EXPECT_EQ(detokenize(tokenizer, {260, 261, 262}), "<usr>");
}

TEST(Tokenizer, IgnoresGarbageMerges) {
  Words words = english();
  const std::string before = split(words.build(), "hello  abc\n\n");
  for (const char* merge : {"", " ", "  ", "ab", " ab", "ab ", "x y", "a x", "h l", "he llo o", "a  b"}) {
    words.merge(merge);
  }
  EXPECT_EQ(split(words.build(), "hello  abc\n\n"), before);
}

TEST(Tokenizer, RefusesWhatItCannotUse) {
  const auto without_bos = Tokenizer::build(Words({"<pad>", "<eos>", "bos"}).vocabulary());
  ASSERT_FALSE(without_bos);
  EXPECT_NE(without_bos.error().message.find("\"<bos>\""), std::string::npos);
  EXPECT_FALSE(Tokenizer::build({}));
  Words words;
  words.vocabulary().types.pop_back();
  const auto few_types = Tokenizer::build(words.vocabulary());
  ASSERT_FALSE(few_types);
  EXPECT_NE(few_types.error().message.find("4 tokens but types for 3"), std::string::npos);
}

TEST(Tokenizer, DropsSuppressedIdsOutOfRange) {
  Words words;
  words.vocabulary().suppressed = {3, -1, 4, i64{1} << 40, 0};
  EXPECT_EQ(words.build().suppressed(), (std::vector<u32>{3, 0}));
}

TEST(Tokenizer, FindsPiecesByTextAndOwnsThem) {
  std::optional<Tokenizer> tokenizer;
  {
    Words words = english();
    words.add("hello");
    tokenizer = words.build();
  }
  const auto hello = tokenizer->find("hello");
  ASSERT_TRUE(hello);
  EXPECT_LT(*hello, tokenizer->size() - 1) << "the first of equals";
  EXPECT_EQ(tokenizer->piece(*hello), "hello");
  EXPECT_EQ(tokenizer->find("absent"), std::nullopt);
  EXPECT_EQ(tokenizer->find(""), std::nullopt);
  EXPECT_EQ(tokenizer->piece(tokenizer->size()), "");
  EXPECT_EQ(tokenizer->piece(kNoToken), "");
  EXPECT_FALSE(tokenizer->is_special(kNoToken));
  EXPECT_FALSE(tokenizer->is_end(kNoToken)) << "an end that the vocabulary lacks";
  EXPECT_EQ(tokenizer->bos(), 2u);
}

TEST(Tokenizer, AnyBytesSurviveARoundTrip) {
  const Tokenizer tokenizer = english().build();
  const std::vector<std::string> parts{"hello", " ",    "  ",       "\n",      "é", "🦙",
                                       "abc",   "\xFF", "\xE2\x96", "<turn|>", "x"};
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (u64 i = random() % 12; i > 0; --i) text += parts[random() % parts.size()];
    std::vector<u32> ids;
    tokenizer.encode(text, Specials::kPlain, ids);
    std::string decoded;
    for (const u32 id : ids) tokenizer.decode(id, decoded);
    ASSERT_EQ(decoded, text);
  }
}

// Quadratic work would take hours.
TEST(Tokenizer, StaysFastOnAdversarialText) {
  Words words = english();
  std::string letters = "a";
  for (int i = 0; i < 8; ++i) {
    words.merge(letters + " " + letters);
    letters += letters;
    words.add(letters);
  }
  const Tokenizer tokenizer = words.add(std::string(60, '<') + "x", 3).build();
  for (const std::string_view unit : {"a", " ", "<", "<|", "\n", "\xFF", "\xF0\x9F", "<turn|>", "🦙"}) {
    std::string text;
    while (text.size() < (size_t{1} << 18)) text += unit;
    std::vector<u32> ids;
    tokenizer.encode(text, Specials::kParse, ids);
    EXPECT_FALSE(ids.empty());
  }
}

TEST(Detokenizer, JoinsBytesIntoCharactersAndNeverGivesAHalf) {
  const Tokenizer tokenizer = english().build();
  std::vector<u32> ids;
  tokenizer.encode("a🦙é", Specials::kPlain, ids);
  Detokenizer detokenizer(tokenizer);
  std::vector<std::string> steps;
  for (const u32 id : ids) steps.push_back(detokenizer.push(id));
  EXPECT_EQ(steps, (std::vector<std::string>{"a", "", "", "", "🦙", "é"}));
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, BrokenCharactersBecomeTheReplacement) {
  const Tokenizer tokenizer = english().build();
  const auto byte = [&](u32 value) { return 4 + value; };
  EXPECT_EQ(detokenize(tokenizer, {byte(0xF0), byte(0x9F)}), "\uFFFD");
  EXPECT_EQ(detokenize(tokenizer, {byte(0xF0), byte('a')}), "\uFFFDa");
  EXPECT_EQ(detokenize(tokenizer, {byte(0xFF), byte(0xC3), byte(0xA9)}), "\uFFFDé");
  EXPECT_EQ(detokenize(tokenizer, {byte(0xC3), *tokenizer.find("<turn|>"), byte(0xA9)}), "\uFFFD\uFFFD");
  EXPECT_EQ(detokenize(tokenizer, {tokenizer.size(), kNoToken}), "");
}

TEST(Detokenizer, ShowsTheSpaceMarkAsASpace) {
  Words words;
  words.add_all({"▁", "▁▁", "a▁b▁", "▁a", "\xE2\x96", "\x81"});
  EXPECT_EQ(detokenize(words.build(), {4, 5, 6, 7}), "   a b  a");
  EXPECT_EQ(detokenize(words.build(), {8, 9}), "▁") << "only a mark within one piece is a space";
}

}  // namespace
}  // namespace bezel
