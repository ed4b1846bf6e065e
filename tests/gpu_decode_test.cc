// Decoding ahead: a step begins before the last one is read, and nobody can tell from the tokens.
#ifndef __wasm__
#include "decoding.h"
#include "gpu_fixture.h"
#include "models.h"
#include "run/generate.h"
#include "session_bytes.h"

namespace bezel {
namespace {

constexpr u32 kContext = 96;

// Passes everything on, and counts; `tamper` may spoil what the device chooses by.
class Watched final : public Backend {
 public:
  explicit Watched(Backend& inner) : inner_(inner) {}
  const TextModel& model() const override { return inner_.model(); }
  u32 batch() const override { return inner_.batch(); }
  u32 block() const override { return inner_.block(); }
  u32 outputs() const override { return inner_.outputs(); }
  Result<std::unique_ptr<KvCache>> make_cache(u32 context) override { return inner_.make_cache(context); }
  Task<Status> forward(KvCache& cache, Batch batch, u32 position, Wanted wanted, Outputs& out) override {
    ++forwards;
    return inner_.forward(cache, batch, position, wanted, out);
  }
  bool decodes_ahead() const override { return ahead && inner_.decodes_ahead(); }
  Task<Result<std::unique_ptr<DecodeStep>>> begin(KvCache& cache, DecodeInput input) override {
    ++(input.after == nullptr ? started : chained);
    if (tamper) tamper(input.draw);
    return inner_.begin(cache, input);
  }

  u32 forwards = 0, started = 0, chained = 0;
  bool ahead = true;
  std::function<void(Draw&)> tamper;

 private:
  Backend& inner_;
};

std::vector<u32> ids(u32 count, u32 vocab = 48) {
  std::vector<u32> ids;
  for (u32 i = 0; i < count; ++i) ids.push_back((i * 29 + i / 5 + 2) % vocab);
  return ids;
}

SamplerOptions greedy() { return {.temperature = 0}; }

class GpuDecode : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    LoadOptions options;
    options.device = test_device();
    options.gpu.batch = 16;
    loaded_ = new Loaded(load_model(data_path("tiny-e2b.gguf"), options));
  }
  static void TearDownTestSuite() {
    delete loaded_;
    loaded_ = nullptr;
  }
  void SetUp() override {
    ASSERT_TRUE(loaded_->backend);
    watched_.emplace(*loaded_->backend);
  }

  Session make(u32 context = kContext) {
    auto session = Session::create(*watched_, context);
    CHECK(session);
    return std::move(*session);
  }

  // What a session answers that decodes token by token.
  std::vector<u32> expected(std::span<const u32> prompt, const SamplerOptions& options, u32 count) {
    watched_->ahead = false;
    Session session = make();
    const u32 top = best_enough(options);
    feed(session, prompt, top);
    Sampler sampler(options);
    const auto tokens = decode(session, sampler, top, count);
    watched_->ahead = true;
    return tokens;
  }

  // The session goes on as a new one does with the same tokens.
  void expect_goes_on(Session& session) {
    const auto held = session.tokens();
    feed(session, ids(3), 8);
    Session fresh = make(session.context());
    feed(fresh, held, 8);
    feed(fresh, ids(3), 8);
    EXPECT_EQ(session.tokens(), fresh.tokens());
    const auto &got = session.candidates().best, &want = fresh.candidates().best;
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i].logit, want[i].logit, 1e-4);
  }

  static Loaded* loaded_;
  std::optional<Watched> watched_;
};

Loaded* GpuDecode::loaded_ = nullptr;

TEST_F(GpuDecode, TheSameTokensAsOneByOne) {
  const SamplerOptions cases[] = {greedy(),
                                  {.seed = 1},
                                  {.temperature = 1.8f, .top_k = 20, .top_p = 0.9f, .seed = 2},
                                  {.temperature = 0.7f, .min_p = 0.05f, .seed = 3, .logprobs = 4},
                                  {.temperature = 3, .top_k = 5, .suppressed = {1, 9, 30, 31}, .seed = 4},
                                  {.temperature = 0, .suppressed = {1, 9, 30, 31}}};
  for (const SamplerOptions& options : cases) {
    const auto want = expected(ids(10), options, 10);
    Session session = make();
    const u32 top = best_enough(options);
    feed(session, ids(10), top);
    Sampler sampler(options);
    watched_->forwards = watched_->started = watched_->chained = 0;
    EXPECT_EQ(decode(session, sampler, top, 10), want);
    // One that the host's token starts; all others follow by themselves.
    EXPECT_EQ(watched_->forwards, 0u);
    EXPECT_EQ(watched_->started, 1u);
    EXPECT_EQ(watched_->chained, 9u);
  }
}

