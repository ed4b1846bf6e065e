// A model ready to answer: file, vocabulary, weights on a device, and what the file says about using it.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gguf/gguf.h"
#include "run/backend.h"
#include "run/sampler.h"
#include "run/towers.h"
#include "text/chat.h"
#include "text/chat_item.h"
#include "text/tokenizer.h"

namespace bezel {

// What is known about a model from outside its file, such as Ollama's store; each may be empty.
struct EngineHints {
  std::string renderer;  // see TemplateHints
  std::string model_name;
  std::string parameter_size;
  std::string ollama_params;  // JSON text of sampling settings
};

// What stands for one placeholder of a chat: the soft tokens of a picture or a recording, or those of the
// frames of a video with their times.
struct Medium {
  struct Frame {
    std::string time;  // "00:07"; empty for a picture or a recording
    std::shared_ptr<const SoftTokens> tokens;
  };
  std::vector<Frame> frames;
};

class Engine {
 public:
  // Takes the file: tensor names and the vocabulary point into it.
  // `projector` is an mmproj file, with encoders that the model's own file lacks.
  static Task<Result<std::unique_ptr<Engine>>> load(Gguf file, EngineHints hints = {},
                                                    LoadOptions options = {},
                                                    std::optional<Gguf> projector = {});

  const Gguf& file() const { return file_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  Backend& backend() { return *backend_; }
  Towers& towers() { return *towers_; }
  const TextConfig& config() const { return backend_->model().config; }
  Template chat_template() const { return template_; }
  // The settings that the file or its store recommends; Gemma's own where they are silent.
  const SamplerOptions& sampling() const { return sampling_; }

  // <bos> and text without any special meaning.
  std::vector<u32> encode_text(std::string_view text) const;
  // A rendered chat, `media` in the place of its placeholders, one each and in order. A control token that
  // the vocabulary lacks is an error that names it.
  Result<Prompt> encode_chat(std::span<const ChatItem> items, std::span<const Medium> media = {}) const;

 private:
  Engine(Gguf file, std::optional<Gguf> projector)
      : file_(std::move(file)), projector_(std::move(projector)) {}
  Result<u32> control(std::string_view name) const;
  Status add_medium(std::string_view placeholder, const Medium& medium, Prompt& prompt) const;
  Status read_sampling(const std::string& ollama_params);

  Gguf file_;
  std::optional<Gguf> projector_;
  std::optional<Tokenizer> tokenizer_;
  std::unique_ptr<Backend> backend_;
  std::optional<Towers> towers_;
  Template template_ = Template::kSmall;
  SamplerOptions sampling_;
};

}  // namespace bezel
