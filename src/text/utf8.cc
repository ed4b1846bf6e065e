#include "text/utf8.h"

namespace bezel {

u32 utf8_length(u8 first) {
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;  // continuation bytes, and leads that only overlong forms have
  if (first < 0xE0) return 2;
  if (first < 0xF0) return 3;
  return first < 0xF5 ? 4 : 0;
}

Utf8Char decode_utf8(std::string_view text) {
  using State = Utf8Char::State;
  if (text.empty()) return {};
  const u8 first = static_cast<u8>(text[0]);
  const u32 length = utf8_length(first);
  if (length == 0) return {State::kInvalid, kReplacement, 1};
  if (length == 1) return {State::kValid, first, 1};

  // Overlongs, surrogates and too large values all show in the second byte.
  u8 low = 0x80;
  u8 high = 0xBF;
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  char32_t code_point = first & (0x7Fu >> length);
  for (u32 i = 1; i < length; ++i) {
    if (i == text.size()) return {State::kIncomplete, kReplacement, i};
    const u8 next = static_cast<u8>(text[i]);
    if (next < low || next > high) return {State::kInvalid, kReplacement, i};
    low = 0x80;
    high = 0xBF;
    code_point = (code_point << 6) | (next & 0x3F);
  }
  return {State::kValid, code_point, length};
}

void append_utf8(char32_t code_point, std::string& out) {
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) code_point = kReplacement;
  const auto continuation = [&](u32 shift) {
    out.push_back(static_cast<char>(0x80 | ((code_point >> shift) & 0x3F)));
  };
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code_point >> 6)));
    continuation(0);
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code_point >> 12)));
    continuation(6);
    continuation(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | (code_point >> 18)));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

void Utf8Stream::push(std::string_view bytes, std::string& out) {
  tail_.append(bytes);
  std::string_view rest = tail_;
  while (!rest.empty()) {
    const Utf8Char next = decode_utf8(rest);
    if (next.state == Utf8Char::State::kIncomplete) break;
    append_utf8(next.code_point, out);
    rest.remove_prefix(next.length);
  }
  tail_.erase(0, tail_.size() - rest.size());
}

void Utf8Stream::finish(std::string& out) {
  if (!tail_.empty()) append_utf8(kReplacement, out);
  tail_.clear();
}

}  // namespace bezel
