// Letters of names and digests. Locales have no say in them.
#pragma once
#include <string>
#include <string_view>

namespace bezel {

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

}  // namespace bezel
