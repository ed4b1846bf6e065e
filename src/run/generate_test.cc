#include "run/generate.h"

#include <algorithm>

#include "base/format_text.h"
#include "model/synth.h"
#include "support.h"
#include "temp_folder.h"

namespace bezel {
namespace {

std::unique_ptr<Engine> load(const std::string& path) {
  auto file = open_gguf(path);
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return nullptr;
  }
  auto engine = run_now(Engine::load(std::move(*file)));
  if (!engine) {
    ADD_FAILURE() << engine.error().message;
    return nullptr;
  }
  return std::move(*engine);
}

// The next answer, taken apart.
struct Answer {
  std::optional<Reply> reply;
  Error error;
  std::string text;
  std::vector<u32> tokens;
};

class Generate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    TempFolder folder;
    ASSERT_OK(write_synthetic_model(folder / "tiny.gguf", {.preset = "tiny", .quant = "q8_0"}));
    engine_ = load(folder / "tiny.gguf").release();
  }
  static void TearDownTestSuite() {
    delete engine_;
    engine_ = nullptr;
  }

  static Session session(u32 context = 256) { return *Session::create(engine_->backend(), context); }

  static GenerateOptions greedy(u32 max_tokens) {
    GenerateOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = max_tokens;
    return options;
  }

  static Answer ask(Session& session, std::span<const u32> prompt, GenerateOptions options) {
    Answer answer;
    options.on_token = [&](const Sample& sample) { answer.tokens.push_back(sample.token); };
    options.on_event = [&, then = options.on_event](const OutputEvent& event) {
      answer.text += event.text;
      return then ? then(event) : true;
    };
    auto reply = run_now(generate(*engine_, session, {{prompt.begin(), prompt.end()}}, std::move(options)));
    if (reply) {
      answer.reply = *reply;
    } else {
      answer.error = reply.error();
    }
    return answer;
  }

  static std::vector<u32> prompt(std::string_view text = "the quick brown fox") {
    return engine_->encode_text(text);
  }

  // Whatever happened before: a session that answers as a new one does.
  static void expect_usable(Session& used) {
    Session fresh = session();
    const Answer expected = ask(fresh, prompt(), greedy(5)), got = ask(used, prompt(), greedy(5));
    ASSERT_TRUE(got.reply) << got.error.message;
    EXPECT_EQ(got.tokens, expected.tokens);
    EXPECT_EQ(got.text, expected.text);
  }

  static Engine* engine_;
};

Engine* Generate::engine_ = nullptr;

TEST_F(Generate, StopsAfterMaxTokens) {
  Session s = session();
  const Answer answer = ask(s, prompt(), greedy(7));
  ASSERT_TRUE(answer.reply) << answer.error.message;
  EXPECT_EQ(answer.reply->reason, FinishReason::kLength);
  EXPECT_FALSE(answer.reply->stopped_by_caller);
  EXPECT_EQ(answer.reply->generated_tokens, 7u);
  EXPECT_EQ(answer.reply->prompt_tokens, prompt().size());
  EXPECT_EQ(answer.reply->reused_tokens, 0u);
  EXPECT_EQ(answer.tokens.size(), 7u);
  // The session holds prompt and answer.
  auto expected = prompt();
  expected.insert(expected.end(), answer.tokens.begin(), answer.tokens.end());
  EXPECT_EQ(s.tokens(), expected);
}

TEST_F(Generate, TextIsWhatTheTokensSpell) {
  Session s = session();
  GenerateOptions options = greedy(20);
  for (u32 byte = 238; byte < 494; ++byte) options.sampling.suppressed.push_back(byte);
  const Answer answer = ask(s, prompt(), std::move(options));
  ASSERT_TRUE(answer.reply) << answer.error.message;
  EXPECT_GT(answer.text.size(), 10u);
  std::string spelled;
  for (const u32 token : answer.tokens) engine_->tokenizer().decode(token, spelled);
  EXPECT_TRUE(spelled.contains(answer.text)) << spelled << " / " << answer.text;  // less space at the ends
}

TEST_F(Generate, AFullContextIsALength) {
  Session s = session(16);
  const Answer answer = ask(s, prompt(), greedy(0));
  ASSERT_TRUE(answer.reply) << answer.error.message;
  EXPECT_EQ(answer.reply->reason, FinishReason::kLength);
  EXPECT_EQ(answer.reply->generated_tokens, 16 - prompt().size());
  EXPECT_EQ(s.position(), 16u);
}

