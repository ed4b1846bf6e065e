// The GPU against the CPU executor, model by model. The expected values of golden_test.cc then hold for it
// too.
#ifndef __wasm__
#include <numeric>

#include "base/format_text.h"
#include "gpu_fixture.h"
#include "models.h"
#include "run/generate.h"
#include "safetensors.h"

namespace bezel {
namespace {

// Single precision against double: rounding in a few hundred operations, on logits of size 10 to 30. Half
// precision of the keys and values adds 2^-11 of each, which the softmax passes on.
constexpr f64 kBound = 2e-3, kHalfBound = 2e-2;

struct Pair {
  Loaded cpu_model, gpu_model;
  Backend *cpu = nullptr, *gpu = nullptr;
};

Pair load(const std::string& path, GpuOptions gpu = {}, KvType kv = KvType::kF32) {
  LoadOptions options;
  options.gpu = gpu;
  options.kv = kv;
  Pair pair;
  pair.cpu_model = load_model(path, options);
  options.device = test_device();
  pair.gpu_model = load_model(path, options);
  pair.cpu = pair.cpu_model.backend.get();
  pair.gpu = pair.gpu_model.backend.get();
  return pair;
}

std::vector<u32> some_tokens(u32 count, u32 vocab) {
  std::vector<u32> ids;
  for (u32 i = 0; i < count; ++i) ids.push_back((i * 29 + 2) % vocab);
  return ids;
}

class GpuModels : public testing::TestWithParam<const char*> {};

TEST_P(GpuModels, LogitsEqualTheCpus) {
  auto pair = load(data_path(GetParam()));
  ASSERT_TRUE(pair.cpu && pair.gpu);
  const auto ids = some_tokens(90, pair.cpu->model().config.vocab);
  const auto expected = logits_of(*pair.cpu, ids);
  EXPECT_LE(difference(logits_of(*pair.gpu, ids), expected), kBound);
}

TEST_P(GpuModels, AnyBatchingGivesTheSame) {
  auto pair = load(data_path(GetParam()), {.batch = 32});
  ASSERT_TRUE(pair.cpu && pair.gpu);
  const u32 vocab = pair.cpu->model().config.vocab;
  const auto ids = some_tokens(50, vocab);  // past the window, 32 + 16 + 2 in passes
  const auto expected = logits_of(*pair.cpu, ids);
  for (const std::size_t step : {1, 7, 32, 50}) {
    auto session = Session::create(*pair.gpu, 64);
    ASSERT_OK(session);
    for (std::size_t at = 0; at < ids.size(); at += step) {
      const auto part = std::span(ids).subspan(at, std::min(step, ids.size() - at));
      const Status status = run_now(session->feed(part));
      ASSERT_OK(status);
      const auto row = std::span(expected).subspan((at + part.size() - 1) * vocab, vocab);
      ASSERT_LE(difference(session->logits(), row), kBound) << "step " << step << " at " << at;
    }
  }
}

// As on a hardware GPU: the norms of a decoding pass are in the products that read them.
TEST_P(GpuModels, NormsInProductsGiveTheSame) {
  auto pair = load(data_path(GetParam()), {.norm_in_product = ~u64{0}});
  ASSERT_TRUE(pair.cpu && pair.gpu);
  const u32 vocab = pair.cpu->model().config.vocab;
  const auto ids = some_tokens(12, vocab);
  const auto expected = logits_of(*pair.cpu, ids);
  for (const std::size_t step : {1, 3}) {
    auto session = Session::create(*pair.gpu, 64);
    ASSERT_OK(session);
    for (std::size_t at = 0; at < ids.size(); at += step) {
      const Status status = run_now(session->feed(std::span(ids).subspan(at, step)));
      ASSERT_OK(status);
      const auto row = std::span(expected).subspan((at + step - 1) * vocab, vocab);
      ASSERT_LE(difference(session->logits(), row), kBound) << "step " << step << " at " << at;
    }
  }
}

// Q4_K_M of a 26B has Q4_K, Q5_0, Q6_K and Q8_0.
TEST(GpuModelsAsInTheFile, GiveTheSame) {
  const auto taken = [](Pair& pair, bool file_layout) {
    const u64 before = test_device()->allocated();
    pair = load(data_path("tiny-26b-Q4_K_M.gguf"), {.file_layout = file_layout});
    return test_device()->allocated() - before;
  };
  Pair wide, pair;
  const u64 bytes = taken(wide, false);
  EXPECT_LT(taken(pair, true), bytes);  // Q6_K is filled up in its wide form
  ASSERT_TRUE(pair.cpu && pair.gpu);
  const auto ids = some_tokens(12, pair.cpu->model().config.vocab);
  EXPECT_LE(difference(logits_of(*pair.gpu, ids), logits_of(*pair.cpu, ids)), kBound);
}

// As where a trial shows that it pays: what is between two layers' attention is one dispatch.
TEST_P(GpuModels, RelaysGiveTheSame) {
  auto pair = load(data_path(GetParam()), {.relays = Relays::kOn});
  ASSERT_TRUE(pair.cpu && pair.gpu);
  const u32 vocab = pair.cpu->model().config.vocab;
  const auto ids = some_tokens(12, vocab);
  const auto expected = logits_of(*pair.cpu, ids);
  auto session = Session::create(*pair.gpu, 64);
  ASSERT_OK(session);
  // A prompt, whose last layers are for one token alone, and then token by token.
  for (std::size_t at = 0, count = 5; at < ids.size(); at += count, count = 1) {
    const Status status = run_now(session->feed(std::span(ids).subspan(at, count)));
    ASSERT_OK(status);
    const auto row = std::span(expected).subspan((at + count - 1) * vocab, vocab);
    ASSERT_LE(difference(session->logits(), row), kBound) << at;
  }
}

TEST_P(GpuModels, HalfPrecisionKeysAndValues) {
  auto pair = load(data_path(GetParam()), {}, KvType::kF16);
  ASSERT_TRUE(pair.cpu && pair.gpu);
  const auto ids = some_tokens(40, pair.cpu->model().config.vocab);
  const auto expected = logits_of(*pair.cpu, ids);
  EXPECT_LE(difference(logits_of(*pair.gpu, ids), expected), kHalfBound);
}

// Where the executors differ in the last bit before rounding, a number may become another byte: they differ
// by that, but by far less than by what bytes change at all.
TEST(GpuModelsOfLargerHeads, KeysAndValuesInBytes) {
  for (const char* name : {"tiny-e2b-Q4_K_M.gguf", "tiny-26b-Q4_K_M.gguf"}) {
    auto pair = load(data_path(name), {}, KvType::kQ8);
    ASSERT_TRUE(pair.cpu && pair.gpu);
    const auto ids = some_tokens(40, pair.cpu->model().config.vocab);
    const auto exact = load_model(data_path(name), {});
    const auto expected = logits_of(*pair.cpu, ids);
    const f64 bytes = difference(logits_of(*exact.backend, ids), expected);
    EXPECT_LT(difference(logits_of(*pair.gpu, ids), expected), bytes / 4) << name;
  }
}

TEST(Heads, ThatCannotBeStoredOrComputedAreRefused) {
  TextConfig config;
  config.layers.resize(2);
  const auto refused = [&](u32 size, KvType kv, bool gpu) {
    config.layers[0].head_size = 64;
    config.layers[1].head_size = size;
    const Status status = check_heads(config, kv, gpu);
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(refused(96, KvType::kQ8, true), "");
  EXPECT_EQ(refused(12, KvType::kF32, true), "");
  EXPECT_EQ(refused(10, KvType::kF16, false), "");
  EXPECT_EQ(refused(1024, KvType::kF16, false), "");
  for (const u32 size : {10u, 2u, 1024u})
    EXPECT_EQ(refused(size, KvType::kF16, true),
              format_text("On a GPU, heads have a multiple of 4 numbers and at most 512; this model's have "
                          "{}. Compute on the CPU.",
                          size));
  EXPECT_EQ(refused(16, KvType::kQ8, false),
            "Keys and values as q8 need heads of a multiple of 32 numbers; this model's have 16. Keep them "
            "as f16.");
}

TEST(GpuModelsOfSmallHeads, HaveNoBlocksOfBytes) {
  auto file = open_gguf(data_path("tiny-31b.gguf"));
  ASSERT_OK(file);
  LoadOptions options;
  options.kv = KvType::kQ8;
  options.device = test_device();
  const auto backend = run_now(load_backend(*file, options));
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().message,
            "Keys and values as q8 need heads of a multiple of 32 numbers; this model's have 8. Keep them "
            "as f16.");
}

INSTANTIATE_TEST_SUITE_P(InRepository, GpuModels,
                         testing::Values("tiny-e2b.gguf", "tiny-e4b.gguf", "tiny-31b.gguf", "tiny-26b.gguf",
                                         "tiny-26b-split.gguf", "tiny-e2b-Q4_K_M.gguf",
                                         "tiny-26b-Q4_K_M.gguf"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

// Every model and quantised form of the full set, where it is at hand. Not run on the small adapter, hence no
// "Gpu" in its name: the two forms above are.
class FullSet : public testing::TestWithParam<std::string> {};

TEST_P(FullSet, LogitsAndGreedyTokensEqualTheCpus) {
  auto pair = load(golden_path(GetParam() + ".gguf"));
  ASSERT_TRUE(pair.cpu && pair.gpu);
  const Safetensors golden(golden_path(GetParam().substr(0, 8) + ".golden.safetensors"));
  for (const char* name : {"short.ids", "long.ids"}) {
    const auto ids = golden.get<u32>(name);
    EXPECT_LE(difference(logits_of(*pair.gpu, ids), logits_of(*pair.cpu, ids)), kBound) << name;
  }
  auto cpu = Session::create(*pair.cpu, 128);
  auto gpu = Session::create(*pair.gpu, 128);
  ASSERT_OK(cpu);
  ASSERT_OK(gpu);
  std::vector<u32> next = golden.get<u32>("greedy.prompt");
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(run_now(cpu->feed(next)));
    ASSERT_TRUE(run_now(gpu->feed(next, {}, 1)));
    ASSERT_EQ(gpu->candidates().best[0].id, arg_max(cpu->logits())) << i;
    next = {gpu->candidates().best[0].id};
  }
}

// Token by token with relays, whose products are those of a hardware GPU, by integers.
TEST_P(FullSet, ProductsByIntegersGiveTheSame) {
  auto pair = load(golden_path(GetParam() + ".gguf"), {.relays = Relays::kOn});
  ASSERT_TRUE(pair.cpu && pair.gpu);
  const auto ids = some_tokens(12, pair.cpu->model().config.vocab);
  const auto expected = logits_of(*pair.cpu, ids);
  auto session = Session::create(*pair.gpu, 64);
  ASSERT_OK(session);
  for (std::size_t at = 0; at < ids.size(); ++at) {
    const Status status = run_now(session->feed(std::span(ids).subspan(at, 1)));
    ASSERT_OK(status);
    const std::size_t vocab = pair.cpu->model().config.vocab;
    ASSERT_LE(difference(session->logits(), std::span(expected).subspan(at * vocab, vocab)), kBound) << at;
  }
}

std::vector<std::string> full_set() {
  std::vector<std::string> found;
  for (const std::string model : {"tiny-e2b", "tiny-26b", "tiny-31b"}) {
    for (const std::string form : {"", "-ollama", "-Q4_K_M", "-Q8_0", "-Q4_0", "-Q4_1", "-Q5_0", "-Q5_1",
                                   "-Q5_K_M", "-Q6_K", "-Q3_K_M", "-Q2_K", "-IQ4_XS", "-IQ4_NL"}) {
      if (open_file(golden_path(model + form + ".gguf"))) found.push_back(model + form);
    }
  }
  return found;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullSet);
INSTANTIATE_TEST_SUITE_P(Full, FullSet, testing::ValuesIn(full_set()), [](const auto& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(Gpu, GreedyTokensEqualTheCpus) {
  auto pair = load(data_path("tiny-e2b-Q4_K_M.gguf"));
  ASSERT_TRUE(pair.cpu && pair.gpu);
  auto cpu = Session::create(*pair.cpu, 128);
  auto gpu = Session::create(*pair.gpu, 128);
  ASSERT_OK(cpu);
  ASSERT_OK(gpu);
  std::vector<u32> next = some_tokens(40, 768);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(run_now(cpu->feed(next)));
    ASSERT_TRUE(run_now(gpu->feed(next)));
    ASSERT_EQ(arg_max(gpu->logits()), arg_max(cpu->logits())) << i;
    next = {arg_max(cpu->logits())};
  }
}

// What comes back in a few numbers is what the whole row of logits says, at any length of the last batch.
TEST(Gpu, CandidatesAreTheBestLogits) {
  auto pair = load(data_path("tiny-26b-Q4_K_M.gguf"));
  ASSERT_TRUE(pair.cpu && pair.gpu);
  const auto ids = some_tokens(40, 768);
  for (Backend* backend : {pair.cpu, pair.gpu}) {
    auto few = Session::create(*backend, 64), all = Session::create(*backend, 64);
    ASSERT_OK(few);
    ASSERT_OK(all);
    for (const auto& [first, count, top] :
         {std::tuple{0u, 16u, 1u}, {16u, 7u, 3u}, {23u, 1u, 64u}, {24u, 3u, 128u}}) {
      const auto part = std::span(ids).subspan(first, count);
      ASSERT_TRUE(run_now(few->feed(part, {}, top)));
      ASSERT_TRUE(run_now(all->feed(part)));
      EXPECT_TRUE(few->logits().empty() && all->candidates().best.empty());
      const auto logits = all->logits();
      std::vector<u32> order(logits.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, std::greater{}, [&](u32 id) { return logits[id]; });
      const auto& [best, log_total] = few->candidates();
      ASSERT_GE(best.size(), top);
      f64 sum = 0;
      for (const f32 logit : logits) sum += std::exp(f64{logit});
      EXPECT_NEAR(log_total, std::log(sum), 1e-4);
      for (u32 i = 0; i < best.size(); ++i) {
        EXPECT_EQ(best[i].id, order[i]) << i;
        EXPECT_EQ(best[i].logit, logits[order[i]]) << i;
      }
    }
  }
}

TEST(Gpu, CandidatesLeadToTheSameTokens) {
  auto file = open_gguf(data_path("tiny-e2b-Q4_K_M.gguf"));
  ASSERT_OK(file);
  LoadOptions load;
  load.device = test_device();
  auto engine = run_now(Engine::load(std::move(*file), {}, load));
  ASSERT_OK(engine);
  const auto prompt = some_tokens(20, 768);
  for (const f32 temperature : {0.0f, 1.3f}) {
    std::vector<u32> tokens[2];
    for (const bool whole : {false, true}) {
      auto session = Session::create((*engine)->backend(), 64);
      ASSERT_OK(session);
      GenerateOptions options;
      options.sampling.seed = 9;
      options.sampling.temperature = temperature;
      options.sampling.suppressed = {1, 2};
      if (whole) options.sampling.logit_bias = {{0, 0.0f}};  // changes nothing, but needs every logit
      options.max_tokens = 12;
      options.on_token = [&](const Sample& sample) { tokens[whole].push_back(sample.token); };
      const auto reply = run_now(generate(**engine, *session, {prompt}, options));
      ASSERT_OK(reply);
      EXPECT_EQ(session->logits().empty(), !whole);
    }
    EXPECT_EQ(tokens[0], tokens[1]);
  }
}

TEST(Gpu, SessionsShareAModelAndGiveTheirMemoryBack) {
  auto pair = load(data_path("tiny-e2b.gguf"));
  ASSERT_TRUE(pair.gpu);
  const auto ids = some_tokens(30, 48);
  const auto expected = logits_of(*pair.cpu, ids);
  const u64 before = test_device()->allocated();
  for (int round = 0; round < 3; ++round) {
    auto a = Session::create(*pair.gpu, 64);
    auto b = Session::create(*pair.gpu, 64);
    ASSERT_OK(a);
    ASSERT_OK(b);
    for (const u32 id : ids) {
      ASSERT_TRUE(run_now(a->feed(std::span(&id, 1))));
      ASSERT_TRUE(run_now(b->feed(std::span(&id, 1))));
    }
    ASSERT_TRUE(run_now(a->rewind(10)));
    ASSERT_TRUE(run_now(a->feed(std::span(ids).subspan(10))));
    EXPECT_LE(difference(a->logits(), std::span(expected).last(48)), kBound);
    EXPECT_LE(difference(b->logits(), std::span(expected).last(48)), kBound);
  }
  EXPECT_EQ(test_device()->allocated(), before);
}

TEST(Gpu, TensorsLargerThanABindingAreCut) {
  // A device of its own that binds 128 KiB: the embedding and the experts of these models do not fit.
  auto device = run_now(Device::open({.max_binding = 128 << 10}));
  ASSERT_OK(device);
  for (const char* name : {"tiny-26b-Q4_K_M.gguf", "tiny-e2b-Q4_K_M.gguf"}) {
    auto cpu = load(data_path(name));
    auto file = open_gguf(data_path(name));
    ASSERT_OK(file);
    LoadOptions options;
    options.device = device->get();
    options.gpu.batch = 8;
    auto backend = run_now(load_backend(*file, options));
    ASSERT_OK(backend);
    const auto ids = some_tokens(12, 768);
    EXPECT_LE(difference(logits_of(**backend, ids), logits_of(*cpu.cpu, ids)), kBound);
  }
}

TEST(Gpu, LoadingCanBeStopped) {
  auto file = open_gguf(data_path("tiny-e2b-Q4_K_M.gguf"));
  ASSERT_OK(file);
  const u64 before = test_device()->allocated();
  LoadOptions options;
  options.device = test_device();
  options.progress = [](u64 done, u64 total) { return done < total / 2; };
  auto backend = run_now(load_backend(*file, options));
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(test_device()->allocated(), before);
}

TEST(Gpu, WhatDoesNotFitIsAnErrorAndNotTheEnd) {
  auto huge = test_device()->make_buffer(u64{1} << 50, "everything");
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().kind, ErrorKind::kMemory);
  const auto pipeline = test_device()->pipeline("fn main() { let x: u32 = 1.0; }", "broken");
  ASSERT_OK(pipeline);
  const auto broken = test_device()->make_program(std::array{Dispatch{*pipeline, {}, {}, {}}});
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("broken"), std::string::npos);
  EXPECT_TRUE(test_device()->make_buffer(64, "small"));
}

}  // namespace
}  // namespace bezel
#endif
