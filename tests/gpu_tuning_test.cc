// Kernels chosen by measuring give the same answers.
#ifndef __wasm__
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gpu_fixture.h"
#include "models.h"
#include "run/tune.h"
#include "run/tuning_file.h"

namespace bezel {
namespace {

constexpr f64 kSame = 1e-4;

std::vector<f32> answer(Backend& backend) {
  auto session = Session::create(backend, 32);
  EXPECT_TRUE(session);
  const std::vector<u32> prompt(17, 5);  // a whole pass, and one token
  EXPECT_TRUE(run_now(session->feed(prompt)));
  for (const u32 token : {7u, 11u}) EXPECT_TRUE(run_now(session->feed(std::span(&token, 1))));
  return {session->logits().begin(), session->logits().end()};
}

TEST(GpuTuning, FindsVariantsThatAnswerTheSame) {
  Device& device = *test_device();
  const DeviceInfo& info = device.info();
  LoadOptions options;
  options.device = &device;
  options.gpu.batch = 16;
  const auto loaded = load_model(data_path("tiny-e2b-Q4_K_M.gguf"), options);
  ASSERT_TRUE(loaded.backend);
  const auto expected = answer(*loaded.backend);
  for (const u32 rounds : {0u, 1001u}) {
    const auto refused =
        run_now(tune(*loaded.backend, info, {.software = true, .seconds = 0, .rounds = rounds, .go_on = {}}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
  }
  // Without time only one variant is tried: how fast it is does not matter here.
  auto report =
      run_now(tune(*loaded.backend, info, {.software = true, .seconds = 0, .rounds = 2, .go_on = {}}));
  if (!info.timestamps) {
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, ErrorKind::kUnsupported);
    return;
  }
  ASSERT_OK(report);
  EXPECT_EQ(report->tried, 2u);  // one for decoding, one for prompts
  ASSERT_GT(report->products.size(), 3u);
  u32 gated = 0, tiles = 0;
  for (const TunedProduct& product : report->products) {
    EXPECT_GT(product.dispatches, 0u);
    EXPECT_GT(product.shape.rows, 0u);
    EXPECT_EQ(report->tuning.find(product.shape) != nullptr, !product.variant.empty());
    if (!product.variant.empty()) EXPECT_LT(product.after, 0.95 * product.before);
    gated += product.shape.kind == ProductKind::kGated ? product.dispatches : 0;
    tiles += product.shape.kind == ProductKind::kTiles && product.shape.tokens == 16 ? product.dispatches : 0;
  }
  EXPECT_GE(gated, loaded.backend->model().config.layers.size() / 2);
  EXPECT_GT(tiles, 4u);
  EXPECT_LE(difference(answer(*loaded.backend), expected), kSame);

  // The variant that was tried, for every product, whatever its time; saved and loaded.
  Tuning all;
  for (const TunedProduct& product : report->products)
    all.set(product.shape, (product.shape.tokens > 0 ? tile_variants : vector_variants)(info)[0]);
  const u32 before = device.counts().pipelines;
  options.gpu.tuning = all.text(info);
  const auto tuned = load_model(data_path("tiny-e2b-Q4_K_M.gguf"), options);
  ASSERT_TRUE(tuned.backend);
  EXPECT_EQ(tuned.backend->tuning().products().size(), report->products.size());
  EXPECT_LE(difference(answer(*tuned.backend), expected), kSame);
  EXPECT_EQ(device.counts().pipelines, before);  // all were compiled for the trial
}

// Then a prompt's products are products with a vector, and decoding's trial has tried them.
TEST(GpuTuning, OfSmallPassesHasNoTiles) {
  Device& device = *test_device();
  LoadOptions options;
  options.device = &device;
  options.gpu.batch = 4;
  const auto loaded = load_model(data_path("tiny-e2b-Q4_K_M.gguf"), options);
  ASSERT_TRUE(loaded.backend);
  const auto report = run_now(
      tune(*loaded.backend, device.info(), {.software = true, .seconds = 0, .rounds = 1, .go_on = {}}));
  if (!device.info().timestamps) return;
  ASSERT_OK(report);
  EXPECT_EQ(report->tried, 1u);
  for (const TunedProduct& product : report->products) EXPECT_EQ(product.shape.tokens, 0u);
}

TEST(GpuTuning, IsAddedToWhatIsKept) {
  DeviceInfo info;
  info.max_invocations = 1024;
  const auto variants = vector_variants(info);
  const ProductShape better{ProductKind::kOne, DType::kQ4_K, 64, 256},
      as_it_was{ProductKind::kOne, DType::kQ6_K, 64, 256}, others{ProductKind::kGated, DType::kQ4_K, 64, 256};
  const RelayShape model{35, 1536, 3};
  TuneReport report;
  for (const ProductShape& shape : {better, as_it_was}) report.products.emplace_back(shape);
  report.tuning.set(better, variants[1]);
  report.tuning.set_relays(model, 512);  // as the backend knew it once
  Tuning kept;
  for (const ProductShape& shape : {better, as_it_was, others}) kept.set(shape, variants[0]);
  kept.set_relays(model, 0);
  const Tuning all = report.added_to(kept);
  EXPECT_EQ(all.find(better)->name, variants[1].name);
  EXPECT_EQ(all.find(as_it_was), nullptr);
  EXPECT_EQ(all.find(others)->name, variants[0].name);
  EXPECT_EQ(all.relays(model), 0u);
}

TEST(GpuTuning, SaysWhereItCannot) {
  auto cpu = load_model(data_path("tiny-e2b.gguf"), {});
  ASSERT_TRUE(cpu.backend);
  DeviceInfo info;
  EXPECT_EQ(run_now(tune(*cpu.backend, info)).error().kind, ErrorKind::kUnsupported);  // no timestamps
  info.timestamps = info.software = true;
  EXPECT_EQ(run_now(tune(*cpu.backend, info)).error().kind, ErrorKind::kUnsupported);
  info.software = false;
  EXPECT_EQ(run_now(tune(*cpu.backend, info)).error().kind, ErrorKind::kUnsupported);  // a CPU's backend
}

TEST(TuningFile, IsKeptAndNeverInTheWay) {
  namespace fs = std::filesystem;
  const char* const usual = std::getenv("XDG_CACHE_HOME");
  const std::string restore = usual == nullptr ? "" : usual;
  const fs::path folder = fs::path(testing::TempDir()) / "bezel-tuning-test";
  fs::remove_all(folder);
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  EXPECT_EQ(tuning_path(), (folder / "bezel/tuning.json").string());
  EXPECT_EQ(load_tuning(), "");
  EXPECT_TRUE(save_tuning("first"));
  EXPECT_TRUE(save_tuning("second"));
  EXPECT_EQ(load_tuning(), "second");
  // Of one device things are added, another's takes their place.
  DeviceInfo info;
  info.max_invocations = 1024;
  const RelayShape shapes[] = {{35, 1536, 3}, {60, 5376, 18}};
  for (const RelayShape& shape : shapes) {
    Tuning news;
    news.set_relays(shape, 512);
    EXPECT_TRUE(keep_tuning(news, info));
  }
  for (const RelayShape& shape : shapes) EXPECT_EQ(Tuning::parse(load_tuning(), info).relays(shape), 512u);
  info.driver = "another";
  Tuning off;
  off.set_relays(shapes[0], 0);
  EXPECT_TRUE(keep_tuning(off, info));
  EXPECT_EQ(Tuning::parse(load_tuning(), info).relays(shapes[0]), 0u);
  EXPECT_EQ(Tuning::parse(load_tuning(), info).relays(shapes[1]), std::nullopt);
  // A folder that is a file: an error to whoever saves, and none to whoever loads.
  fs::remove_all(folder);
  std::ofstream(folder) << "in the way";
  EXPECT_FALSE(save_tuning("third"));
  EXPECT_EQ(load_tuning(), "");
  fs::remove(folder);
  if (usual == nullptr) {
    unsetenv("XDG_CACHE_HOME");
  } else {
    setenv("XDG_CACHE_HOME", restore.c_str(), 1);
  }
}

}  // namespace
}  // namespace bezel
#endif
