// The table of per-layer embeddings with the other weights, or left in the file: the same model either way.
#include "base/check.h"
#include "base/format_text.h"
#include "models.h"
#include "watched_source.h"
#ifndef __wasm__
#include "gpu_fixture.h"
#endif

namespace bezel {
namespace {

constexpr const char* kTable = "per_layer_token_embd.weight";

struct Case {
  const char* file;
  bool gpu;
};

Device* device_of(const Case& c) {
#ifndef __wasm__
  if (c.gpu) return test_device();
#endif
  CHECK(!c.gpu);
  return nullptr;
}

class PerLayer : public testing::TestWithParam<Case> {
 protected:
  static LoadOptions options(PerLayerTable table, u64 budget = 0) {
    LoadOptions options;
    options.device = device_of(GetParam());
    options.per_layer_table = table;
    options.memory_budget = budget;
    return options;
  }
  static std::string path() { return data_path(GetParam().file); }

  // Ids that repeat, in more than one pass, past the window.
  static std::vector<u32> ids(u32 vocab) {
    std::vector<u32> ids;
    for (u32 i = 0; i < 45; ++i) ids.push_back((i * i * 7 + 3) % vocab);
    return ids;
  }
};

TEST_P(PerLayer, LogitsAreTheSame) {
  const auto held = load_model(path(), options(PerLayerTable::kDevice));
  const auto left = load_model(path(), options(PerLayerTable::kSource));
  ASSERT_TRUE(held.backend && left.backend);
  EXPECT_FALSE(held.backend->model().per_layer_rows_from_file);
  EXPECT_TRUE(left.backend->model().per_layer_rows_from_file);
  const auto tokens = ids(held.backend->model().config.vocab);
  const auto expected = logits_of(*held.backend, tokens);
  EXPECT_LE(difference(logits_of(*left.backend, tokens), expected), GetParam().gpu ? 1e-6 : 0.0);

  // Token by token and with narrowed outputs too.
  auto session = Session::create(*left.backend, 64);
  ASSERT_OK(session);
  const u32 vocab = held.backend->model().config.vocab;
  for (u32 t = 0; t < 6; ++t) {
    ASSERT_OK(run_now(session->feed(std::span(tokens).subspan(t, 1))));
    EXPECT_LE(difference(session->logits(), std::span(expected).subspan(t * vocab, vocab)), 1e-4);
  }
  ASSERT_OK(run_now(session->feed(std::span(tokens).subspan(6))));
  EXPECT_LE(difference(session->logits(), std::span(expected).last(vocab)), 1e-4);
}

TEST_P(PerLayer, OnlyTheRowsOfABatchAreRead) {
  Watch watch;
  auto file = open_watched(path(), kTable, watch);
  ASSERT_OK(file);
  const u64 row = file->tensor(kTable)->row_bytes();
  auto backend = run_now(load_backend(*file, options(PerLayerTable::kSource)));
  ASSERT_OK(backend);
  EXPECT_EQ(watch.bytes, 0u);  // loading leaves the table alone
  auto session = Session::create(**backend, 64);
  ASSERT_OK(session);
  const std::vector<u32> tokens{5, 9, 5, 5, 9, 5};  // two rows, near enough for one read
  ASSERT_OK(run_now(session->feed(tokens)));
  EXPECT_EQ(watch.reads, 1u);
  EXPECT_EQ(watch.bytes, 5 * row);
  ASSERT_OK(run_now(session->feed(std::span(tokens).first(1))));
  EXPECT_EQ(watch.bytes, 6 * row);
}

TEST_P(PerLayer, AReadErrorLeavesTheSessionUsable) {
  Watch watch;
  auto file = open_watched(path(), kTable, watch);
  ASSERT_OK(file);
  auto options = this->options(PerLayerTable::kSource);
  options.gpu.batch = 16;
  auto backend = run_now(load_backend(*file, options));
  ASSERT_OK(backend);
  const u32 vocab = (*backend)->model().config.vocab;
  const auto tokens = ids(vocab);
  const auto expected = logits_of(**backend, tokens);
  auto session = Session::create(**backend, 64);
  ASSERT_OK(session);
  ASSERT_OK(run_now(session->feed(std::span(tokens).first(20))));
  for (int attempt = 0; attempt < 2; ++attempt) {
    watch.broken = true;
    const Status status = run_now(session->feed(std::span(tokens).subspan(20)));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kIo);
    EXPECT_EQ(status.error().message,
              "Rows of 'per_layer_token_embd.weight' could not be read: " + path() + " was unplugged.");
    EXPECT_EQ(session->position(), 20u);
    watch.broken = false;
    if (attempt == 0) ASSERT_OK(run_now(session->rewind(19)));
    ASSERT_OK(run_now(session->feed(std::span(tokens).subspan(session->position()))));
    EXPECT_LE(difference(session->logits(), std::span(expected).last(vocab)), 1e-4);
    ASSERT_OK(run_now(session->rewind(20)));
  }
}

TEST_P(PerLayer, AutoGoesByTheBudget) {
  const auto bytes_of = [](const TextModel& model) {
    u64 all = 0;
    for (const TensorInfo& info : model.tensors) all += info.bytes;
    return std::pair(all, model.tensors[model.per_layer_token_embd.index].bytes);
  };
  const auto free = load_model(path(), options(PerLayerTable::kAuto));
  ASSERT_TRUE(free.backend);
  EXPECT_FALSE(free.backend->model().per_layer_rows_from_file);
  const auto [all, table] = bytes_of(free.backend->model());
  // On a GPU, vectors and odd rows are wider than in the file.
  const auto roomy = load_model(path(), options(PerLayerTable::kAuto, 2 * all));
  ASSERT_TRUE(roomy.backend);
  EXPECT_FALSE(roomy.backend->model().per_layer_rows_from_file);
  const auto tight = load_model(path(), options(PerLayerTable::kAuto, all - 1));
  ASSERT_TRUE(tight.backend);
  EXPECT_TRUE(tight.backend->model().per_layer_rows_from_file);

  auto file = open_gguf(path());
  ASSERT_OK(file);
  for (const auto& [choice, budget] :
       {std::pair(PerLayerTable::kDevice, all - 1), std::pair(PerLayerTable::kAuto, (all - table) / 2),
        std::pair(PerLayerTable::kSource, (all - table) / 2)}) {
    auto backend = run_now(load_backend(*file, options(choice, budget)));
    ASSERT_FALSE(backend);
    EXPECT_EQ(backend.error().kind, ErrorKind::kMemory);
    EXPECT_NE(backend.error().message.find(format_text("({} bytes)", budget)), std::string::npos)
        << backend.error().message;
  }
}

const auto kName = [](const auto& param) {
  std::string name = std::string(param.param.file) + (param.param.gpu ? "_gpu" : "_cpu");
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
};

INSTANTIATE_TEST_SUITE_P(Cpu, PerLayer,
                         testing::Values(Case{"tiny-e2b.gguf", false}, Case{"tiny-e2b-Q4_K_M.gguf", false}),
                         kName);

#ifndef __wasm__
INSTANTIATE_TEST_SUITE_P(Gpu, PerLayer,
                         testing::Values(Case{"tiny-e2b.gguf", true}, Case{"tiny-e2b-Q4_K_M.gguf", true}),
                         kName);

TEST(PerLayerGpu, TheTableTakesNoDeviceMemory) {
  const u64 before = test_device()->allocated();
  u64 taken[2] = {};
  for (const auto table : {PerLayerTable::kDevice, PerLayerTable::kSource}) {
    LoadOptions options;
    options.device = test_device();
    options.per_layer_table = table;
    const auto loaded = load_model(data_path("tiny-e2b-Q4_K_M.gguf"), options);
    ASSERT_TRUE(loaded.backend);
    taken[table == PerLayerTable::kSource] = test_device()->allocated() - before;
    const u64 bytes = loaded.file->tensor(kTable)->bytes;
    if (table == PerLayerTable::kSource) EXPECT_GE(taken[0], taken[1] + bytes);
  }
  EXPECT_EQ(test_device()->allocated(), before);
}
#endif

TEST(PerLayerTable, ModelsWithoutItDoNotMind) {
  for (const auto table : {PerLayerTable::kAuto, PerLayerTable::kDevice, PerLayerTable::kSource}) {
    LoadOptions options;
    options.per_layer_table = table;
    const auto loaded = load_model(data_path("tiny-31b.gguf"), options);
    ASSERT_TRUE(loaded.backend);
    EXPECT_FALSE(loaded.backend->model().per_layer_rows_from_file);
    EXPECT_EQ(logits_of(*loaded.backend, std::vector<u32>{2, 3}).size(), 96u);
  }
}

}  // namespace
}  // namespace bezel