TEST_F(GpuDecode, AWrongGuessIsForgotten) {
  const SamplerOptions options{.temperature = 1.5f, .seed = 5};
  const u32 top = best_enough(options);
  const auto want = expected(ids(12), options, 6);
  const std::function<void(Draw&)> tampers[] = {
      [](Draw& draw) { draw.uniform = 1 - draw.uniform; },
      [](Draw& draw) { draw.uniform = std::numeric_limits<f32>::quiet_NaN(); }};
  for (const auto& tamper : tampers) {
    Session session = make();
    feed(session, ids(12), top);
    Sampler sampler(options);
    watched_->started = 0;
    watched_->tamper = tamper;
    EXPECT_EQ(decode(session, sampler, top, 6, true), want);
    EXPECT_GT(watched_->started, 1u);
    watched_->tamper = {};
    expect_goes_on(session);
  }
}

TEST_F(GpuDecode, SessionsMayTakeTurns) {
  const SamplerOptions options{.seed = 6};
  const u32 top = best_enough(options);
  const std::vector<u32> prompts[] = {ids(9), ids(20), {4, 8, 15}};
  std::vector<Session> sessions;
  std::vector<Sampler> samplers(3, Sampler(options));
  std::vector<std::vector<u32>> got(3);
  for (const auto& prompt : prompts) feed(sessions.emplace_back(make()), prompt, top);
  for (u32 round = 0; round < 5; ++round) {
    // Alone for a while, then token by token in turns: what another's pass has overwritten is not used.
    for (u32 i = 0; i < 3; ++i) {
      const auto some = decode(sessions[i], samplers[i], top, round % 4 == 0 ? 4 : 1, true);
      got[i].insert(got[i].end(), some.begin(), some.end());
    }
  }
  for (u32 i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i], expected(prompts[i], options, static_cast<u32>(got[i].size())));
    expect_goes_on(sessions[i]);
  }
}

TEST_F(GpuDecode, WhatIsUnderWayDoesNotCount) {
  const u32 top = 1;
  Sampler sampler(greedy());
  const auto want = expected(ids(30), greedy(), 20);
  Session session = make();
  feed(session, ids(30), top);
  EXPECT_EQ(decode(session, sampler, top, 10, true), std::vector(want.begin(), want.begin() + 10));
  EXPECT_EQ(session.position(), 40u);

  // Saved and restored elsewhere.
  const auto file = saved(session);
  Session restored = make();
  ASSERT_OK(run_now(restored.restore(*memory_source(file))));
  EXPECT_EQ(restored.tokens(), session.tokens());
  expect_goes_on(restored);
  ASSERT_OK(run_now(restored.rewind(39)));
  expect_goes_on(restored);

  // Going on, going back, another token.
  EXPECT_EQ(decode(session, sampler, top, 5, true), std::vector(want.begin() + 10, want.begin() + 15));
  ASSERT_OK(run_now(session.rewind(44)));
  EXPECT_TRUE(session.candidates().best.empty());
  feed(session, std::span(want).subspan(14, 1), top);
  EXPECT_EQ(decode(session, sampler, top, 5, true), std::vector(want.begin() + 15, want.end()));
  ASSERT_OK(run_now(session.rewind(3)));
  expect_goes_on(session);
  ASSERT_OK(run_now(session.set_prompt({ids(30)}, {}, top)));
  EXPECT_EQ(decode(session, sampler, top, 20, true), want);
  // A restored one forgets it too.
  ASSERT_OK(run_now(session.restore(*memory_source(file))));
  expect_goes_on(session);
}

