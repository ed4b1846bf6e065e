// The tokenizer with Gemma 4's real vocabulary: 262,144 tokens, made at build time and too large for the
// repository. A browser gets it from a model's file, so these run natively only.
#ifndef __wasm__
#include <filesystem>
#include <map>
#include <random>

#include "gguf/gguf.h"
#include "support.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace bezel {
namespace {

constexpr const char* kVocabulary = "build/fixtures/gemma4-vocab.gguf";

class RealVocabulary : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!std::filesystem::exists(kVocabulary)) return;
    const auto gguf = open_gguf(kVocabulary);
    ASSERT_OK(gguf);
    auto tokenizer = Tokenizer::load(*gguf);
    ASSERT_OK(tokenizer);
    tokenizer_ = new Tokenizer(*std::move(tokenizer));
  }
  static void TearDownTestSuite() {
    delete tokenizer_;
    tokenizer_ = nullptr;
  }
  void SetUp() override {
    ASSERT_TRUE(tokenizer_) << kVocabulary << " is missing or broken: run ./test build";
  }

  static std::vector<u32> encode(std::string_view text, Specials specials = Specials::kPlain) {
    std::vector<u32> ids;
    tokenizer_->encode(text, specials, ids);
    return ids;
  }
  static std::string decode(const std::vector<u32>& ids) {
    Detokenizer detokenizer(*tokenizer_);
    std::string text;
    for (const u32 id : ids) text += detokenizer.push(id);
    return text + detokenizer.finish();
  }
  static inline Tokenizer* tokenizer_ = nullptr;
};

// "<|turn>user" -> "user": what is left on the screen.
std::string without_specials(std::string text, const Tokenizer& tokenizer) {
  for (u32 id = 0; id < tokenizer.size(); ++id) {
    if (!tokenizer.is_special(id)) continue;
    const auto piece = tokenizer.piece(id);
    for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece))
      text.erase(at, piece.size());
  }
  return text;
}

TEST_F(RealVocabulary, EncodesAndDecodesTheCollectedCases) {
  const auto json = read_json(data_path("tokenizer.json"));
  ASSERT_EQ(json["cases"].size(), 80u);
  for (const auto& c : json["cases"]) {
    const auto text = c["text"].get<std::string>();
    const bool parse = c["parse_special"].get<bool>();
    const auto ids = encode(text, parse ? Specials::kParse : Specials::kPlain);
    EXPECT_EQ(ids, c["ids"].get<std::vector<u32>>()) << text;
    EXPECT_EQ(decode(ids), parse ? without_specials(text, *tokenizer_) : text);
  }
}

TEST_F(RealVocabulary, EncodesTheWorkedExamples) {
  const std::vector<std::pair<std::string, std::vector<u32>>> plain{
      {"Hello world", {9259, 1902}},
      {" Hello world", {26352, 1902}},
      {"  Hello", {138, 9259}},
      {"Hello, World!", {9259, 236764, 4109, 236888}},
      {"hello  world", {23391, 138, 12392}},
      {"      ", {142}},
      {"\n\n\n", {109}},
      {"\t\n", {255968, 107}},
      {"    Hello\n    Hello", {140, 9259, 107, 140, 9259}},
      {"\n =", {107, 578}},
      {"12345", {236770, 236778, 236800, 236812, 236810}},
      {"3.14159", {236800, 236761, 236770, 236812, 236770, 236810, 236819}},
      {"Äpfel", {239122, 22744, 535}},
      {"café résumé naïve", {123125, 236859, 118515, 120362}},
      {"你好世界", {144626, 12811}},
      {" this is 🦙.cpp", {672, 563, 236743, 478, 397, 404, 391, 236761, 12362}},
      {"hello 👋 world", {23391, 155818, 1902}},
      {"def foo(x): return x + 1", {2063, 46293, 236769, 236781, 1473, 994, 1123, 900, 236743, 236770}},
  };
  for (const auto& [text, ids] : plain) {
    EXPECT_EQ(encode(text), ids) << text;
    EXPECT_EQ(encode(text, Specials::kParse), ids) << text;
  }
  const std::vector<std::pair<std::string, std::vector<u32>>> parsed{
      {"<|turn>user\nWhat is 2+2?<turn|>\n<|turn>model\n",
       {105, 2364, 107, 3689, 563, 236743, 236778, 236862, 236778, 236881, 106, 107, 105, 4368, 107}},
      {"<|tool_call>call:bash{command:<|\"|>ls -la<|\"|>}<tool_call|>",
       {48, 6639, 236787, 42422, 236782, 7674, 236787, 52, 5629, 753, 2149, 52, 236783, 49}},
      {"<|channel>thought\nLet me think about this...<channel|>The answer is 42.",
       {100, 45518, 107, 6481, 786, 1751, 1003, 672, 1390, 101, 818, 3890, 563, 236743, 236812, 236778,
        236761}},
  };
  for (const auto& [text, ids] : parsed) EXPECT_EQ(encode(text, Specials::kParse), ids) << text;
}

