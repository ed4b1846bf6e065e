#include "model/vision_model.h"

#include <functional>

#include "model/vision_graph.h"
#include "vision_files.h"

namespace bezel {
namespace {

struct Loaded {
  Result<Gguf> file;
  Result<VisionModel> model;
};

Loaded load(const MemoryFile& from, u32 text_width = 24) {
  auto file = from.open();
  auto model = file ? run_now(load_vision_model(*file, text_width))
                    : Result<VisionModel>(std::unexpected(file.error()));
  return {std::move(file), std::move(model)};
}

void expect_error(const MemoryFile& from, const std::string& message, ErrorKind kind = ErrorKind::kInvalid) {
  const Loaded loaded = load(from);
  ASSERT_FALSE(loaded.model) << "expected: " << message;
  EXPECT_EQ(loaded.model.error().message, message);
  EXPECT_EQ(static_cast<int>(loaded.model.error().kind), static_cast<int>(kind));
}

void expect_key_error(const std::string& key, u32 value, const std::string& message,
                      ErrorKind kind = ErrorKind::kInvalid) {
  MemoryFile from = vit_file({});
  from.writer.set_uint("clip.vision." + key, value);
  expect_error(from, message, kind);
}

TEST(VisionModel, ReadsThePublishedLayouts) {
  for (const auto& [path, clamps, standardised] :
       {std::tuple{data_path("tiny-e2b-mmproj.gguf"), true, false},
        std::tuple{data_path("tiny-26b-mmproj.gguf"), false, true},
        std::tuple{std::string("models/nano.gguf"), false, false}}) {
    SCOPED_TRACE(path);
    auto file = open_gguf(path);
    ASSERT_OK(file);
    EXPECT_TRUE(has_vision(*file));
    const auto model = run_now(load_vision_model(*file, 256));
    ASSERT_OK(model);
    EXPECT_EQ(model->config.head_size, 64u);
    EXPECT_EQ(model->config.unit(), 48u);
    EXPECT_EQ(model->config.positions, 256u);
    EXPECT_EQ(model->frequencies.size(), 16u);
    EXPECT_EQ(static_cast<bool>(model->std_bias), standardised);
    for (const VisionBlock& block : model->blocks) {
      for (const auto& linear : {block.attn_q, block.attn_k, block.attn_v, block.attn_out, block.ffn_gate,
                                 block.ffn_up, block.ffn_down}) {
        EXPECT_EQ(static_cast<bool>(linear.clamp), clamps);
        EXPECT_LT(linear.clamp.in_min, linear.clamp.in_max);
        EXPECT_LT(linear.clamp.out_min, linear.clamp.out_max);
      }
    }
    // The position table is not among what is loaded.
    for (const TensorInfo& info : model->tensors) EXPECT_NE(info.name, "v.position_embd.weight");
  }
}

TEST(VisionModel, AssumesWhatMayBeMissing) {
  // Published files have no projector.scale_factor.
  auto file = open_gguf(data_path("tiny-26b-mmproj.gguf"));
  ASSERT_OK(file);
  EXPECT_EQ(file->find("clip.vision.projector.scale_factor"), nullptr);
  EXPECT_EQ(run_now(load_vision_model(*file, 256))->config.pool, 3u);
}

TEST(VisionModel, UnifiedNormsCountFromOneOrZero) {
  for (const u32 first : {0u, 1u}) {
    const Loaded loaded = load(unified_file({.patch = 4}, first));
    ASSERT_OK(loaded.model);
    EXPECT_EQ(loaded.model->config.patch, 12u);
    EXPECT_EQ(loaded.model->config.pool, 1u);
    EXPECT_EQ(loaded.model->patch_norms[0].weight.cols, 3u * 12 * 12);
    EXPECT_EQ(loaded.model->patch_norms[2].bias.cols, 32u);
  }
}

TEST(VisionModel, RefusesWhatIsNotAVisionTower) {
  MemoryFile nothing;
  nothing.writer.set_string("general.architecture", "gemma4");
  expect_error(nothing, "memory has no vision tower (tensor 'v.patch_embd.weight').", ErrorKind::kNotFound);
  MemoryFile other = vit_file({});
  other.writer.set_string("clip.vision.projector_type", "gemma3");
  expect_error(other, "memory has a vision tower of the type 'gemma3'; bezel runs 'gemma4v' and 'gemma4uv'.",
               ErrorKind::kUnsupported);
  MemoryFile llama = vit_file({});
  llama.writer.set_string("general.architecture", "llama");
  expect_error(llama, "memory is a 'llama' file; vision towers are in 'gemma4' and 'clip' files.",
               ErrorKind::kUnsupported);
}

TEST(VisionModel, RefusesATowerOfAnotherModel) {
  const Loaded loaded = load(vit_file({}), 32);
  ASSERT_FALSE(loaded.model);
  EXPECT_EQ(
      loaded.model.error().message,
      "memory projects pictures to a width of 24, but the text model has 32: it belongs to another model.");
}

TEST(VisionModel, RefusesNumbersOutOfRange) {
  expect_key_error("block_count", 0, "clip.vision.block_count is 0, but must be from 1 to 512.");
  expect_key_error("embedding_length", 1 << 20,
                   "clip.vision.embedding_length is 1048576, but must be from 4 to 16384.");
  expect_key_error("patch_size", 0, "clip.vision.patch_size is 0, but must be from 1 to 64.");
  expect_key_error(
      "attention.head_count", 3,
      "The vision tower's width, 32, does not make 3 heads of a size that is a multiple of 4, as "
      "rotation in two dimensions needs.");
  expect_key_error("num_channels", 4, "The vision tower reads 4 channels; bezel gives it 3.",
                   ErrorKind::kUnsupported);
  expect_error(vit_file({.width = 256, .heads = 1}),
               "The vision tower's heads have 256 elements; the limit is 128.", ErrorKind::kUnsupported);
}

TEST(VisionModel, RefusesWrongShapes) {
  expect_key_error(
      "feed_forward_length", 64,
      "Tensor 'v.blk.0.ffn_gate.weight' has the shape [32, 48, 1, 1], but the model's settings ask "
      "for [32, 64, 1].");
  expect_key_error(
      "patch_size", 8,
      "Tensor 'v.patch_embd.weight' has the shape [4, 4, 3, 32], but the model's settings ask for "
      "[8, 8, 3, 32].");
  expect_key_error("block_count", 3, "memory has no tensor 'v.blk.2.ln1.weight'.");
  MemoryFile half = vit_file({});
  half.add_random("v.std_scale", {32});
  expect_error(half, "memory has no tensor 'v.std_bias'.");
}

TEST(VisionModel, RefusesPicturesThatDoNotFit) {
  Loaded loaded = load(vit_file({}));
  ASSERT_OK(loaded.model);
  const auto message = [&](u32 width, u32 height, std::size_t bytes) {
    const std::vector<u8> rgb(bytes);
    const auto inputs = run_now(vision_inputs(*loaded.file, *loaded.model, rgb, width, height));
    return inputs ? std::string() : inputs.error().message;
  };
  EXPECT_EQ(message(24, 12, 864), "");
  EXPECT_EQ(message(24, 12, 863), "A picture of 24 x 12 pixels has 864 bytes of colours, but 863 are given.");
  EXPECT_EQ(message(24, 13, 936), "A picture of 24 x 13 pixels cannot be cut into squares of 12.");
  EXPECT_EQ(message(0, 12, 0), "A picture of 0 x 12 pixels cannot be cut into squares of 12.");
  EXPECT_EQ(
      message(12, 4294967292, 864),
      "A picture of 12 x 4294967292 pixels is too large: the vision tower knows 64 positions of 4 pixels.");
}

TEST(VisionModel, RefusesMoreSoftTokensThanAnyModelMakes) {
  const VisionConfig config{.positions = 10240};
  EXPECT_TRUE(check_picture(config, 48 * 35, 48 * 32));
  const Status status = check_picture(config, 48 * 59, 48 * 19);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "A picture of 2832 x 912 pixels makes 1121 soft tokens; the limit is 1120.");
  EXPECT_FALSE(check_picture(config, 163'824, 163'824));
}

// Both kinds want a patch as channel, row, column.
TEST(VisionModel, CutsPicturesIntoPatches) {
  std::vector<u8> rgb(4 * 6 * 3);
  for (u32 i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<u8>(3 * i);
  const auto value = [&](u32 x, u32 y, u32 channel) { return f32(rgb[(y * 4 + x) * 3 + channel]) / 255; };
  VisionConfig config{.kind = VisionKind::kUnified, .patch = 2, .pool = 1};
  const auto unified = vision_pixels(config, rgb, 4, 6);
  ASSERT_EQ(unified.size(), rgb.size());
  // The fourth patch is the second of the second row.
  EXPECT_EQ(unified[3 * 12 + 0], value(2, 2, 0));
  EXPECT_EQ(unified[3 * 12 + 1], value(3, 2, 0));
  EXPECT_EQ(unified[3 * 12 + 2], value(2, 3, 0));
  EXPECT_EQ(unified[3 * 12 + 4], value(2, 2, 1));
  EXPECT_EQ(unified[3 * 12 + 11], value(3, 3, 2));
  config.kind = VisionKind::kVit;
  const auto vit = vision_pixels(config, rgb, 4, 6);
  for (std::size_t i = 0; i < vit.size(); ++i) EXPECT_EQ(vit[i], 2 * unified[i] - 1);
}

TEST(VisionModel, PositionRowsAreSumsOfBothAxes) {
  Loaded loaded = load(vit_file({}));
  ASSERT_OK(loaded.model);
  const TensorInfo& table = loaded.model->position_embd;
  std::vector<f32> all(table.elements());
  ASSERT_TRUE(run_now(loaded.file->read(table, 0, std::as_writable_bytes(std::span(all)))));
  const auto inputs =
      run_now(vision_inputs(*loaded.file, *loaded.model, std::vector<u8>(24 * 12 * 3), 24, 12));
  ASSERT_OK(inputs);
  for (u32 n = 0; n < 18; ++n) {
    const u32 x = n % 6, y = n / 6;
    EXPECT_EQ((*inputs)[kVisionGrid][2 * n], f32(x));
    EXPECT_EQ((*inputs)[kVisionGrid][2 * n + 1], f32(y));
    for (u32 i = 0; i < 32; ++i)
      EXPECT_EQ((*inputs)[kVisionPositionRows][n * 32 + i], all[x * 32 + i] + all[(64 + y) * 32 + i]);
  }
}

}  // namespace
}  // namespace bezel
