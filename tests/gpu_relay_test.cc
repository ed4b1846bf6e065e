// Relays in whole models: where they fail nobody notices, and what a trial found out is not tried again.
#ifndef __wasm__
#include "gpu_fixture.h"
#include "models.h"
#include "spoiling_device.h"

namespace bezel {
namespace {

constexpr u32 kContext = 96;
constexpr f64 kSame = 1e-4;
constexpr const char* kModel = "tiny-e2b-Q4_K_M.gguf";

std::vector<u32> ids(u32 count) {
  std::vector<u32> ids;
  for (u32 i = 0; i < count; ++i) ids.push_back((i * 29 + i / 5 + 2) % 48);
  return ids;
}

class GpuRelays : public testing::Test {
 protected:
  Loaded load(Relays relays, u32 batch = 16, const GpuOptions& more = {}) {
    LoadOptions options;
    options.device = &device_;
    options.gpu = more;
    options.gpu.batch = batch;
    options.gpu.relays = relays;
    return load_model(data_path(kModel), options);
  }
  static Session make(Backend& backend) {
    auto session = Session::create(backend, kContext);
    CHECK(session);
    return std::move(*session);
  }
  static void feed(Session& session, std::span<const u32> tokens, u32 top) {
    const Status status = run_now(session.feed(tokens, {}, top));
    ASSERT_OK(status);
  }
  // Takes `count` more tokens from where the session is; a step stays under way.
  static std::vector<u32> decode(Session& session, Sampler& sampler, u32 top, u32 count) {
    std::vector<u32> tokens;
    for (u32 i = 0; i < count; ++i) {
      const auto sample = sampler.sample(session.candidates().best, session.candidates().log_total);
      EXPECT_TRUE(sample) << sample.error().message;
      if (!sample) break;
      tokens.push_back(sample->token);
      const Status status = run_now(session.decode(sample->token, top, sampler, true));
      EXPECT_TRUE(status) << status.error().message;
      if (!status) break;
    }
    return tokens;
  }
  static i64 relays_in(Backend& backend, Wanted wanted) {
    auto cache = backend.make_cache(8);
    const u32 token = 5;
    Outputs out;
    const auto profile = run_now(backend.profile(**cache, {std::span(&token, 1), {}, {}}, 0, wanted, out));
    EXPECT_TRUE(profile);
    return profile ? std::ranges::count(profile->labels, "relay") : -1;
  }
  i64 layers(Backend& backend) const {
    return device_.info().integer_dots ? static_cast<i64>(backend.model().config.layers.size()) : 0;
  }

