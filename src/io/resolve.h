// From what a person types, a path or an Ollama name, to the files of a model.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/ollama_store.h"

namespace bezel {

struct ModelFiles {
  std::string model;  // of a model in several parts, the part that was named
  std::optional<std::string> projector;
  std::optional<std::string> draft;
  std::vector<std::string> adapters;
  std::optional<OllamaModel> ollama;  // where it came from the store: settings besides the files
};

// Written as only a path is ("/x", "./x", "../x", "x.gguf") or the name of an existing file.
bool looks_like_path(const std::string& path_or_name);

// The store is only looked at for what is not a path.
Result<ModelFiles> resolve_model(const std::string& path_or_name);
Result<ModelFiles> resolve_model(const std::string& path_or_name, const OllamaStore& store);

}  // namespace bezel
