#include "model/synth.h"

#include <algorithm>

#include "graph/plan.h"
#include "graph/reference.h"
#include "header_source.h"
#include "io/sha256.h"
#include "model/audio_graph.h"
#include "model/footprint.h"
#include "model/vision_graph.h"
#include "support.h"
#include "temp_folder.h"

namespace bezel {
namespace {

// The published models, as people know them.
struct Published {
  const char *preset, *name;
  u32 layers, width, heads, kv_sliding, kv_global, period, window, context, ple, shared, experts;
  u32 ffn, ffn_last;
  bool k_is_v;
  u32 tensors;
  f64 billions;                                 // parameters of the text model
  f64 gigabytes_per_token;                      // weights read to decode one token, Q4_K_M; 0: not known
  u64 kv_sliding_elements, kv_global_elements;  // a token's keys and values
};

class PublishedShapes : public testing::TestWithParam<Published> {};

TEST_P(PublishedShapes, AgreeWithTheirTable) {
  const Published& p = GetParam();
  const auto writer = describe_synthetic_model({.preset = p.preset});
  ASSERT_OK(writer);
  auto file = open_header(*writer);
  ASSERT_OK(file);
  EXPECT_EQ(file->tensors().size(), p.tensors);
  const auto model = run_now(load_text_model(*file));
  ASSERT_OK(model);
  const TextConfig& c = model->config;
  EXPECT_EQ(text_model_name(c), p.name);
  EXPECT_EQ(c.vocab, 262144u);
  EXPECT_EQ(c.width, p.width);
  EXPECT_EQ(c.window, p.window);
  EXPECT_EQ(c.context, p.context);
  EXPECT_EQ(c.ple, p.ple);
  EXPECT_EQ(c.experts, p.experts);
  if (p.experts > 0) {
    EXPECT_EQ(c.experts_used, 8u);
    EXPECT_EQ(c.expert_ffn, 704u);
  }
  EXPECT_EQ(c.eps, 1e-6f);
  EXPECT_EQ(c.soft_cap, 30);
  EXPECT_EQ(c.rope_base, 1e6);
  EXPECT_EQ(c.rope_base_sliding, 1e4);
  ASSERT_EQ(c.layers.size(), p.layers);
  EXPECT_EQ(c.owned_kv_layers(), p.layers - p.shared);
  u64 sliding_elements = 0, global_elements = 0;
  for (u32 i = 0; i < p.layers; ++i) {
    const LayerConfig& layer = c.layers[i];
    EXPECT_EQ(layer.sliding, (i + 1) % p.period != 0) << i;
    EXPECT_EQ(layer.heads, p.heads) << i;
    EXPECT_EQ(layer.kv_heads, layer.sliding ? p.kv_sliding : p.kv_global) << i;
    EXPECT_EQ(layer.head_size, layer.sliding ? 256u : 512u) << i;
    EXPECT_EQ(layer.ffn, i < p.layers - p.shared ? p.ffn : p.ffn_last) << i;
    if (c.owns_kv(i)) {
      EXPECT_EQ(!model->layers[i].attn_v, p.k_is_v && !layer.sliding) << i;
      (layer.sliding ? sliding_elements : global_elements) += u64{2} * layer.kv_heads * layer.head_size;
    } else {
      EXPECT_EQ(layer.kv_layer, p.layers - p.shared - (layer.sliding ? 2 : 1)) << i;
    }
  }
  EXPECT_EQ(sliding_elements, p.kv_sliding_elements);
  EXPECT_EQ(global_elements, p.kv_global_elements);

  const Footprint cost = footprint(*file, *model, 512);
  EXPECT_NEAR(cost.parameters / 1e9, p.billions, 0.0051);
  if (p.gigabytes_per_token > 0) {
    EXPECT_NEAR(cost.bytes_per_token / 1e9, p.gigabytes_per_token, 0.006 * p.gigabytes_per_token);
  }
  EXPECT_EQ(cost.kv_per_token, p.kv_global_elements);
  EXPECT_EQ(cost.kv_fixed, p.kv_sliding_elements * (p.window + 511));
  EXPECT_EQ(cost.kv_elements(1000), cost.kv_fixed + 1000 * p.kv_global_elements);
  EXPECT_EQ(cost.table_bytes > 0, p.ple > 0);
  EXPECT_LE(cost.weight_bytes, file->file_bytes());
}

INSTANTIATE_TEST_SUITE_P(
    Models, PublishedShapes,
    testing::Values(Published{"e2b", "E2B", 35,   1536,  8,     1,   1,    5,    512,  131072, 256,
                              20,    0,     6144, 12288, false, 601, 4.65, 1.47, 6144, 3072},
                    Published{"e4b", "E4B", 42,    2560,  8,     2,   2,    6,    512,   131072, 256,
                              18,    0,     10240, 10240, false, 720, 7.52, 2.97, 20480, 8192},
                    Published{"12b", "12B", 48,    3840,  16,   8,   1,     6, 1024,   262144, 0,
                              0,     0,     15360, 15360, true, 667, 11.91, 0, 163840, 8192},
                    Published{"26b", "26B-A4B", 30,   2816, 16,   8,   2,     6,     1024,   262144, 0,
                              0,     128,       2112, 2112, true, 658, 25.23, 2.596, 102400, 10240},
                    Published{"31b", "31B", 60,    5376,  32,   16,  4,     6,    1024,   262144, 0,
                              0,     0,     21504, 21504, true, 833, 30.70, 18.7, 409600, 40960}),
    [](const auto& param) { return std::string(param.param.preset); });

using Histogram = std::map<std::string, u64>;

Histogram histogram(const std::string& preset, const std::string& quant) {
  const auto writer = describe_synthetic_model({.preset = preset, .quant = quant});
  EXPECT_TRUE(writer);
  Histogram out;
  if (!writer) return out;
  const auto file = open_header(*writer);
  EXPECT_TRUE(file);
  if (!file) return out;
  for (const auto& [type, count] : quant_mix(*file)) {
    out[std::string(dtype_name(type))] = count.tensors;
    u64 bytes = 0;
    for (const TensorInfo& info : file->tensors()) bytes += info.type == type ? info.bytes : 0;
    EXPECT_EQ(count.bytes, bytes);
  }
  return out;
}

// Files seen in the wild. (One E2B file is known too, but it was made with another recipe.)
TEST(SynthTypes, AgreeWithFilesOfTheSameName) {
  EXPECT_EQ(histogram("26b", "q4_k_m"),
            (Histogram{{"F32", 392}, {"Q5_0", 32}, {"Q8_0", 28}, {"Q4_K", 192}, {"Q6_K", 14}}));
  EXPECT_EQ(histogram("12b", "q4_k_m"), (Histogram{{"F32", 338}, {"Q4_K", 284}, {"Q6_K", 45}}));
  EXPECT_EQ(histogram("e4b", "q4_k_m"), (Histogram{{"F32", 339}, {"Q4_K", 336}, {"Q6_K", 44}, {"BF16", 1}}));
}

TEST(SynthTypes, PlainOnes) {
  for (const std::string_view quant : synth_quants()) {
    const Histogram mix = histogram("tiny", std::string(quant));
    u64 all = 0;
    for (const auto& [type, count] : mix) all += count;
    EXPECT_EQ(all, histogram("tiny", "f32").at("F32")) << quant;
  }
  EXPECT_EQ(histogram("tiny", "f32").size(), 1u);
  EXPECT_EQ(histogram("26b", "q6_k").contains("Q8_0"), true);  // 2112 and 704 are no multiples of 256
}

// The published files in BF16: E4B's holds 371.4 MB of vision, 12B's 175.1 MB in all, of which 4.9 are for
// sound.
TEST(SynthVision, HasTheSizeOfPublishedTowers) {
  for (const auto& [preset, text_width, megabytes] :
       {std::tuple{"e4b-vision", 2560u, 371.4}, std::tuple{"12b-vision", 3840u, 170.2}}) {
    const auto writer = describe_synthetic_model({.preset = preset, .quant = "bf16"});
    ASSERT_OK(writer);
    EXPECT_NEAR(static_cast<f64>(writer->data_bytes()) / 1e6, megabytes, 0.1) << preset;
    auto file = open_header(*writer);
    ASSERT_OK(file);
    const auto model = run_now(load_vision_model(*file, text_width));
    ASSERT_OK(model);
  }
}

// A picture of the default budget, 2520 patches, fits the smallest binding that WebGPU allows.
TEST(SynthVision, DefaultPicturesFitSmallBindings) {
  for (const auto& [preset, text_width, side] :
       {std::tuple{"e2b-vision", 1536u, 1u}, std::tuple{"31b-vision", 5376u, 1u},
        std::tuple{"12b-vision", 3840u, 3u}}) {
    auto file = open_header(*describe_synthetic_model({.preset = preset}));
    ASSERT_OK(file);
    const auto model = run_now(load_vision_model(*file, text_width));
    ASSERT_OK(model);
    const Graph graph = build_vision_graph(*model, 60 / side, 42 / side);
    constexpr std::string_view kKeep[] = {"soft"};
    EXPECT_LT(lay_out(graph, kKeep, 1).elements * sizeof(f32), u64{128} << 20) << preset;
  }
}

// The published files in BF16: E4B's holds 620.0 MB for sound, 12B's 4.9.
TEST(SynthAudio, HasTheSizeOfPublishedTowers) {
  for (const auto& [preset, text_width, megabytes] :
       {std::tuple{"e4b-audio", 2560u, 620.0}, std::tuple{"12b-audio", 3840u, 4.9}}) {
    const auto writer = describe_synthetic_model({.preset = preset, .quant = "bf16"});
    ASSERT_OK(writer);
    EXPECT_NEAR(static_cast<f64>(writer->data_bytes()) / 1e6, megabytes, 0.1) << preset;
    auto file = open_header(*writer);
    ASSERT_OK(file);
    const auto model = run_now(load_audio_model(*file, text_width));
    ASSERT_OK(model);
  }
}

// Half a minute fits the smallest binding that WebGPU allows twice over, and the CPU's memory on the web.
TEST(SynthAudio, LongestRecordingsFit) {
  auto file = open_header(*describe_synthetic_model({.preset = "e2b-audio"}));
  ASSERT_OK(file);
  const auto model = run_now(load_audio_model(*file, 1536));
  ASSERT_OK(model);
  const Graph graph = build_audio_graph(*model, 3000);
  constexpr std::string_view kKeep[] = {"soft"};
  EXPECT_LT(lay_out(graph, kKeep, 1).elements * sizeof(f32), u64{64} << 20);
  EXPECT_LT(Reference::bytes_of(graph), u64{256} << 20);
}

TEST(Synth, RefusesUnknownNames) {
  TempFolder folder;
  const Status preset = write_synthetic_model(folder / "x.gguf", {.preset = "e3b"});
  ASSERT_FALSE(preset);
  EXPECT_EQ(preset.error().message,
            "There is no preset 'e3b'; choose one of tiny, tiny-moe, e2b, e4b, 12b, 26b, 31b, e2b-vision, "
            "e4b-vision, 12b-vision, 26b-vision, 31b-vision, e2b-audio, e4b-audio, 12b-audio.");
  const Status quant = write_synthetic_model(folder / "x.gguf", {.preset = "tiny", .quant = "q9"});
  ASSERT_FALSE(quant);
  EXPECT_EQ(quant.error().message,
            "There is no quantisation 'q9'; choose one of f32, f16, bf16, q8_0, q6_k, q4_0, q4_k_m.");
  EXPECT_FALSE(folder.holds("x.gguf"));
}

TEST(Synth, StoppedInTheMiddleLeavesNothing) {
  TempFolder folder;
  u64 calls = 0;
  const Status status =
      write_synthetic_model(folder / "x.gguf", {.preset = "tiny"}, [&](u64 done, u64 total) {
        EXPECT_LE(done, total);
        return ++calls < 3;
      });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(calls, 3u);
  EXPECT_EQ(list_folder(folder.path())->size(), 0u);
}

std::string hash_of(const std::string& path) {
  Sha256 sha;
  sha.update(read_bytes(path));
  return to_hex(sha.finish());
}

class SmallSynth : public testing::TestWithParam<const char*> {};

TEST_P(SmallSynth, IsTheSameEveryTime) {
  TempFolder folder;
  u64 last = 0, whole = 0;
  const auto progress = [&](u64 done, u64 total) {
    last = done;
    whole = total;
    return true;
  };
  ASSERT_OK(write_synthetic_model(folder / "a.gguf", {.preset = GetParam()}, progress));
  ASSERT_OK(write_synthetic_model(folder / "b.gguf", {.preset = GetParam()}));
  ASSERT_OK(write_synthetic_model(folder / "c.gguf", {.preset = GetParam(), .seed = 2}));
  EXPECT_EQ(hash_of(folder / "a.gguf"), hash_of(folder / "b.gguf"));
  EXPECT_NE(hash_of(folder / "a.gguf"), hash_of(folder / "c.gguf"));
  const u64 size = read_bytes(folder / "a.gguf").size();
  EXPECT_EQ(whole, size);
  EXPECT_LE(last, size);
  EXPECT_GT(last, size - 4096);
}

INSTANTIATE_TEST_SUITE_P(Presets, SmallSynth, testing::Values("tiny", "tiny-moe"), [](const auto& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace bezel
