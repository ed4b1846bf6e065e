#include "io/ollama_name.h"

#include <algorithm>
#include <vector>

#include "io/ascii.h"
#include "io/files.h"

namespace bezel {
namespace {

struct PartRule {
  std::string_view what;
  std::size_t max_bytes;
  std::string_view allowed;  // besides letters, digits and '_'; not as the first character
};

constexpr PartRule kHost{"host", 350, "-.:"};
constexpr PartRule kSpace{"namespace", 80, "-"};
constexpr PartRule kModel{"model", 80, "-."};
constexpr PartRule kTag{"tag", 80, "-."};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

Status check_part(const PartRule& rule, std::string_view part) {
  if (part.empty()) return invalid("the {} is empty", rule.what);
  if (part.size() > rule.max_bytes) {
    return invalid("the {} has {} bytes, more than {}", rule.what, part.size(), rule.max_bytes);
  }
  const auto fits = [&](char c) { return is_word(c) || rule.allowed.contains(c); };
  if (!is_word(part.front()) || !std::ranges::all_of(part, fits)) {
    return invalid("the {} {} may contain only letters, digits, '_' and, not in front, any of '{}'",
                   rule.what, quote(part), rule.allowed);
  }
  return {};
}

}  // namespace

Result<OllamaName> OllamaName::from_parts(std::string_view host, std::string_view space,
                                          std::string_view model, std::string_view tag) {
  TRY(check_part(kHost, host));
  TRY(check_part(kSpace, space));
  TRY(check_part(kModel, model));
  TRY(check_part(kTag, tag));
  return OllamaName{std::string(host), std::string(space), std::string(model), std::string(tag)};
}

Result<OllamaName> OllamaName::parse(std::string_view text) {
  const OllamaName defaults;
  std::string_view rest = text;
  std::string_view tag = defaults.tag;
  const std::size_t colon = rest.rfind(':');
  // A colon before the last slash belongs to the host's port.
  if (colon != std::string_view::npos && rest.find('/', colon) == std::string_view::npos) {
    tag = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
  }
  std::vector<std::string_view> parts;
  for (std::size_t slash = 0; (slash = rest.find('/')) != std::string_view::npos;) {
    parts.push_back(rest.substr(0, slash));
    rest = rest.substr(slash + 1);
  }
  const std::string_view model = rest;
  if (parts.size() > 2) {
    return invalid("{} is not a model name: it has {} slashes, [host/][namespace/]model[:tag] has at most 2.",
                   quote(text), parts.size());
  }
  const std::string_view space = parts.empty() ? defaults.space : parts.back();
  const std::string_view host = parts.size() < 2 ? defaults.host : parts.front();
  auto name = from_parts(host, space, model, tag);
  if (!name) return invalid("{} is not a model name: {}.", quote(text), name.error().message);
  return name;
}

std::string OllamaName::display() const {
  const OllamaName defaults;
  std::string text;
  if (host != defaults.host) text += host + "/";
  if (!text.empty() || space != defaults.space) text += space + "/";
  return text + model + ":" + tag;
}

std::string OllamaName::path() const { return host + "/" + space + "/" + model + "/" + tag; }

bool OllamaName::same(const OllamaName& other) const {
  return lower_case(path()) == lower_case(other.path());
}

}  // namespace bezel
