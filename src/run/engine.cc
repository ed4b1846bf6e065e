#include "run/engine.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace bezel {

Task<Result<std::unique_ptr<Engine>>> Engine::load(Gguf file, EngineHints hints, LoadOptions options,
                                                   std::optional<Gguf> projector) {
  std::unique_ptr<Engine> engine(new Engine(std::move(file), std::move(projector)));
  Device* device = options.device;
  const bool bf16_rope = options.bf16_rope;
  engine->tokenizer_ = CO_TRY(Tokenizer::load(engine->file_));
  CO_TRY(engine->read_sampling(hints.ollama_params));
  engine->backend_ = CO_TRY(co_await load_backend(engine->file_, std::move(options)));
  const TextConfig& config = engine->config();
  engine->towers_.emplace(engine->file_, engine->projector_ ? &*engine->projector_ : nullptr, config.width,
                          device, bf16_rope);
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

Result<u32> Engine::control(std::string_view name) const {
  if (const auto id = tokenizer_->find(name)) return *id;
  return invalid("This model's vocabulary has no token {}, so it cannot chat; it can only continue text.",
                 name);
}

Status Engine::add_medium(std::string_view placeholder, const Medium& medium, Prompt& prompt) const {
  const bool sound = placeholder == marker::kAudio;
  const u32 begin = TRY(control(sound ? marker::kAudioBegin : marker::kImageBegin));
  const u32 end = TRY(control(sound ? marker::kAudioEnd : marker::kImageEnd));
  const u32 id = TRY(control(placeholder));
  std::string before;  // "00:00 <|image>...<image|> 00:01 <|image>...<image|>"
  for (const Medium::Frame& frame : medium.frames) {
    if (!frame.time.empty()) tokenizer_->encode(before + frame.time + " ", Specials::kPlain, prompt.ids);
    before = " ";
    prompt.ids.push_back(begin);
    prompt.soft.push_back({prompt.size(), frame.tokens});
    prompt.ids.insert(prompt.ids.end(), frame.tokens->count, id);
    prompt.ids.push_back(end);
  }
  return {};
}

Result<Prompt> Engine::encode_chat(std::span<const ChatItem> items, std::span<const Medium> media) const {
  Prompt prompt;
  std::size_t next = 0;
  for (const ChatItem& item : items) {
    const bool placeholder =
        item.text == marker::kImage || item.text == marker::kAudio || item.text == marker::kVideo;
    if (!item.special) {
      tokenizer_->encode(item.text, Specials::kPlain, prompt.ids);
    } else if (placeholder && !media.empty()) {
      if (next == media.size()) return invalid("The chat has more pictures and recordings than were given.");
      TRY(add_medium(item.text, media[next++], prompt));
    } else {
      prompt.ids.push_back(TRY(control(item.text)));
    }
  }
  if (next < media.size()) {
    return invalid("{} pictures and recordings were given, but the chat has a place for {}.", media.size(),
                   next);
  }
  return prompt;
}

}  // namespace bezel
