// Synthetic models in use: they load and run in every type, and their vocabulary works as a real one does.
#include "model/synth.h"

#include <algorithm>

#include "model/synth_vocabulary.h"
#include "run/engine.h"
#include "run/session.h"
#include "support.h"
#include "temp_folder.h"
#include "text/detokenizer.h"

namespace bezel {
namespace {

class SynthModels : public testing::TestWithParam<const char*> {};

TEST_P(SynthModels, RunsInEveryType) {
  TempFolder folder;
  for (const std::string_view quant : synth_quants()) {
    SCOPED_TRACE(std::string(quant));
    const std::string path = folder / (std::string(quant) + ".gguf");
    ASSERT_OK(write_synthetic_model(path, {.preset = GetParam(), .quant = std::string(quant)}));
    auto file = open_gguf(path);
    ASSERT_OK(file);
    auto engine = run_now(Engine::load(std::move(*file)));
    ASSERT_OK(engine);
    std::vector<std::vector<u32>> runs;
    for (int run = 0; run < 2; ++run) {
      auto session = Session::create((*engine)->backend(), 64);
      ASSERT_OK(session);
      std::vector<u32> next{(*engine)->tokenizer().bos()};
      for (int i = 0; i < 6; ++i) {
        const Status status = run_now(session->feed(next));
        ASSERT_OK(status);
        const auto logits = session->logits();
        EXPECT_TRUE(std::ranges::all_of(logits, [](f32 v) { return v > -30.01f && v < 30.01f; }));
        const auto [low, high] = std::ranges::minmax(logits);
        EXPECT_GT(high - low, 4);  // something to choose from
        next = {static_cast<u32>(std::ranges::max_element(logits) - logits.begin())};
      }
      runs.push_back(session->tokens());
    }
    EXPECT_EQ(runs[0], runs[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, SynthModels, testing::Values("tiny", "tiny-moe"), [](const auto& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

class VocabularyOfSize : public testing::TestWithParam<u32> {};

TEST_P(VocabularyOfSize, TokenisesAndComesBack) {
  const SynthVocabulary made = make_synth_vocabulary(GetParam());
  ASSERT_EQ(made.pieces.size(), GetParam());
  ASSERT_EQ(made.types.size(), GetParam());
  auto sorted = made.pieces;
  std::ranges::sort(sorted);
  EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end());  // no piece twice
  Vocabulary vocabulary;
  vocabulary.pieces.assign(made.pieces.begin(), made.pieces.end());
  vocabulary.types.assign(made.types.begin(), made.types.end());
  vocabulary.merges.assign(made.merges.begin(), made.merges.end());
  const auto tokenizer = Tokenizer::build(vocabulary);
  ASSERT_OK(tokenizer);
  for (const std::string text :
       {"Hello, who are you?", "  two  spaces\n\n\nand\tlines ", "na\xC3\xAFve \xE2\x82\xAC \xF0\x9F\x99\x82",
        "x = {1: [2, 3]};", "<|turn> is plain text here", ""}) {
    std::vector<u32> ids;
    tokenizer->encode(text, Specials::kPlain, ids);
    Detokenizer back(*tokenizer);
    std::string round;
    for (const u32 id : ids) round += back.push(id);
    EXPECT_EQ(round + back.finish(), text);
  }
  for (const char* special : {"<bos>", "<eos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|think|>",
                              "<|tool_call>", "<tool_call|>", "<|image|>", "<|video|>"}) {
    const auto id = tokenizer->find(special);
    ASSERT_TRUE(id) << special;
    EXPECT_TRUE(tokenizer->is_special(*id)) << special;
    std::vector<u32> ids;
    tokenizer->encode(special, Specials::kParse, ids);
    EXPECT_EQ(ids, std::vector{*id}) << special;
  }
  EXPECT_EQ(tokenizer->find("<|turn>"), 105u);
  EXPECT_EQ(tokenizer->find("\n"), 107u);
  std::vector<u32> merged;
  tokenizer->encode("ab", Specials::kPlain, merged);
  EXPECT_EQ(merged.size(), GetParam() > 1300 ? 1u : merged.size());  // words have pieces of their own
}

INSTANTIATE_TEST_SUITE_P(Sizes, VocabularyOfSize, testing::Values(768u, 2048u, 262144u),
                         [](const auto& param) { return std::to_string(param.param); });

}  // namespace
}  // namespace bezel
