// Ten thousand tokens on several sessions of one model: nothing grows.
#ifndef __wasm__
#include <malloc.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <new>

#include "base/random.h"
#include "gpu_fixture.h"
#include "models.h"

// Bytes that this program holds, without those of the GPU's driver, which has its own library and its own
// pools. A sanitizer wants to see these calls itself.
namespace {
std::atomic<bezel::u64> g_live = 0;
}
#if !__has_feature(address_sanitizer)
void* operator new(std::size_t bytes) {
  void* pointer = std::malloc(bytes);
  if (pointer == nullptr) std::abort();
  g_live += malloc_usable_size(pointer);
  return pointer;
}
void operator delete(void* pointer) noexcept {
  g_live -= malloc_usable_size(pointer);
  std::free(pointer);
}
void operator delete(void* pointer, std::size_t) noexcept { operator delete(pointer); }
#endif

namespace bezel {
namespace {

constexpr u32 kBatch = 64, kContext = 400, kSessions = 3;
constexpr u32 kTurn = 220;  // the most tokens of one
// At least so many after warming up, and of these so many generated one by one: on a real GPU, where a token
// takes no time, as many as $BEZEL_ENDURANCE says.
constexpr u32 kTokens = 10'000, kGenerated = 1'000;

u32 to_generate() {
  const char* more = std::getenv("BEZEL_ENDURANCE");
  return std::max(kGenerated, more == nullptr ? 0 : static_cast<u32>(std::strtoul(more, nullptr, 10)));
}

struct Use {
  u64 device = 0;
  DeviceCounts counts;
  u64 live = 0;     // of this program's objects
  u64 process = 0;  // the driver's too
};

Use use() {
  return {test_device()->allocated(), test_device()->counts(), g_live,
          static_cast<u64>(mallinfo2().uordblks)};
}

class GpuEndurance : public testing::Test {
 protected:
  void SetUp() override {
    LoadOptions options;
    options.device = test_device();
    options.gpu = {.batch = kBatch, .attention_parts = 1};
    loaded_ = load_model(data_path("tiny-e2b.gguf"), options);
    ASSERT_TRUE(loaded_.backend);
    for (u32 i = 0; i < kSessions; ++i) sessions_.push_back(make());
  }

  // One that has met every shape of pass.
  Session make() {
    auto session = Session::create(*loaded_.backend, kContext);
    EXPECT_TRUE(session) << session.error().message;
    for (u32 tokens = 1; tokens <= kBatch; tokens *= 2) feed(*session, tokens);
    feed(*session, 2 * kBatch - 1);
    generate(*session, 2);
    return std::move(*session);
  }

  void feed(Session& session, u32 count) {
    std::vector<u32> ids;
    for (u32 i = 0; i < count; ++i) ids.push_back(random_.below(48));
    const Status status = run_now(session.feed(ids));
    ASSERT_TRUE(status) << status.error().message;
    fed_ += count;
  }

  void generate(Session& session, u32 count) {
    for (u32 i = 0; i < count; ++i) {
      const auto& best = session.candidates().best;
      const u32 next = best.empty() ? arg_max(session.logits()) : best[0].id;
      // At the end of an answer a step may still be under way.
      const Status status = run_now(session.decode(next, 1, greedy_, i + 1 < count || random_.below(2) == 0));
      ASSERT_TRUE(status) << status.error().message;
    }
    fed_ += count;
    generated_ += count;
  }

  // A conversation's turn on some session.
  void turn() {
    Session& session = sessions_[random_.below(kSessions)];
    // A full one goes back to its beginning, which is fed again; others take back a little.
    const bool full = session.position() + kTurn > kContext;
    const u32 kept = full ? random_.below(24) : session.position() - random_.below(40);
    const Status status = run_now(session.rewind(std::min(kept, session.position())));
    ASSERT_TRUE(status) << status.error().message;
    feed(session, random_.below(4) == 0 ? 1 + random_.below(180) : 2 * kBatch);
    generate(session, 1 + random_.below(32));
    if (random_.below(16) == 0) session = make();
  }

  Loaded loaded_;
  std::vector<Session> sessions_;
  Random random_{7};
  Sampler greedy_{{.temperature = 0}};
  u32 fed_ = 0, generated_ = 0;
};

TEST_F(GpuEndurance, NothingGrows) {
  for (int i = 0; i < 12; ++i) turn();
  const Use before = use();
  // Plans: a power of two of tokens with the last logits or without, and one that decodes ahead,
  // for each session.
  EXPECT_LE(before.counts.programs, kSessions * (2 * std::bit_width(kBatch) + 1));
  fed_ = generated_ = 0;
  u64 half = 0;  // the driver's pools are full by then
  while (fed_ < kTokens || generated_ < to_generate()) {
    turn();
    ASSERT_FALSE(HasFatalFailure());
    if (half == 0 && fed_ > kTokens / 2) half = use().process;
  }
  const Use after = use();
  EXPECT_EQ(after.device, before.device);
  EXPECT_EQ(after.counts.buffers, before.counts.buffers);
  EXPECT_EQ(after.counts.programs, before.counts.programs);
  EXPECT_EQ(after.counts.pipelines, before.counts.pipelines);
  // Vectors keep the room they once needed; a leak of ten bytes a token would be 100 kB.
  EXPECT_LE(after.live, before.live + (16 << 10));
  // Pools grow by steps of 2 MiB; an object that a pass of the second half leaves behind would be more.
  EXPECT_LE(after.process, half + (8 << 20));
  RecordProperty("tokens", static_cast<int>(fed_));
  RecordProperty("generated", static_cast<int>(generated_));
  sessions_.clear();
  EXPECT_EQ(test_device()->counts().programs, 0u);
}

}  // namespace
}  // namespace bezel
#endif
