// The model files that a server offers to browsers: Ollama's, those of a folder, and those it was given by
// name. Looked up anew each time: models come and go while a server runs.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/ollama_store.h"
#include "run/engine.h"

namespace bezel {

struct CatalogFile {
  std::string path;
  u64 bytes = 0;
  std::string digest;  // "sha256:..." where it is known
};

struct CatalogModel {
  std::string name;
  std::vector<CatalogFile> parts;  // of a split model several
  std::optional<CatalogFile> projector, draft;
  EngineHints hints;
  std::string family, quantisation, system;
};

class Catalog {
 public:
  // `folder` may be empty; `files` are paths of models outside of it.
  Catalog(OllamaStore store, std::string folder, std::vector<std::string> files)
      : store_(std::move(store)), folder_(std::move(folder)), files_(std::move(files)) {}

  // Of two models with one name the first is listed: files by path, then the folder, then Ollama.
  std::vector<CatalogModel> list() const;
  // By a model's name, or by the digest of one of its files. The text never becomes a path.
  Result<CatalogFile> find(const std::string& name_or_digest, std::size_t part = 0) const;

  // How a path is listed: "x/gemma.gguf" as "gemma", parts of split models without their numbers.
  static std::string name_of(const std::string& path);

 private:
  std::vector<CatalogModel> from_files() const;

  OllamaStore store_;
  std::string folder_;
  std::vector<std::string> files_;
};

// What GET /api/models tells; `hints` has the names of the arguments with which the web's engine loads.
nlohmann::json describe(const CatalogModel& model);

}  // namespace bezel