// With batches of one token a sliding ring has no slot to spare.
TEST_F(GpuDecode, TheShortestRingsKeepWhatIsSeen) {
  LoadOptions options;
  options.device = test_device();
  options.gpu.batch = 1;
  const auto loaded = load_model(data_path("tiny-e2b.gguf"), options);
  ASSERT_TRUE(loaded.backend);
  watched_.emplace(*loaded.backend);
  Sampler sampler(greedy());
  Session session = make();
  feed(session, ids(30), 1);
  decode(session, sampler, 1, 8, true);
  const auto file = saved(session);
  Session restored = make();
  ASSERT_OK(run_now(restored.restore(*memory_source(file))));
  expect_goes_on(restored);
  ASSERT_OK(run_now(session.rewind(37)));
  expect_goes_on(session);
}

TEST_F(GpuDecode, TheContextMayFillUp) {
  Sampler sampler(greedy());
  const auto want = expected(ids(10), greedy(), 6);
  Session session = make(16);
  feed(session, ids(10), 1);
  EXPECT_EQ(decode(session, sampler, 1, 6, true), want);
  EXPECT_EQ(session.position(), 16u);
  const Status full = run_now(session.decode(1, 1, sampler, true));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "1 tokens do not fit: the context holds 16, of which 16 are used.");
  ASSERT_OK(run_now(session.rewind(12)));
  expect_goes_on(session);
}

TEST_F(GpuDecode, OtherTokensAndOtherNumbersOfCandidates) {
  Sampler sampler(greedy());
  Session session = make();
  feed(session, ids(10), 1);
  decode(session, sampler, 1, 3, true);
  const u32 likely = session.candidates().best[0].id;
  ASSERT_OK(run_now(session.decode(likely, 6, sampler, true)));  // not what is under way, which gives one
  EXPECT_EQ(session.candidates().best.size(), 8u);
  const u32 second = session.candidates().best[1].id;
  ASSERT_OK(run_now(session.decode(second, 6, sampler, true)));
  EXPECT_EQ(session.tokens().back(), second);
  const Status outside = run_now(session.decode(48, 6, sampler, true));
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().message, "Token 48 is outside the vocabulary of 48 tokens.");
  expect_goes_on(session);
}

TEST_F(GpuDecode, ATableInTheFileIsReadForEachToken) {
  LoadOptions options;
  options.device = test_device();
  options.per_layer_table = PerLayerTable::kSource;
  const auto loaded = load_model(data_path("tiny-e2b.gguf"), options);
  ASSERT_TRUE(loaded.backend);
  EXPECT_FALSE(loaded.backend->decodes_ahead());
  const auto want = expected(ids(10), greedy(), 8);
  auto session = Session::create(*loaded.backend, kContext);
  ASSERT_OK(session);
  Sampler sampler(greedy());
  feed(*session, ids(10), 1);
  EXPECT_EQ(decode(*session, sampler, 1, 8, true), want);
}

TEST(GpuDecodeLost, InFlight) {
  auto device = run_now(Device::open(test_device_options()));
  ASSERT_OK(device);
  LoadOptions options;
  options.device = device->get();
  const auto loaded = load_model(data_path("tiny-e2b.gguf"), options);
  ASSERT_TRUE(loaded.backend);
  auto session = Session::create(*loaded.backend, kContext);
  ASSERT_OK(session);
  Sampler sampler(greedy());
  feed(*session, ids(10), 1);
  decode(*session, sampler, 1, 3, true);
  const auto held = session->tokens();
  const u32 next = session->candidates().best[0].id;
  (*device)->lose();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status lost = run_now(session->decode(next, 1, sampler, true));
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().kind, ErrorKind::kDeviceLost) << lost.error().message;
    EXPECT_EQ(session->tokens(), held);
  }
}

