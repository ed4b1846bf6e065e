#include "io/ollama_manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format_text.h"
#include "io/files.h"

namespace bezel {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 32;
constexpr std::string_view kMediaPrefix = "application/vnd.ollama.image.";

// An object, with nothing nested deeper than kMaxDepth.
Result<json> parse_object(std::string_view text, const std::string& name) {
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;  // what is not kept takes no memory
  };
  json object = json::parse(text.begin(), text.end(), watch, false);
  if (too_deep) return invalid("{} is nested deeper than {} levels.", name, kMaxDepth);
  if (object.is_discarded()) return invalid("{} is not JSON.", name);
  if (!object.is_object()) return invalid("{} is not a JSON object.", name);
  return object;
}

// Empty for an absent or null key; an error for anything but a string.
Result<std::string> string_at(const json& object, const char* key, const std::string& name) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::string();
  if (!found->is_string()) return invalid("In {}, '{}' is not a string.", name, key);
  return found->get_ref<const std::string&>();
}

Result<OllamaLayer> parse_layer(const json& object, const std::string& name) {
  if (!object.is_object()) return invalid("{} is not an object.", name);
  OllamaLayer layer;
  const std::string media = TRY(string_at(object, "mediaType", name));
  if (media.starts_with(kMediaPrefix)) layer.kind = media.substr(kMediaPrefix.size());
  const std::string digest = TRY(string_at(object, "digest", name));
  const auto digits = digest_digits(digest);
  if (!digits) return invalid("{} has a bad digest: {}", name, digits.error().message);
  layer.digits = *digits;
  const auto size = object.find("size");
  if (size == object.end() || !size->is_number_unsigned()) {
    return invalid("The size of {} is not a whole number from 0 to 2^64 - 1.", name);
  }
  layer.bytes = size->get<u64>();
  return layer;
}

}  // namespace

Result<std::string_view> digest_digits(std::string_view digest) {
  constexpr std::size_t kPrefix = 7, kDigits = 64;
  const auto is_hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  if ((!digest.starts_with("sha256:") && !digest.starts_with("sha256-")) ||
      digest.size() != kPrefix + kDigits || !std::ranges::all_of(digest.substr(kPrefix), is_hex)) {
    return invalid("{} is not 'sha256:' followed by {} hexadecimal digits.", quote(digest), kDigits);
  }
  return digest.substr(kPrefix);
}

Result<OllamaManifest> OllamaManifest::parse(std::string_view text, std::string name) {
  const json object = TRY(parse_object(text, name));
  OllamaManifest manifest{.name = std::move(name), .config = {}, .layers = {}};
  const auto config = object.find("config");
  if (config == object.end()) return invalid("{} has no 'config'.", manifest.name);
  manifest.config = TRY(parse_layer(*config, "The config of " + manifest.name));
  manifest.config.kind = "config";
  const auto layers = object.find("layers");
  if (layers == object.end() || layers->is_null()) return manifest;
  if (!layers->is_array()) return invalid("In {}, 'layers' is not an array.", manifest.name);
  std::set<OllamaLayer> seen;
  for (std::size_t i = 0; i < layers->size(); ++i) {
    auto layer = TRY(parse_layer((*layers)[i], format_text("Layer {} of {}", i, manifest.name)));
    if (seen.insert(layer).second) manifest.layers.push_back(std::move(layer));
  }
  return manifest;
}

bool OllamaManifest::has(std::string_view kind) const {
  return std::ranges::find(layers, kind, &OllamaLayer::kind) != layers.end();
}

Result<std::optional<OllamaLayer>> OllamaManifest::only(std::string_view kind) const {
  const auto count = std::ranges::count(layers, kind, &OllamaLayer::kind);
  if (count > 1) return invalid("{} has {} different layers of the kind '{}', not one.", name, count, kind);
  if (count == 0) return std::optional<OllamaLayer>();
  return *std::ranges::find(layers, kind, &OllamaLayer::kind);
}

Result<OllamaConfig> OllamaConfig::parse(std::string_view text, const std::string& name) {
  const json object = TRY(parse_object(text, name));
  return OllamaConfig{.format = TRY(string_at(object, "model_format", name)),
                      .family = TRY(string_at(object, "model_family", name)),
                      .model_type = TRY(string_at(object, "model_type", name)),
                      .file_type = TRY(string_at(object, "file_type", name)),
                      .renderer = TRY(string_at(object, "renderer", name)),
                      .parser = TRY(string_at(object, "parser", name)),
                      .requires_version = TRY(string_at(object, "requires", name)),
                      .remote_host = TRY(string_at(object, "remote_host", name)),
                      .remote_model = TRY(string_at(object, "remote_model", name))};
}

}  // namespace bezel
