#include "api/catalog.h"

#include <algorithm>

#include "api/http.h"
#include "base/format_text.h"
#include "gguf/gguf.h"
#include "io/ascii.h"
#include "io/files.h"

namespace bezel {
namespace {

using nlohmann::json;

CatalogFile from_blob(const OllamaBlob& blob) {
  return {.path = blob.path, .bytes = blob.bytes, .digest = blob.digest};
}

CatalogModel from_ollama(OllamaModel model) {
  CatalogModel out;
  out.name = model.name;
  out.parts = {from_blob(model.model)};
  if (model.projector) out.projector = from_blob(*model.projector);
  if (model.draft) out.draft = from_blob(*model.draft);
  out.hints = {.renderer = model.renderer,
               .model_name = model.name,
               .parameter_size = model.model_type,
               .ollama_params = model.params};
  out.family = model.family;
  out.quantisation = model.file_type;
  out.system = model.system;
  return out;
}

// Nothing where a part is missing, and for any part but the first: that one stands for all.
std::optional<CatalogModel> from_path(const std::string& path) {
  const auto paths = split_paths(path);
  if (!paths || paths->front() != path) return std::nullopt;
  CatalogModel out;
  out.name = Catalog::name_of(path);
  for (const std::string& part : *paths) {
    const auto bytes = file_size(part);
    if (!bytes) return std::nullopt;
    out.parts.push_back({.path = part, .bytes = *bytes, .digest = {}});
  }
  return out;
}

json describe_file(const CatalogFile& file, const std::string& url) {
  json out{{"url", url}, {"size", file.bytes}};
  if (!file.digest.empty()) out["digest"] = file.digest;
  return out;
}

}  // namespace

std::string Catalog::name_of(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (lower_case(name).ends_with(".gguf")) name.resize(name.size() - 5);
  const auto paths = split_paths(path);
  if (paths && paths->size() > 1) name.resize(name.size() - std::string_view("-00001-of-00002").size());
  return name;
}

std::vector<CatalogModel> Catalog::from_files() const {
  std::vector<std::string> paths = files_;
  if (!folder_.empty()) {
    for (const std::string& name : list_folder(folder_).value_or(std::vector<std::string>())) {
      if (!name.starts_with('.') && lower_case(name).ends_with(".gguf"))
        paths.push_back(folder_ + "/" + name);
    }
  }
  std::vector<CatalogModel> models;
  for (const std::string& path : paths) {
    auto model = from_path(path);
    if (model && !std::ranges::contains(models, model->name, &CatalogModel::name)) {
      models.push_back(std::move(*model));
    }
  }
  return models;
}

std::vector<CatalogModel> Catalog::list() const {
  std::vector<CatalogModel> models = from_files();
  for (const std::string& name : store_.list().value_or(std::vector<std::string>())) {
    auto model = store_.resolve(name);
    if (model && !std::ranges::contains(models, model->name, &CatalogModel::name)) {
      models.push_back(from_ollama(std::move(*model)));
    }
  }
  return models;
}

Result<CatalogFile> Catalog::find(const std::string& wanted, std::size_t part) const {
  const auto missing = fail(ErrorKind::kNotFound, "There is no model {} here.", quote(wanted));
  if (wanted.starts_with("sha256:")) {
    for (const CatalogModel& model : list()) {
      for (const CatalogFile& file : model.parts) {
        if (file.digest == wanted) return file;
      }
      for (const auto* other : {&model.projector, &model.draft}) {
        if (*other && (*other)->digest == wanted) return **other;
      }
    }
    return missing;
  }
  // Many ranges of one model are asked for in a row: without reading every manifest of the store each time.
  for (CatalogModel& model : from_files()) {
    if (model.name != wanted) continue;
    if (part >= model.parts.size()) return missing;
    return std::move(model.parts[part]);
  }
  auto model = store_.resolve(wanted);
  if (!model || part > 0) return missing;
  return from_blob(model->model);
}

json describe(const CatalogModel& model) {
  const std::string url = format_text("/api/models/{}/blob", percent_encode(model.name));
  u64 size = 0;
  json parts = json::array();
  for (const CatalogFile& file : model.parts) {
    parts.push_back(describe_file(file, parts.empty() ? url : format_text("{}/{}", url, parts.size())));
    size += file.bytes;
  }
  json out{{"name", model.name}, {"size", size}, {"url", url}, {"parts", std::move(parts)}};
  const auto put = [](json& where, const char* key, const std::string& text) {
    if (!text.empty()) where[key] = text;
  };
  put(out, "digest", model.parts.size() == 1 ? model.parts[0].digest : std::string());
  put(out, "family", model.family);
  put(out, "quantization", model.quantisation);
  put(out, "system", model.system);
  json hints = json::object();
  put(hints, "renderer", model.hints.renderer);
  put(hints, "modelName", model.hints.model_name);
  put(hints, "parameterSize", model.hints.parameter_size);
  put(hints, "ollamaParams", model.hints.ollama_params);
  out["hints"] = std::move(hints);
  const auto by_digest = [](const CatalogFile& file) {
    return describe_file(file, format_text("/api/models/{}/blob", percent_encode(file.digest)));
  };
  if (model.projector) out["projector"] = by_digest(*model.projector);
  if (model.draft) out["draft"] = by_digest(*model.draft);
  return out;
}

}  // namespace bezel