TEST(GpuDecodeLost, ASessionMayEndWithAStepUnderWay) {
  auto device = run_now(Device::open(test_device_options()));
  ASSERT_OK(device);
  LoadOptions options;
  options.device = device->get();
  const auto loaded = load_model(data_path("tiny-e2b.gguf"), options);
  ASSERT_TRUE(loaded.backend);
  const u64 before = (*device)->allocated();
  std::vector<std::vector<u32>> answers;
  for (int round = 0; round < 3; ++round) {
    auto session = Session::create(*loaded.backend, kContext);
    ASSERT_OK(session);
    Sampler sampler(greedy());
    feed(*session, ids(10), 1);
    answers.push_back(decode(*session, sampler, 1, 4, true));
    Session moved = std::move(*session);
    session = Session::create(*loaded.backend, kContext);
    const auto more = decode(moved, sampler, 1, 2, true);
    answers.back().insert(answers.back().end(), more.begin(), more.end());
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(answers[0], answers[2]);
  EXPECT_EQ((*device)->allocated(), before);
  EXPECT_EQ((*device)->counts().programs, 0u);
}

// The whole way, as users go it.
TEST(GpuGenerate, LikeTheCpu) {
  std::vector<std::vector<u32>> tokens[2], held[2];
  for (const bool gpu : {false, true}) {
    auto file = open_gguf(data_path("tiny-e2b.gguf"));
    ASSERT_OK(file);
    LoadOptions load;
    if (gpu) load.device = test_device();
    auto engine = run_now(Engine::load(std::move(*file), {}, load));
    ASSERT_OK(engine);
    auto session = Session::create((*engine)->backend(), 64);
    ASSERT_OK(session);
    for (const u64 seed : {0, 1, 2, 3}) {
      auto& answer = tokens[gpu].emplace_back();
      GenerateOptions options;
      options.sampling = {.temperature = seed == 0 ? 0.0f : 1.0f, .seed = seed};
      options.max_tokens = seed == 2 ? 0 : 14;  // until the context is full
      options.on_token = [&](const Sample& sample) { answer.push_back(sample.token); };
      if (seed == 3) options.go_on = [&] { return answer.size() < 6; };
      const auto reply = run_now(generate(**engine, *session, {ids(20)}, options));
      ASSERT_OK(reply);
      EXPECT_EQ(reply->stopped_by_caller, seed == 3);
      EXPECT_EQ(reply->generated_tokens, answer.size());
      held[gpu].push_back(session->tokens());
    }
  }
  EXPECT_EQ(tokens[0], tokens[1]);
  EXPECT_EQ(held[0], held[1]);
}

TEST(GpuReads, BytesAreThoseOfTheirTime) {
  Device& device = *test_device();
  auto buffer = device.make_buffer(1 << 20, "x");
  ASSERT_OK(buffer);
  const auto fill = [&](u8 value) {
    device.write(*buffer, 0, std::vector<std::byte>(1 << 20, std::byte{value}));
  };
  std::vector<Download> downloads;
  std::vector<std::size_t> sizes{4, 64 << 10, 1 << 20, 7, (64 << 10) + 1};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    fill(static_cast<u8>(i + 1));
    auto download = device.start_read(buffer->view(i == 3 ? 5 : 0, sizes[i]));
    ASSERT_OK(download);
    EXPECT_EQ(download->bytes(), sizes[i]);
    downloads.push_back(std::move(*download));
  }
  const u64 before = device.allocated();
  fill(99);
  for (const std::size_t i : {4, 0, 3, 2}) {  // in any order, and 1 not at all
    std::vector<std::byte> out(sizes[i]);
    ASSERT_OK(run_now(downloads[i].finish(out)));
    EXPECT_TRUE(std::ranges::all_of(out, [&](std::byte b) { return b == static_cast<std::byte>(i + 1); }))
        << i;
  }
  downloads.clear();
  EXPECT_EQ(device.allocated(), before - (1 << 20) - (64 << 10) - 4);
}

// With relays too, and with sessions that take turns: each has mail of its own.
TEST(GpuDecodeWithRelays, TakesTurns) {
  std::vector<u32> expected;
  for (const bool relay : {false, true}) {
    LoadOptions options;
    options.device = test_device();
    options.gpu.relays = relay ? Relays::kOn : Relays::kOff;
    auto loaded = load_model(data_path("tiny-e2b-Q4_K_M.gguf"), options);
    ASSERT_TRUE(loaded.backend);
    Watched watched(*loaded.backend);
    auto one = Session::create(watched, kContext), other = Session::create(watched, kContext);
    ASSERT_OK(one);
    ASSERT_OK(other);
    feed(*one, ids(9), 1);
    feed(*other, ids(4), 1);
    Sampler sampler(greedy()), another(greedy());
    std::vector<u32> tokens;
    for (u32 turn = 0; turn < 3; ++turn) {
      for (const u32 token : decode(*one, sampler, 1, 6, true)) tokens.push_back(token);
      for (const u32 token : decode(*other, another, 1, 3)) tokens.push_back(token);
    }
    EXPECT_GT(watched.chained, 8u);
    if (!relay) expected = tokens;
    EXPECT_EQ(tokens, expected);
  }
}

}  // namespace
}  // namespace bezel
#endif
