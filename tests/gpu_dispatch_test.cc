// How many dispatches a decoded token takes: each costs a GPU microseconds, however little it does.
#ifndef __wasm__
#include <format>

#include "gpu_fixture.h"
#include "graph/fuse.h"
#include "header_source.h"
#include "model/synth.h"
#include "models.h"
#include "run/session.h"

namespace bezel {
namespace {

// With per-layer embeddings a layer takes at most 10, without them 8; three or two more where norms are not
// in products. On a hardware GPU one less: there, attention norms and rotates the heads. The rest is the
// beginning and the end of a pass.
TEST(GpuDispatches, ALayerTakesFew) {
  struct Case {
    const char* name;
    u32 a_layer;
    u64 norm_in_product;
  };
  for (const auto& [name, a_layer, norm_in_product] :
       {Case{"tiny-e2b-Q4_K_M.gguf", 13, 0}, Case{"tiny-e2b-Q4_K_M.gguf", 10, kNormInProduct},
        Case{"tiny-31b.gguf", 10, 0}, Case{"tiny-31b.gguf", 8, kNormInProduct}}) {
    LoadOptions options;
    options.gpu.norm_in_product = norm_in_product;
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
    RecordProperty(std::format("{} {}", name, a_layer), static_cast<int>(profile->labels.size()));
  }
}

// The figures of docs/performance.md, for weights that fit one binding each and a hardware GPU.
TEST(GpuDispatches, OfPublishedShapes) {
  for (const auto& [preset, count] :
       {std::pair{"e2b", 297u}, {"e4b", 357u}, {"12b", 362u}, {"26b", 499u}, {"31b", 486u}}) {
    const auto writer = describe_synthetic_model({.preset = preset});
    ASSERT_OK(writer);
    auto file = open_header(*writer);
    ASSERT_OK(file);
    const auto model = run_now(load_text_model(*file));
    ASSERT_OK(model);
    const Graph graph = build_text_graph(*model, kv_rings(model->config, 4096, 256), {1, 1, 1, false});
    u32 dispatches = 0;
    for (const Step& step : fuse(graph)) {
      const Op& op = graph.ops()[step.first + step.count - 1];
      if (step.norms > 0 && product_weights(graph, step) > kNormInProduct) ++dispatches;
      // Attention in parts and top-k merge what several workgroups found.
      dispatches += std::holds_alternative<op::Attention>(op) || std::holds_alternative<op::TopK>(op) ? 2 : 1;
    }
    EXPECT_EQ(dispatches, count) << preset;
  }
}

}  // namespace
}  // namespace bezel
#endif
