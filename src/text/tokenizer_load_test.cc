#include <gtest/gtest.h>

#include <map>
#include <random>

#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "support.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace bezel {
namespace {

Result<Tokenizer> load_file(const std::string& name) {
  const auto gguf = TRY(open_gguf(data_path(name)));
  return Tokenizer::load(gguf);
}

Result<Tokenizer> load_written(const GgufWriter& writer) {
  std::vector<std::unique_ptr<Source>> parts;
  auto bytes = writer.header();
  bytes.resize(bytes.size() + static_cast<size_t>(writer.data_bytes()));
  parts.push_back(memory_source(std::move(bytes), "written.gguf"));
  const auto gguf = TRY(run_now(Gguf::open(std::move(parts))));
  return Tokenizer::load(gguf);
}

// A file that loads: the five keys that a test then breaks one of.
GgufWriter small(const std::string& without = "") {
  GgufWriter writer;
  if (without != "tokens") {
    writer.set_strings("tokenizer.ggml.tokens",
                       std::vector<std::string>{"<pad>", "<eos>", "<bos>", "a", "aa", "<turn|>"});
  }
  if (without != "merges") writer.set_strings("tokenizer.ggml.merges", std::vector<std::string>{"a a"});
  if (without != "types") {
    writer.set_ints("tokenizer.ggml.token_type", std::vector<i32>{3, 3, 3, 1, 1, -7});
  }
  if (without != "model") writer.set_string("tokenizer.ggml.model", "gemma4");
  if (without != "bos") writer.set_uint("tokenizer.ggml.bos_token_id", 2);
  return writer;
}

std::vector<u32> encode(const Tokenizer& tokenizer, std::string_view text, Specials specials) {
  std::vector<u32> ids;
  tokenizer.encode(text, specials, ids);
  return ids;
}

TEST(TokenizerLoad, ReadsAFile) {
  GgufWriter writer = small();
  writer.set_ints("tokenizer.ggml.suppress_tokens", std::vector<i32>{-3, 5, 6, 1});
  const auto tokenizer = load_written(writer);
  ASSERT_OK(tokenizer);
  EXPECT_EQ(encode(*tokenizer, "aaa<turn|>", Specials::kParse), (std::vector<u32>{4, 3, 5}));
  EXPECT_EQ(tokenizer->suppressed(), (std::vector<u32>{5, 1}));
  EXPECT_TRUE(tokenizer->is_end(5));
}

TEST(TokenizerLoad, NeedsOnlyTokensAndMerges) {
  for (const char* key : {"types", "model", "bos"}) EXPECT_TRUE(load_written(small(key))) << key;
  for (const char* key : {"tokens", "merges"}) {
    const auto tokenizer = load_written(small(key));
    ASSERT_FALSE(tokenizer);
    EXPECT_NE(tokenizer.error().message.find(std::string("tokenizer.ggml.") + key), std::string::npos);
  }
}

TEST(TokenizerLoad, ErrorsNameTheKeyAndTheNumbers) {
  const auto message = [](const GgufWriter& writer) {
    const auto tokenizer = load_written(writer);
    return tokenizer ? std::string("it loads") : tokenizer.error().message;
  };
  GgufWriter kind = small("model");
  kind.set_string("tokenizer.ggml.model", "gpt2");
  EXPECT_EQ(message(kind), "written.gguf has a tokenizer of kind 'gpt2'; only 'gemma4' is supported.");

  GgufWriter types = small("types");
  types.set_ints("tokenizer.ggml.token_type", std::vector<i32>{3, 3});
  EXPECT_EQ(message(types), "Key 'tokenizer.ggml.token_type' of written.gguf has 2 entries for 6 tokens.");

  GgufWriter text_types = small("types");
  text_types.set_strings("tokenizer.ggml.token_type", std::vector<std::string>(6, "3"));
  EXPECT_EQ(message(text_types),
            "Key 'tokenizer.ggml.token_type' of written.gguf is not an array of integers.");

  GgufWriter scores = small();
  scores.set_float("tokenizer.ggml.scores", 1.0F);
  EXPECT_EQ(message(scores), "Key 'tokenizer.ggml.scores' of written.gguf is not an array.");

  GgufWriter bos = small("bos");
  bos.set_uint("tokenizer.ggml.bos_token_id", 6);
  EXPECT_EQ(message(bos),
            "Key 'tokenizer.ggml.bos_token_id' of written.gguf is 6, but there are only 6 tokens.");

  GgufWriter tokens = small("tokens");
  tokens.set_uint("tokenizer.ggml.tokens", 6);
  EXPECT_EQ(message(tokens), "Key 'tokenizer.ggml.tokens' of written.gguf is not an array of strings.");

  GgufWriter rows = small();
  rows.add_tensor("token_embd.weight", DType::kF32, std::vector<u64>{4, 5});
  EXPECT_EQ(message(rows), "written.gguf has 6 tokens but 'token_embd.weight' has 5 rows.");
}

TEST(TokenizerLoad, ReadsTheTinyModels) {
  for (const char* name : {"tiny-e2b.gguf", "tiny-e4b.gguf", "tiny-31b.gguf", "tiny-26b.gguf"}) {
    const auto tokenizer = load_file(name);
    ASSERT_OK(tokenizer);
    EXPECT_EQ(tokenizer->size(), 48u);
    EXPECT_EQ(encode(*tokenizer, "<|turn> \nx<turn|>", Specials::kParse), (std::vector<u32>{5, 8, 7, 3, 6}));
    EXPECT_TRUE(tokenizer->is_end(6));
  }
}

// Two flavours of one vocabulary: specials typed normal or user-defined against control, byte pieces typed
// byte against normal.
class TwoFlavours : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Files, TwoFlavours, testing::Values("vocab-768.gguf", "vocab-768-ollama.gguf"));

