// White space as templates trim it: the Unicode set, on UTF-8 text. Invalid bytes are not white space.
#pragma once
#include <cstddef>
#include <string_view>

namespace bezel {

constexpr bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

namespace detail {
inline constexpr std::string_view kWideSpaces[] = {
    "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
    "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
constexpr bool is_space(char c) { return is_ascii_space(c) || (c >= '\x1c' && c <= '\x1f'); }
}  // namespace detail

constexpr std::string_view trim_left(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = detail::is_space(text.front()) ? 1 : 0;
    for (const std::string_view space : detail::kWideSpaces) {
      if (text.starts_with(space)) length = space.size();
    }
    if (length == 0) break;
    text.remove_prefix(length);
  }
  return text;
}

constexpr std::string_view trim_right(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = detail::is_space(text.back()) ? 1 : 0;
    for (const std::string_view space : detail::kWideSpaces) {
      if (text.ends_with(space)) length = space.size();
    }
    if (length == 0) break;
    text.remove_suffix(length);
  }
  return text;
}

constexpr std::string_view trim(std::string_view text) { return trim_left(trim_right(text)); }

}  // namespace bezel