TEST_F(Generate, StopStringsEndTheAnswer) {
  Session s = session();
  const std::string whole = ask(s, prompt(), greedy(20)).text;
  ASSERT_GE(whole.size(), 10u);
  const std::string stop = whole.substr(5, 4);
  const std::string before = whole.substr(0, whole.find(stop));
  GenerateOptions options = greedy(20);
  options.stops = {"never written", stop};
  const Answer answer = ask(s, prompt(), std::move(options));
  ASSERT_TRUE(answer.reply) << answer.error.message;
  EXPECT_EQ(answer.text, before);
  EXPECT_EQ(answer.reply->reason, FinishReason::kStop);
  EXPECT_FALSE(answer.reply->stopped_by_caller);
  EXPECT_LT(answer.reply->generated_tokens, 20u);
}

TEST_F(Generate, EndTokensEndTheAnswer) {
  for (const char* piece : {"<eos>", "<turn|>"}) {
    Session s = session();
    GenerateOptions options = greedy(20);
    options.sampling.logit_bias = {{*engine_->tokenizer().find(piece), 1000.0f}};
    const Answer answer = ask(s, prompt(), std::move(options));
    ASSERT_TRUE(answer.reply) << answer.error.message;
    EXPECT_EQ(answer.reply->reason, FinishReason::kStop);
    EXPECT_EQ(answer.reply->generated_tokens, 1u);
    EXPECT_EQ(answer.text, "");
  }
}

TEST_F(Generate, GoOnStopsBetweenTokens) {
  Session s = session();
  int calls = 0;
  GenerateOptions options = greedy(50);
  options.go_on = [&] { return ++calls <= 5; };  // once for the prompt's only batch, then before each token
  const Answer answer = ask(s, prompt(), std::move(options));
  ASSERT_TRUE(answer.reply) << answer.error.message;
  EXPECT_TRUE(answer.reply->stopped_by_caller);
  EXPECT_EQ(answer.reply->generated_tokens, 4u);
  EXPECT_EQ(s.position(), prompt().size() + 4);
  expect_usable(s);
}

TEST_F(Generate, GoOnStopsWithinThePrompt) {
  Session s = session();
  const std::vector<u32> long_prompt(150, engine_->tokenizer().bos());
  int calls = 0;
  GenerateOptions options = greedy(5);
  options.go_on = [&] { return ++calls < 3; };
  const Answer answer = ask(s, long_prompt, std::move(options));
  ASSERT_FALSE(answer.reply);
  EXPECT_EQ(answer.error.kind, ErrorKind::kCancelled);
  EXPECT_EQ(s.position(), 2 * engine_->backend().batch());  // finished batches stay
  const Answer again = ask(s, long_prompt, greedy(5));
  ASSERT_TRUE(again.reply) << again.error.message;
  EXPECT_EQ(again.reply->reused_tokens, 2 * engine_->backend().batch());
  expect_usable(s);
}

TEST_F(Generate, OnEventStops) {
  Session s = session();
  int events = 0;
  GenerateOptions options = greedy(50);
  options.on_event = [&](const OutputEvent&) { return ++events < 3; };
  const Answer answer = ask(s, prompt(), std::move(options));
  ASSERT_TRUE(answer.reply) << answer.error.message;
  EXPECT_TRUE(answer.reply->stopped_by_caller);
  EXPECT_EQ(events, 3);  // and nothing after the refusal
  EXPECT_LT(answer.reply->generated_tokens, 50u);
  expect_usable(s);
}

TEST_F(Generate, SecondTurnsReuseTheFirst) {
  Session s = session();
  const Answer first = ask(s, prompt(), greedy(10));
  ASSERT_TRUE(first.reply) << first.error.message;
  std::vector<u32> longer = s.tokens();
  engine_->tokenizer().encode(" and more", Specials::kPlain, longer);
  const Answer second = ask(s, longer, greedy(10));
  ASSERT_TRUE(second.reply) << second.error.message;
  EXPECT_EQ(second.reply->reused_tokens, prompt().size() + 10);
  EXPECT_EQ(second.reply->prompt_tokens, longer.size());
  Session fresh = session();
  EXPECT_EQ(ask(fresh, longer, greedy(10)).tokens, second.tokens);
  // The same prompt again: all but its last token, whose logits are needed.
  const Answer third = ask(s, longer, greedy(10));
  ASSERT_TRUE(third.reply) << third.error.message;
  EXPECT_EQ(third.reply->reused_tokens, longer.size() - 1);
  EXPECT_EQ(third.tokens, second.tokens);
}

