// A model's eyes and ears: the encoders that make soft tokens of pictures and recordings. Each is loaded when
// it is first used, from the model's own file or from a projector file beside it.
#pragma once
#include <list>
#include <memory>
#include <optional>

#include "gguf/gguf.h"
#include "media/audio.h"
#include "media/image.h"
#include "model/audio_model.h"
#include "model/text_config.h"
#include "model/vision_model.h"
#include "run/graph_runner.h"
#include "run/prompt.h"

namespace bezel {

class Towers {
 public:
  // `projector` may be null. The files and the device (null: the CPU) must outlive the towers. For
  // `bf16_rope` see round_frequencies_to_bf16().
  Towers(Gguf& model, Gguf* projector, u32 text_width, Device* device, bool bf16_rope = false);

  bool sees() const { return vision_.file != nullptr; }
  bool hears() const { return audio_.file != nullptr; }
  // Soft tokens of a picture, where nobody asks for another number: what the model was trained for.
  u32 usual_budget() const { return usual_budget_; }

  using Soft = std::shared_ptr<const SoftTokens>;
  // At most `budget` soft tokens; 0: the usual number. The same picture is not computed twice in a row of a
  // few. `progress` is told of the loading, the first time, and then of the computation.
  Task<Result<Soft>> see(const Image& picture, u32 budget, Progress progress = {});
  Task<Result<Soft>> hear(const Clip& clip, Progress progress = {});

  // Gives back the memory of both; the next use loads them again.
  void release();

 private:
  template <class Model>
  struct Tower {
    Gguf* file = nullptr;
    std::optional<Model> model;
    std::unique_ptr<GraphRunner> runner;
  };
  Task<Status> load_vision(const Progress& progress);
  Task<Status> load_audio(const Progress& progress);
  Soft known(const std::array<u8, 32>& key);
  Result<Soft> keep(std::vector<f32> rows, bool picture, const std::array<u8, 32>& key);

  u32 text_width_;
  u32 usual_budget_ = kDefaultImageBudget;
  Device* device_;
  bool bf16_rope_;
  Tower<VisionModel> vision_;
  Tower<AudioModel> audio_;
  std::list<Soft> recent_;  // the latest first: a chat sends its pictures again with every turn
};

}  // namespace bezel
