// An Ollama manifest as untrusted JSON: which blobs a model consists of. Touches no other file.
#pragma once
#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace bezel {

// Manifests of models split into one layer a tensor reach a megabyte; those, too, get a proper refusal.
constexpr u64 kMaxManifestBytes = 4 << 20;

// The 64 digits, as written, of "sha256:..." or "sha256-..."; an error for anything else, so that a digest
// can become part of a path.
Result<std::string_view> digest_digits(std::string_view digest);

struct OllamaLayer {
  std::string kind;    // "model" for application/vnd.ollama.image.model; empty for foreign media types
  std::string digits;  // as written: 64 hexadecimal digits
  u64 bytes = 0;

  auto operator<=>(const OllamaLayer&) const = default;
};

struct OllamaManifest {
  std::string name;  // for messages: its path
  OllamaLayer config;
  std::vector<OllamaLayer> layers;  // without repetitions

  static Result<OllamaManifest> parse(std::string_view json, std::string name);

  bool has(std::string_view kind) const;
  // The only layer of that kind; an error when there are several.
  Result<std::optional<OllamaLayer>> only(std::string_view kind) const;
};

// What the config says; empty where it says nothing.
struct OllamaConfig {
  std::string format, family, model_type, file_type, renderer, parser, requires_version;
  std::string remote_host, remote_model;

  static Result<OllamaConfig> parse(std::string_view json, const std::string& name);
};

}  // namespace bezel
