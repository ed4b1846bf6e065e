// Ids back into text, one at a time.
#pragma once
#include <string>

#include "text/tokenizer.h"
#include "text/utf8.h"

namespace bezel {

// Gives only whole characters: bytes of one that is not complete yet wait for the next token. The tokenizer
// must outlive it.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // The text that this token completes; often all of its own, sometimes none. A special ends a character that
  // was not complete: its rest cannot follow any more.
  std::string push(u32 id);
  // What is left at the end: U+FFFD for an incomplete character, else nothing.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  Utf8Stream stream_;
};

}  // namespace bezel
