#include "run/towers.h"

#include <algorithm>
#include <cmath>

#include "io/sha256.h"
#include "media/mel.h"
#include "model/audio_graph.h"
#include "model/vision_graph.h"

namespace bezel {
namespace {

constexpr std::size_t kRecent = 32;
// Not one of the published keys: a model that was trained with fewer tokens a picture than Gemma says so.
constexpr const char* kBudgetKey = "bezel.vision.token_budget";

// Of everything that the soft tokens follow from.
std::array<u8, 32> key_of(std::string_view kind, std::array<u32, 2> shape, Bytes content) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(kind)));
  hash.update(std::as_bytes(std::span(shape)));
  hash.update(content);
  return hash.finish();
}

struct AudioInputs {
  u32 frames = 0;
  std::vector<std::vector<f32>> values;
};

AudioInputs audio_inputs(const AudioConfig& config, std::span<const f32> samples) {
  AudioInputs inputs;
  if (config.kind == AudioKind::kConformer) {
    Mel mel = log_mel(samples);
    inputs.frames = mel.rows;
    inputs.values = {std::move(mel.values), audio_positions(config)};
  } else {
    inputs.frames = static_cast<u32>((samples.size() + config.frame - 1) / config.frame);
    inputs.values = {{samples.begin(), samples.end()}};
    inputs.values[kAudioFrames].resize(std::size_t{inputs.frames} * config.frame);  // silence at the end
  }
  return inputs;
}

}  // namespace

Towers::Towers(Gguf& model, Gguf* projector, u32 text_width, Device* device, bool bf16_rope)
    : text_width_(text_width), device_(device), bf16_rope_(bf16_rope) {
  // A file beside the model is there because somebody wants it.
  for (Gguf* file : {projector, &model}) {
    if (file == nullptr) continue;
    if (vision_.file == nullptr && has_vision(*file)) vision_.file = file;
    if (audio_.file == nullptr && has_audio(*file)) audio_.file = file;
  }
  if (vision_.file == nullptr) return;
  const auto budget = vision_.file->get_uint(kBudgetKey);
  if (budget && *budget && check_budget(static_cast<u32>(**budget)))
    usual_budget_ = static_cast<u32>(**budget);
}

void Towers::release() {
  vision_.runner.reset();
  audio_.runner.reset();
  recent_.clear();
}

Towers::Soft Towers::known(const std::array<u8, 32>& key) {
  const auto found = std::ranges::find(recent_, key, [](const Soft& soft) { return soft->key; });
  if (found == recent_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found);
  return recent_.front();
}

Result<Towers::Soft> Towers::keep(std::vector<f32> rows, bool picture, const std::array<u8, 32>& key) {
  if (!std::ranges::all_of(rows, [](f32 v) { return std::isfinite(v); })) {
    return invalid("The {} encoder gave something that is not a number; the model's file may be damaged.",
                   picture ? "picture" : "audio");
  }
  auto soft = std::make_shared<SoftTokens>();
  soft->count = static_cast<u32>(rows.size() / text_width_);
  soft->rows = std::move(rows);
  soft->picture = picture;
  soft->key = key;
  recent_.push_front(std::move(soft));
  if (recent_.size() > kRecent) recent_.pop_back();
  return recent_.front();
}

Task<Status> Towers::load_vision(const Progress& progress) {
  if (!sees()) {
    co_return fail(ErrorKind::kUnsupported,
                   "This model has no eyes: neither its file nor a projector (mmproj) beside it has a vision "
                   "encoder.");
  }
  if (!vision_.model) {
    vision_.model = CO_TRY(co_await load_vision_model(*vision_.file, text_width_));
    if (bf16_rope_) round_frequencies_to_bf16(*vision_.model);
  }
  if (vision_.runner) co_return Status{};
  const VisionConfig& config = vision_.model->config;
  vision_.runner = CO_TRY(co_await load_graph_runner(
      *vision_.file, vision_.model->tensors, std::max(config.width, config.head_size), device_, progress));
  co_return Status{};
}

Task<Status> Towers::load_audio(const Progress& progress) {
  if (!hears()) {
    co_return fail(ErrorKind::kUnsupported,
                   "This model has no ears: neither its file nor a projector (mmproj) beside it has an audio "
                   "encoder.");
  }
  if (!audio_.model) audio_.model = CO_TRY(co_await load_audio_model(*audio_.file, text_width_));
  if (audio_.runner) co_return Status{};
  audio_.runner = CO_TRY(co_await load_graph_runner(
      *audio_.file, audio_.model->tensors, audio_.model->config.longest_plain_norm(), device_, progress));
  co_return Status{};
}

Task<Result<Towers::Soft>> Towers::see(const Image& picture, u32 budget, Progress progress) {
  if (budget == 0) budget = usual_budget_;
  CO_TRY(check_budget(budget));
  CO_TRY(co_await load_vision(progress));
  const VisionConfig& config = vision_.model->config;
  const Size size = CO_TRY(target_size({picture.width, picture.height}, budget, config.patch, config.pool));
  const Image ready = CO_TRY(resize(picture, size));
  const auto key = key_of("picture", {size.width, size.height}, std::as_bytes(std::span(ready.rgb)));
  if (Soft soft = known(key)) co_return soft;
  CO_TRY(check_picture(config, size.width, size.height));
  auto inputs =
      CO_TRY(co_await vision_inputs(*vision_.file, *vision_.model, ready.rgb, size.width, size.height));
  const Graph graph =
      build_vision_graph(*vision_.model, size.width / config.patch, size.height / config.patch);
  auto rows = CO_TRY(co_await vision_.runner->run(graph, std::move(inputs), "soft", progress));
  co_return keep(std::move(rows), true, key);
}

Task<Result<Towers::Soft>> Towers::hear(const Clip& clip, Progress progress) {
  const PreparedAudio audio = CO_TRY(prepare_audio(clip));
  const auto key =
      key_of("sound", {static_cast<u32>(audio.samples.size()), 0}, std::as_bytes(std::span(audio.samples)));
  if (Soft soft = known(key)) co_return soft;
  CO_TRY(co_await load_audio(progress));
  AudioInputs inputs = audio_inputs(audio_.model->config, audio.samples);
  const Graph graph = build_audio_graph(*audio_.model, inputs.frames);
  auto rows = CO_TRY(co_await audio_.runner->run(graph, std::move(inputs.values), "soft", progress));
  co_return keep(std::move(rows), false, key);
}

}  // namespace bezel