TEST_F(Generate, TheSameSeedGivesTheSameText) {
  std::vector<std::string> texts;
  for (const u64 seed : {7, 7, 8}) {
    Session s = session();
    GenerateOptions options;
    options.sampling.seed = seed;
    options.max_tokens = 20;
    const Answer answer = ask(s, prompt(), std::move(options));
    ASSERT_TRUE(answer.reply) << answer.error.message;
    texts.push_back(answer.text);
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0], texts[2]);
}

TEST_F(Generate, SuppressedTokensNeverAppear) {
  Session s = session();
  const std::vector<u32> liked = ask(s, prompt(), greedy(20)).tokens;
  for (const f32 temperature : {0.0f, 1.5f}) {
    GenerateOptions options = greedy(40);
    options.sampling.temperature = temperature;
    options.sampling.suppressed = liked;
    const Answer answer = ask(s, prompt(), std::move(options));
    ASSERT_TRUE(answer.reply) << answer.error.message;
    for (const u32 token : answer.tokens) EXPECT_FALSE(std::ranges::contains(liked, token)) << token;
  }
}

TEST_F(Generate, ErrorsLeaveTheSessionUsable) {
  Session s = session();
  EXPECT_EQ(ask(s, {}, greedy(5)).error.message, "The prompt is empty.");
  expect_usable(s);

  const std::vector<u32> too_long(257, 2), outside{2, 2048};
  EXPECT_EQ(ask(s, too_long, greedy(5)).error.message.substr(0, 24), "256 tokens do not fit: t");
  expect_usable(s);
  EXPECT_EQ(ask(s, outside, greedy(5)).error.message, "Token 2048 is outside the vocabulary of 2048 tokens.");
  expect_usable(s);

  GenerateOptions nothing_left = greedy(5);
  for (u32 id = 0; id < 2048; ++id) nothing_left.sampling.suppressed.push_back(id);
  const Answer none = ask(s, prompt(), std::move(nothing_left));
  EXPECT_FALSE(none.reply);
  EXPECT_FALSE(none.error.message.empty());
  expect_usable(s);
}

TEST_F(Generate, ChatsAreEncodedWithTheirControlTokens) {
  const nlohmann::json messages = {{{"role", "user"}, {"content", "hi <turn|> there"}}};
  const auto items = render_chat(messages, {.form = engine_->chat_template()});
  ASSERT_OK(items);
  const auto ids = engine_->encode_chat(*items);
  ASSERT_OK(ids);
  EXPECT_EQ(ids->ids.front(), engine_->tokenizer().bos());
  // One end of a turn: the one that the user typed is text.
  EXPECT_EQ(std::ranges::count(ids->ids, *engine_->tokenizer().find("<turn|>")), 1);
  EXPECT_EQ(std::ranges::count(ids->ids, *engine_->tokenizer().find("<|turn>")), 2);
}

TEST_F(Generate, AVocabularyWithoutTurnsCannotChat) {
  const std::vector<ChatItem> items{{true, "<bos>"}, {true, "<|no such token|>"}, {false, "hi"}};
  const auto ids = engine_->encode_chat(items);
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message,
            "This model's vocabulary has no token <|no such token|>, so it cannot chat; it can only continue "
            "text.");
}

// Changes in a model file that Engine::load() must notice or use.
class EngineFile : public testing::Test {
 protected:
  // The tiny model of the repository with its keys changed.
  Result<std::unique_ptr<Engine>> load_with(const std::function<void(GgufWriter&)>& change) {
    auto from = open_gguf(data_path("tiny-e2b.gguf"));
    EXPECT_TRUE(from);
    GgufWriter writer;
    for (const KeyValue& entry : from->values()) writer.set_value(entry.key, entry.value);
    change(writer);
    std::vector<std::vector<std::byte>> data;
    for (const TensorInfo& info : from->tensors()) {
      writer.add_tensor(info.name, info.type, std::span(info.ne).first(info.dims));
      EXPECT_TRUE(run_now(from->read(info, 0, data.emplace_back(static_cast<std::size_t>(info.bytes)))));
    }
    const std::vector<Bytes> views(data.begin(), data.end());
    EXPECT_TRUE(write_gguf(folder_ / "model.gguf", writer, views));
    auto file = open_gguf(folder_ / "model.gguf");
    EXPECT_TRUE(file);
    return run_now(Engine::load(std::move(*file)));
  }

