// Soft tokens: embeddings of pictures and recordings among a prompt's tokens.
#include "models.h"
#include "safetensors.h"
#ifndef __wasm__
#include "gpu_fixture.h"
#endif

namespace bezel {
namespace {

constexpr u32 kVocab = 48, kWidth = 32, kPlaceholder = 7;

std::shared_ptr<const SoftTokens> soft_tokens(u32 count, bool picture, u8 key = 1) {
  auto soft = std::make_shared<SoftTokens>();
  soft->count = count;
  soft->picture = picture;
  soft->key[0] = key;
  for (u32 i = 0; i < count * kWidth; ++i)
    soft->rows.push_back(std::sin(0.7f * static_cast<f32>(i) + static_cast<f32>(key)));
  return soft;
}

Prompt text(u32 count, u32 seed = 2) {
  Prompt prompt;
  for (u32 i = 0; i < count; ++i) prompt.ids.push_back((i * 29 + seed) % kVocab);
  return prompt;
}

Prompt soft(std::shared_ptr<const SoftTokens> tokens) {
  Prompt prompt{std::vector<u32>(tokens->count, kPlaceholder)};
  prompt.soft.push_back({0, std::move(tokens)});
  return prompt;
}

Prompt join(std::initializer_list<Prompt> parts) {
  Prompt all;
  for (const Prompt& part : parts) all.append(part);
  return all;
}

// Text, a picture, text, a recording, another picture right behind it, text.
Prompt mixed() {
  return join({text(5), soft(soft_tokens(20, true)), text(3), soft(soft_tokens(9, false, 2)),
               soft(soft_tokens(12, true, 3)), text(4, 11)});
}

std::vector<f32> logits_of(Backend& backend, Prompt prompt) {
  auto session = Session::create(backend, 256);
  std::vector<f32> logits;
  const Status status = run_now(session->feed_all(std::move(prompt), logits));
  EXPECT_TRUE(status) << status.error().message;
  return logits;
}

Loaded load(const std::string& name, bool gpu) {
  LoadOptions options;
#ifndef __wasm__
  if (gpu) options.device = test_device();
#else
  EXPECT_FALSE(gpu);
#endif
  return load_model(data_path(name + ".gguf"), options);
}

TEST(Prompt, PrefixesKeepSoftTokensWhole) {
  const Prompt a = mixed();
  EXPECT_EQ(common_prefix(a, a), a.size());
  Prompt other = join({text(5), soft(soft_tokens(20, true, 9)), text(3)});
  EXPECT_EQ(common_prefix(a, other), 5u);
  other = join({text(5), soft(soft_tokens(20, true)), text(2), text(1, 40)});
  EXPECT_EQ(common_prefix(a, other), 27u);
  EXPECT_EQ(common_prefix(a, text(5)), 5u);
  EXPECT_EQ(common_prefix(a, join({text(5), Prompt{std::vector<u32>(20, kPlaceholder)}})), 5u);
  Prompt cut = a;
  cut.truncate(24);
  EXPECT_EQ(cut.size(), 5u);
  EXPECT_TRUE(cut.soft.empty());
  cut = a;
  cut.truncate(25);
  EXPECT_EQ(cut.soft.size(), 1u);
  EXPECT_EQ(rest_of(a, 25).soft.front().first, 3u);
}

// Without per-layer embeddings a recording of the table's own rows is the text itself.
TEST(Soft, EmbeddingsOfTokensAreTheTokens) {
  for (const char* name : {"tiny-31b", "tiny-26b"}) {
    auto model = load(name, false);
    ASSERT_TRUE(model.backend);
    const TensorInfo& table = model.backend->model().tensors[model.backend->model().token_embd.index];
    ASSERT_EQ(table.type, DType::kF32);
    const Prompt plain = text(12);
    auto copy = std::make_shared<SoftTokens>();
    copy->count = 12;
    copy->rows.resize(12 * kWidth);
    for (u32 t = 0; t < 12; ++t) {
      const auto row = std::span(copy->rows).subspan(t * kWidth, kWidth);
      ASSERT_OK(run_now(model.file->read(table, plain.ids[t] * kWidth * 4, std::as_writable_bytes(row))));
      for (f32& v : row) v *= std::sqrt(static_cast<f32>(kWidth));
    }
    // The rows are rounded to single precision, which the layers make a little larger.
    EXPECT_LE(difference(logits_of(*model.backend, soft(copy)), logits_of(*model.backend, plain)), 1e-5);
  }
}

TEST(Soft, PicturesSeeAheadWhereTheModelSaysSo) {
  for (const auto& [name, ahead] : {std::pair("tiny-e2b", false), {"tiny-26b", true}, {"tiny-31b", true}}) {
    auto model = load(name, false);
    ASSERT_TRUE(model.backend);
    auto picture = soft_tokens(20, true);
    auto changed = std::make_shared<SoftTokens>(*picture);
    changed->rows.back() += 1;
    const auto before = logits_of(*model.backend, join({text(5), soft(picture), text(2)}));
    const auto after = logits_of(*model.backend, join({text(5), soft(changed), text(2)}));
    // The first token of the picture learns of a change in the last one.
    const auto row = [](const auto& logits, u32 t) { return std::span(logits).subspan(t * kVocab, kVocab); };
    EXPECT_EQ(difference(row(before, 5), row(after, 5)) > 0, ahead) << name;
    EXPECT_EQ(difference(row(before, 4), row(after, 4)), 0) << name;
    EXPECT_GT(difference(row(before, 26), row(after, 26)), 0) << name;
  }
}

TEST(Soft, AnyWayOfFeedingIsTheSame) {
  for (const char* name : {"tiny-e2b", "tiny-26b"}) {
    auto model = load(name, false);
    ASSERT_TRUE(model.backend);
    const Prompt all = mixed();
    const auto expected = logits_of(*model.backend, all);
    const auto last = std::span(expected).last(kVocab);
    auto session = Session::create(*model.backend, 256);
    ASSERT_OK(session);
    // In parts, after another picture, after going back into a picture, after being saved.
    for (const Prompt& part : {text(5), soft(soft_tokens(20, true)), rest_of(all, 25)})
      ASSERT_OK(run_now(session->feed(part)));
    EXPECT_TRUE(std::ranges::equal(session->logits(), last)) << name;
    ASSERT_OK(run_now(session->set_prompt(join({text(5), soft(soft_tokens(20, true, 8)), text(30)}))));
    ASSERT_OK(run_now(session->set_prompt(all)));
    EXPECT_TRUE(std::ranges::equal(session->logits(), last)) << name;
    ASSERT_OK(run_now(session->rewind(40)));
    EXPECT_EQ(session->position(), 37u);
    ASSERT_OK(run_now(session->feed(rest_of(all, 37))));
    EXPECT_TRUE(std::ranges::equal(session->logits(), last)) << name;
    ASSERT_OK(run_now(session->feed(text(190))));
    ASSERT_OK(run_now(session->rewind(51)));  // past the rings: the pictures are fed again
    ASSERT_OK(run_now(session->set_prompt(all)));
    EXPECT_TRUE(std::ranges::equal(session->logits(), last)) << name;

    std::vector<std::byte> saved;
    ASSERT_OK(run_now(session->save([&](Bytes bytes) {
      saved.insert(saved.end(), bytes.begin(), bytes.end());
      return Status{};
    })));
    auto other = Session::create(*model.backend, 100);
    ASSERT_OK(other);
    const auto source = memory_source(saved, "saved.kv");
    ASSERT_OK(run_now(other->restore(*source)));
    EXPECT_EQ(common_prefix(other->held(), all), all.size());
    ASSERT_OK(run_now(other->set_prompt(all)));
    EXPECT_TRUE(std::ranges::equal(other->logits(), last)) << name;
    // A run that claims more tokens than there are.
    const std::size_t run = 68 + 4 * model.backend->make_cache(100).value()->rings().size() + 4 * all.size();
    saved[run + 4] = std::byte{255};
    const auto broken = memory_source(saved, "saved.kv");
    const Status status = run_now(other->restore(*broken));
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("do not fit its 53 tokens"), std::string::npos)
        << status.error().message;
  }
}

TEST(Soft, StoppedWithinARecordingKeepsNothingOfIt) {
  auto model = load("tiny-e2b", false);
  ASSERT_TRUE(model.backend);
  auto session = Session::create(*model.backend, 256);
  ASSERT_OK(session);
  int passes = 0;
  const Prompt prompt = join({text(10), soft(soft_tokens(150, false)), text(5)});
  const Status status = run_now(session->feed(prompt, [&] { return ++passes < 3; }));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(session->position(), 10u);
  ASSERT_OK(run_now(session->set_prompt(prompt)));
  const auto expected = logits_of(*model.backend, prompt);
  EXPECT_TRUE(std::ranges::equal(session->logits(), std::span(expected).last(kVocab)));
}

TEST(Soft, AWrongWidthIsAnError) {
  auto model = load("tiny-31b", false);
  ASSERT_TRUE(model.backend);
  auto session = Session::create(*model.backend, 64);
  auto wrong = std::make_shared<SoftTokens>(*soft_tokens(4, true));
  wrong->rows.resize(100);
  const Status status = run_now(session->feed(soft(wrong)));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "4 soft tokens have 100 numbers, but the model's width is 32.");
}

