// How many dispatches a decoded token takes: each costs a GPU microseconds, however little it does.
#ifndef __wasm__
#include "gpu_fixture.h"
#include "models.h"
#include "run/session.h"

namespace bezel {
namespace {

// With per-layer embeddings a layer of E2B that has keys and values of its own takes 15, one that shares them
// 13; without them 12. The rest is the beginning and the end of a pass.
TEST(GpuDispatches, ALayerTakesFew) {
  for (const auto& [name, a_layer] : {std::pair{"tiny-e2b-Q4_K_M.gguf", 15u}, {"tiny-31b.gguf", 12u}}) {
    LoadOptions options;
    options.device = test_device();
    auto loaded = load_model(data_path(name), options);
    ASSERT_TRUE(loaded.backend);
    auto session = Session::create(*loaded.backend, 64);
    ASSERT_OK(session);
    const u32 token = 5;
    auto profile = run_now(session->profile(std::span(&token, 1), 1));
    ASSERT_OK(profile);
    const std::size_t layers = loaded.backend->model().config.layers.size();
    EXPECT_LE(profile->labels.size(), layers * a_layer + 9) << name;
    RecordProperty(name, static_cast<int>(profile->labels.size()));
  }
}

}  // namespace
}  // namespace bezel
#endif
