// A model ready to answer: file, vocabulary, weights on a device, and what the file says about using it.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gguf/gguf.h"
#include "run/backend.h"
#include "run/sampler.h"
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

class Engine {
 public:
  // Takes the file: tensor names and the vocabulary point into it.
  static Task<Result<std::unique_ptr<Engine>>> load(Gguf file, EngineHints hints = {},
                                                    LoadOptions options = {});

  const Gguf& file() const { return file_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  Backend& backend() { return *backend_; }
  const TextConfig& config() const { return backend_->model().config; }
  Template chat_template() const { return template_; }
  // The settings that the file or its store recommends; Gemma's own where they are silent.
  const SamplerOptions& sampling() const { return sampling_; }

  // <bos> and text without any special meaning.
  std::vector<u32> encode_text(std::string_view text) const;
  // A rendered chat. A control token that the vocabulary lacks is an error that names it.
  Result<std::vector<u32>> encode_chat(std::span<const ChatItem> items) const;

 private:
  explicit Engine(Gguf file) : file_(std::move(file)) {}
  Status read_sampling(const std::string& ollama_params);

  Gguf file_;
  std::optional<Tokenizer> tokenizer_;
  std::unique_ptr<Backend> backend_;
  Template template_ = Template::kSmall;
  SamplerOptions sampling_;
};

}  // namespace bezel