  static std::vector<std::string> pieces(u32 count) {
    std::vector<std::string> out{"<pad>", "<eos>", "<bos>", "<unk>"};
    while (out.size() < count) out.push_back(format_text("w{}", out.size()));
    return out;
  }

  TempFolder folder_;
};

TEST_F(EngineFile, WithoutTurnsItSaysSo) {
  const auto engine = load_with([](GgufWriter& w) { w.set_strings("tokenizer.ggml.tokens", pieces(48)); });
  ASSERT_OK(engine);
  const nlohmann::json messages = {{{"role", "user"}, {"content", "hi"}}};
  const auto items = render_chat(messages, {});
  ASSERT_OK(items);
  const auto ids = (*engine)->encode_chat(*items);
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message,
            "This model's vocabulary has no token <|turn>, so it cannot chat; it can only continue text.");
}

TEST_F(EngineFile, VocabularyOfAnotherSize) {
  const auto engine = load_with([](GgufWriter& w) {
    w.set_strings("tokenizer.ggml.tokens", pieces(47));
    w.set_ints("tokenizer.ggml.token_type", std::vector<i32>(47, 1));
  });
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().message,
            (folder_ / "model.gguf") + " has 47 tokens but 'token_embd.weight' has 48 rows.");
}

TEST_F(EngineFile, ItsSettingsAreUsed) {
  const auto engine = load_with([](GgufWriter& w) {
    w.set_float("general.sampling.temp", 0.5f);
    w.set_float("general.sampling.top_p", 0.25f);
    w.set_int("general.sampling.top_k", 9);
    w.set_ints("tokenizer.ggml.suppress_tokens", std::vector<i32>{7, 40, -1, 5000});
  });
  ASSERT_OK(engine);
  const SamplerOptions& sampling = (*engine)->sampling();
  EXPECT_EQ(sampling.temperature, 0.5f);
  EXPECT_EQ(sampling.top_p, 0.25f);
  EXPECT_EQ(sampling.top_k, 9u);
  EXPECT_EQ(sampling.suppressed, (std::vector<u32>{7, 40}));
  auto session = Session::create((*engine)->backend(), 200);
  ASSERT_OK(session);
  GenerateOptions options;
  options.sampling = sampling;
  options.sampling.temperature = 5;
  options.sampling.top_k = 0;
  options.sampling.top_p = 1;
  options.on_token = [](const Sample& sample) { EXPECT_TRUE(sample.token != 7 && sample.token != 40); };
  const std::vector<u32> prompt{2};
  const auto reply = run_now(generate(**engine, *session, {prompt}, std::move(options)));
  ASSERT_OK(reply);
}

// A bias of nothing makes the whole vocabulary come back; the tokens must not notice.
TEST_F(Generate, CandidatesLeadToTheSameTokens) {
  for (const u64 seed : {1, 2, 3}) {
    for (const f32 temperature : {0.0F, 1.5F}) {
      GenerateOptions options;
      options.sampling.seed = seed;
      options.sampling.temperature = temperature;
      options.sampling.suppressed = {5, 6, 7};
      options.max_tokens = 12;
      ASSERT_GT(best_enough(options.sampling), 0u);
      Session few = session(), all = session();
      const Answer got = ask(few, prompt(), options);
      EXPECT_TRUE(few.logits().empty());
      EXPECT_GE(few.candidates().best.size(), best_enough(options.sampling));
      options.sampling.logit_bias = {{0, 0.0F}};
      const Answer expected = ask(all, prompt(), options);
      EXPECT_FALSE(all.logits().empty());
      ASSERT_TRUE(got.reply && expected.reply) << got.error.message << expected.error.message;
      EXPECT_EQ(got.tokens, expected.tokens);
    }
  }
}

}  // namespace
}  // namespace bezel
