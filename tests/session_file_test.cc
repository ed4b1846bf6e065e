// Sessions that are saved and restored go on as if nothing had happened; files that lie are refused.
#include "base/check.h"
#include "models.h"
#include "session_bytes.h"
#ifndef __wasm__
#include "gpu_fixture.h"
#endif

namespace bezel {
namespace {

struct Case {
  bool gpu;
  KvType kv;
};

constexpr std::size_t kHeader = 68;  // see session_file.cc
constexpr u32 kVocab = 48, kTokens = 50;

std::vector<u32> ids(u32 count = kTokens) {
  std::vector<u32> ids;
  for (u32 i = 0; i < count; ++i) ids.push_back((i * 29 + i / 7 + 2) % kVocab);
  return ids;
}

// Of the smaller models, heads are smaller than a block of q8.
const char* name_for(const Case& c) { return c.kv == KvType::kQ8 ? "tiny-e2b-Q4_K_M.gguf" : "tiny-e2b.gguf"; }

Loaded load(const Case& c, const char* name) {
  LoadOptions options;
  options.kv = c.kv;
  options.gpu.batch = 16;
#ifndef __wasm__
  if (c.gpu) options.device = test_device();
#endif
  return load_model(data_path(name), options);
}

Status restore(Session& session, std::vector<std::byte> bytes) {
  const auto source = memory_source(std::move(bytes), "saved.kv");
  return run_now(session.restore(*source));
}

class SessionFile : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    loaded_ = load(GetParam(), name_for(GetParam()));
    ASSERT_TRUE(loaded_.backend);
  }
  Session make(u32 context = 64) {
    auto session = Session::create(*loaded_.backend, context);
    CHECK(session);
    return std::move(*session);
  }
  static void feed(Session& session, std::span<const u32> ids) {
    const Status status = run_now(session.feed(ids));
    ASSERT_TRUE(status) << status.error().message;
  }
  // The CPU gives the same bits; a GPU may add up attention in other parts.
  static void expect_same(const Session& a, const Session& b) {
    EXPECT_EQ(a.tokens(), b.tokens());
    EXPECT_LE(difference(a.logits(), b.logits()), GetParam().gpu ? 1e-4 : 0.0);
  }

  Loaded loaded_;
};

TEST_P(SessionFile, GoesOnWhereItStopped) {
  const auto all = ids();
  // Before the window is full, after, and past the length of a ring.
  const auto stops = GetParam().gpu ? std::vector{5u, 44u} : std::vector{0u, 1u, 5u, 20u, 44u};
  for (const u32 stop : stops) {
    SCOPED_TRACE(stop);
    Session first = make();
    feed(first, std::span(all).first(stop));
    const auto bytes = saved(first);
    for (const u32 context : {200u, 50u}) {
      Session second = make(context);
      feed(second, std::span(all).subspan(3, 30));  // what it held before is gone
      const Status status = restore(second, bytes);
      ASSERT_OK(status);
      EXPECT_EQ(second.tokens(), first.tokens());
      EXPECT_TRUE(second.logits().empty());
      Session going_on = make();
      feed(going_on, std::span(all).first(stop));
      for (u32 t = stop; t < 50; t += 4) {
        const auto part = std::span(all).subspan(t, std::min(4u, 50 - t));
        feed(going_on, part);
        feed(second, part);
        expect_same(second, going_on);
      }
    }
  }
}

TEST_P(SessionFile, RewindsAfterwardsAsBefore) {
  const auto all = ids();
  Session first = make();
  feed(first, std::span(all).first(45));
  ASSERT_OK(run_now(first.rewind(42)));
  Session second = make(100);
  ASSERT_OK(restore(second, saved(first)));
  Session third = make();
  ASSERT_OK(restore(third, saved(second)));  // a copy of a copy
  for (const u32 count : {41u, 38u, 9u}) {   // near enough, and so far that it is fed again
    Session fresh = make();
    feed(fresh, std::span(all).first(count + 2));
    for (Session* session : {&first, &second, &third}) {
      ASSERT_OK(run_now(session->rewind(count)));
      feed(*session, std::span(all).subspan(count, 2));
      EXPECT_LE(difference(session->logits(), fresh.logits()), GetParam().gpu ? 1e-4 : 0.0);
    }
  }
}

TEST_P(SessionFile, OnlyWhatMattersIsStored) {
  Session session = make(4096);
  feed(session, ids(10));
  const auto bytes = saved(session);
  EXPECT_LT(bytes.size(), session.cache_bytes() / 20);
}