TEST_F(RealVocabulary, HasTheFixedIds) {
  const std::map<u32, std::string_view> specials{{0, "<pad>"},
                                                 {1, "<eos>"},
                                                 {2, "<bos>"},
                                                 {3, "<unk>"},
                                                 {4, "<mask>"},
                                                 {46, "<|tool>"},
                                                 {47, "<tool|>"},
                                                 {48, "<|tool_call>"},
                                                 {49, "<tool_call|>"},
                                                 {50, "<|tool_response>"},
                                                 {51, "<tool_response|>"},
                                                 {52, "<|\"|>"},
                                                 {98, "<|think|>"},
                                                 {100, "<|channel>"},
                                                 {101, "<channel|>"},
                                                 {105, "<|turn>"},
                                                 {106, "<turn|>"},
                                                 {255999, "<|image>"},
                                                 {256000, "<|audio>"},
                                                 {258880, "<|image|>"},
                                                 {258881, "<|audio|>"},
                                                 {258882, "<image|>"},
                                                 {258883, "<audio|>"},
                                                 {258884, "<|video|>"}};
  ASSERT_EQ(tokenizer_->size(), 262144u);
  EXPECT_EQ(tokenizer_->bos(), 2u);
  for (u32 id = 0; id < tokenizer_->size(); ++id) {
    ASSERT_EQ(tokenizer_->is_special(id), specials.contains(id)) << id;
    ASSERT_EQ(tokenizer_->is_end(id), id == 1 || id == 50 || id == 106) << id;
  }
  for (const auto& [id, piece] : specials) {
    EXPECT_EQ(encode(piece, Specials::kParse), std::vector<u32>{id});
    EXPECT_GT(encode(piece).size(), 1u) << "plain " << piece;
    EXPECT_EQ(decode(encode(piece)), piece);
  }
  EXPECT_EQ(tokenizer_->suppressed(), (std::vector<u32>{258883, 258882}));
}

TEST_F(RealVocabulary, RunsOfBlanksAreSingleTokens) {
  for (u32 count = 1; count <= 31; ++count) {
    EXPECT_EQ(encode(std::string(count, '\n')), std::vector<u32>{106 + count});
    EXPECT_EQ(encode(std::string(count, '\t')), std::vector<u32>{255967 + count});
    EXPECT_EQ(encode(std::string(count, ' ')), std::vector<u32>{count == 1 ? 236743 : 136 + count});
  }
  EXPECT_EQ(encode(std::string(70, '\n')), (std::vector<u32>{137, 137, 114}));
}

TEST_F(RealVocabulary, EveryPieceOfTextSurvivesARoundTrip) {
  for (u32 id = 0; id < tokenizer_->size(); ++id) {
    std::string text;
    tokenizer_->decode(id, text);
    std::string again;
    for (const u32 part : encode(text)) tokenizer_->decode(part, again);
    ASSERT_EQ(again, text) << id;
  }
}

TEST_F(RealVocabulary, AnyTokensStreamAsTheyDecodeWhole) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    // Half of them bytes, so that characters form and break across tokens.
    std::vector<u32> ids(40);
    for (u32& id : ids) id = random() % 2 == 0 ? 238 + random() % 256 : 500 + random() % 200000;
    std::string bytes;
    for (const u32 id : ids) tokenizer_->decode(id, bytes);
    Utf8Stream stream;
    std::string whole;
    stream.push(bytes, whole);
    stream.finish(whole);
    ASSERT_EQ(decode(ids), whole);
  }
}

}  // namespace
}  // namespace bezel
#endif
