#include "base/format_text.h"
#include "gguf/gguf.h"
#include "text/tokenizer.h"

namespace bezel {
namespace {

// The strings under `key`; an error if there are none.
Result<std::vector<std::string_view>> strings(const Gguf& gguf, std::string_view key) {
  const Value* value = gguf.find(key);
  if (value == nullptr) return invalid("{} has no key '{}', so no tokenizer.", gguf.name(), key);
  auto texts = value->as_strings();
  if (!texts) return invalid("Key '{}' of {} is not an array of strings.", key, gguf.name());
  return *std::move(texts);
}

// The integers under `key`; empty if there is no such key.
Result<std::vector<i64>> integers(const Gguf& gguf, std::string_view key) {
  const Value* value = gguf.find(key);
  if (value == nullptr) return std::vector<i64>();
  auto numbers = value->as_ints();
  if (!numbers) return invalid("Key '{}' of {} is not an array of integers.", key, gguf.name());
  return *std::move(numbers);
}

// One entry per token or more; absent is fine.
Status check_count(const Gguf& gguf, std::string_view key, size_t tokens) {
  const Value* value = gguf.find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) return invalid("Key '{}' of {} is not an array.", key, gguf.name());
  if (value->count() >= tokens) return {};
  return invalid("Key '{}' of {} has {} entries for {} tokens.", key, gguf.name(), value->count(), tokens);
}

// A special id that is named must exist, although the engine goes by the pieces' text.
Status check_id(const Gguf& gguf, std::string_view key, size_t tokens) {
  const auto id = TRY(gguf.get_uint(key));
  if (!id || *id < tokens) return {};
  return invalid("Key '{}' of {} is {}, but there are only {} tokens.", key, gguf.name(), *id, tokens);
}

}  // namespace

Result<Tokenizer> Tokenizer::load(const Gguf& gguf) {
  // Ollama writes "llama" for the same tokenizer, which elsewhere means SentencePiece: that has no merges.
  const auto model = TRY(gguf.get_string("tokenizer.ggml.model")).value_or("gemma4");
  if (model != "gemma4" && model != "llama") {
    return fail(ErrorKind::kUnsupported, "{} has a tokenizer of kind '{}'; only 'gemma4' is supported.",
                gguf.name(), model);
  }
  Vocabulary vocabulary;
  vocabulary.pieces = TRY(strings(gguf, "tokenizer.ggml.tokens"));
  vocabulary.merges = TRY(strings(gguf, "tokenizer.ggml.merges"));
  vocabulary.suppressed = TRY(integers(gguf, "tokenizer.ggml.suppress_tokens"));
  const size_t tokens = vocabulary.pieces.size();
  TRY(check_count(gguf, "tokenizer.ggml.token_type", tokens));
  TRY(check_count(gguf, "tokenizer.ggml.scores", tokens));
  for (const std::string_view name : {"bos", "eos", "unknown", "padding", "mask"}) {
    TRY(check_id(gguf, format_text("tokenizer.ggml.{}_token_id", name), tokens));
  }
  const TensorInfo* embedding = gguf.tensor("token_embd.weight");
  if (embedding != nullptr && embedding->ne[1] != tokens) {
    return invalid("{} has {} tokens but 'token_embd.weight' has {} rows.", gguf.name(), tokens,
                   embedding->ne[1]);
  }
  for (const i64 type : TRY(integers(gguf, "tokenizer.ggml.token_type"))) {
    // A type that no format knows counts as none.
    vocabulary.types.push_back(type >= 0 && type <= 255 ? static_cast<u8>(type) : u8{0});
  }
  return build(vocabulary);
}

}  // namespace bezel
