// UTF-8, strictly: overlong forms, surrogates and anything above U+10FFFF are invalid.
#pragma once
#include <string>
#include <string_view>

#include "base/types.h"

namespace bezel {

inline constexpr char32_t kReplacement = U'\uFFFD';

struct Utf8Char {
  enum class State { kValid, kInvalid, kIncomplete };
  State state = State::kIncomplete;
  char32_t code_point = kReplacement;
  // Bytes it covers. For an invalid one the bytes that began well (at least one): what is to be replaced by a
  // single U+FFFD. For an incomplete one all the bytes there were.
  u32 length = 0;
};

// The first character of `text`. Incomplete: `text` ends (or is empty) where more bytes could make it valid.
Utf8Char decode_utf8(std::string_view text);

// How many bytes a character with this first byte has; 0 when no character begins with it.
u32 utf8_length(u8 first);

// A value that is no character (a surrogate, too large) appends U+FFFD.
void append_utf8(char32_t code_point, std::string& out);

// Turns bytes in any slicing into valid UTF-8. The concatenated output does not depend on the slicing.
class Utf8Stream {
 public:
  // Appends what is complete; an unfinished character waits for the next call. Invalid bytes become U+FFFD.
  void push(std::string_view bytes, std::string& out);
  // The end of the input: an unfinished character becomes U+FFFD.
  void finish(std::string& out);

 private:
  std::string tail_;  // at most three bytes between calls
};

}  // namespace bezel
