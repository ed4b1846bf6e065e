#include "text/base64.h"

#include "base/quote.h"

namespace bezel {
namespace {

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  if (c == '/' || c == '_') return 63;
  return -1;
}

}  // namespace

Result<std::vector<std::byte>> decode_base64(std::string_view text) {
  std::vector<std::byte> out;
  out.reserve(text.size() / 4 * 3 + 3);
  u32 bits = 0, count = 0;
  bool ended = false;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    if (c == '=') {
      ended = true;
      continue;
    }
    const int value = value_of(c);
    if (value < 0 || ended) return invalid("{} is not base64.", quote(text.substr(0, 40)));
    bits = bits << 6 | static_cast<u32>(value);
    if (++count % 4 != 1) out.push_back(static_cast<std::byte>(bits >> (6 - 2 * ((count - 1) % 4)) & 0xFF));
  }
  if (count % 4 == 1) return invalid("{} is not base64: it ends within a byte.", quote(text.substr(0, 40)));
  return out;
}

}  // namespace bezel
