#include "run/engine.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace bezel {

Task<Result<std::unique_ptr<Engine>>> Engine::load(Gguf file, EngineHints hints, LoadOptions options) {
  std::unique_ptr<Engine> engine(new Engine(std::move(file)));
  engine->tokenizer_ = CO_TRY(Tokenizer::load(engine->file_));
  CO_TRY(engine->read_sampling(hints.ollama_params));
  engine->backend_ = CO_TRY(co_await load_backend(engine->file_, std::move(options)));
  const TextConfig& config = engine->config();
  engine->template_ = choose_template({.renderer = hints.renderer,
                                       .model_name = hints.model_name,
                                       .parameter_size = hints.parameter_size,
                                       .has_per_layer_embeddings = config.ple > 0});
  co_return engine;
}

Status Engine::read_sampling(const std::string& ollama_params) {
  if (const auto v = TRY(file_.get_float("general.sampling.temp")))
    sampling_.temperature = static_cast<f32>(*v);
  if (const auto v = TRY(file_.get_float("general.sampling.top_p"))) sampling_.top_p = static_cast<f32>(*v);
  if (const auto v = TRY(file_.get_uint("general.sampling.top_k"))) {
    sampling_.top_k = static_cast<u32>(std::min<u64>(*v, tokenizer_->size()));
  }
  if (!ollama_params.empty()) {
    const auto json = nlohmann::json::parse(ollama_params, nullptr, false);
    const auto number = [&](const char* key, auto& out) {
      if (!json.is_object() || !json.contains(key) || !json[key].is_number()) return;
      const f64 value = json[key].get<f64>();
      if (value >= 0 && value <= 1e6) out = static_cast<std::remove_reference_t<decltype(out)>>(value);
    };
    number("temperature", sampling_.temperature);
    number("top_k", sampling_.top_k);
    number("top_p", sampling_.top_p);
    number("min_p", sampling_.min_p);
    number("repeat_penalty", sampling_.repetition_penalty);
    number("presence_penalty", sampling_.presence_penalty);
    number("frequency_penalty", sampling_.frequency_penalty);
  }
  sampling_.suppressed = tokenizer_->suppressed();
  return {};
}

std::vector<u32> Engine::encode_text(std::string_view text) const {
  std::vector<u32> ids{tokenizer_->bos()};
  tokenizer_->encode(text, Specials::kPlain, ids);
  return ids;
}

Result<std::vector<u32>> Engine::encode_chat(std::span<const ChatItem> items) const {
  std::vector<u32> ids;
  for (const ChatItem& item : items) {
    if (!item.special) {
      tokenizer_->encode(item.text, Specials::kPlain, ids);
    } else if (const auto id = tokenizer_->find(item.text)) {
      ids.push_back(*id);
    } else {
      return invalid("This model's vocabulary has no token {}, so it cannot chat; it can only continue text.",
                     item.text);
    }
  }
  return ids;
}

}  // namespace bezel
