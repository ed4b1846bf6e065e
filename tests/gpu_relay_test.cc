// Relays in whole models: where they fail nobody notices, and what a trial found out is not tried again.
#ifndef __wasm__
#include "decoding.h"
#include "gpu_fixture.h"
#include "models.h"
#include "noting_device.h"
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
  static i64 relays_in(Backend& backend, Wanted wanted) {
    auto cache = backend.make_cache(8);
    const u32 token = 5;
    Outputs out;
    const auto profile = run_now(backend.profile(**cache, {std::span(&token, 1), {}, {}}, 0, wanted, out));
    EXPECT_TRUE(profile);
    return profile ? std::ranges::count(profile->labels, "relay") : -1;
  }
  i64 layers(Backend& backend) const {
    const DeviceInfo& info = device_.info();
    return info.integer_dots && info.subgroups ? static_cast<i64>(backend.model().config.layers.size()) : 0;
  }

  static RelayShape shape_of(const Backend& backend) {
    const TextModel& model = backend.model();
    RelayShape shape{static_cast<u32>(model.layers.size()), model.config.width, 0};
    for (const TensorInfo& tensor : model.tensors) shape.bytes += tensor.bytes;
    return shape;
  }
  std::string tuning_with(const Backend& backend, u32 threads) const {
    Tuning tuning;
    tuning.set_relays(shape_of(backend), threads);
    return tuning.text(device_.info());
  }

  SpoilingDevice device_{*test_device()};
  std::vector<Tuning> news_;
  std::function<void(const Tuning&)> note_ = [this](const Tuning& news) { news_.push_back(news); };
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
    const auto want = decode(plain, plainly, top, 7, true);
    for (const u32 good : goods) {
      SCOPED_TRACE(good);
      device_.good = SpoilingDevice::kAll;
      const auto loaded = load(Relays::kOn, batch, {.learned = note_});
      ASSERT_TRUE(loaded.backend);
      Session session = make(*loaded.backend);
      feed(session, ids(30), top);
      Sampler sampler(options);
      device_.good = good;
      news_.clear();
      EXPECT_EQ(decode(session, sampler, top, 7, true), want);
      // It is told once, and only what is news: not what else was known.
      if (layers(*loaded.backend) > 0) {
        ASSERT_EQ(news_.size(), 1u);
        EXPECT_EQ(news_[0].relays(shape_of(*loaded.backend)), 0u);
      }
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
      got.push_back(decode(one, sampler, 1, 1, true));
      got.push_back(decode(other, another, 1, 1, true));
    }
    if (!relay) want = got;
    EXPECT_EQ(got, want);
  }
}

// Whatever a trial finds, it is told, and is what the next one that is loaded does.
TEST_F(GpuRelays, AreTriedOnce) {
  const auto expected = load(Relays::kOff);
  const auto loaded = load(Relays::kTrial, 16, {.learned = note_});
  ASSERT_TRUE(loaded.backend && expected.backend);
  EXPECT_LE(difference(logits_of(*loaded.backend, ids(6)), logits_of(*expected.backend, ids(6))), kSame);
  if (!device_.info().integer_dots) return;
  ASSERT_EQ(news_.size(), 1u);
  const auto found = news_[0].relays(shape_of(*loaded.backend));
  ASSERT_TRUE(found);
  EXPECT_EQ(relays_in(*loaded.backend, {.rows = 1}), *found > 0 ? layers(*loaded.backend) : 0);
  EXPECT_EQ(loaded.backend->tuning().relays(shape_of(*loaded.backend)), found);
  const auto again = load(Relays::kAuto, 16, {.tuning = news_[0].text(device_.info()), .learned = note_});
  ASSERT_TRUE(again.backend);
  EXPECT_EQ(relays_in(*again.backend, {.rows = 1}), relays_in(*loaded.backend, {.rows = 1}));
  EXPECT_EQ(news_.size(), 1u);
}

