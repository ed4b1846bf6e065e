// From pixels and samples to logits, as transformers computes them: the full set of goldens.
#include "base/format_text.h"
#include "models.h"
#include "run/engine.h"
#include "safetensors.h"
#ifndef __wasm__
#include "gpu_fixture.h"
#endif

namespace bezel {
namespace {

struct Case {
  const char *name, *file, *projector;
  bool gpu = false;
};

std::vector<Case> present(bool gpu) {
  std::vector<Case> cases;
  for (const Case c : {Case{"tiny-e2b", "tiny-e2b.gguf", "tiny-e2b-mmproj.gguf"},
                       Case{"tiny-e2b", "tiny-e2b-ollama.gguf", nullptr},
                       Case{"tiny-26b", "tiny-26b.gguf", "tiny-26b-mmproj.gguf"}}) {
    if (open_file(golden_path(c.file))) cases.push_back({c.name, c.file, c.projector, gpu});
  }
  return cases;
}

class FullMediaGoldens : public testing::TestWithParam<Case> {};

TEST_P(FullMediaGoldens, FromPixelsAndSamplesToLogits) {
  const Case& c = GetParam();
  const Safetensors golden(golden_path(std::string(c.name) + ".golden.safetensors"));
  std::optional<Gguf> projector;
  if (c.projector != nullptr) {
    auto file = open_gguf(golden_path(c.projector));
    ASSERT_OK(file);
    projector = std::move(*file);
  }
  auto file = open_gguf(golden_path(c.file));
  ASSERT_OK(file);
  LoadOptions options;
  options.bf16_rope = true;  // as they were made
#ifndef __wasm__
  if (c.gpu) options.device = test_device();
#endif
  auto engine = run_now(Engine::load(std::move(*file), {}, options, std::move(projector)));
  ASSERT_OK(engine);
  for (const std::string kind : {"image", "audio"}) {
    if (!golden.has(kind + ".prompt")) continue;
    const auto soft = kind == "image"
                          ? run_now((*engine)->towers().see({144, 96, golden.get<u8>("image.rgb")}, 70))
                          : run_now((*engine)->towers().hear(
                                {.rate = 16000, .channels = 1, .samples = golden.get<f32>("audio.wav")}));
    ASSERT_OK(soft);
    const auto expected = golden.get<f32>(kind + ".soft_tokens");
    f64 size = 0;
    for (const f32 v : expected) size = std::max<f64>(size, std::abs(v));
    EXPECT_LE(difference((*soft)->rows, expected), 1e-3 * size) << kind;

    Prompt prompt{golden.get<u32>(kind + ".prompt")};
    const auto id = (*engine)->tokenizer().find(kind == "image" ? "<|image|>" : "<|audio|>");
    ASSERT_TRUE(id);
    const auto at = std::ranges::find(prompt.ids, *id) - prompt.ids.begin();
    prompt.soft.push_back({static_cast<u32>(at), *soft});
    auto session = Session::create((*engine)->backend(), 256);
    std::vector<f32> logits;
    ASSERT_OK(run_now(session->feed_all(std::move(prompt), logits)));
    EXPECT_LE(difference(logits, golden.get<f32>(kind + ".logits")), 3e-3) << kind;
    RecordProperty(kind, format_text("{}", difference(logits, golden.get<f32>(kind + ".logits"))));
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FullMediaGoldens);
constexpr auto kName = [](const auto& param) {
  std::string name = param.param.file;
  std::ranges::replace(name, '-', '_');
  return name.substr(0, name.find('.'));
};
INSTANTIATE_TEST_SUITE_P(Beside, FullMediaGoldens, testing::ValuesIn(present(false)), kName);
#ifndef __wasm__
INSTANTIATE_TEST_SUITE_P(BesideGpu, FullMediaGoldens, testing::ValuesIn(present(true)), kName);
#endif

}  // namespace
}  // namespace bezel
