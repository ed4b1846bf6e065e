#include "text/detokenizer.h"

namespace bezel {

std::string Detokenizer::push(u32 id) {
  if (tokenizer_->is_special(id)) return finish();
  std::string bytes;
  tokenizer_->decode(id, bytes);
  std::string text;
  stream_.push(bytes, text);
  return text;
}

std::string Detokenizer::finish() {
  std::string text;
  stream_.finish(text);
  return text;
}

}  // namespace bezel