// Then they are not even compiled, and the arena and the weights lie as if there were none.
TEST_F(GpuRelays, ThatWereSlowerAreNotTriedAgain) {
  const auto expected = load(Relays::kOff);
  ASSERT_TRUE(expected.backend);
  const u64 before = device_.allocated();
  const auto plain = load(Relays::kOff);
  const u64 plainly = device_.allocated() - before;
  const auto loaded =
      load(Relays::kAuto, 16, {.tuning = tuning_with(*expected.backend, 0), .learned = note_});
  ASSERT_TRUE(plain.backend && loaded.backend);
  EXPECT_EQ(device_.allocated() - before, 2 * plainly);
  EXPECT_EQ(relays_in(*loaded.backend, {.rows = 1}), 0);
  EXPECT_TRUE(device_.relay_kernels.empty());
  EXPECT_EQ(device_.relay_runs, 0u);
  EXPECT_TRUE(news_.empty());
}

// Then they run twice, to be counted and to be compared, and not against the clock. Who asks for a trial gets
// one.
TEST_F(GpuRelays, ThatWereFasterAreOnlyChecked) {
  if (!device_.info().integer_dots) return;
  const auto expected = load(Relays::kOff);
  ASSERT_TRUE(expected.backend);
  const std::string tuning = tuning_with(*expected.backend, 64);
  const auto loaded = load(Relays::kAuto, 16, {.tuning = tuning, .learned = note_});
  ASSERT_TRUE(loaded.backend);
  EXPECT_EQ(device_.relay_kernels.size(), 1u);
  EXPECT_EQ(device_.relay_runs, 2u);
  EXPECT_TRUE(news_.empty());
  EXPECT_EQ(relays_in(*loaded.backend, {.rows = 1}), layers(*loaded.backend));
  EXPECT_LE(difference(logits_of(*loaded.backend, ids(6)), logits_of(*expected.backend, ids(6))), kSame);
  device_.relay_runs = 0;
  ASSERT_TRUE(load(Relays::kTrial, 16, {.tuning = tuning, .learned = note_}).backend);
  EXPECT_GT(device_.relay_runs, 2u);
}

// Without being asked only on GPUs of one vendor, and there once. These count no workgroups and so have none.
TEST_F(GpuRelays, AreTriedWhereTheyMayPay) {
  for (const char* vendor : {"nvidia", "amd"}) {
    const bool pay = vendor == std::string_view("nvidia");
    DeviceInfo info = large_gpu();
    info.vendor = vendor;
    std::string tuning;
    for (const bool known : {false, true}) {
      NotingDevice device(info);
      LoadOptions options;
      options.device = &device;
      options.gpu = {.tuning = tuning, .learned = note_};
      news_.clear();
      const auto loaded = load_model(data_path(kModel), options);
      ASSERT_TRUE(loaded.backend);
      const bool tried = pay && !known;
      EXPECT_EQ(std::ranges::count(device.texts, "relay", [](const auto& text) { return text.second; }),
                tried ? 2 : 0);
      ASSERT_EQ(news_.size(), tried ? 1u : 0u) << vendor;
      if (tried) tuning = news_[0].text(info);
      if (tried) EXPECT_EQ(news_[0].relays(shape_of(*loaded.backend)), 0u);
      // With norms as somebody wants to measure them it says nothing about how others fare.
      options.gpu.norm_in_product = 0;
      news_.clear();
      ASSERT_TRUE(load_model(data_path(kModel), options).backend);
      EXPECT_TRUE(news_.empty());
    }
  }
}

// What was faster once gives something else now.
TEST_F(GpuRelays, ThatAreWrongNowAreGivenUp) {
  if (!device_.info().integer_dots) return;
  const auto expected = load(Relays::kOff);
  ASSERT_TRUE(expected.backend);
  device_.good = 0;
  const auto loaded =
      load(Relays::kAuto, 16, {.tuning = tuning_with(*expected.backend, 64), .learned = note_});
  ASSERT_TRUE(loaded.backend);
  EXPECT_EQ(relays_in(*loaded.backend, {.rows = 1}), 0);
  ASSERT_EQ(news_.size(), 1u);
  EXPECT_EQ(news_[0].relays(shape_of(*loaded.backend)), 0u);
}

// What is no number without relays either is what comes out, and relays are not asked again; but it was not
// their fault.
TEST_F(GpuRelays, AModelMayGiveNoNumbers) {
  const auto loaded = load(Relays::kOn, 16, {.learned = note_});
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
  EXPECT_TRUE(news_.empty());
}

}  // namespace
}  // namespace bezel
#endif