TEST_P(TwoFlavours, KnowSpecialsAndBytesAlike) {
  const auto tokenizer = load_file(GetParam());
  ASSERT_OK(tokenizer);
  for (u32 id = 0; id < tokenizer->size(); ++id) {
    EXPECT_EQ(tokenizer->is_special(id), id < 24) << tokenizer->piece(id);
    EXPECT_EQ(tokenizer->is_end(id), id == 1 || id == 13 || id == 21) << tokenizer->piece(id);
  }
  for (u32 id = 0; id < 24; ++id) {
    EXPECT_EQ(encode(*tokenizer, tokenizer->piece(id), Specials::kParse), std::vector<u32>{id});
    for (const u32 plain : encode(*tokenizer, tokenizer->piece(id), Specials::kPlain)) EXPECT_GE(plain, 24u);
  }
  for (u32 byte = 0; byte < 256; ++byte) {
    std::string text;
    tokenizer->decode(24 + byte, text);
    EXPECT_EQ(text, std::string(1, static_cast<char>(byte)));
  }
}

// The definition, on strings and with the merges as the file has them.
std::vector<std::string> naive(std::vector<std::string> symbols, const std::map<std::string, size_t>& ranks) {
  while (true) {
    size_t best = ranks.size();
    size_t where = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find(symbols[i] + " " + symbols[i + 1]);
      if (found != ranks.end() && found->second < best) {
        best = found->second;
        where = i;
      }
    }
    if (best == ranks.size()) return symbols;
    symbols[where] += symbols[where + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

TEST_P(TwoFlavours, EncodeAsTheDefinitionSaysAndBack) {
  const auto gguf = open_gguf(data_path(GetParam()));
  ASSERT_OK(gguf);
  const auto tokenizer = Tokenizer::load(*gguf);
  ASSERT_OK(tokenizer);
  std::map<std::string, size_t> ranks;
  const auto merges = gguf->find("tokenizer.ggml.merges")->as_strings();
  ASSERT_TRUE(merges);
  for (const auto merge : *merges) {
    ranks.try_emplace(std::string(merge), ranks.size());
  }
  const std::string_view letters = "  theanoris,.dlcuwk";
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    std::vector<std::string> symbols;
    for (u64 i = random() % 80; i > 0; --i) {
      const char letter = letters[random() % letters.size()];
      text += letter;
      symbols.push_back(letter == ' ' ? "▁" : std::string(1, letter));
    }
    std::vector<std::string> pieces;
    std::string decoded;
    Detokenizer detokenizer(*tokenizer);
    for (const u32 id : encode(*tokenizer, text, Specials::kPlain)) {
      pieces.emplace_back(tokenizer->piece(id));
      decoded += detokenizer.push(id);
    }
    ASSERT_EQ(pieces, naive(symbols, ranks)) << text;
    ASSERT_EQ(decoded + detokenizer.finish(), text);
  }
}

TEST_P(TwoFlavours, AnyBytesSurviveARoundTrip) {
  const auto tokenizer = load_file(GetParam());
  ASSERT_OK(tokenizer);
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    std::string text(random() % 64, ' ');
    // Without the space mark's own bytes: that character comes back as a space.
    for (char& byte : text) byte = static_cast<char>(random() % 256);
    if (text.find("\u2581") != std::string::npos) continue;
    for (const Specials specials : {Specials::kPlain, Specials::kParse}) {
      std::string decoded;
      for (const u32 id : encode(*tokenizer, text, specials)) tokenizer->decode(id, decoded);
      ASSERT_EQ(decoded, text);
    }
  }
}

}  // namespace
}  // namespace bezel
