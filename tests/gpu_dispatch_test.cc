// How many dispatches a decoded token takes: each costs a GPU microseconds, however little it does.
#ifndef __wasm__
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/format_text.h"
#include "gpu_fixture.h"
#include "graph/plan.h"
#include "graph/tuning.h"
#include "header_source.h"
#include "model/synth.h"
#include "models.h"
#include "noting_device.h"
#include "run/gpu_weights.h"
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
       {Case{"tiny-e2b-Q4_K_M.gguf", 13, 0}, Case{"tiny-e2b-Q4_K_M.gguf", 10, ~u64{0}},
        Case{"tiny-31b.gguf", 10, 0}, Case{"tiny-31b.gguf", 8, ~u64{0}}}) {
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
    RecordProperty(format_text("{} {}", name, a_layer), static_cast<int>(profile->labels.size()));
  }
}

Buffer note_buffer(NotingDevice& device, u64 bytes) { return std::move(*device.make_buffer(bytes, "")); }

// Each in one piece.
DeviceWeights note_weights(NotingDevice& device, const TextModel& model, bool relays) {
  DeviceWeights out;
  out.ones = note_buffer(device, 64 << 10);
  for (const TensorInfo& info : model.tensors)
    out.tensors.push_back(product_weight(info.type, info.ne[0], info.rows()));
  if (relays) EXPECT_TRUE(place_relays(device, model, out.tensors));
  EXPECT_TRUE(place_projections(device, model, out.tensors));
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    const TensorInfo& info = model.tensors[i];
    DeviceWeight& w = out.tensors[i];
    const u32 rows = static_cast<u32>(info.ne[2] > 1 ? info.ne[2] : info.ne[1]);
    if (w.tiles.empty()) w.tiles.push_back({note_buffer(device, w.row_bytes * info.rows()), 0, rows});
  }
  return out;
}

// What bench/replay.mjs runs: of every dispatch its kernel, parameters, grid, and [buffer, offset, bytes] of
// its bindings.
void write_program(const std::string& path, const NotingDevice& device, const Plan& plan) {
  nlohmann::json out = nlohmann::json::array();
  for (std::size_t i = 0; i < device.program.size(); ++i) {
    const Dispatch& dispatch = device.program[i];
    nlohmann::json bindings = nlohmann::json::array(), params = nlohmann::json::array();
    for (const BufferView& view : dispatch.bindings)
      bindings.push_back({view.buffer, view.offset, view.bytes});
    for (const std::byte byte : dispatch.params) params.push_back(std::to_integer<u32>(byte));
    out.push_back({{"label", plan.labels()[i]},
                   {"text", device.kernels[dispatch.pipeline]},
                   {"params", std::move(params)},
                   {"bindings", std::move(bindings)},
                   {"grid", {dispatch.grid.x, dispatch.grid.y, dispatch.grid.z}}});
  }
  std::ofstream(path) << out.dump();
}

// The figures of docs/performance.md: what a hardware GPU would run, product by product and with relays.
TEST(GpuDispatches, OfPublishedShapes) {
  struct Case {
    const char* preset;
    u32 count;
    u32 groups = 0;
    bool placed = groups > 0;  // weights and arena as relays want them, which the trial may yet refuse
  };
  constexpr u32 kGroups = 132;  // of an H200
  for (const auto& [preset, count, groups, placed] :
       {Case{"e2b", 296}, Case{"e4b", 356}, Case{"12b", 313}, Case{"26b", 318}, Case{"31b", 390},
        Case{"e2b", 81, kGroups}, Case{"e4b", 95, kGroups}, Case{"12b", 103, kGroups},
        Case{"26b", 216, kGroups}, Case{"31b", 127, kGroups}, Case{"e2b", 296, 0, true},
        Case{"26b", 318, 0, true}, Case{"31b", 390, 0, true}}) {
    const auto writer = describe_synthetic_model({.preset = preset});
    ASSERT_OK(writer);
    auto file = open_header(*writer);
    ASSERT_OK(file);
    const auto model = run_now(load_text_model(*file));
    ASSERT_OK(model);
    const Graph graph = build_text_graph(*model, kv_rings(model->config, 4096, 256), {1, 1, 1, false});
    NotingDevice device(large_gpu());
    PlanOptions options{.attention_parts = attention_parts_for(device.info())};
    options.relay.groups = groups;
    const DeviceWeights weights = note_weights(device, *model, placed);
    std::vector<Buffer> rings;
    for (u32 i = 0; i < 2 * model->config.owned_kv_layers(); ++i)
      rings.push_back(note_buffer(device, 32 << 20));
    const Arena layout = lay_out(graph, {}, options.attention_parts, placed);
    const Buffer arena = note_buffer(device, layout.elements * sizeof(f32));
    const auto plan = Plan::build(device, graph, layout, arena, weights, rings, options);
    ASSERT_OK(plan);
    EXPECT_EQ(plan->labels().size(), count) << preset;
    if (const char* folder = std::getenv("BEZEL_PROGRAMS"))
      write_program(format_text("{}/{}{}.json", folder, preset, groups > 0 ? "-relay" : ""), device, *plan);
    if (groups > 0) continue;
    // What tuning times: every product once, as the dispatch that computes it.
    EXPECT_FALSE(plan->products().empty());
    std::size_t next = 0;
    for (const auto& [dispatch, shape] : plan->products()) {
      ASSERT_GE(dispatch, next) << preset;
      ASSERT_LT(dispatch, plan->labels().size());
      next = dispatch + 1;
      std::string_view label = plan->labels()[dispatch];
      if (label.starts_with("expert_")) label.remove_prefix(7);
      EXPECT_TRUE(label.starts_with(format_text("{} {}", product_name(shape.kind), dtype_name(shape.type))))
          << preset << ": " << label;
    }
  }
}

}  // namespace
}  // namespace bezel
#endif
