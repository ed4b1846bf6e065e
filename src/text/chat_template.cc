// Which of the two templates of chat.h a model was trained with.
#include <algorithm>
#include <optional>
#include <string>

#include "base/types.h"
#include "text/chat.h"

namespace bezel {
namespace {

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Whether "25.8B" is at least 12 thousand million; nothing for text that is not a size.
std::optional<bool> at_least_12_billion(std::string_view size) {
  const std::size_t digits = std::min(size.find_first_not_of("0123456789"), size.size());
  const std::size_t unit_at = std::min(size.find_first_not_of("0123456789."), size.size());
  const std::string unit = lower_case(size.substr(unit_at));
  if (digits == 0) return std::nullopt;
  u32 whole = 0;
  for (const char c : size.substr(0, digits))
    whole = std::min(whole * 10 + static_cast<u32>(c - '0'), 1000000U);
  if (unit == "m") return whole >= 12000;
  if (unit == "b") return whole >= 12;
  return std::nullopt;
}

}  // namespace

Template choose_template(const TemplateHints& hints) {
  if (hints.renderer == "gemma4-small") return Template::kSmall;
  if (hints.renderer == "gemma4-large") return Template::kLarge;
  if (hints.renderer == "gemma4") {
    const std::string name = lower_case(hints.model_name);
    for (const std::string_view size : {"e2b", "e4b"}) {
      if (name.contains(size)) return Template::kSmall;
    }
    for (const std::string_view size : {"12b", "26b", "31b"}) {
      if (name.contains(size)) return Template::kLarge;
    }
    if (const auto large = at_least_12_billion(hints.parameter_size)) {
      return *large ? Template::kLarge : Template::kSmall;
    }
  }
  return hints.has_per_layer_embeddings ? Template::kSmall : Template::kLarge;
}

}  // namespace bezel
