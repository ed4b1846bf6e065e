#include "io/resolve.h"

#include "io/ascii.h"
#include "io/files.h"

namespace bezel {
namespace {

ModelFiles files_of(OllamaModel model) {
  ModelFiles files{.model = model.model.path, .projector = {}, .draft = {}, .adapters = {}, .ollama = {}};
  if (model.projector) files.projector = model.projector->path;
  if (model.draft) files.draft = model.draft->path;
  for (const OllamaBlob& adapter : model.adapters) files.adapters.push_back(adapter.path);
  files.ollama = std::move(model);
  return files;
}

}  // namespace

bool looks_like_path(const std::string& text) {
  return text.starts_with('/') || text.starts_with("./") || text.starts_with("../") ||
         lower_case(text).ends_with(".gguf") || is_file(text);
}

Result<ModelFiles> resolve_model(const std::string& text, const OllamaStore& store) {
  if (text.empty()) return invalid("The model's path or name is empty.");
  if (looks_like_path(text)) {
    // Only existence is checked here; whoever opens the file finds out whether it is a model.
    const auto size = file_size(text);
    if (!size) return std::unexpected(size.error());
    return ModelFiles{.model = text, .projector = {}, .draft = {}, .adapters = {}, .ollama = {}};
  }
  auto model = store.resolve(text);
  if (model) return files_of(std::move(*model));
  if (model.error().kind == ErrorKind::kNotFound || !OllamaName::parse(text)) {
    return fail(ErrorKind::kNotFound, "{} is {}, and it was not found as an Ollama model: {}", quote(text),
                is_folder(text) ? "a folder, not a file" : "not a file", model.error().message);
  }
  return std::unexpected(std::move(model).error());
}

Result<ModelFiles> resolve_model(const std::string& text) {
  return resolve_model(text, OllamaStore::at(OllamaStore::default_root()));
}

}  // namespace bezel