TEST_P(SessionFile, HostileFilesAreRefused) {
  const auto all = ids();
  Session session = make();
  feed(session, std::span(all).first(40));
  const auto good = saved(session);
  Session target = make();
  const auto expect = [&](std::vector<std::byte> bytes, std::string_view what, bool emptied = false) {
    ASSERT_OK(run_now(target.set_prompt({{all.begin(), all.begin() + 7}})));
    const Status status = restore(target, std::move(bytes));
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find(what), std::string::npos) << status.error().message;
    EXPECT_NE(status.error().message.find("saved.kv"), std::string::npos);
    EXPECT_EQ(target.position(), emptied ? 0u : 7u);
    feed(target, std::span(all).subspan(target.position(), 12 - target.position()));
    Session fresh = make();
    feed(fresh, std::span(all).first(12));
    EXPECT_LE(difference(target.logits(), fresh.logits()), 1e-4);
  };
  const auto with = [&](std::size_t at, std::initializer_list<u8> values) {
    auto bytes = good;
    for (const u8 value : values) bytes[at++] = static_cast<std::byte>(value);
    return bytes;
  };
  const auto cut = [&](std::size_t size) { return std::vector(good.begin(), good.begin() + size); };

  expect({}, "it has only 0 bytes");
  expect(cut(70), "it has only 70 bytes");
  for (const std::size_t size : {std::size_t{100}, kHeader + 200, good.size() / 2, good.size() - 1}) {
    expect(cut(size), "but a session of 40 tokens takes");
  }
  auto longer = good;
  longer.push_back({});
  expect(longer, "but a session of 40 tokens takes");
  expect(with(0, {'G', 'G', 'U', 'F'}), "is not a saved session");
  expect(with(8, {1}), "of version 1; this program reads version 2");
  expect(with(20, {0, 1, 2}), "was saved from another model");
  expect(with(44, {3}), "holds keys and values as unknown");
  expect(with(52, {255, 255, 255, 255}), "holds 4294967295 tokens, but the context of this session is 64");
  expect(with(52, {41}), "but a session of 41 tokens takes");
  expect(with(56, {255, 255, 255, 255}), "begins at position 4294967295");
  expect(with(60, {200}), "has 200 rings");
  expect(with(64, {1}), "soft tokens");
  expect(with(kHeader, {1}), "a ring of 1 columns");
  const u32 rings = std::to_integer<u32>(good[60]);
  expect(with(kHeader + rings * 4, {255, 255, 255, 127}), "contains token 2147483647, outside");
  // A token that could be, a number of a key, the checksum itself.
  for (const std::size_t at : {kHeader + rings * 4, good.size() / 2, good.size() - 1}) {
    auto bytes = good;
    bytes[at] ^= std::byte{1};
    expect(bytes, "its checksum is wrong", true);
  }
  ASSERT_OK(restore(target, good));
}

TEST_P(SessionFile, WhatDoesNotBelongHereIsNamed) {
  Session session = make();
  feed(session, ids(40));
  const auto bytes = saved(session);
  Session small = make(39);
  Status status = restore(small, bytes);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "saved.kv holds 40 tokens, but the context of this session is 39.");

  const auto other =
      load(GetParam(), GetParam().kv == KvType::kQ8 ? "tiny-26b-Q4_K_M.gguf" : "tiny-e4b.gguf");
  ASSERT_TRUE(other.backend);
  auto stranger = Session::create(*other.backend, 64);
  ASSERT_OK(stranger);
  status = restore(*stranger, bytes);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "saved.kv was saved from another model.");

  status = run_now(session.save([](Bytes) -> Status { return fail(ErrorKind::kIo, "The disk is full."); }));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "The disk is full.");
  feed(session, ids(1));
}

const auto kName = [](const auto& param) {
  return std::string(param.param.gpu ? "gpu" : "cpu") + "_" + std::string(kv_name(param.param.kv));
};
INSTANTIATE_TEST_SUITE_P(Cpu, SessionFile,
                         testing::Values(Case{false, KvType::kF32}, Case{false, KvType::kF16}), kName);

#ifndef __wasm__
INSTANTIATE_TEST_SUITE_P(Gpu, SessionFile,
                         testing::Values(Case{true, KvType::kF32}, Case{true, KvType::kF16},
                                         Case{true, KvType::kQ8}),
                         kName);

TEST(SessionFileGpu, KindsAreNotMixed) {
  const auto half = load({true, KvType::kF16}, "tiny-e2b.gguf"),
             single = load({true, KvType::kF32}, "tiny-e2b.gguf");
  ASSERT_TRUE(half.backend && single.backend);
  auto a = Session::create(*half.backend, 64), b = Session::create(*single.backend, 64);
  ASSERT_OK(a);
  ASSERT_OK(b);
  const Status status = restore(*b, saved(*a));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "saved.kv holds keys and values as f16, but this session keeps them as f32.");
}
#endif

}  // namespace
}  // namespace bezel