  SpoilingDevice device_{*test_device()};
};

// A pass of which nothing is read could leave keys and values that are none, unnoticed.
TEST_F(GpuRelays, OnlyWhereResultsAreRead) {
  const auto loaded = load(Relays::kOn);
  ASSERT_TRUE(loaded.backend);
  EXPECT_EQ(relays_in(*loaded.backend, {}), 0);
  EXPECT_EQ(relays_in(*loaded.backend, {.rows = 1}), layers(*loaded.backend));
  EXPECT_EQ(relays_in(*loaded.backend, {.rows = 1, .top = 4}), layers(*loaded.backend));
}

TEST_F(GpuRelays, APassThatFailedIsDoneAgain) {
  const auto expected = load(Relays::kOff);
  ASSERT_TRUE(expected.backend);
  for (const u32 top : {0u, 4u}) {
    const auto loaded = load(Relays::kOn);
    ASSERT_TRUE(loaded.backend);
    Session session = make(*loaded.backend), plain = make(*expected.backend);
    device_.good = SpoilingDevice::kAll;
    for (const u32 token : ids(8)) {
      if (session.position() == 3) device_.good = 0;
      feed(session, std::span(&token, 1), top);
      feed(plain, std::span(&token, 1), top);
      ASSERT_LE(difference(session.logits(), plain.logits()), kSame) << session.position();
      ASSERT_EQ(session.candidates().best.size(), plain.candidates().best.size());
      for (std::size_t i = 0; i < session.candidates().best.size(); ++i)
        ASSERT_NEAR(session.candidates().best[i].logit, plain.candidates().best[i].logit, kSame);
    }
    device_.good = SpoilingDevice::kAll;
    EXPECT_EQ(relays_in(*loaded.backend, {.rows = 1}), 0);
  }
}

// What it consisted of is what the second attempt consisted of.
TEST_F(GpuRelays, AProfileThatFailedIsDoneAgain) {
  const auto loaded = load(Relays::kOn), expected = load(Relays::kOff);
  ASSERT_TRUE(loaded.backend && expected.backend);
  Session session = make(*loaded.backend), plain = make(*expected.backend);
  device_.good = 0;
  const auto prompt = ids(1);
  const auto got = run_now(session.profile(prompt, 4)), want = run_now(plain.profile(prompt, 4));
  ASSERT_OK(got);
  ASSERT_OK(want);
  EXPECT_EQ(std::ranges::count(got->labels, "relay"), 0);
  EXPECT_EQ(got->labels.size(), want->labels.size());
  EXPECT_EQ(got->nanoseconds.size(), want->nanoseconds.size());
  EXPECT_EQ(session.candidates().best[0].id, plain.candidates().best[0].id);
}

// Whichever step is the first to fail, and with rings that have no slot to spare for the step that was begun
// after it.
TEST_F(GpuRelays, AStepThatFailedIsDoneAgain) {
  const SamplerOptions options{.temperature = 1.2f, .seed = 3};
  const u32 top = best_enough(options);
  for (const auto& [batch, goods] :
       {std::pair{16u, std::vector{0u, 1u, 4u}}, std::pair{1u, std::vector{3u}}}) {
    const auto expected = load(Relays::kOff, batch);
    ASSERT_TRUE(expected.backend);
    Session plain = make(*expected.backend);
    feed(plain, ids(30), top);
    Sampler plainly(options);
    const auto want = decode(plain, plainly, top, 7);
    for (const u32 good : goods) {
      SCOPED_TRACE(good);
      device_.good = SpoilingDevice::kAll;
      const auto loaded = load(Relays::kOn, batch);
      ASSERT_TRUE(loaded.backend);
      Session session = make(*loaded.backend);
      feed(session, ids(30), top);
      Sampler sampler(options);
      device_.good = good;
      EXPECT_EQ(decode(session, sampler, top, 7), want);
      EXPECT_EQ(session.tokens(), plain.tokens());
      // And keys and values of all of it are right.
      device_.good = SpoilingDevice::kAll;
      Session fresh = make(*expected.backend);
      feed(fresh, session.tokens(), 8);
      feed(fresh, ids(3), 8);
      feed(session, ids(3), 8);
      for (std::size_t i = 0; i < 8; ++i)
        EXPECT_NEAR(session.candidates().best[i].logit, fresh.candidates().best[i].logit, kSame);
      EXPECT_EQ(relays_in(*loaded.backend, {.rows = 1}), 0);
    }
  }
}

// One session finds out; the other's step was begun before that.
TEST_F(GpuRelays, StepsOfSeveralSessionsMayFail) {
  std::vector<std::vector<u32>> want;
  for (const bool relay : {false, true}) {
    const auto loaded = load(relay ? Relays::kOn : Relays::kOff);
    ASSERT_TRUE(loaded.backend);
    Session one = make(*loaded.backend), other = make(*loaded.backend);
    feed(one, ids(9), 1);
    feed(other, ids(4), 1);
    Sampler sampler({.temperature = 0}), another({.temperature = 0});
    std::vector<std::vector<u32>> got;
    for (u32 turn = 0; turn < 4; ++turn) {
      if (relay && turn == 1) device_.good = 0;
      got.push_back(decode(one, sampler, 1, 1));
      got.push_back(decode(other, another, 1, 1));
    }
    if (!relay) want = got;
    EXPECT_EQ(got, want);
  }
}

// Whatever a trial finds.
TEST_F(GpuRelays, AreTried) {
  const auto loaded = load(Relays::kTrial), expected = load(Relays::kOff);
  ASSERT_TRUE(loaded.backend && expected.backend);
  EXPECT_LE(difference(logits_of(*loaded.backend, ids(6)), logits_of(*expected.backend, ids(6))), kSame);
}

// What is no number without relays either is what comes out, and relays are not asked again.
TEST_F(GpuRelays, AModelMayGiveNoNumbers) {
  const auto loaded = load(Relays::kOn);
  ASSERT_TRUE(loaded.backend);
  auto cache = loaded.backend->make_cache(8);
  ASSERT_OK(cache);
  const std::vector<f32> nothing(loaded.backend->model().config.width, std::numeric_limits<f32>::quiet_NaN());
  const std::vector<u32> soft{Batch::kSoft};
  for (int attempt = 0; attempt < 2; ++attempt) {
    Outputs out;
    ASSERT_OK(run_now(loaded.backend->forward(**cache, {soft, nothing, {}}, 0, {1}, out)));
    EXPECT_EQ(out.logits.size(), loaded.backend->model().config.vocab);
    EXPECT_TRUE(std::isnan(out.logits[0]));
  }
  EXPECT_EQ(relays_in(*loaded.backend, {.rows = 1}), 0);
}

}  // namespace
}  // namespace bezel
#endif