#ifndef __wasm__
TEST(SoftGpu, LikeTheCpu) {
  for (const char* name : {"tiny-e2b", "tiny-26b", "tiny-31b"}) {
    auto cpu = load(name, false), gpu = load(name, true);
    ASSERT_TRUE(cpu.backend && gpu.backend);
    EXPECT_LE(difference(logits_of(*gpu.backend, mixed()), logits_of(*cpu.backend, mixed())), 1e-4) << name;
  }
}
#endif

// The soft tokens and logits of transformers, from the full set of goldens.
std::vector<std::string> full_models() {
  std::vector<std::string> names;
  for (const char* name : {"tiny-e2b", "tiny-26b"}) {
    if (open_file(golden_path(std::string(name) + ".golden.safetensors"))) names.emplace_back(name);
  }
  return names;
}

class FullSoftGoldens : public testing::TestWithParam<std::string> {};

TEST_P(FullSoftGoldens, Logits) {
  const Safetensors golden(golden_path(GetParam() + ".golden.safetensors"));
  LoadOptions options;
  options.bf16_rope = true;  // as they were made
  auto model = load_model(golden_path(GetParam() + ".gguf"), options);
  ASSERT_TRUE(model.backend);
  const u32 width = model.backend->model().config.width;
  for (const std::string kind : {"image", "audio"}) {
    if (!golden.has(kind + ".prompt")) continue;
    Prompt prompt{golden.get<u32>(kind + ".prompt")};
    auto tokens = std::make_shared<SoftTokens>();
    tokens->rows = golden.get<f32>(kind + ".soft_tokens");
    tokens->count = static_cast<u32>(tokens->rows.size() / width);
    tokens->picture = kind == "image";
    const auto run = std::ranges::search_n(prompt.ids, tokens->count, prompt.ids[prompt.ids.size() / 2]);
    ASSERT_FALSE(run.empty());
    prompt.soft.push_back({static_cast<u32>(run.begin() - prompt.ids.begin()), tokens});
    const auto expected = golden.get<f32>(kind + ".logits");
    EXPECT_LE(difference(logits_of(*model.backend, prompt), expected), 1e-4) << kind;
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullSoftGoldens);
INSTANTIATE_TEST_SUITE_P(Beside, FullSoftGoldens, testing::ValuesIn(full_models()), [](const auto& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace bezel
