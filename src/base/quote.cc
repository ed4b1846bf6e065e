#include "base/quote.h"

#include "base/format_text.h"
#include "base/types.h"

namespace bezel {

std::string quote(std::string_view text) {
  constexpr std::size_t kShown = 100;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += format_text("\\x{:02x}", static_cast<u8>(c));
    }
  }
  out += text.size() > kShown ? "...'" : "'";
  return out;
}

}  // namespace bezel
