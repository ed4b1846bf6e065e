// Names of models as Ollama's users type them: [host/][namespace/]model[:tag].
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace bezel {

struct OllamaName {
  std::string host = "registry.ollama.ai";
  std::string space = "library";
  std::string model;
  std::string tag = "latest";

  // Fails unless every part consists of the characters Ollama allows there; none of them can then climb out
  // of a folder.
  static Result<OllamaName> parse(std::string_view text);
  // From the folders of a store, under the same rules.
  static Result<OllamaName> from_parts(std::string_view host, std::string_view space, std::string_view model,
                                       std::string_view tag);

  // The shortest form that names it: without the default host and namespace, always with the tag.
  std::string display() const;
  // Where its manifest lies below "manifests".
  std::string path() const;
  // Ollama treats names that differ only in upper and lower case as the same model.
  bool same(const OllamaName& other) const;
};

}  // namespace bezel
